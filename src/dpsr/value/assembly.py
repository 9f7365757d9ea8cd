"""From the state of inference, in half-widths of the scale, to a model in rating points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.types import Census, Mask, Model, PersonalPrior, Scale
from dpsr.value.evidence import EvidenceState
from dpsr.value.mask_taste import MaskTaste


def assemble(
    mask: Mask | Census, scale: Scale, state: EvidenceState, taste: MaskTaste, personal: PersonalPrior | None = None
) -> Model:
    """prediction = midpoint + half-width * left . right, as two thin factors; strangers get averages over ratings."""
    half = scale.width / 2
    left = np.column_stack([state.left[:], np.ones(mask.n_users), taste.users])
    right = np.column_stack([half * state.right, np.full(mask.n_items, scale.midpoint), half * taste.items])
    everyone = _average(left, mask.user_counts)
    everything = _average(right, mask.item_counts)
    return Model(
        mask=mask,
        scale=scale,
        user_factors=left,
        item_factors=right,
        user_means=left @ everything,
        item_means=right @ everyone,
        overall=float(everyone @ everything),
        residual_variance=half**2 * state.residual,
        user_mean=everyone,
        affinity=state.design.affinity,
        user_covariance=_stranger_covariance(left, mask.user_counts, state, taste.variance),
        personal=personal,
    )


def _average(rows: Floats, counts: npt.NDArray[np.int64]) -> Floats:
    return counts @ rows / max(int(counts.sum()), 1)


def _stranger_covariance(
    left: Floats, counts: npt.NDArray[np.int64], state: EvidenceState, taste_variance: float
) -> Floats:
    """Public features vary as among the raters; coefficients as their learned prior says, not as shrunk means do."""
    d = state.design.x.shape[1]
    covariance = np.zeros((left.shape[1], left.shape[1]))
    x = left[counts > 0, :d] if counts.any() else left[:, :d]
    covariance[:d, :d] = np.cov(x, rowvar=False, bias=True)
    own = state.user_prior.covariance
    covariance[d : d + len(own), d : d + len(own)] = own
    tastes = np.arange(d + len(own) + 1, len(covariance))
    covariance[tastes, tastes] = taste_variance
    return covariance
