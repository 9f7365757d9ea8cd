"""Does a release serve any learner? Learners people use, trained on raw and on released ratings, tested on raw ones.

Everything here compares with raw held-out ratings: its numbers are **not private**.
"""

from dpsr.evaluate.downstream.inputs import INPUTS
from dpsr.evaluate.downstream.learners import LEARNERS

__all__ = ["INPUTS", "LEARNERS"]
