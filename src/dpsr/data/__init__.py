"""Ratings come in here: read from files, frames and arrays, checked, put on the declared scale, split, or made up."""

from dpsr.data.files.catalogue import read_catalogue
from dpsr.data.ratings import Ratings
from dpsr.data.synthetic import demo_ratings, paper_matrix, realistic

__all__ = ["Ratings", "demo_ratings", "paper_matrix", "read_catalogue", "realistic"]
