"""Least squares with a perturbed linear term, row by row: the step that several peers repeat.

For rows a with ratings y_t and given vectors x_t, |x_t| <= 1,

    w_a = argmin sum_t (y_t - x_t . w)^2 + w' L_a w + eta_a . w  =  (gram_a + L_a)^-1 (right_a - eta_a / 2).

With a public mask and given x only right_a = sum_t y_t x_t is secret, and a change of one rating moves one row of it by
|change| |x_t|. Noise of density ~ exp(-epsilon |eta / 2| / sensitivity) on every row makes all rows together
epsilon-DP. L_a is diagonal and chosen for the noise that was drawn, which is public: `linear.noise_ridge`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.evaluate.peers.floating import Measured, vector_laplace_noise
from dpsr.evaluate.peers.linear import VALUE_SENSITIVITY, noise_ridge, normal_equations, ridge_solve

RESIDUAL, BIAS_SIGNAL, FACTOR_SIGNAL = 0.15, 0.05, 0.02
"""Variances in [-1, 1] of ratings around their expectation, of biases and of other coefficients: the spread of 5-star
ratings, as the synthetic generator has it."""


def perturbed_rows(
    indptr: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    y: Floats,
    x: Floats,
    epsilon: float,
    rng: np.random.Generator,
    *,
    signal: Floats,
    sensitivity: float = VALUE_SENSITIVITY,
) -> Measured:
    """The minimisers of all rows, with the price of the noise; `y` moves by at most `sensitivity` in one place."""
    gram, right = normal_equations(indptr, columns, y, x)
    noisy, price = vector_laplace_noise(right, sensitivity=sensitivity, epsilon=epsilon, rng=rng)
    variance = (x.shape[1] + 1) * price.scale**2  # of a coordinate: the squared length is d (d + 1) b^2 on average
    return Measured(ridge_solve(gram, noisy, noise_ridge(gram, RESIDUAL, signal, variance)), price)


def signal_of(d: int, bias: float = BIAS_SIGNAL) -> Floats:
    """Prior variances of a bias followed by d - 1 other coefficients."""
    return np.array([bias, *[FACTOR_SIGNAL] * (d - 1)])
