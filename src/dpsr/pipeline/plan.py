"""Plans: what each epsilon would buy. Reads the mask; values only through a vault, when a budget is stated for it.

Measuring spends `epsilon` on the histogram and the sums (never on single ratings) and asks the same inference that
`DPSR` uses for its variance components:

    a quarter buys the histogram, the rest the sums

    spread       the standard deviation of the noisy histogram
    item, user   learned shares of the effects;   features: the variance of z' W x;   slopes and residual share the rest
                 in the typical proportion, because sums cannot tell them apart
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpsr.certify import Certificate
from dpsr.certify.amounts import check_epsilon
from dpsr.certify.certificate import ChargeReference
from dpsr.engine.incidence import moments_at_ratings
from dpsr.errors import ParameterError
from dpsr.linalg.compiled import one_blas_thread
from dpsr.pipeline.publish import Account
from dpsr.pipeline.value import ask_sums, ask_usage
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import Vault
from dpsr.types.raw import RawRatings
from dpsr.value.allocation import Allocation, Components, Forecast, allocate, forecast
from dpsr.value.design import Design
from dpsr.value.effects import learn_effects
from dpsr.value.priors import ridge


@dataclass(frozen=True)
class Plan:
    """Forecasts, the spread they can be turned into rating points with, and the receipt if anything was measured."""

    forecasts: tuple[Forecast, ...]
    components: Components
    spread: float | None
    certificate: Certificate | None

    def rows(self) -> list[list[str]]:
        """One row of text per epsilon."""
        shares = [[f.epsilon, f.share, f.unknowable, f.learning, f.noise] for f in self.forecasts]
        points = [[self.spread * f.share] if self.spread else [] for f in self.forecasts]
        return [[f"{a[0]:g}", *(f"{x:.3f}" for x in a[1:] + b)] for a, b in zip(shares, points, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "forecasts": [{**asdict(f), "share": f.share} for f in self.forecasts],
            "components": asdict(self.components),
            "spread": self.spread,
            "epsilon_spent": 0.0 if self.certificate is None else self.certificate.epsilon,
        }

    @property
    def certificate_words(self) -> str:
        """What measuring cost."""
        if self.certificate is None:
            return "Nothing was spent."
        return (
            f"Spread and shares of variance were measured privately for epsilon = {self.certificate.epsilon:.4g}; that "
            "is spent, and adds to whatever is released from these ratings later."
        )


def plan_table(
    ratings: RawRatings,
    epsilons: str,
    *,
    spread: float | None,
    measure: float | None,
    account: Account | None = None,
) -> Plan:
    """Forecasts for a comma-separated list of budgets; what is measured is charged to `account` first."""
    try:
        budgets = [float(text) for text in epsilons.split(",")]
    except ValueError as error:
        raise ParameterError(f"budgets are numbers separated by commas, found {epsilons!r}. Try 0.5,1,2.") from error
    if spread is not None and not 0 < spread <= ratings.scale.width / 2:
        raise ParameterError(
            f"the spread is a standard deviation, above 0 and at most {ratings.scale.width / 2:g} on this scale, "
            f"found {spread}."
        )
    components, certificate = Components(), None
    if measure is not None:
        components, measured, certificate = _measure(ratings, check_epsilon(measure), account)
        spread = spread or measured
    forecasts = tuple(forecast(ratings.mask, ratings.scale, epsilon, components) for epsilon in budgets)
    return Plan(forecasts, components, spread, certificate)


def _measure(ratings: RawRatings, epsilon: float, account: Account | None) -> tuple[Components, float, Certificate]:
    if account is None:
        return measure_components(ratings, epsilon)
    charge = account.charge("plan")
    answer = measure_components(ratings, charge.spendable, charge=charge.reference)
    charge.check(answer[2])
    return answer


def measure_components(
    ratings: RawRatings, epsilon: float, *, noise: NoiseSource | None = None, charge: ChargeReference | None = None
) -> tuple[Components, float, Certificate]:
    """Variance components and spread for a stated budget, with the receipt; `charge` is what paid, in a ledger."""
    vault = Vault(ratings, epsilon, noise=noise or NoiseSource.system(), charge=charge)
    weight = allocate(vault.census, vault.scale, epsilon).item_weight
    shares = Allocation(0.25 * epsilon, 0.75 * epsilon, 0.0, weight)
    y = (vault.scale.values - vault.scale.midpoint) / (vault.scale.width / 2)
    with one_blas_thread():
        design = Design.of(vault.table)
        usage = ask_usage(vault, y, shares.histogram)
        sums = ask_sums(vault, design, usage, y, shares)
        effects = learn_effects(design, sums, ridge(usage.variance, usage.mean_variance), usage.variance)
        _, explained, _ = moments_at_ratings(design.table, design.x, design.z @ effects.weights, 1)
    item, user, features = (
        float(np.clip(value / usage.variance, 0.01, 0.4))
        for value in (effects.item_prior_variance, effects.user_prior_variance, explained)
    )
    typical = Components()
    rest = max(1 - item - user - features, 0.05)
    slopes = rest * typical.user_slopes / (typical.residual + typical.user_slopes + typical.item_slopes)
    total = item + user + features + rest
    components = Components(*(part / total for part in (rest - 2 * slopes, features, item, user, slopes, slopes)))
    return components, float(np.sqrt(usage.variance) * vault.scale.width / 2), vault.certificate()
