"""Ratings and interactions come in here: read from files, frames and arrays, checked, coded, split, or made up."""

from dpsr.data.files.catalogue import read_catalogue
from dpsr.data.interactions import Interactions
from dpsr.data.ratings import Ratings
from dpsr.data.synthetic import demo_ratings, paper_matrix, realistic

__all__ = ["Interactions", "Ratings", "demo_ratings", "paper_matrix", "read_catalogue", "realistic"]
