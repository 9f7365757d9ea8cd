"""t-tests on the RMSE of two methods over the same seeds, and the arithmetic of the paper's own.

A paired test takes the difference seed by seed and has n - 1 degrees of freedom; an unpaired (pooled) test compares two
independent samples and has 2n - 2. The seeds fix data, split and start for both methods, so the paired test is the
right one here. p-values are two-sided.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from dpsr.evaluate import printed


@dataclass(frozen=True)
class Comparison:
    """How much lower the error of `method` is than that of `reference`, and how sure we can be of the sign."""

    method: str
    reference: str
    epsilon: float | None
    improvement_percent: float
    paired_t: float
    paired_p: float
    unpaired_t: float
    unpaired_p: float


def compare(
    method: str, reference: str, epsilon: float | None, errors: list[float], reference_errors: list[float]
) -> Comparison:
    """Positive t and improvement mean that `method` has the smaller error; NaN where a test is undefined (one seed)."""
    ours, theirs = np.asarray(errors), np.asarray(reference_errors)
    gain = 100 * float(1 - ours.mean() / theirs.mean())
    if len(ours) < 2 or np.ptp(theirs - ours) == 0:
        nan = float("nan")
        return Comparison(method, reference, epsilon, gain, nan, nan, nan, nan)
    paired, unpaired = stats.ttest_rel(theirs, ours), stats.ttest_ind(theirs, ours)
    numbers = (paired.statistic, paired.pvalue, unpaired.statistic, unpaired.pvalue)
    return Comparison(method, reference, epsilon, gain, *(float(x) for x in numbers))


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
    return [_recheck(epsilon) for epsilon in printed.TABLE_2]


def _recheck(epsilon: float) -> PrintedTest:
    n = printed.SEEDS
    laplace, dpsr = (printed.TABLE_1[epsilon, method]["rmse"] for method in ("Laplace", "DPSR"))
    pooled = stats.ttest_ind_from_stats(laplace.mean, laplace.deviation, n, dpsr.mean, dpsr.deviation, n)
    t, p = printed.T_TESTS.get(epsilon, (None, None))
    return PrintedTest(
        epsilon=epsilon,
        t_printed=t,
        p_printed=p,
        p_paired=None if t is None else float(2 * stats.t.sf(t, n - 1)),
        p_unpaired=None if t is None else float(2 * stats.t.sf(t, 2 * n - 2)),
        t_from_table=float(pooled.statistic),
        p_from_table=float(pooled.pvalue),
    )
