"""The mechanisms of the paper and its baselines, each as a finite `Channel`.

Additive noise is rounded to a grid of about 256 cells a scale; rounding and clipping are post-processing, so the table
is never more expensive than the continuous mechanism it stands for, and its own exact price is what is certified.
With D the width of the scale and w(x) = |r_x - centre| / (D/2), clipped to [0, 1]:

    Laplace                  r + Lap(D / epsilon), clipped to the scale
    calibrated Laplace       r + Lap(D / (base (1 + alpha w(x)))), clipped to the scale
    Gaussian                 r + N(0, sigma^2), on a grid wide enough that its tails count
    k-ary randomised response: the truth with probability e^epsilon / (e^epsilon + k - 1), else another level
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpsr.arrays import Floats
from dpsr.certify.amounts import check_delta, check_epsilon
from dpsr.certify.table_price import epsilon_of
from dpsr.errors import PrivacyError
from dpsr.privacy.channels.channel import Channel, to_weights
from dpsr.types import Scale

_CELLS = 256
_SHAVE = 1e-9
"""By how much a budget is lowered at first when rounding makes its table too dear."""


def check_alpha(alpha: float) -> float:
    """The paper's noise reduction factor."""
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.number) or not 0 <= alpha <= 1:
        raise PrivacyError(f"alpha must lie between 0 and 1, as in the paper, found {alpha!r}. The paper uses 0.3.")
    return float(alpha)


def laplace(scale: Scale, epsilon: float) -> Channel:
    """Laplace noise of scale D / epsilon, clipped. Its exact price is `epsilon` at most, and attains it."""
    asked = check_epsilon(epsilon)
    base = _largest_budget(lambda b: _laplace_table(scale, np.full(scale.n_levels, b)), asked, low=0.9 * asked)
    return _laplace_channel(scale, np.full(scale.n_levels, base), "laplace, clipped", {"nominal": asked, "base": base})


def calibrated_laplace(scale: Scale, epsilon: float, alpha: float = 0.3) -> Channel:
    """The paper's Stage 1, repaired: truly epsilon-DP.

    The centre of the weights is the scale's public midpoint. An `alpha` is feasible when the paper's own base budget
    epsilon / (1 + alpha) keeps the exact price of the table within epsilon; where log(1 + alpha) makes it infeasible
    the largest feasible alpha is used instead (and reported). The base is then raised until the price *is* epsilon.
    """
    asked, alpha_asked = check_epsilon(epsilon), check_alpha(alpha)

    def table(base: float, a: float) -> Floats:
        return _laplace_table(scale, base * (1 + a * information_weights(scale, scale.midpoint)))

    def excess(a: float) -> float:
        return _float_epsilon(table(asked / (1 + a), a)) - asked * (1 - 1e-9)

    used = _largest_feasible(excess, alpha_asked)
    base = _largest_budget(lambda b: table(b, used), asked, low=0.9 * asked / (1 + used))
    budgets = base * (1 + used * information_weights(scale, scale.midpoint))
    settings = {"nominal": asked, "alpha_asked": alpha_asked, "alpha": used, "base": base, "centre": scale.midpoint}
    return _laplace_channel(scale, budgets, "calibrated laplace, repaired, clipped", settings)


def laplace_around(scale: Scale, base: float, alpha: float, centre: float) -> Channel:
    """The paper's Stage 1 for one given centre: base budget `base`, weights around `centre`, clipped."""
    budgets = base * (1 + alpha * information_weights(scale, centre))
    return _laplace_channel(scale, budgets, "calibrated laplace around a given centre, clipped", {"alpha": alpha})


def gaussian(scale: Scale, epsilon: float, delta: float) -> Channel:
    """Gaussian noise with the smallest sigma that is (epsilon, delta)-DP at any epsilon (Balle and Wang 2018)."""
    asked, fail = check_epsilon(epsilon), check_delta(delta)
    sigma, nudge = scale.width * analytic_sigma(asked, fail), 1e-9
    settings = {"nominal": asked, "nominal_delta": fail}
    while (channel := _gaussian_channel(scale, sigma, asked, "gaussian, analytic", settings)).delta(asked) > fail:
        sigma, nudge = sigma * (1 + nudge), 2 * nudge
    return channel


def gaussian_classical(scale: Scale, epsilon: float, delta: float) -> Channel:
    """Gaussian noise with the textbook sigma = D sqrt(2 ln(1.25/delta)) / epsilon, proved only for epsilon < 1.

    The paper's baseline uses it up to epsilon = 10. The certificate shows the delta it really has.
    """
    asked, fail = check_epsilon(epsilon), check_delta(delta)
    sigma = scale.width * sqrt(2 * log(1.25 / fail)) / asked
    return _gaussian_channel(scale, sigma, asked, "gaussian, classical", {"nominal": asked, "nominal_delta": fail})


def randomised_response(scale: Scale, epsilon: float) -> Channel:
    """k-ary randomised response: tell the truth, or a uniformly chosen other level."""
    asked, k = check_epsilon(epsilon), scale.n_levels

    def table(base: float) -> Floats:
        odds = exp(base)
        return np.where(np.eye(k, dtype=bool), odds, 1.0) / (odds + k - 1)

    base = _largest_budget(table, asked, low=0.9 * asked)
    return Channel.from_probabilities(
        scale, scale.values.copy(), table(base), mechanism="randomised response", settings={"nominal": asked}
    )


def information_weights(scale: Scale, centre: float) -> Floats:
    """w(x) = |r_x - centre| / ((r_max - r_min)/2), clipped to [0, 1]: Algorithm 1, not the misprinted equation."""
    return np.minimum(np.abs(scale.values - centre) / (scale.width / 2), 1.0)


def analytic_sigma(epsilon: float, delta: float) -> float:
    """The smallest sigma s for sensitivity one: delta = Phi(1/2s - es) - e^e Phi(-1/2s - es) (Balle and Wang)."""

    def excess(log_sigma: float) -> float:
        s = exp(log_sigma)
        a, b = 1 / (2 * s) - epsilon * s, -1 / (2 * s) - epsilon * s
        return float(ndtr(a) - exp(epsilon + log_ndtr(b))) - delta

    if not excess(log(1e-3)) >= 0 >= excess(log(1e7)):
        raise PrivacyError(
            f"no Gaussian noise is known for epsilon = {epsilon:g} with delta = {delta:g}. Use a larger delta."
        )
    return exp(_root(excess, log(1e-3), log(1e7), xtol=1e-13)) * (1 + 1e-12)


def _laplace_channel(scale: Scale, budgets: Floats, mechanism: str, settings: dict[str, float]) -> Channel:
    return Channel.from_probabilities(
        scale, _grid(scale), _laplace_table(scale, budgets), mechanism=mechanism, settings=settings
    )


def _grid(scale: Scale) -> Floats:
    """Output values: every level, and enough equal cells between them."""
    return np.linspace(scale.low, scale.high, _cells(scale) + 1)


def _cells(scale: Scale) -> int:
    """Steps of the grid from end to end: a whole number of them to every step of the scale."""
    return (scale.n_levels - 1) * max(1, -(-_CELLS // (scale.n_levels - 1)))


def _laplace_table(scale: Scale, budgets: Floats) -> Floats:
    """P[cell | level] for noise of scale D / budget, rounded to the grid and clipped; accurate far into the tails."""
    grid, levels = np.linspace(0, 1, _cells(scale) + 1), np.linspace(0, 1, scale.n_levels)  # in widths of the scale
    edges = (grid[:-1] + grid[1:]) / 2
    z = (edges[None, :] - levels[:, None]) * budgets[:, None]
    tail = np.exp(-np.abs(z)) / 2  # mass beyond the edge, on the far side from the centre
    left, right = z[:, :-1], z[:, 1:]
    inner = np.where(
        right <= 0,
        tail[:, 1:] * -np.expm1(left - right),
        np.where(
            left >= 0,
            tail[:, :-1] * -np.expm1(left - right),
            -(np.expm1(np.minimum(left, 0)) + np.expm1(-np.maximum(right, 0))) / 2,  # the level's own cell, by halves
        ),
    )
    first = np.where(z[:, :1] < 0, tail[:, :1], 1 - tail[:, :1])
    last = np.where(z[:, -1:] > 0, tail[:, -1:], 1 - tail[:, -1:])
    return np.hstack([first, inner, last])


def _gaussian_channel(
    scale: Scale, sigma: float, epsilon: float, mechanism: str, settings: dict[str, float]
) -> Channel:
    threshold = epsilon * sigma**2 / scale.width
    reach = scale.width / 2 + max(6 * sigma, threshold + 4 * sigma)
    cell = threshold / (round(2 * _CELLS * threshold / reach) + 0.5)  # a cell ends exactly where the worst pair's does
    half = int(reach / cell) + 1
    grid = scale.midpoint + cell * np.arange(-half, half + 1, dtype=np.float64)
    edges = (grid[:-1] + grid[1:]) / 2
    z = (edges[None, :] - scale.values[:, None]) / sigma
    lower, upper = ndtr(z), ndtr(-z)
    inner = np.where(z[:, 1:] <= 0, lower[:, 1:] - lower[:, :-1], upper[:, :-1] - upper[:, 1:])
    table = np.hstack([lower[:, :1], inner, upper[:, -1:]])
    return Channel.from_probabilities(scale, grid, table, mechanism=mechanism, settings={**settings, "sigma": sigma})


def _root(function: Callable[[float], float], low: float, high: float, **tolerances: float) -> float:
    """Where a function is zero between two places."""
    from scipy.optimize import brentq  # a tenth of a second, for those who need it

    return float(brentq(function, low, high, **tolerances))


def _float_epsilon(table: Floats) -> float:
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


def _largest_feasible(excess: Callable[[float], float], asked: float) -> float:
    """The largest alpha up to the one asked for whose excess is not positive; none at all where every one exceeds."""
    if excess(asked) <= 0:
        return asked
    if excess(0.0) > 0:  # at the smallest budgets the price is epsilon to the last digit without any alpha
        return 0.0
    return _root(excess, 0.0, asked, xtol=1e-12) * (1 - 1e-9)


def _largest_budget(table: Callable[[float], Floats], asked: float, *, low: float) -> float:
    """The largest base budget whose *integer* table costs at most `asked`: found in floats, settled exactly.

    Rounding to integers may cost a little more: cells are smallest, and rounding is coarsest, at both ends of what may
    be asked. So the budget steps back until the price is right, twice as far each time.
    """
    high, step = 2 * asked, _SHAVE
    if _float_epsilon(table(high)) <= asked:
        base = high
    else:
        base = _root(
            lambda b: _float_epsilon(table(b)) - asked, low * 1e-3, high, xtol=1e-14 * min(asked, 1), rtol=1e-14
        )
    while epsilon_of(to_weights(table(base)).tolist()) > asked:
        if step > 1:
            raise PrivacyError(f"no table for epsilon = {asked:g} could be found; choose another epsilon")
        base, step = base * (1 - step), 2 * step
    return base
