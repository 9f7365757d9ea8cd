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

Known gap: the step for L is over-relaxed for speed, so that its monotonicity is observed and not proved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Singles
from dpsr.linalg.compiled import threads_for
from dpsr.value.kernels import packed_size, spd_inverse, unpack

_COEFFICIENTS = 3.0
"""Pseudo-coefficients behind the prior ridge of a group."""

_ROWS = 10.0
"""Pseudo-rows, beside one per dimension, behind the prior covariance: they decide on a thousand ratings and are
forgotten at a hundred thousand."""

_BLOCK = 2048
"""Rows solved at a time; bounds memory."""


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

    @classmethod
    def of(
        cls, features: Floats, groups: npt.NDArray[np.int64], ridge: Floats, default_ridge: Floats, covariance: Floats
    ) -> Prior:
        """A prior before any evidence."""
        zeros = np.zeros(groups.shape)
        return cls(features, groups, ridge.copy(), default_ridge, covariance, covariance.copy(), zeros)

    @property
    def dimensions(self) -> int:
        return len(self.covariance)

    @property
    def precision(self) -> Floats:
        return np.asarray(np.linalg.inv(self.covariance), dtype=np.float64)

    def start_effect_at(self, variance: float) -> None:
        """Believe in this variance of the effect, the first coordinate, before rows are looked at."""
        self.covariance[0, 0] = self.start[0, 0] = variance

    def learn_weights(self, evidence: Evidence, rounds: int = 4) -> None:
        """V: ridge with one precision a group by MacKay's fixed point on the evidence; group 0 keeps its prior."""
        (q, dx), groups = self.groups.shape, self.groups.ravel()
        gram = evidence.gram.reshape(q, q, dx, dx).transpose(0, 2, 1, 3).reshape(q * dx, q * dx)
        for _ in range(rounds):
            covariance = np.linalg.inv(gram + np.diag(self.ridge[groups]))
            theta = covariance @ evidence.right.ravel()
            known = 1 - self.ridge[groups] * np.diag(covariance)
            for g in range(1, len(self.ridge)):
                member = groups == g
                if member.any():
                    size = theta[member] @ theta[member] + _COEFFICIENTS / self.default_ridge[g]
                    self.ridge[g] = (known[member].sum() + _COEFFICIENTS) / size
        self.weights = theta.reshape(q, dx)

    def learn_covariance(self, evidence: Evidence) -> None:
        """L: the minorise-maximise step, over-relaxed: twice the geodesic step, eigenvalues within a factor of four."""
        d, rows = self.dimensions, float(evidence.rows[0])
        inverse = self.precision
        information = rows * inverse - inverse @ evidence.total @ inverse
        pseudo = _ROWS + d
        root = np.linalg.cholesky(self.covariance)
        back = np.linalg.inv(root)
        N = root.T @ information @ root + pseudo * np.eye(d)  # in coordinates where the covariance is the identity
        S = back @ (evidence.scatter + pseudo * self.start) @ back.T
        e, u = np.linalg.eigh(_geometric((N + N.T) / 2, (S + S.T) / 2))
        new = root @ ((u * np.clip(e, 0.5, 2.0) ** 2) @ u.T) @ root.T
        self.covariance = (new + new.T) / 2 + 1e-7 * np.eye(d)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What rows say about their prior: sums over rows, added to in place.

    `gram` and `right` are the normal equations of V, `total` the sum of C_i, `scatter` that of dev_i dev_i', over
    `rows` rows with ratings.
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
        return cls(np.zeros((q * q, dx * dx)), np.zeros((q, dx)), np.zeros((d, d)), np.zeros((d, d)), np.zeros(1))

    @property
    def sums(self) -> tuple[Floats, ...]:
        return self.gram, self.right, self.total, self.scatter, self.rows


@dataclass(frozen=True, eq=False)
class Rows:
    """Normal equations of some rows: packed A, h, the observation in them, features, and which rows have ratings."""

    a: Floats
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
    inverse, dx, n = prior.precision, prior.groups.shape[1], len(rows.h)
    result, last = Posterior.empty(n, prior.dimensions, k), prior.dimensions - k
    pull = np.empty((n, prior.dimensions, dx))  # how a row follows what is expected of it: C_i L^-1 E
    corner = last + np.array(np.tril_indices(k))
    for piece in _pieces(n):
        C, h = _solve(rows, piece, inverse)
        result.mean[piece] = np.einsum("iab,ib->ia", C, h)
        result.variance[piece] = np.einsum("iaa->ia", C)
        result.factor_covariance[piece] = C[:, corner[0], corner[1]]
        pull[piece] = (C.reshape(-1, prior.dimensions) @ inverse[:, :dx]).reshape(len(h), -1, dx)
        evidence.total[:] += np.tensordot(rows.active[piece].astype(np.float64), C, 1)
        _about_weights(result.mean[piece], pull[piece], rows.features[piece], inverse, evidence)
    if weights_first:
        prior.learn_weights(evidence)
    expected = rows.features @ prior.weights
    result.mean[:] += np.einsum("iab,ib->ia", pull, expected)
    deviations = result.mean[rows.active]
    deviations[:, :dx] -= expected[rows.active]
    evidence.scatter[:] += deviations.T @ deviations
    evidence.rows[:] += len(deviations)
    return result


def posterior_covariances(rows: Rows, prior: Prior) -> Singles:
    """C_i of every row at the present prior, packed."""
    inverse, (i, j) = prior.precision, np.tril_indices(prior.dimensions)
    packed = np.empty((len(rows.h), len(i)), np.float32)
    for piece in _pieces(len(rows.h)):
        packed[piece] = _solve(rows, piece, inverse)[0][:, i, j]
    return packed


def _pieces(n: int) -> list[slice]:
    return [slice(at, min(at + _BLOCK, n)) for at in range(0, n, _BLOCK)]


def _solve(rows: Rows, piece: slice, inverse: Floats) -> tuple[Floats, Floats]:
    """C_i and h_i of a piece of rows, observations included."""
    precision = 1 / rows.observed_variance[piece]
    h = rows.h[piece].copy()
    h[:, 0] += rows.observed_effect[piece] * precision
    C = np.empty((len(h), len(inverse), len(inverse)))
    with threads_for(len(h) * len(inverse) ** 3):
        unpack(rows.a[piece], inverse, precision, C)
        spd_inverse(C)
    return C, h


def _about_weights(unpulled: Floats, pull: Floats, f: Floats, inverse: Floats, evidence: Evidence) -> None:
    """The normal equations of V; `unpulled` is C_i h_i."""
    n, d, dx = pull.shape
    M = inverse[:dx, :dx] - (pull.transpose(0, 2, 1).reshape(-1, d) @ inverse[:, :dx]).reshape(n, dx, dx)
    (q, p), (a, b) = np.tril_indices(f.shape[1]), np.tril_indices(dx)
    packed = (f[:, q] * f[:, p]).T @ M[:, a, b]  # both f f' and M_i are symmetric
    evidence.gram[:] += packed[_places(f.shape[1])][:, _places(dx)]
    evidence.right[:] += f.T @ (unpulled @ inverse[:, :dx])


def _places(n: int) -> npt.NDArray[np.int64]:
    """Where each entry of a symmetric n x n matrix, row by row, lies among those of its lower triangle."""
    i, j = np.tril_indices(n)
    place = np.empty((n, n), dtype=np.int64)
    place[i, j] = place[j, i] = np.arange(len(i))
    return place.ravel()


def _geometric(N: Floats, S: Floats) -> Floats:
    """The positive matrix L with L N L = S."""
    e, u = np.linalg.eigh(N)
    e = np.maximum(e, 1e-10 * max(float(e.max()), 1e-12))
    half, back = (u * np.sqrt(e)) @ u.T, (u / np.sqrt(e)) @ u.T
    e, u = np.linalg.eigh(half @ S @ half)
    middle = (u * np.sqrt(np.maximum(e, 0))) @ u.T
    return back @ middle @ back
