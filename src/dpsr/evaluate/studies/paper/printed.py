"""What the paper prints: Tables 1 and 2, its t-tests and the numbers in its prose; and its tests recomputed.

Transcribed from `paper.tex`; a test checks that the tables agree with each other as far as rounding allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from scipy import stats

METRIC_TITLES = {"rmse": "RMSE", "mae": "MAE", "precision_at_10": "P@10", "ndcg_at_10": "NDCG@10"}
METRICS = tuple(METRIC_TITLES)


class Printed(NamedTuple):
    """Mean and standard deviation over five seeds."""

    mean: float
    deviation: float


def _row(*numbers: float) -> dict[str, Printed]:
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return {metric: Printed(*pair) for metric, pair in zip(METRICS, pairs, strict=True)}


TABLE_1: dict[tuple[float | None, str], dict[str, Printed]] = {
    (0.1, "DPSR"): _row(0.998, 0.044, 0.874, 0.039, 0.009, 0.005, 0.034, 0.003),
    (0.1, "Gaussian"): _row(1.070, 0.056, 0.953, 0.054, 0.005, 0.003, 0.036, 0.006),
    (0.1, "Laplace"): _row(1.057, 0.039, 0.939, 0.035, 0.006, 0.002, 0.033, 0.005),
    (0.5, "DPSR"): _row(0.978, 0.042, 0.856, 0.036, 0.006, 0.006, 0.035, 0.002),
    (0.5, "Gaussian"): _row(1.074, 0.038, 0.959, 0.034, 0.007, 0.002, 0.037, 0.004),
    (0.5, "Laplace"): _row(1.077, 0.052, 0.966, 0.050, 0.004, 0.003, 0.036, 0.007),
    (1.0, "DPSR"): _row(0.982, 0.017, 0.867, 0.011, 0.004, 0.003, 0.031, 0.004),
    (1.0, "Gaussian"): _row(1.068, 0.032, 0.950, 0.025, 0.005, 0.002, 0.034, 0.004),
    (1.0, "Laplace"): _row(1.065, 0.016, 0.955, 0.012, 0.006, 0.003, 0.036, 0.007),
    (5.0, "DPSR"): _row(1.048, 0.018, 0.955, 0.012, 0.003, 0.003, 0.036, 0.005),
    (5.0, "Gaussian"): _row(1.092, 0.039, 0.984, 0.036, 0.006, 0.002, 0.038, 0.005),
    (5.0, "Laplace"): _row(1.098, 0.027, 1.009, 0.021, 0.006, 0.003, 0.036, 0.004),
    (10.0, "DPSR"): _row(1.075, 0.017, 0.991, 0.006, 0.006, 0.004, 0.034, 0.006),
    (10.0, "Gaussian"): _row(1.092, 0.022, 0.992, 0.023, 0.008, 0.004, 0.035, 0.006),
    (10.0, "Laplace"): _row(1.097, 0.017, 1.013, 0.010, 0.007, 0.002, 0.036, 0.003),
    (None, "No Privacy"): _row(1.098, 0.021, 1.019, 0.011, 0.005, 0.002, 0.033, 0.007),
}
"""Table 1: (epsilon, method) -> metric -> mean and standard deviation. "DPSR" there is Stage 1 to 3, then MF."""

TABLE_2: dict[float, tuple[float, float]] = {
    0.1: (5.57, 6.78),
    0.5: (9.23, 8.99),
    1.0: (7.74, 8.03),
    5.0: (4.61, 4.06),
    10.0: (1.97, 1.53),
}
"""Table 2: epsilon -> RMSE improvement of DPSR in percent over Laplace, over Gaussian."""

T_TESTS: dict[float, tuple[float, float]] = {0.5: (3.304, 0.0108), 1.0: (7.944, 0.0001), 5.0: (3.526, 0.0078)}
"""The t and p of its "paired t-tests" of DPSR against Laplace; at epsilon = 1 it prints p < 0.0001."""

SEEDS = 5
"""Runs behind every printed mean."""


@dataclass(frozen=True)
class PrintedTest:
    """The paper's test of DPSR against Laplace at one budget, recomputed from its printed figures alone.

    `p_paired` and `p_unpaired` are the p-values of the *printed* t with 4 and 8 degrees of freedom; `t_from_table` and
    `p_from_table` those of an unpaired test on the means and deviations of Table 1.
    """

    epsilon: float
    t_printed: float | None
    p_printed: float | None
    p_paired: float | None
    p_unpaired: float | None
    t_from_table: float
    p_from_table: float


def recheck_printed_tests() -> list[PrintedTest]:
    """One row per budget of Table 1, also for those whose test the paper does not print."""
    return [_recheck(epsilon) for epsilon in TABLE_2]


def _recheck(epsilon: float) -> PrintedTest:
    n = SEEDS
    laplace, dpsr = (TABLE_1[epsilon, method]["rmse"] for method in ("Laplace", "DPSR"))
    pooled = stats.ttest_ind_from_stats(laplace.mean, laplace.deviation, n, dpsr.mean, dpsr.deviation, n)
    t, p = T_TESTS.get(epsilon, (None, None))
    return PrintedTest(
        epsilon=epsilon,
        t_printed=t,
        p_printed=p,
        p_paired=None if t is None else float(2 * stats.t.sf(t, n - 1)),
        p_unpaired=None if t is None else float(2 * stats.t.sf(t, 2 * n - 2)),
        t_from_table=float(pooled.statistic),
        p_from_table=float(pooled.pvalue),
    )
