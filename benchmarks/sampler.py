"""Draws a second of one core: our exact samplers against OpenDP's exact integer Laplace and numpy's unsafe one."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import numpy as np
import opendp.prelude as dp

from benchmarks.registry import Ratio, section
from benchmarks.timing import in_turns
from dpsr import Scale
from dpsr.privacy.channels import calibrated_laplace, laplace, randomised_response
from dpsr.privacy.noise import NoiseSource, discrete_laplace

N, FEW = 5_000_000, 200_000
SOME, MANY = 1_000_000, 4_000_000
WANTED = 30e6
"""Ratings a second a core."""


@section("sampler", "Exact sampling, 5 stars, epsilon = 1, one core")
def sampler(quick: bool) -> Iterator[Ratio]:
    """Each channel against the rate wanted, and against OpenDP and numpy."""
    scale, noise, rng = Scale(1, 5), NoiseSource.system(), np.random.default_rng(0)
    levels = rng.integers(0, 5, N).astype(np.uint16)
    stars = scale.values[levels]
    channels = {
        "Laplace": laplace(scale, 1.0),
        "the paper's Stage 1, repaired": calibrated_laplace(scale, 1.0),
        "randomised response": randomised_response(scale, 1.0),
    }
    sides = {name: partial(channel.sample, levels, noise) for name, channel in channels.items()}
    sides["numpy"] = lambda: np.clip(stars + rng.laplace(0, 4, N), 1, 5)
    best = in_turns(sides, rounds=2 if quick else 5)
    few = in_turns({"opendp": opendp(), "statistics": partial(discrete_laplace, Fraction(4), FEW, noise)}, rounds=2)
    grown = in_turns({str(n): partial(discrete_laplace, Fraction(4), n, noise) for n in (SOME, MANY)}, rounds=2)
    for name in channels:
        rate = N / best[name].cpu
        yield Ratio(f"sampler, {name}", rate / WANTED, f"{rate / 1e6:.1f} million a second", target=1)
    paper = best["the paper's Stage 1, repaired"].cpu
    yield Ratio("sampler over numpy (unsafe)", best["numpy"].cpu / paper, f"numpy {N / best['numpy'].cpu / 1e6:.1f}")
    slow = few["opendp"].cpu / FEW
    yield Ratio("sampler over OpenDP", slow / (paper / N), f"OpenDP {1e-6 / slow:.3f} million a second")
    made = few["statistics"].cpu / FEW
    yield Ratio("discrete Laplace over OpenDP", slow / made, f"{1e-6 / made:.2f} million a second")
    some, many = (grown[str(n)].cpu for n in (SOME, MANY))
    growth = some * MANY / SOME / many
    yield Ratio("discrete Laplace, growth", growth, f"1 M {some:.3g} s, 4 M {many:.3g} s; 1 is linear", target=0.8)


def opendp() -> partial[object]:
    """OpenDP's exact integer Laplace on a vector of zeros."""
    dp.enable_features("contrib")
    exact = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=4.0)
    return partial(exact, [0] * FEW)
