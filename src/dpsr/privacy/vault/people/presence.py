"""What one person who did things adds to a sum: integers of bounded length, whatever they did.

x are a person's strengths (`types.likes_side`), one for each cell in which they did something, zero elsewhere.

    numbers of interactions      GRID in the octave of how many cells have a strength          bound GRID
    weighted counts              x / |x|, over some cells                                      bound GRID
    second moments of presence   r r' above the diagonal, r = c g (x - n p), n = sum x         bound STEP^2 / sqrt 2
    pairs of presence            GRID / sqrt n on every pair of n cells                        of one interaction: GRID

**Second moments.** The part of r r' above the diagonal has squared length

    sum_{i<j} r_i^2 r_j^2  =  (|r|^4 - sum_i r_i^4) / 2,

so c is chosen to make (|r|^4 - sum r_i^4) just STEP^4: for somebody with two cells that is a vector longer by sqrt 2
than |r| = 1 would be. In whole numbers, r is rounded towards zero, |r_i| <= STEP, and halved until |r|^2 <= 2 STEP^2
and |r|^4 - sum r_i^4 <= STEP^4; the first follows from the second, for sum r_i^4 <= STEP^2 |r|^2, and keeps the second
from overflowing. Rows of whole numbers are multiplied in double precision: every product and every partial sum is a
whole number below 2^53 (2^24 a person, at most 2^22 people before sums are put away), so nothing is rounded, in
whatever order they are added.

p is where everybody's interactions go on average and g favours cells that many people know; both are public here, made
of earlier noisy answers. Somebody with one cell among those asked about has no pair and adds nothing.
"""

from __future__ import annotations

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.certify.people import GRID
from dpsr.certify.people import PRESENCE_GRID as STEP
from dpsr.linalg.compiled import kernel
from dpsr.privacy.vault.people.contributions import SAFE, enforce_length, grid_steps
from dpsr.types.item_side import ACTIVITY_BINS

_PANEL = 1 << 22
"""Numbers in a panel of rows: 32 megabytes."""


@kernel
def add_numbers(indptr: Ints, cells: Ints, place: Ints, out: Ints) -> None:
    """GRID in the octave of the number of a person's cells that have a place; nothing for somebody without any."""
    for u in range(len(indptr) - 1):
        n = 0
        for t in range(indptr[u], indptr[u + 1]):
            if place[cells[t]] >= 0:
                n += 1
        octave = -1
        while n > 0:
            octave, n = octave + 1, n >> 1
        if octave >= 0:
            out[min(octave, ACTIVITY_BINS - 1)] += GRID


@kernel
def add_counts(indptr: Ints, cells: Ints, x: Floats, place: Ints, out: Ints) -> None:
    """x / |x| over the cells that have a place."""
    longest = 0
    for u in range(len(indptr) - 1):
        longest = max(longest, indptr[u + 1] - indptr[u])
    where, v = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for u in range(len(indptr) - 1):
        n, total = 0, 0.0
        for t in range(indptr[u], indptr[u + 1]):
            if place[cells[t]] >= 0:
                total += x[t] * x[t]
                n += 1
        if not total > 0:  # nobody is in the set, or what they did is no number
            continue
        c, n = GRID * SAFE / np.sqrt(total), 0
        for t in range(indptr[u], indptr[u + 1]):
            if place[cells[t]] >= 0:
                where[n], v[n] = place[cells[t]], grid_steps(c * x[t], GRID)
                n += 1
        enforce_length(v, n, GRID)
        for i in range(n):
            out[where[i]] += v[i]


def add_second_moments(
    indptr: Ints, cells: Ints, x: Floats, place: Ints, centre: Floats, favour: Floats, out: Ints
) -> None:
    """Sums over people of r r', all of it (what is on and below the diagonal is dropped before noise is added)."""
    T = len(out)
    height = max(1, min(_PANEL // T, 1 << 16))
    products = np.zeros((T, T))
    for start in range(0, len(indptr) - 1, height):
        stop = min(start + height, len(indptr) - 1)
        rows = np.zeros((stop - start, T))
        fill_rows(indptr[start : stop + 1], cells, x, place, centre, favour, rows)
        products += rows.T @ rows
        if stop == len(indptr) - 1 or stop % (1 << 21) < height:
            out += products.astype(np.int64)
            products[:] = 0


@kernel
def fill_rows(indptr: Ints, cells: Ints, x: Floats, place: Ints, centre: Floats, favour: Floats, rows: Floats) -> None:
    """Every person's r, whole numbers; rows of people without a pair stay zero."""
    T = len(centre)
    real, v = np.empty(T), np.empty(T, np.int64)
    for u in range(len(indptr) - 1):
        n, many = 0.0, 0
        for t in range(indptr[u], indptr[u + 1]):
            if place[cells[t]] >= 0:
                n += x[t]
                many += 1
        if many < 2:
            continue
        for j in range(T):
            real[j] = -n * centre[j] * favour[j]
        for t in range(indptr[u], indptr[u + 1]):
            j = place[cells[t]]
            if j >= 0:
                real[j] += x[t] * favour[j]
        square, fourth, most = 0.0, 0.0, 0.0
        for j in range(T):
            square += real[j] ** 2
            fourth += real[j] ** 4
            most = max(most, abs(real[j]))
        pairs = square * square - fourth
        if not pairs > 0 or not most > 0:
            continue
        c = STEP * SAFE * min(pairs**-0.25, 1 / most)
        for j in range(T):
            v[j] = grid_steps(c * real[j], STEP)
        enforce_pairs(v)
        for j in range(T):
            rows[u, j] = v[j]


@kernel
def add_pairs(indptr: Ints, cells: Ints, place: Ints, weights: Ints, out: Ints) -> None:
    """weights[n] above the diagonal on every pair of a person's n cells that have a place."""
    own = np.empty(len(weights), np.int64)
    for u in range(len(indptr) - 1):
        n = 0
        for t in range(indptr[u], indptr[u + 1]):
            if place[cells[t]] >= 0:
                own[n] = place[cells[t]]
                n += 1
        weight = weights[n]
        for a in range(n):
            for b in range(a):
                i, j = min(own[a], own[b]), max(own[a], own[b])
                out[i, j] += weight


@kernel
def enforce_pairs(v: Ints) -> None:
    """Halve v, |v_i| <= STEP, until (sum v^2)^2 - sum v^4 <= STEP^4; in whole numbers, without overflow."""
    while True:
        square, fourth = 0, 0
        for one in v:
            square += one * one
        if square <= 2 * STEP * STEP:
            for one in v:
                fourth += one * one * one * one
            if square * square - fourth <= STEP**4:
                return
        for i in range(len(v)):
            v[i] = int(v[i] / 2)
