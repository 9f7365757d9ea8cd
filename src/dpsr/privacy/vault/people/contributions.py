"""What one person adds to a sum: an integer vector whose length is bounded where it is added, whatever the ratings are.

Kernels go through rows of whole people (`indptr`, `cells`, ...: one row for each person and cell) and add up integers.
A person's real vector is scaled, rounded towards zero and measured in whole numbers; one that is longer than the bound
is halved until it is not. So one person more or less moves a sum by at most the bound, whatever the formulas before it
gave, not-a-number included.

    levels           1, a, a^2, nu v, nu                                        bound GRID
    activity         (1, a) in the person's octave of the number of ratings     bound GRID
                     (no two of these vectors have an obtuse angle: `enforce_acute`)
    scores           w (z, z f - c, alpha slope) on the person's cells          bound GRID
    coefficients     e, e e' - K, K, K^2 of the person's own regression         bound GRID
    second moments   x x' above the diagonal, over some cells, |x| <= MOMENT    bound MOMENT^2 / sqrt 2
    names            1 / sqrt k on k of the person's items                      bound GRID

Sums stay below 2^62 for 2^32 people.
"""

from __future__ import annotations

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.certify.people import GRID, MOMENT
from dpsr.linalg.compiled import kernel
from dpsr.types.item_side import CENTRE

SAFE = 1 - 1e-9
"""Keeps a floating-point length of exactly one below the integer bound."""

LEVELS_REACH = 1.5
"""Length at which a person's (1, a, a^2, nu v, nu) is cut: typical 1.2, possible 2.4."""

ACTIVITY_REACH = 1.25
"""Length at which a person's (1, a) is cut: typical 1.05, possible 1.6."""

ENOUGH = 8
"""Ratings from which on a person counts fully among the coefficients; fewer tell little about slopes."""


def coefficients_reach(k: int) -> float:
    """Length at which a person's vector of k coefficients is cut: 1.2 times its typical one where ratings tell all."""
    return float(1.2 * np.sqrt(k + 2 * k + k * (k - 1) / 2 + 2 * k))


@kernel
def grid_steps(value: float, most: int) -> int:
    """A number rounded towards zero, inside its bound; what is no number is nothing."""
    if value >= most:
        return most
    if value <= -most:
        return -most
    if -most < value < most:
        return int(value)
    return 0


@kernel
def enforce_length(vector: Ints, n: int, most: int) -> None:
    """Halve the first n entries, each at most `most`, until their squares add up to at most most^2.

    The sum stops as soon as it is too large, so it cannot overflow.
    """
    while True:
        total = 0
        for i in range(n):
            total += vector[i] * vector[i]
            if total > most * most:
                break
        if total <= most * most:
            return
        for i in range(n):
            vector[i] = int(vector[i] / 2)


@kernel
def enforce_acute(vector: Ints) -> None:
    """Cut what is no multiple of a (1, a) with a from the lowest level to the highest.

    Own means lie between -1 and 1, so that a does between -(1 + CENTRE) and 1 - CENTRE: there 1 + a a' > 0, and so is
    the product of any two such vectors. Only rounding, or what is no rating, is cut.
    """
    vector[0] = max(vector[0], 0)
    vector[1] = min(max(vector[1], -int((1 + CENTRE) * vector[0])), int((1 - CENTRE) * vector[0]))


@kernel
def _mean_and_variance(y: Floats, first: int, last: int) -> tuple[float, float]:
    n, s, q = last - first, 0.0, 0.0
    for t in range(first, last):
        s += y[t]
    for t in range(first, last):
        q += (y[t] - s / n) ** 2
    return s / n, q / max(n - 1, 1)


@kernel
def add_levels(indptr: Ints, y: Floats, out: Ints) -> None:
    """Sums over people of 1, a, a^2, nu v, nu: a = own mean - CENTRE, v = own variance, nu = (n - 1) / (n + 1)."""
    real, v = np.zeros(5), np.zeros(5, np.int64)
    for u in range(len(indptr) - 1):
        n = indptr[u + 1] - indptr[u]
        if n == 0:
            continue
        mean, variance = _mean_and_variance(y, indptr[u], indptr[u + 1])
        a, nu = mean - CENTRE, (n - 1) / (n + 1)
        real[0], real[1], real[2], real[3], real[4] = 1.0, a, a * a, nu * min(variance, 1.0), nu
        c = GRID * SAFE / max(np.sqrt((real * real).sum()), LEVELS_REACH)
        for i in range(5):
            v[i] = grid_steps(c * real[i], GRID)
        enforce_length(v, 5, GRID)
        out += v


@kernel
def add_activity(indptr: Ints, y: Floats, octave: Ints, out: Ints) -> None:
    """Sums (octaves, 2) over people of (1, a) in the octave of their number of ratings."""
    v = np.zeros(2, np.int64)
    for u in range(len(indptr) - 1):
        if indptr[u + 1] == indptr[u]:
            continue
        a = _mean_and_variance(y, indptr[u], indptr[u + 1])[0] - CENTRE
        c = GRID * SAFE / max(np.sqrt(1 + a * a), ACTIVITY_REACH)
        v[0], v[1] = grid_steps(c, GRID), grid_steps(c * a, GRID)
        enforce_length(v, 2, GRID)
        enforce_acute(v)
        out[octave[u]] += v


@kernel
def add_scores(
    indptr: Ints,
    cells: Ints,
    z: Floats,
    h: Floats,
    f: Floats,
    V: Floats,
    features: Floats,
    unit: Floats,
    alpha: float,
    floor: float,
    out: Ints,
) -> None:
    """Sums (cells, d + 2) of x, g_1 .. g_d and alpha times the slope of x.

    f (m, d) are people's coefficients on the last d features, whitened and scaled by `unit`; V (m, k, k) covariances of
    all k coefficients. The score of the marginal likelihood for feature p of cell j is z_j f_p - c_jp with c_jp =
    unit_p (V (1, F_j))_p: a rating has pulled its person's coefficients towards itself, and that is taken out. With

        D^2 = max(sum over the person's cells of z_j^2 + sum_p (z_j f_p - c_jp)^2 + alpha^2, floor),    w = 1 / D,
        x_j = w z_j,    g_jp = w (z_j f_p - c_jp),    slope_j = w (1 - h_j) (1 - x_j^2 - sum_p g_jp x_j f_p)

    (without the bracket's last terms where the floor holds) the vector (x, g, alpha slope) has length at most one:
    nothing is cut, and there is no cap on anybody's ratings. slope_j is the derivative of x_j by a shift of the rating,
    cut to [0, w], so its sum says how far the sum of x moves with the item's effect.
    """
    d = f.shape[1]
    width, longest = d + 2, 0
    for u in range(len(indptr) - 1):
        longest = max(longest, indptr[u + 1] - indptr[u])
    v, score = np.zeros(longest * width, np.int64), np.zeros(longest * max(d, 1))
    for u in range(len(indptr) - 1):
        first, n = indptr[u], indptr[u + 1] - indptr[u]
        if n == 0:
            continue
        total = 0.0
        for i in range(n):
            t = first + i
            total += z[t] * z[t] + alpha * alpha
            for p in range(d):
                s = _score(z[t], f[u, p], unit[p], V[u], features.shape[1] + 1 - d + p, features[cells[t]])
                score[i * d + p] = s
                total += s * s
        bent = 1.0 if total > floor else 0.0
        w = 1 / np.sqrt(max(total, floor))
        for i in range(n):
            t = first + i
            x = w * z[t]
            bend = x * x
            v[i * width] = grid_steps(GRID * SAFE * x, GRID)
            for p in range(d):
                g = w * score[i * d + p]
                bend += g * x * f[u, p]
                v[i * width + 1 + p] = grid_steps(GRID * SAFE * g, GRID)
            slope = min(max(1 - bent * bend, 0.0), 1.0) * (1 - h[t])
            v[i * width + d + 1] = grid_steps(GRID * SAFE * alpha * w * slope, GRID)
        enforce_length(v, n * width, GRID)
        for i in range(n):
            for p in range(width):
                out[cells[first + i], p] += v[i * width + p]


@kernel
def _score(z: float, f: float, unit: float, V: Floats, a: int, phi: Floats) -> float:
    pull = V[a, 0]
    for b in range(len(phi)):
        pull += V[a, b + 1] * phi[b]
    return z * f - unit * pull


@kernel
def add_coefficients(indptr: Ints, W: Floats, V: Floats, mean: Floats, P: Floats, reach: float, out: Ints) -> None:
    """Sums over people of e, e e' - K (lower triangle), diag K, diag K^2, weighted with sqrt(min(1, n / ENOUGH)).

    e = L^-1 (w - mean), K = I - L^-1 V L^-T with P = L L': K is how much the person's ratings tell, E[e e'] = K if P is
    right, and K + K D K if it should be L (I + D) L'.
    """
    k, size = W.shape[1], len(out)
    v, real = np.zeros(size, np.int64), np.zeros(size)
    L = np.linalg.inv(np.linalg.cholesky(P))
    for u in range(len(indptr) - 1):
        n = indptr[u + 1] - indptr[u]
        if n == 0:
            continue
        e = L @ (W[u] - mean)
        K = np.eye(k) - L @ V[u] @ L.T
        i = 0
        for a in range(k):
            real[i] = e[a]
            i += 1
        for a in range(k):
            for b in range(a + 1):
                real[i] = e[a] * e[b] - K[a, b]
                i += 1
        for a in range(k):
            real[i], real[i + k] = K[a, a], K[a, a] ** 2
            i += 1
        c = GRID * SAFE / max(np.sqrt((real * real).sum()), reach) * np.sqrt(min(1.0, n / ENOUGH))
        for i in range(size):
            v[i] = grid_steps(c * real[i], GRID)
        enforce_length(v, size, GRID)
        out += v


@kernel
def add_second_moments(indptr: Ints, cells: Ints, z: Floats, place: Ints, floor: float, out: Ints) -> None:
    """Above the diagonal of (T, T): sums over people of x x', x = z / sqrt(sum (z^2 + floor)) on cells with a place.

    |x| <= MOMENT in whole numbers, so what is above the diagonal of x x' has length at most MOMENT^2 / sqrt 2.
    """
    T = len(out)
    where, x = np.empty(T, np.int64), np.empty(T, np.int64)
    for u in range(len(indptr) - 1):
        n, total = 0, 0.0
        for t in range(indptr[u], indptr[u + 1]):
            if place[cells[t]] >= 0:
                total += z[t] * z[t] + floor
                n += 1
        if n < 2:
            continue
        c, n = MOMENT * SAFE / np.sqrt(total), 0
        for t in range(indptr[u], indptr[u + 1]):
            if place[cells[t]] >= 0:
                where[n], x[n] = place[cells[t]], grid_steps(c * z[t], MOMENT)
                n += 1
        enforce_length(x, n, MOMENT)
        for a in range(n):
            i, xa = where[a], x[a]
            if xa == 0:
                continue
            for b in range(n):
                if where[b] > i:
                    out[i, where[b]] += xa * x[b]


@kernel
def add_names(indptr: Ints, items: Ints, order: Ints, most: int, out: Ints) -> None:
    """Weights 1 / sqrt k on k of the person's items, at most `most`: those first in `order` (-1: not to be named)."""
    for u in range(len(indptr) - 1):
        mine = np.unique(items[indptr[u] : indptr[u + 1]])
        mine = mine[order[mine] >= 0]
        if len(mine) == 0:
            continue
        if len(mine) > most:
            mine = mine[np.argsort(order[mine])[:most]]
        weight = grid_steps(GRID * SAFE / np.sqrt(len(mine)), GRID)
        for j in mine:
            out[j] += weight
