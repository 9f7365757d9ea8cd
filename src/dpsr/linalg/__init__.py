"""Arrays in, arrays out: compiled sparse kernels and the leading singular vectors of a low-rank plus sparse matrix."""

from dpsr.linalg.gram import leading_right
from dpsr.linalg.operator import LowRankPlusSparse

__all__ = ["LowRankPlusSparse", "leading_right"]
