"""Mechanisms with a planted error, each of a kind that has happened to somebody. An audit worth its name rejects them.

    scale          noise for 1.05 epsilon, sold as epsilon
    rounding       probabilities cut to a few bits; noise rounded around the secret instead of on a fixed grid
    mean           noise scaled by the distance from the exact mean; values shifted so that their mean is exact
    noise reused   one random number for two ratings; one random number for two releases
    sensitivity    sums whose noise forgets that a rating may fall as well as rise

Nothing else in the library may use them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Levels
from dpsr.audit.stage1 import Draw, by_channel, crowd_trial, paired, repeated, single
from dpsr.audit.trials import Labels, Observe, Trial, one_rating
from dpsr.privacy.channels import Channel, laplace, optimal_channel, randomised_response
from dpsr.privacy.channels.additive import laplace_around
from dpsr.privacy.noise import NoiseSource, discrete_laplace, laplace_scale
from dpsr.types import Scale


def planted(scale: Scale, epsilon: float) -> tuple[Trial, ...]:
    """All of them, each claiming `epsilon` (the two releases: what their tables add up to)."""
    return (
        scale_error(scale, epsilon),
        coarse_table(scale, epsilon),
        rounded_noise(scale, epsilon),
        scaled_by_the_mean(scale, epsilon),
        exact_mean(scale, epsilon),
        shared_noise(scale, epsilon),
        reused_noise(scale, epsilon),
        half_sensitivity(scale, epsilon),
    )


def scale_error(scale: Scale, epsilon: float, factor: float = 1.05) -> Trial:
    """A channel for a larger epsilon than it claims."""
    channel = _channel(scale, factor * epsilon)
    honest = single("noise 5 % too small", _channel(scale, epsilon), by_channel(channel), epsilon)
    return replace(honest, n_labels=channel.weights.shape[1])


def coarse_table(scale: Scale, epsilon: float, bits: int = 5) -> Trial:
    """Each probability of a lie cut down to a multiple of 2**-bits; the truth gets what remains."""
    p = np.floor(randomised_response(scale, epsilon).probabilities * 2**bits)
    np.fill_diagonal(p, 0)
    np.fill_diagonal(p, 2**bits - p.sum(axis=1))
    channel = Channel.from_probabilities(scale, scale.values.copy(), p, mechanism="coarse", settings={})
    datasets = one_rating(scale.n_levels)
    return Trial("table cut to a few bits", epsilon, datasets, _symbols(channel), p.shape[1], 1 << 19)


def rounded_noise(scale: Scale, epsilon: float) -> Trial:
    """Laplace noise rounded to steps of 0.7, *then* added: which values can come out at all depends on the rating."""
    edges = np.round(np.arange(scale.low, scale.high + 1e-9, scale.step / 10), 9)

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        step = 0.7 * scale.step
        draws = discrete_laplace(laplace_scale(max(1, round(scale.width / step)), epsilon), len(levels), noise)
        values = scale.clip(scale.values[levels[:, 0]] + step * draws)
        return np.searchsorted(edges, np.round(values, 9)).astype(np.int64)

    datasets = one_rating(scale.n_levels)
    return Trial("noise rounded around the rating", epsilon, datasets, observe, len(edges) + 1, 1 << 18)


def scaled_by_the_mean(scale: Scale, epsilon: float, alpha: float = 0.3) -> Trial:
    """Noise scaled by how far a rating lies from the exact mean. At epsilon = 1 a public centre would be lawful."""

    def release(levels: Levels, noise: NoiseSource) -> Floats:
        centre = float(scale.values[levels].mean())
        channel = laplace_around(scale, epsilon / (1 + alpha), alpha, centre)
        return channel.outputs[channel.sample(levels.ravel(), noise)].reshape(levels.shape)

    return crowd_trial("noise scaled by the exact mean", scale, epsilon, release, 3, 1 << 20)


def exact_mean(scale: Scale, epsilon: float) -> Trial:
    """Lawful values, then shifted so that the table keeps the mean of the raw ratings."""
    channel = laplace(scale, epsilon)

    def release(levels: Levels, noise: NoiseSource) -> Floats:
        values = channel.outputs[channel.sample(levels.ravel(), noise)].reshape(levels.shape)
        return values + (scale.values[levels].mean(axis=1) - values.mean(axis=1))[:, None]

    return crowd_trial("mean of the table kept exact", scale, epsilon, release, 2, 1 << 18)


def shared_noise(scale: Scale, epsilon: float) -> Trial:
    """Two ratings of one person drawn with the same random number."""
    channel = _channel(scale, epsilon)

    def draw(levels: Levels, noise: NoiseSource) -> npt.NDArray[np.integer]:
        seed = _seed(noise)
        return np.column_stack([channel.sample(column, NoiseSource.seeded(seed)) for column in levels.T])

    return paired("same noise for two ratings", channel, draw, epsilon)


def reused_noise(scale: Scale, epsilon: float) -> Trial:
    """Two releases at two epsilons, the second drawn with the random numbers of the first."""
    first, second = _channel(scale, epsilon), _channel(scale, epsilon / 2)
    seeds: list[int] = []

    def once(levels: Levels, noise: NoiseSource) -> npt.NDArray[np.integer]:
        seeds.append(_seed(noise))
        return first.sample(levels.ravel(), NoiseSource.seeded(seeds[-1])).reshape(levels.shape)

    def again(levels: Levels, noise: NoiseSource) -> npt.NDArray[np.integer]:
        return second.sample(levels.ravel(), NoiseSource.seeded(seeds.pop())).reshape(levels.shape)

    draws: tuple[Draw, Draw] = (once, again)
    return repeated("same noise for two releases", first, second, draws)


def half_sensitivity(scale: Scale, epsilon: float) -> Trial:
    """A sum clipped to +-c moves by 2c; this one pays for c."""
    last = scale.n_levels - 1

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        draws = discrete_laplace(laplace_scale(8 * last, epsilon), len(levels), noise)
        return np.searchsorted(16 * np.arange(last + 1), 16 * levels[:, 0].astype(np.int64) + draws)

    return Trial("noise for half the sensitivity", epsilon, ((0,), (last,)), observe, last + 2, 1 << 18)


def _channel(scale: Scale, epsilon: float) -> Channel:
    return optimal_channel(scale, epsilon, np.full(scale.n_levels, 1 / scale.n_levels))


def _symbols(channel: Channel) -> Observe:
    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        return channel.sample(levels[:, 0], noise).astype(np.int64)

    return observe


def _seed(noise: NoiseSource) -> int:
    return int(noise.stream().words(1)[0] >> np.uint64(1))
