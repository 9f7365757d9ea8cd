r"""One side of the hierarchical Gaussian model: the posteriors of all its rows, and their prior.

Row i (an item, or a user) has coefficients  b_i ~ N(E V' f_i, L),  f_i its public features, V shared, E the embedding
into the first coordinates. It sees

    its ratings      t_e = x_e . b_i + N(0, 1/w_e)         A_i = sum w x x',   h_i = sum w t x
    one message      s_i = b_i[0] + N(0, k_i)              A_i[0,0] += 1/k,    h_i[0] += s/k

and with C_i = (L^-1 + A_i)^-1 everything is closed form:

    V by generalised least squares with b_i integrated out, M_i = L^-1 - L^-1 C_i L^-1:
        sum_i (f_i f_i' x M_i) vec(V) = sum_i f_i x L^-1 C_i h_i            (ridge by evidence)
    b_i = C_i (h_i + L^-1 E V' f_i)
    L by the minorise-maximise step of Zhou et al. (2019), which does not lower the evidence:
        L <- N^-1/2 (N^1/2 S N^1/2)^1/2 N^-1/2,    N = sum_i M_i,   S = sum_i dev_i dev_i'

Known gap: the step for L is over-relaxed for speed, so that its monotonicity is observed and not proved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.complete.kernels import normal_equations, spd_inverse, weighted_rows
from dpsr.linalg.compiled import threads_for
from dpsr.types.effects import Message

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

_COEFFICIENTS = 3.0
"""Pseudo-coefficients behind the prior ridge of a group."""

_ROWS = 10.0
"""Pseudo-rows, beside one per dimension, behind the prior covariance: they decide on a thousand ratings and are
forgotten at a hundred thousand."""

_BLOCK = 2048
"""Rows solved at a time; bounds memory."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Ratings of one side, row after row: pointers, the other side's codes, and rows that have any."""

    ptr: Ints
    idx: Ints

    @property
    def active(self) -> npt.NDArray[np.bool_]:
        return np.diff(self.ptr) > 0


@dataclass(eq=False)
class Prior:
    """Features, the ridge of V by group, and the covariance L; `update_side` learns the last three and `ridge`."""

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
    def mean(self) -> Floats:
        """E V' f_i without the padding: prior means of the first coefficients."""
        return self.features @ self.weights


@dataclass(frozen=True, eq=False)
class Posterior:
    """Means, marginal variances, and the covariance of the last k coordinates with all, row by row."""

    mean: Floats
    variance: Floats
    factor_covariance: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Partner:
    """The other side as this one sees it: regressors `x`, whose last k columns are uncertain factors.

    `covariance[o]` (k x d_o) is the posterior covariance of partner o's factors with all its coefficients, and `own`
    this side's regressors for the partner's leading coefficients: E over both gives the mean-field terms
    A_ff += w Cov(f, f)  and  h_f -= w Cov(f, c) own.
    """

    x: Floats
    k: int
    covariance: npt.NDArray[np.float32] | None
    own: Floats


def update_side(
    entries: Entries, target: Floats, weight: Floats, partner: Partner, prior: Prior, message: Message
) -> Posterior:
    """One exact conditional update of a side; `prior` learns in place."""
    n, d, dx = len(entries.ptr) - 1, partner.x.shape[1], prior.groups.shape[1]
    q = prior.features.shape[1]
    inverse: Floats = np.linalg.inv(prior.covariance).astype(np.float64)
    ch, cl = np.empty((n, d)), np.empty((n, d, dx))
    variance, factors = np.empty((n, d)), np.empty((n, partner.k, d), dtype=np.float32)  # read once per rating
    total, gram = np.zeros((d, d)), np.zeros((q * q, dx * dx))
    active = entries.active
    for start in range(0, n, _BLOCK):
        rows = slice(start, min(start + _BLOCK, n))
        C, h = _block(entries, rows, target, weight, partner, inverse, message)
        ch[rows] = np.einsum("iab,ib->ia", C, h)
        cl[rows] = C @ inverse[:, :dx]
        variance[rows] = np.einsum("iaa->ia", C)
        factors[rows] = C[:, d - partner.k :, :]
        total += C[active[rows]].sum(axis=0)
        f = prior.features[rows]
        M = inverse[:dx, :dx] - inverse[:dx] @ cl[rows]
        gram += (f[:, :, None] * f[:, None, :]).reshape(len(f), -1).T @ M.reshape(len(f), -1)
    full = gram.reshape(q, q, dx, dx).transpose(0, 2, 1, 3).reshape(q * dx, q * dx)
    right = (prior.features.T @ (ch @ inverse)[:, :dx]).ravel()
    prior.weights = _learn_weights(full, right, prior).reshape(q, dx)
    mean = ch + np.einsum("iab,ib->ia", cl, prior.mean)
    deviation = mean.copy()
    deviation[:, :dx] -= prior.mean
    information = active.sum() * inverse - inverse @ total @ inverse
    prior.covariance = _learn_covariance(prior, information, deviation[active].T @ deviation[active])
    return Posterior(mean, variance, factors)


def _block(
    entries: Entries, rows: slice, target: Floats, weight: Floats, partner: Partner, inverse: Floats, message: Message
) -> tuple[Floats, Floats]:
    """C_i and h_i for a block of rows."""
    size, d, k = rows.stop - rows.start, partner.x.shape[1], partner.k
    ptr = entries.ptr[rows.start : rows.stop + 1]
    A, h = np.zeros((size, d, d)), np.zeros((size, d))
    with threads_for(int(ptr[-1] - ptr[0]) * d * d + size * d**3):
        normal_equations(ptr, entries.idx, target, weight, partner.x, A, h)
        if partner.covariance is not None and k:
            shape = partner.covariance.shape
            seen = np.empty((size, shape[1] * shape[2]))
            weighted_rows(ptr, entries.idx, weight, partner.covariance.reshape(shape[0], -1), seen)
            seen = seen.reshape(size, k, -1)
            A[:, d - k :, d - k :] += seen[:, :, -k:]
            h[:, d - k :] -= np.einsum("ikc,ic->ik", seen[:, :, :-k], partner.own[rows])
        A[:, 0, 0] += 1 / message.variance[rows]
        h[:, 0] += message.value[rows] / message.variance[rows]
        A += inverse
        spd_inverse(A)
    return A, h


def _learn_weights(gram: Floats, right: Floats, prior: Prior, rounds: int = 4) -> Floats:
    """Ridge with one precision a group by MacKay's fixed point on the evidence; group 0 keeps its prior."""
    groups = prior.groups.ravel()
    theta = right
    for _ in range(rounds):
        covariance = np.linalg.inv(gram + np.diag(prior.ridge[groups]))
        theta = covariance @ right
        known = 1 - prior.ridge[groups] * np.diag(covariance)
        for g in range(1, len(prior.ridge)):
            member = groups == g
            if member.any():
                size = theta[member] @ theta[member] + _COEFFICIENTS / prior.default_ridge[g]
                prior.ridge[g] = (known[member].sum() + _COEFFICIENTS) / size
    return theta


def _learn_covariance(prior: Prior, information: Floats, scatter: Floats) -> Floats:
    """The minorise-maximise step, over-relaxed: twice the geodesic step, every eigenvalue within a factor of four."""
    d = len(prior.covariance)
    pseudo = _ROWS + d
    root = np.linalg.cholesky(prior.covariance)
    back = np.linalg.inv(root)
    N = root.T @ information @ root + pseudo * np.eye(d)  # in coordinates where the covariance is the identity
    S = back @ (scatter + pseudo * prior.start) @ back.T
    e, u = np.linalg.eigh(_geometric((N + N.T) / 2, (S + S.T) / 2))
    new = root @ ((u * np.clip(e, 0.5, 2.0) ** 2) @ u.T) @ root.T
    return (new + new.T) / 2 + 1e-7 * np.eye(d)


def _geometric(N: Floats, S: Floats) -> Floats:
    """The positive matrix L with L N L = S."""
    e, u = np.linalg.eigh(N)
    e = np.maximum(e, 1e-10 * max(float(e.max()), 1e-12))
    root, inverse = (u * np.sqrt(e)) @ u.T, (u / np.sqrt(e)) @ u.T
    e, u = np.linalg.eigh(root @ S @ root)
    return inverse @ ((u * np.sqrt(np.maximum(e, 0))) @ u.T) @ inverse
