"""What the frontier should reach on public rating sets, by epsilon: of the release, and of what people get from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
PEOPLE_EPSILONS = (*EPSILONS, 20.0)


@dataclass(frozen=True)
class Targets:
    """Mean RMSE by epsilon: `reach` is to be met, `aim` to be undercut. Empty for a set without targets."""

    reach: Mapping[float, float] = field(default_factory=dict)
    aim: Mapping[float, float] = field(default_factory=dict)


def _targets(reach: tuple[float, ...], aim: tuple[float, ...], epsilons: tuple[float, ...] = EPSILONS) -> Targets:
    return Targets(dict(zip(epsilons, reach, strict=True)), dict(zip(epsilons, aim, strict=True)))


TARGETS: Mapping[str, Targets] = {
    "ml-latest-small": _targets(
        reach=(0.938, 0.900, 0.887, 0.855, 0.834, 0.818, 0.816),
        aim=(0.930, 0.893, 0.875, 0.848, 0.829, 0.815, 0.812),
    ),
    "movietweetings-100k": _targets(
        reach=(1.753, 1.657, 1.622, 1.588, 1.543, 1.508, 1.496),
        aim=(1.735, 1.640, 1.600, 1.565, 1.527, 1.500, 1.490),
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


PEOPLE_TARGETS: Mapping[str, Targets] = {
    "ml-latest-small": _targets(
        reach=(0.945, 0.940, 0.935, 0.928, 0.923, 0.917, 0.909, 0.901),
        aim=(0.937, 0.930, 0.922, 0.914, 0.908, 0.900, 0.890, 0.880),
        epsilons=PEOPLE_EPSILONS,
    ),
    "movietweetings-100k": _targets(
        reach=(1.70, 1.66, 1.64, 1.62, 1.61, 1.60, 1.588, 1.58),
        aim=(1.68, 1.64, 1.615, 1.595, 1.585, 1.572, 1.56, 1.55),
        epsilons=PEOPLE_EPSILONS,
    ),
}
"""The same where whole people are protected, at delta = 1e-5. At the unit rating there are none but these."""
