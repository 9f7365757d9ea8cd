"""Draws a second: our exact samplers against OpenDP's exact integer Laplace and numpy's unsafe floating-point one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from time import perf_counter

import numpy as np
import opendp.prelude as dp

from dpsr import Scale
from dpsr.privacy import NoiseSource, calibrated_laplace, laplace, randomised_response
from dpsr.privacy.discrete import discrete_laplace


def rate(draw: Callable[[], object], n: int, repeats: int = 3) -> float:
    """Millions of draws a second, best of a few after a warm-up."""
    draw()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        draw()
        times.append(perf_counter() - start)
    return n / min(times) / 1e6


def main() -> None:
    """Print the table."""
    n, few = 5_000_000, 200_000
    scale, noise = Scale(1, 5), NoiseSource.system()
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 5, n).astype(np.uint16)
    ratings = scale.values[levels]
    dp.enable_features("contrib")
    exact = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=4.0)
    zeros = [0] * few
    channels = {
        "dpsr, Laplace channel": laplace(scale, 1.0),
        "dpsr, the paper's Stage 1 repaired": calibrated_laplace(scale, 1.0),
        "dpsr, randomised response": randomised_response(scale, 1.0),
    }
    rates = {"OpenDP, exact integer Laplace": rate(lambda: exact(zeros), few)}
    rates["numpy Laplace + clip (unsafe in floating point)"] = rate(
        lambda: np.clip(ratings + rng.laplace(0, 4, n), 1, 5), n
    )
    for name, channel in channels.items():
        rates[name] = rate(partial(channel.sample, levels, noise), n)
    rates["dpsr, exact discrete Laplace (for statistics)"] = rate(
        lambda: discrete_laplace(Fraction(4), few, noise), few
    )
    base = rates["OpenDP, exact integer Laplace"]
    print("\nSampler, one core, 5 stars, epsilon = 1")
    print(f"{'':62}{'M/s':>8}{'x OpenDP':>10}")
    for name, value in rates.items():
        print(f"{name:62}{value:8.2f}{value / base:10.1f}")


if __name__ == "__main__":
    main()
