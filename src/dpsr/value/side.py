r"""One side of the hierarchical Gaussian model: the posteriors of its rows, and their prior.

Row i (an item, or a user) has coefficients  b_i ~ N(E V' f_i, L),  f_i its public features, V shared, E the embedding
into the first coordinates. It sees

    its ratings      t_e = x_e . b_i + N(0, 1/w_e)         A_i = sum w x x',   h_i = sum w t x
    one observation      s_i = b_i[0] + N(0, k_i)              A_i[0,0] += 1/k,    h_i[0] += s/k

and with C_i = (L^-1 + A_i)^-1 everything is closed form:

    V by generalised least squares with b_i integrated out, M_i = L^-1 - L^-1 C_i L^-1:
        sum_i (f_i f_i' x M_i) vec(V) = sum_i f_i x L^-1 C_i h_i            (ridge by evidence)
    b_i = C_i (h_i + L^-1 E V' f_i)
    L by the minorise-maximise step of Zhou et al. (2019), which does not lower the evidence:
        L <- N^-1/2 (N^1/2 S N^1/2)^1/2 N^-1/2,    N = sum_i M_i,   S = sum_i dev_i dev_i'

What the rows say about V and L are sums over rows (`Evidence`), so a side may be updated a block at a time.

**Coordinates.** All of this is computed for beta = U^-1 b, L = U U', where the prior covariance is the identity:

    B_i = (I + U' A_i U)^-1,    C_i = U B_i U',    C_i L^-1 = U B_i U^-1,    U' M_i U = I - B_i,

so that nothing is left to multiply, and no matrix is worse conditioned than the ratings make it: single precision is
enough. U is upper triangular, so U^-1 E V' f_i stays in the first coordinates and the factors' covariance in the last.

Known gap: the step for L is over-relaxed for speed, so that its monotonicity is observed and not proved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag, lapack

from dpsr.arrays import AnyFloats, Floats, Singles
from dpsr.linalg.compiled import threads_for
from dpsr.value.kernels import Solved, covariances, known_products, packed_size, packed_times, solve_rows

_COEFFICIENTS = 3.0
"""Pseudo-coefficients behind the prior ridge of a group."""

_ROWS = 10.0
"""Pseudo-rows, beside one per dimension, behind the prior covariance: they decide on a thousand ratings and are
forgotten at a hundred thousand."""

_BLOCK = 2048
"""Rows solved, or multiplied, at a time; bounds memory."""


@dataclass(eq=False)
class Prior:
    """Features, V and the ridge of its groups, and the covariance L; `learn` moves the last three."""

    features: Floats
    groups: npt.NDArray[np.int64]
    ridge: Floats
    default_ridge: Floats
    covariance: Floats
    start: Floats
    weights: Floats
    centre: Floats | float = 0.0
    known: Floats | float = 0.0
    """V is a deviation from the `centre`, which is `known` with this precision from elsewhere, beside its ridge."""

    @classmethod
    def of(
        cls,
        features: Floats,
        groups: npt.NDArray[np.int64],
        ridge: Floats,
        default_ridge: Floats,
        covariance: Floats,
        *,
        centre: Floats | float = 0.0,
        known: Floats | float = 0.0,
    ) -> Prior:
        """A prior before any evidence."""
        zeros = np.zeros(groups.shape)
        return cls(features, groups, ridge.copy(), default_ridge, covariance, covariance.copy(), zeros, centre, known)

    @property
    def dimensions(self) -> int:
        return len(self.covariance)

    @cached_property
    def root(self) -> Floats:
        """U, upper triangular, with L = U U'."""
        return np.ascontiguousarray(np.linalg.cholesky(self.covariance[::-1, ::-1])[::-1, ::-1])

    @cached_property
    def feature_back(self) -> Floats:
        """U^-1 of the first coordinates, those that features explain."""
        first = self.groups.shape[1]
        return np.asarray(np.linalg.inv(self.root[:first, :first]))

    def _believe(self, covariance: Floats) -> None:
        """Another L, with another root."""
        self.covariance = covariance
        for name in ("root", "feature_back"):
            self.__dict__.pop(name, None)

    def start_effect_at(self, variance: float) -> None:
        """Believe in this variance of the effect, the first coordinate, before rows are looked at."""
        self.covariance[0, 0] = self.start[0, 0] = variance
        self._believe(self.covariance)

    def widen(self, variances: Floats) -> None:
        """More coordinates behind the others, of these variances and independent of everything."""
        more = np.diag(variances)
        self._believe(block_diag(self.covariance, more))
        self.start = block_diag(self.start, more)

    def keep(self, dimensions: int) -> None:
        """The first coordinates alone."""
        self._believe(self.covariance[:dimensions, :dimensions].copy())
        self.start = self.start[:dimensions, :dimensions].copy()

    def learn_weights(self, evidence: Evidence) -> None:
        """V: ridge with one precision a group, each a step nearer to MacKay's fixed point; group 0 keeps its prior."""
        (q, dx), groups, back = self.groups.shape, self.groups.ravel(), self.feature_back
        whole = evidence.gram[_places(q)][:, _places(dx)].reshape(q, q, dx, dx)
        gram = (back.T @ whole @ back).transpose(0, 2, 1, 3).reshape(q * dx, q * dx)
        right = (evidence.right @ back).ravel()
        covariance = inverse(gram + self.known + np.diag(self.ridge[groups]))
        theta = covariance @ right
        known = 1 - self.ridge[groups] * np.diag(covariance)
        weights = theta + np.ravel(self.centre)
        for g in range(1, len(self.ridge)):
            member = groups == g
            if member.any():
                size = weights[member] @ weights[member] + _COEFFICIENTS / self.default_ridge[g]
                self.ridge[g] = (known[member].sum() + _COEFFICIENTS) / size
        self.weights = theta.reshape(q, dx)

    def learn_covariance(self, evidence: Evidence) -> None:
        """L: the minorise-maximise step, over-relaxed: twice the geodesic step, eigenvalues within a factor of four."""
        d, root = self.dimensions, self.root
        back, pseudo = np.linalg.inv(root), _ROWS + d
        N = (evidence.rows[0] + pseudo) * np.eye(d) - evidence.total
        S = evidence.scatter + pseudo * back @ self.start @ back.T
        e, u = np.linalg.eigh(_geometric((N + N.T) / 2, (S + S.T) / 2))
        new = root @ ((u * np.clip(e, 0.5, 2.0) ** 2) @ u.T) @ root.T
        self._believe((new + new.T) / 2 + 1e-7 * np.eye(d))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What rows say about their prior: sums over rows, added to in place, where its covariance is the identity.

    `gram`, whose two factors are packed, and `right` are the normal equations of V, `total` the sum of B_i, `scatter`
    that of dev_i dev_i', over `rows` rows with ratings.
    """

    gram: Floats
    right: Floats
    total: Floats
    scatter: Floats
    rows: Floats

    @classmethod
    def none(cls, prior: Prior) -> Evidence:
        """Sums of nothing."""
        (q, dx), d = prior.groups.shape, prior.dimensions
        gram = np.zeros((packed_size(q), packed_size(dx)))
        return cls(gram, np.zeros((q, dx)), np.zeros((d, d)), np.zeros((d, d)), np.zeros(1))

    @property
    def sums(self) -> tuple[Floats, ...]:
        return self.gram, self.right, self.total, self.scatter, self.rows


@dataclass(frozen=True, eq=False)
class Rows:
    """Normal equations of some rows: U' A U packed, U' h, the observation, features, and which rows have ratings.

    `root` is the U whose coordinates they are in.
    """

    root: Floats
    a: AnyFloats
    h: Floats
    observed_effect: Floats
    observed_variance: Floats
    features: Floats
    active: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Posterior:
    """Means, marginal variances, and the covariance of the last k coordinates (packed), row by row."""

    mean: Floats
    variance: Singles
    factor_covariance: Singles

    @classmethod
    def empty(cls, n: int, d: int, k: int) -> Posterior:
        """Room for n rows."""
        return cls(np.empty((n, d)), np.empty((n, d), np.float32), np.empty((n, packed_size(k)), np.float32))


def posterior(rows: Rows, prior: Prior, k: int, evidence: Evidence, *, weights_first: bool = False) -> Posterior:
    """The posterior of all rows at the present prior; what they say about V and L is added to `evidence`.

    With `weights_first` the prior learns V from it before the rows do.
    """
    n, d, dx, root = len(rows.h), prior.dimensions, prior.groups.shape[1], rows.root
    result, pieces = Posterior.empty(n, d, k), _pieces(n)
    solved: Iterable[Solved] = (_solve(rows, piece, prior, result, evidence) for piece in pieces)
    if weights_first:
        solved = list(solved)
        prior.learn_weights(evidence)
    weights = prior.weights @ prior.feature_back.T
    for piece, one in zip(pieces, solved, strict=True):
        expected, beta = rows.features[piece] @ weights, one.mean
        with threads_for(len(beta) * d * dx):
            packed_times(one.covariance, expected, beta)
        result.mean[piece] = beta @ root.T
        beta[:, :dx] -= expected
        deviations = beta[rows.active[piece]]
        evidence.scatter[:] += deviations.T @ deviations
        evidence.rows[:] += len(deviations)
    return result


def posterior_covariances(rows: Rows, prior: Prior) -> Singles:
    """C_i of every row at the present prior, packed; the prior may have learned since the rows were made."""
    packed, root = np.empty(rows.a.shape, np.float32), rows.root.astype(np.float32)
    within = np.linalg.inv(prior.root) @ rows.root
    with threads_for(len(packed) * len(root) ** 3):
        covariances(rows.a, (within.T @ within).astype(np.float32), root, 1 / rows.observed_variance, packed)
    return packed


def congruence(root: Floats) -> Singles:
    """The matrix that takes a packed symmetric S to the packed U S U'."""
    i, j = _triangle(len(root))
    both = root[i][:, i] * root[j][:, j] + np.where(i == j, 0.0, root[i][:, j] * root[j][:, i])
    return both.astype(np.float32)


def _pieces(n: int) -> list[slice]:
    return [slice(at, min(at + _BLOCK, n)) for at in range(0, n, _BLOCK)]


def _solve(rows: Rows, piece: slice, prior: Prior, result: Posterior, evidence: Evidence) -> Solved:
    """B_i of a piece of rows and B_i U' h_i, observations included; what they say about V and L so far."""
    d, (q, dx) = prior.dimensions, prior.groups.shape
    solved, precision = (
        Solved.of(result.variance[piece], result.factor_covariance[piece]),
        1 / rows.observed_variance[piece],
    )
    pull, root = precision * rows.observed_effect[piece], rows.root.astype(np.float32)
    with threads_for(len(pull) * d**3):
        solve_rows(
            rows.a[piece], np.eye(d, dtype=np.float32), root, precision, pull, rows.h[piece], rows.active[piece], solved
        )
    with threads_for(len(pull) * packed_size(q) * packed_size(dx)):
        known = known_products(rows.features[piece], solved.covariance, dx)
    evidence.gram[:] += known
    evidence.right[:] += rows.features[piece].T @ solved.mean[:, :dx]
    evidence.total[:] += solved.total.sum(axis=0, dtype=np.float64)[_places(d)].reshape(d, d)
    return solved


@cache
def _triangle(n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows and columns of a packed n x n matrix."""
    i, j = np.tril_indices(n)
    return i, j


@cache
def _places(n: int) -> npt.NDArray[np.int64]:
    """Where each entry of a symmetric n x n matrix, row by row, lies among those of its lower triangle."""
    i, j = _triangle(n)
    place = np.empty((n, n), dtype=np.int64)
    place[i, j] = place[j, i] = np.arange(len(i))
    return place.ravel()


def _geometric(N: Floats, S: Floats) -> Floats:
    """The positive matrix L with L N L = S, for a positive definite N: with N = H H' it is H'^-1 (H' S H)^1/2 H^-1."""
    half = np.linalg.cholesky(N)
    back = np.linalg.inv(half)
    e, u = np.linalg.eigh(half.T @ S @ half)
    middle = (u * np.sqrt(np.maximum(e, 0))) @ u.T
    return np.asarray(back.T @ middle @ back)


def outer_gram(left: Floats, right: Floats, precision: Floats) -> Floats:
    """sum_g precision_g (left_g x right_g)(left_g x right_g)', x the Kronecker product, without forming the rows.

    In single precision: it leads the way to a solution and says how much is known, and is no part of either.
    """
    p, q = left.shape[1], right.shape[1]
    packed = np.zeros((len(_triangle(p)[0]), len(_triangle(q)[0])))
    some = right.any(axis=1) & left.any(axis=1)  # those nobody rated, or who rated nothing, add nothing
    if not some.all():
        left, right, precision = left[some], right[some], precision[some]
    for piece in _pieces(len(left)):
        packed += (_squares(left[piece]) * precision[piece].astype(np.float32)) @ _squares(right[piece]).T
    at_l, at_r = _places(p).reshape(p, p), _places(q).reshape(q, q)
    return packed[at_l[:, None, :, None], at_r[None, :, None, :]].reshape(p * q, p * q)


def _squares(rows: Floats) -> Singles:
    """The products of any two coordinates, each pair once, one line a pair."""
    i, j = _triangle(rows.shape[1])
    columns = rows.T.astype(np.float32, order="C")
    return columns[i] * columns[j]


def inverse(A: Floats) -> Floats:
    """A^-1 by Cholesky's factors: a third of the work of an inverse that does not know that A is positive definite.

    Where rounding has left A not quite so, it is inverted as any other matrix.
    """
    factor, failed = lapack.dpotrf(A, lower=1)
    if failed:
        return np.asarray(np.linalg.inv(A))
    half, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    return np.asarray(half + np.tril(half, -1).T)
