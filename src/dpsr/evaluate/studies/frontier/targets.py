"""What the frontier should reach on public rating sets, by epsilon: of the release, and of what people get from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True)
class Targets:
    """Mean RMSE by epsilon: `reach` is to be met, `aim` to be undercut. Empty for a set without targets."""

    reach: Mapping[float, float] = field(default_factory=dict)
    aim: Mapping[float, float] = field(default_factory=dict)


def _targets(reach: tuple[float, ...], aim: tuple[float, ...]) -> Targets:
    return Targets(dict(zip(EPSILONS, reach, strict=True)), dict(zip(EPSILONS, aim, strict=True)))


TARGETS: Mapping[str, Targets] = {
    "ml-latest-small": _targets(
        reach=(0.975, 0.920, 0.900, 0.882, 0.862, 0.846, 0.837),
        aim=(0.960, 0.905, 0.885, 0.865, 0.850, 0.838, 0.832),
    ),
    "movietweetings-100k": _targets(
        reach=(1.845, 1.760, 1.710, 1.660, 1.620, 1.580, 1.550),
        aim=(1.810, 1.720, 1.670, 1.625, 1.590, 1.550, 1.533),
    ),
}


PERSONAL_TARGETS: Mapping[str, Targets] = {
    "ml-latest-small": _targets(
        reach=(0.868, 0.857, 0.850, 0.840, 0.831, 0.819, 0.816),
        aim=(0.858, 0.847, 0.838, 0.828, 0.820, 0.813, 0.810),
    ),
    "movietweetings-100k": _targets(
        reach=(1.67, 1.61, 1.59, 1.57, 1.545, 1.509, 1.497),
        aim=(1.64, 1.585, 1.565, 1.55, 1.525, 1.50, 1.49),
    ),
}
"""The same for what is personalised."""
