r"""A person's coefficients from their own ratings: the item side without that person, then one Bayesian regression.

1. *Without own.* What the item side learned from this person's own noisy reading (value t of weight w, read at the
   mean m, a = (x_u, f_u)) is taken out again, rating by rating:

       s = a' C_j a,    (B, G)_j^- = (B, G)_j - C_j a  w (t - m) / (1 - w s),    s^- = s / (1 - w s).

   Else own ratings would count twice, once as noise. s^- is what is not known about the item: observation noise.
2. *Regression.*   y_j - B_j^- . x_u = (z_j, G_j^-, K_j) . theta + N(0, v_j + s_j^-),   theta ~ N((V' x_u, 0, 0), S),

   K_j the features of the mask kernel, S = (L, tau I). Scales of S that are not known are averaged over a grid of them,
   weighed by what the release knows of the scale times the person's own evidence.
3. v_j is the residual variance v, or the level family's V(eta_j) at the fitted mean: the mode under P(y | eta), by
   Fisher scoring.

Known gap: other people's factors carry an echo of this person's readings, which step 1 does not reach
(`choice.ECHO`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpsr.arrays import Bools, Floats
from dpsr.linalg.compiled import one_blas_thread, threads_for
from dpsr.release.personalise.kernels import ItemFeatures, Observed, Priors, cavity, dots, posterior_means
from dpsr.release.personalise.released_side import People, ReleasedSide


class Choice(NamedTuple):
    """What the release leaves to be chosen (`choice`).

    `tau` is the prior variance of kernel coefficients, `slope_spread` the standard deviation of the logarithm of how
    much single people's slopes vary, `family` says whether V(eta) is the variance of ratings, `factors` multiplies the
    prior variance of people's factors.
    """

    tau: float
    slope_spread: float
    family: bool
    factors: float = 1.0


class WithoutOwn(NamedTuple):
    """The item side at some people's ratings as it would be without them: B^- . x_u, G^- and s^-."""

    base: Floats
    factors: Floats
    item_variance: Floats

    def only(self, some: Bools) -> WithoutOwn:
        """The chosen ratings alone."""
        return WithoutOwn(self.base[some], self.factors[some], self.item_variance[some])


def without_own(side: ReleasedSide, people: People) -> WithoutOwn:
    """Step 1."""
    a, readings = side.features_and_factors(people.users), side.readings(people)
    with threads_for(len(people.items) * side.vectors.known**2):
        return WithoutOwn(*cavity(people.indptr, people.items, a, side.vectors, readings))


def coefficients(
    side: ReleasedSide, choice: Choice, people: People, own: WithoutOwn, y: Floats, inflate: Floats | float = 1.0
) -> Floats:
    """Steps 2 and 3: theta of everybody from y, raw ratings, or noisy readings with noise `inflate` times as large."""
    features, priors = side.taste(kernel=choice.tau > 0), _priors(side, choice, people)
    v = np.full(len(people.items), side.residual)
    rounds = _SCORING if choice.family else 1
    for left in reversed(range(rounds)):
        observed = Observed(people.indptr, people.items, own.factors, y - own.base, v * inflate + own.item_variance)
        with one_blas_thread(), threads_for(len(v) * priors.mean.shape[1] ** 2):
            theta = posterior_means(observed, features, priors)
        if left:
            v = _family_variance(side, fitted(theta, own, features, people))
    return theta


_SCORING = 3
"""Steps of Fisher scoring."""


def fitted(theta: Floats, own: WithoutOwn, features: ItemFeatures, people: People) -> Floats:
    """The mean of every rating, the item side being without own readings."""
    with threads_for(len(people.items) * theta.shape[1]):
        return np.asarray(own.base + dots(theta, own.factors, features, people.rows, people.items))


def _family_variance(side: ReleasedSide, eta: Floats) -> Floats:
    """E V(m) for m around eta with variance 0.3 v: a fitted mean at the end of the scale is no certainty."""
    t = np.linspace(-2, 2, 9)
    p = np.exp(-0.5 * t**2) / np.exp(-0.5 * t**2).sum()
    around, total = math.sqrt(0.3 * side.residual), np.zeros(len(eta))
    for a, b in zip(p, t, strict=True):
        total += a * np.interp(eta + around * b, side.prior.means, side.prior.spread)
    return total


def _priors(side: ReleasedSide, choice: Choice, people: People) -> Priors:
    """The prior of these people's coefficients at every grid point."""
    prior, (_, q, k) = side.prior, side.prior.widths
    x = side.public_features(people.users)
    mean = np.zeros((len(people.users), q + k))
    for feature, weights in zip(x.T, prior.weights, strict=True):  # a matrix product's bits vary with its other rows
        mean[:, : len(weights)] += feature[:, None] * weights
    scale, chance = _grid(side, choice)
    covariance = _unit_effect(prior.covariance) if prior.effect_chances is not None else prior.covariance
    covariances = covariance * scale[:, :, None] * scale[:, None, :]
    tau = np.full(len(scale), max(choice.tau, 1e-12))
    kernel = side.features.kernel.shape[1] if choice.tau > 0 else 0
    log_size = np.linalg.slogdet(covariances)[1] + kernel * np.log(tau)
    return Priors(mean, covariances, np.asarray(np.linalg.inv(covariances), np.float64), tau, log_size, chance)


def _grid(side: ReleasedSide, choice: Choice) -> tuple[Floats, Floats]:
    """Standard deviations of (z, g) coefficients relative to the prior, and log weights, at every grid point."""
    _, q, k = side.prior.widths
    slopes = np.linspace(-2, 2, 5) if choice.slope_spread > 0 else np.zeros(1)
    effects, chances = side.prior.effect_chances or (np.zeros(1), np.zeros(1))
    effect, slope = (axis.ravel() for axis in np.meshgrid(effects, slopes, indexing="ij"))
    scale = np.ones((len(slope), q + k))
    scale[:, 0] = np.exp(effect / 2)
    scale[:, 1:q] = np.exp(choice.slope_spread * slope / 2)[:, None]
    scale[:, q:] = math.sqrt(choice.factors)
    return scale, np.repeat(chances, len(slopes)) - 0.5 * slope**2


def _unit_effect(covariance: Floats) -> Floats:
    """The prior with an effect of variance one, which the grid scales; it is diagonal where sums alone were bought."""
    unit = covariance.copy()
    unit[0, 0] = 1.0
    return unit
