"""Trials of what a certificate states: its integer tables through the real sampler, its noise through the real noise.

This needs a release and no raw rating. It tests that the price a certificate states is not below what drawing from its
tables gives away; that the release was really drawn from them only the curator can know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpsr.arrays import Levels
from dpsr.audit.stage1 import MOST_DRAWS, NOTICE, by_channel, single
from dpsr.audit.trials import Labels, Trial, among
from dpsr.certify import Part
from dpsr.certify.parts import ChannelPart, LaplacePart
from dpsr.errors import PrivacyError
from dpsr.privacy.channels import Channel
from dpsr.privacy.noise import NoiseSource, discrete_laplace
from dpsr.release import Release
from dpsr.types import Scale

_EDGES = 9


def certificate_trials(release: Release) -> list[Trial]:
    """One trial for every table and every noisy statistic of the certificate."""
    trials = [trial for part in release.certificate.parts for trial in _trials(part, release.scale)]
    if not trials:
        raise PrivacyError(
            "this certificate shows no table and no noise that could be drawn from. "
            "Audit the pipeline itself: dpsr audit RATINGS --scale S --epsilon E --method METHOD."
        )
    return trials


def _trials(part: Part, scale: Scale) -> Iterator[Trial]:
    if isinstance(part, ChannelPart):
        for i, table in enumerate(part.tables):
            weights = np.array(table, dtype=np.uint64)
            channel = Channel(scale, np.arange(float(weights.shape[1])), weights, part.mechanism, {})
            name = f"{part.name}: table {i + 1} of {len(part.tables)}, all pairs of levels"
            trial = single(name, channel, by_channel(channel), part.epsilon, part.delta)
            yield replace(trial, runs=min(trial.runs, MOST_DRAWS // (len(trial.datasets) * len(part.tables))))
    elif isinstance(part, LaplacePart):
        yield noise_trial(part.name, part.sensitivity, Fraction(part.noise_scale), part.epsilon)


def noise_trial(name: str, sensitivity: int, scale: Fraction, claim: float, runs: int | None = None) -> Trial:
    """Two whole numbers as far apart as one rating can move a statistic, with its noise.

    The smaller the claim, the more draws: the bound falls short by some ten over the root of their number.
    """
    edges = np.linspace(0, sensitivity, _EDGES)
    draws = int(np.clip((10 / (NOTICE * claim)) ** 2, 1 << 17, 1 << 20))

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        values = sensitivity * levels[:, 0].astype(np.int64) + discrete_laplace(scale, len(levels), noise)
        return among(edges, values.astype(np.float64))

    return Trial(f"{name}: sensitivity against noise", claim, ((0,), (1,)), observe, _EDGES + 1, runs or draws)
