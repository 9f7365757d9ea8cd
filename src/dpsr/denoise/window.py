"""How wide the window of a sum should be.

Sums of clip(y - centre, -c, c) cost in proportion to c. A scale is four to five standard deviations wide; the useful
window one to two. A narrow window loses slope (how much the clipped mean moves with the true one), a wide one buys
noise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsr.types.levels import LevelFamily

Floats = npt.NDArray[np.float64]

_WIDEST = 2.0
"""The whole scale, in half-widths."""


def window_moments(family: LevelFamily, point: int, half_width: float) -> tuple[float, float, float]:
    """E[clipped], its slope in the mean, and Var[clipped], for a window centred at the grid mean `point`.

    The slope is the larger of two models': an exponential tilt of the levels, Cov(clipped, y) / V, exact for two
    levels; and a shift of the whole distribution, each level's mass spread over its step: the share of mass
    inside the window.
    """
    p, d = family.table[point], family.y - family.means[point]
    clipped = np.clip(d, -half_width, half_width)
    mean = float(p @ clipped)
    tilt = float(p @ (clipped * d)) / family.variance[point]
    half_step = (family.y[1] - family.y[0]) / 2
    inside = np.minimum(d + half_step, half_width) - np.maximum(d - half_step, -half_width)
    shift = float(p @ np.clip(inside, 0, None)) / (2 * half_step)
    return mean, max(tilt, shift), max(float(p @ clipped**2) - mean**2, 1e-9)


def choose_window(family: LevelFamily, point: int, epsilon: float, counts: Floats, effect_variance: float) -> float:
    """The half-width with the least predicted error of effects, from epsilon and public counts.

    An effect behind n ratings is seen with error  e(c) = (2 (2c / epsilon)^2 / n^2 + Var / n) / slope^2  and keeps
    t e / (t + e) of its variance t.
    """
    n = counts[counts > 0]

    def loss(c: float) -> float:
        _, slope, spread = window_moments(family, point, c)
        error = (8 * (c / epsilon) ** 2 / n**2 + spread / n) / slope**2
        return float(np.sum(n * effect_variance * error / (effect_variance + error)))

    deviation = float(np.sqrt(family.variance[point]))
    return float(min(np.minimum(np.geomspace(0.75, 4.5, 10) * deviation, _WIDEST), key=loss))
