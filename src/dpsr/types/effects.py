"""What noisy sums say: shared weights, item effects and user effects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Effects:
    """Posterior of  z_j' W x_u + item_j + user_u,  in half-widths of the scale.

    `ridge` holds the precision of W's groups, `item_share` and `user_share` the prior variances of the effects,
    `item_doubt` and `user_doubt` their posterior variances.
    """

    weights: Floats
    item: Floats
    user: Floats
    ridge: Floats
    item_share: float
    user_share: float
    item_doubt: Floats
    user_doubt: Floats

    @property
    def known(self) -> tuple[float, float]:
        """How many item effects, and user effects, the sums determine: each counts by how far its doubt has fallen."""
        sides = (self.item_doubt, self.item_share), (self.user_doubt, self.user_share)
        items, users = (float(np.sum(np.clip(1 - doubt / share, 0, 1))) for doubt, share in sides)
        return items, users


@dataclass(frozen=True, eq=False)
class Message:
    """What each row's own sum says about its effect: a value and its variance."""

    value: Floats
    variance: Floats
