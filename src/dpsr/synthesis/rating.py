"""Ratings on the levels of a scale with given means and variances.

A normal number around m, rounded to the nearest level and cut at the ends of the scale, has a mean that bends away from
m near the ends. A table of means over m is inverted, so that the mean of a rating is what was asked for wherever levels
can have it at all; its variance is, away from the ends.
"""

from __future__ import annotations

import numpy as np

from dpsr.arrays import Floats, Ints

_NARROWEST = 0.35
"""Deviation before rounding, in steps between levels: below it means would go up in stairs."""

_WIDTHS, _CENTRES, _POINTS = 8, 241, 801


def draw_levels(mean: Floats, variance: Floats, n_levels: int, rng: np.random.Generator) -> Ints:
    """One level, 0 to `n_levels` - 1, for each mean and variance; both in half-widths around the midpoint."""
    step = 2 / (n_levels - 1)
    m, v = (mean + 1) / step, variance / step**2  # in levels
    deviation = np.sqrt(np.maximum(v - 1 / 12, _NARROWEST**2))
    widths = np.geomspace(deviation.min(initial=1.0), deviation.max(initial=1.0), _WIDTHS)
    nearest = np.argmin(np.abs(np.log(deviation)[:, None] - np.log(widths)), axis=1)
    centre = np.empty(len(m))
    for w, width in enumerate(widths):
        here = nearest == w
        centres, means = _means(float(width), n_levels)
        centre[here] = np.interp(m[here], means, centres)
    drawn = np.rint(centre + widths[nearest] * rng.standard_normal(len(m)))
    return np.clip(drawn, 0, n_levels - 1).astype(np.int64)


def _means(width: float, n_levels: int) -> tuple[Floats, Floats]:
    """Centres of the normal, and what the mean of the rounded and cut number is at each; both ascending."""
    z = np.linspace(-6, 6, _POINTS)
    p = np.exp(-0.5 * z**2)
    p /= p.sum()
    centres = np.linspace(-3 * width - 1, n_levels + 3 * width, _CENTRES)
    means = np.clip(np.rint(centres[:, None] + width * z), 0, n_levels - 1) @ p
    return centres, np.maximum.accumulate(means)
