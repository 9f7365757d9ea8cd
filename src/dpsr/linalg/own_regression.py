r"""A person's own side: their rows by cell, and a Bayesian regression of their own ratings on what is known of items.

In units of the residual deviation, a rating of a person on cell j is

    y_j = level + effect_j + w . (1, F_j) + e,      w ~ N(mean, P),     e ~ N(0, residual + uncertainty_j),

where F_j are the cell's features and uncertainty_j is the variance of what is not known about it. Features are
posterior means, so their error adds to the noise and does not bias the regression (Berkson's kind). With phi = (1,
F_j), q_j = 1 / (residual + uncertainty_j) and r_j the residual at the prior mean, the posterior of w is

    V = (P^-1 + sum q phi phi')^-1,      mean + V sum q phi r.

Residuals z against the posterior mean are, but for the factor q, the score of the person's marginal likelihood for a
shift of the item's effect; the leverage h_j = q phi' V phi is the share of a rating's shift that the fit takes up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.linalg.compiled import fast_kernel, kernel


@dataclass(frozen=True, eq=False, repr=False)  # a generated repr would show values
class PeopleRows:
    """Everybody's rows; `y`, in half-widths around the midpoint, are means where items share a cell."""

    indptr: Ints
    cells: Ints
    y: Floats

    @classmethod
    def by_cell(cls, indptr: Ints, cells: Ints, y: Floats) -> PeopleRows:
        """From ratings, person by person, in any order; those without a cell (-1) go."""
        return cls(*_one_row_per_cell(indptr, cells, y))


@kernel
def _one_row_per_cell(indptr: Ints, cells: Ints, y: Floats) -> tuple[Ints, Ints, Floats]:
    """Each person's rows, cells ascending; values in one cell become their mean, rows without a cell (-1) go.

    The mean is taken from the least value on: rounding depends on the order, and that of items on what others have.
    """
    ptr, to = np.zeros(len(indptr), np.int64), 0
    out_cells, out_y = np.empty(len(cells), np.int64), np.empty(len(cells))
    for u in range(len(indptr) - 1):
        first, last = indptr[u], indptr[u + 1]
        order = first + np.argsort(cells[first:last], kind="mergesort")
        i = 0
        while i < len(order):
            c, start = cells[order[i]], i
            while i < len(order) and cells[order[i]] == c:
                i += 1
            if c < 0:
                continue
            mean = y[order[start]]
            if i - start > 1:
                shared = np.sort(y[order[start:i]])
                mean = shared[0]
                for many in range(1, len(shared)):
                    mean += (shared[many] - mean) / (many + 1)
            out_cells[to], out_y[to] = c, mean
            to += 1
        ptr[u + 1] = to
    return ptr, out_cells[:to], out_y[:to]


@fast_kernel
def regress(
    indptr: Ints,
    cells: Ints,
    y: Floats,
    level: Floats,
    effects: Floats,
    features: Floats,
    uncertainty: Floats,
    residual: float,
    mean: Floats,
    covariance: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Posterior means (m, k) and covariances (m, k, k) of everybody's coefficients, residuals and leverages of ratings.

    Every person's result depends on their own rows alone, in their own order.
    """
    m, k = len(indptr) - 1, features.shape[1] + 1
    W, V = np.zeros((m, k)), np.zeros((m, k, k))
    z, h = np.zeros(len(y)), np.zeros(len(y))
    prior = np.linalg.inv(covariance)
    phi, r, A = np.ones(k), np.zeros(k), np.zeros((k, k))
    for u in range(m):
        A[:] = prior
        r[:] = 0
        for t in range(indptr[u], indptr[u + 1]):
            c = cells[t]
            weight = 1 / (residual + uncertainty[c])
            for a in range(1, k):
                phi[a] = features[c, a - 1]
            e = y[t] - level[u] - effects[c]
            for a in range(k):
                e -= phi[a] * mean[a]
            for a in range(k):
                v = weight * phi[a]
                r[a] += v * e
                for b in range(a + 1):
                    A[a, b] += v * phi[b]
        for a in range(k):
            for b in range(a):
                A[b, a] = A[a, b]
        V[u] = np.linalg.inv(A)
        for a in range(k):
            s = mean[a]
            for b in range(k):
                s += V[u, a, b] * r[b]
            W[u, a] = s
        for t in range(indptr[u], indptr[u + 1]):
            c = cells[t]
            for a in range(1, k):
                phi[a] = features[c, a - 1]
            e, own = y[t] - level[u] - effects[c], 0.0
            for a in range(k):
                e -= phi[a] * W[u, a]
                v = 0.0
                for b in range(a):
                    v += V[u, a, b] * phi[b]
                own += phi[a] * (2 * v + V[u, a, a] * phi[a])
            z[t], h[t] = e, min(own / (residual + uncertainty[c]), 1.0)
    return W, V, z, h


@fast_kernel
def predict_pairs(people: Ints, cells: Ints, level: Floats, effects: Floats, features: Floats, W: Floats) -> Floats:
    """What people's own side and the item side say about pairs; a cell of -1 is one of which nothing is known."""
    out = np.empty(len(people))
    for t in range(len(people)):
        u, c = people[t], cells[t]
        s = level[u] + W[u, 0]
        if c >= 0:
            s += effects[c]
            for a in range(features.shape[1]):
                s += features[c, a] * W[u, a + 1]
        out[t] = s
    return out
