"""Ratings after Stage 1: everything later stages are allowed to know."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpsr.certify.certificate import Certificate
from dpsr.types.coordinates import Mask, Scale


@dataclass(frozen=True, eq=False)
class PrivateRatings:
    """One noisy value per rating, with the receipt for the noise.

    `values` are in the order of the mask. They come out of `privacy/` together with their `certificate`, as one value.
    """

    mask: Mask
    values: npt.NDArray[np.float64]
    scale: Scale
    certificate: Certificate

    def __post_init__(self) -> None:
        self.values.setflags(write=False)

    def __len__(self) -> int:
        return self.mask.n_ratings

    def select(self, rows: npt.NDArray[np.bool_]) -> PrivateRatings:
        """Only the chosen ratings; the receipt covers all of them and so these."""
        return replace(self, mask=self.mask.select(rows), values=self.values[rows])

    def with_values(self, values: npt.NDArray[np.float64]) -> PrivateRatings:
        """The same ratings after a step of post-processing; the receipt is unchanged, as the theorem allows."""
        return replace(self, values=values)
