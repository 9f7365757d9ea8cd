"""Arrays in, arrays out: compiled sparse kernels and the truncated SVD of a low-rank plus sparse matrix."""

from dpsr.linalg.operator import LowRankPlusSparse
from dpsr.linalg.pattern import Pattern
from dpsr.linalg.svd import truncated_svd

__all__ = ["LowRankPlusSparse", "Pattern", "truncated_svd"]
