"""Low-rank completion by alternating projections (Algorithm 1, lines 24 to 37), without a dense matrix.

    R(0)    = Pi_d( r on the observed cells Omega, their mean elsewhere )
    R(t+1)  = lam R(t) + (1 - lam) r   on Omega,   R(t) elsewhere;       then Pi_d after every T-th step

Pi_d cuts the SVD at rank d. Between two cuts R starts from a rank-d matrix L and only the cells of Omega move, towards
the fixed r; T steps therefore have the closed form

    R = L + (1 - lam^T) P_Omega(r - L)  =  low rank + sparse.

The initial filling is of that kind too: mean 1 1' + P_Omega(r - mean). So N iterations are 1 + N // T truncated SVDs of
low rank plus sparse, and the result is exactly L, but for the N mod T steps after the last cut, which move Omega alone.

Where sigma_d = sigma_{d+1} the cut is not unique, and near it a small change of r can move L by much: that is a
property of the paper's method, not of this code.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsr.engine import Block
from dpsr.errors import ParameterError
from dpsr.linalg import LowRankPlusSparse
from dpsr.linalg.compiled import one_blas_thread
from dpsr.linalg.gram import leading_right
from dpsr.linalg.lanes import as_lines
from dpsr.linalg.products import add_dots, row_and_column_sums
from dpsr.types import Census, Mask, Model, PrivateRatings, Scale

Floats = npt.NDArray[np.float64]

EXACT, ENOUGH = 1e-9, 1e-7
"""How far a cut may be from the exact one, as a share of its largest singular value: where it costs nothing, and on
large tables, whose predictions it moves by less than 1e-5 of the scale's width."""

_LARGE = 200_000
"""Ratings from which a product with the table takes time."""


def alternate_projections(smoothed: PrivateRatings, *, rank: int, lam: float, n_iter: int, period: int) -> Model:
    """Complete the matrix at the given rank: relax the observed cells `n_iter` times, cut after every `period`-th.

    The model's user factors are U diag(s) and its item factors V, orthonormal. They have min(rank, m, n) columns.
    """
    check_settings(rank, lam, n_iter, period)
    mask, r = smoothed.mask, smoothed.values
    overall = float(r.mean()) if len(r) else smoothed.scale.midpoint
    P, Q = np.full((mask.n_users, 1), overall), np.ones((mask.n_items, 1))
    P, Q = _cut(P, Q, mask, r - overall, rank, start=None)
    for _ in range(n_iter // period if lam < 1 else 0):
        step = _short_of(r, mask, P, Q)
        step *= 1 - lam**period
        P, Q = _cut(P, Q, mask, step, rank, start=Q)
    short = _short_of(r, mask, P, Q)
    sums = row_and_column_sums(mask.indptr, mask.items, r, mask.n_items)
    with one_blas_thread():
        squares = float(short @ short)
    observed = r - lam ** (n_iter % period) * short if n_iter % period else None
    return completed(mask, smoothed.scale, (P, Q), overall, sums, squares, observed)


def completed(
    mask: Mask | Census,
    scale: Scale,
    factors: tuple[Floats, Floats],
    overall: float,
    sums: tuple[Floats, Floats],
    squares: float,
    observed: Floats | None = None,
) -> Model:
    """The model of two thin factors, from the sums of r by user and by item and the squares it falls short of r by."""
    P, Q = factors
    user_means, item_means = _means(mask, sums, overall)
    return Model(
        mask=mask,
        scale=scale,
        user_factors=P,
        item_factors=Q,
        user_means=user_means,
        item_means=item_means,
        overall=overall,
        residual_variance=squares / max(mask.n_ratings, 1),
        user_mean=P.mean(axis=0),
        user_covariance=np.atleast_2d(np.cov(P, rowvar=False, bias=True)),
        observed=observed,
    )


def check_settings(rank: int, lam: float, n_iter: int, period: int) -> None:
    """Refuse what is no setting of the iteration."""
    if rank < 1:
        raise ParameterError(f"the rank is at least 1, found {rank}. The paper uses 8.")
    if not 0 <= lam <= 1:
        raise ParameterError(f"lam is the share of a cell that stays, from 0 to 1, found {lam}. The paper uses 0.7.")
    if n_iter < 0:
        raise ParameterError(f"the number of iterations is not negative, found {n_iter}. The paper uses 50.")
    if period < 1:
        raise ParameterError(f"the period of the projections is at least 1, found {period}. The paper uses 10.")


def _cut(P: Floats, Q: Floats, mask: Mask, values: Floats, rank: int, *, start: Floats | None) -> tuple[Floats, Floats]:
    """Pi_d of P Q' + S as two thin factors, A V and V; the last V is a good guess of the next."""
    A = LowRankPlusSparse(P, Q, mask.indptr, mask.items, values)
    with one_blas_thread():
        _, V = leading_right(A.gram, mask.n_items, min(rank, mask.n_users), start=start, tol=tolerance(mask.n_ratings))
        return A.times(V), np.ascontiguousarray(V)


def tolerance(n_ratings: int) -> float:
    """How near a cut of so many ratings comes to the exact one."""
    return EXACT if n_ratings < _LARGE else ENOUGH


def _short_of(r: Floats, mask: Mask, P: Floats, Q: Floats) -> Floats:
    """r - P Q' on the observed cells."""
    difference = factors_at_ratings(mask, P, Q)
    return np.subtract(r, difference, out=difference)


def factors_at_ratings(cells: Mask | Block, P: Floats, Q: Floats) -> Floats:
    """P_u . Q_j for every rating; of a block's users, P holds no others."""
    products = np.zeros(len(cells.items))
    for p, q in zip(as_lines(P), as_lines(Q), strict=True):
        add_dots(cells.indptr, cells.items, p, q, products)
    return products


def predictions_at_ratings(model: Model, mask: Mask) -> Floats:
    """The model's predictions for the ratings it was learned from: `model.predict` there, without its temporaries."""
    known = model.observed
    if known is None:
        known = factors_at_ratings(mask, model.user_factors, model.item_factors)
    return model.scale.clip(known)


def _means(mask: Mask | Census, sums: tuple[Floats, Floats], overall: float) -> tuple[Floats, Floats]:
    """User and item means of the smoothed ratings; the overall mean where there is none."""
    counts = mask.user_counts, mask.item_counts
    user, item = (np.where(n > 0, s / np.maximum(n, 1), overall) for s, n in zip(sums, counts, strict=True))
    return user, item
