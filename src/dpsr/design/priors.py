"""What is believed before anything was asked: typical shares of the variance of ratings.

They come from the literature's rule of thumb that user and item effects explain about a sixth of the variance each,
not from any data set here. Evidence from the private answers moves all of them; they decide only where there is none.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

EFFECT = 0.12
"""Share of an item's, or a user's, own effect."""

SLOPES = 0.03
"""Share of all slopes on the other side's features together."""

FACTORS = 0.4
"""Share given to all free factors together at the start: large, so that they are not switched off unseen."""

COEFFICIENT = np.array([np.nan, 0.002, 0.002, 0.002, 0.002, 0.00003])
"""Share of one coefficient of W by group (`Design.weight_groups`); the constant is set from the noisy mean."""


def ridge(variance: float, mean_variance: float) -> npt.NDArray[np.float64]:
    """Prior precision of W's entries by group, for ratings of this variance and a mean known that well."""
    precision = 1 / (variance * COEFFICIENT)
    precision[0] = 1 / (mean_variance + 1e-4 * variance)
    return precision
