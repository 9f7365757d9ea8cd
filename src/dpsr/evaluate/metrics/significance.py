"""Is one method's error really smaller? Tests on paired errors, made for few seeds and many users; and over seeds.

Both methods predict the same test ratings, so errors are compared rating by rating: d = e_peer^2 - e_ours^2. The claim
is about RMSE, so the quantity is the mean of d over all test ratings of all seeds. Its terms are not independent: a
person's errors go together, an item's do too, and the same rating may be tested under several seeds. With D_g the sum
of (d - mean) over group g of a grouping G, the variance of the mean is (Cameron, Gelbach and Miller 2011)

    V = V_users + V_items - V_cells,     V_G = |G| / (|G| - 1)  sum_g D_g^2 / n^2,

and never taken below either one-way V. t = mean / sqrt(V) has min(#users, #items) - 1 degrees of freedom. If everybody
rated one item and every item was rated once, this is the paired t-test. A test over seeds alone would throw away all
but a handful of numbers; and the training parts of random splits overlap, so that it would be too sure as well. It is
reported beside, with Nadeau and Bengio's correction for that, because it also sees the luck of the noise, which the
test over people and items takes as drawn.

Wilcoxon's signed-rank test asks about the typical person instead: one pair per user, the mean errors over all of the
user's test ratings. p-values are two-sided; Holm's correction holds for the whole table.

`compare_seeds` is what the paper does: the RMSE of two methods over the same seeds. A paired test takes the difference
seed by seed and has n - 1 degrees of freedom; an unpaired (pooled) test compares two independent samples and has
2n - 2. The seeds fix data, split and start for both methods, so the paired test is the right one there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from dpsr.arrays import Floats, Ints


@dataclass(frozen=True)
class ErrorComparison:
    """Positive `mean` and `t`: the peer's squared error is the larger one. NaN where a test is undefined."""

    mean: float
    t: float
    p: float
    wilcoxon_p: float
    seeds_p: float
    n_ratings: int
    n_users: int


TEST_TO_TRAIN = 0.25
"""Of the splits, 80/20."""


def compare_errors(difference: Floats, users: Ints, items: Ints, seeds: Ints) -> ErrorComparison:
    """Everything at once. `seeds` says of each rating in which split it was tested."""
    t, p = clustered_t(difference, users, items)
    by_user = _group_means(difference, users)
    return ErrorComparison(
        mean=float(difference.mean()),
        t=t,
        p=p,
        wilcoxon_p=wilcoxon_p(by_user),
        seeds_p=resampled_p(_group_means(difference, seeds), TEST_TO_TRAIN),
        n_ratings=len(difference),
        n_users=len(by_user),
    )


@dataclass(frozen=True)
class SeedComparison:
    """How much lower the error of `method` is than that of `reference`, and how sure we can be of the sign."""

    method: str
    reference: str
    epsilon: float | None
    improvement_percent: float
    paired_t: float
    paired_p: float
    unpaired_t: float
    unpaired_p: float


def compare_seeds(
    method: str, reference: str, epsilon: float | None, errors: list[float], reference_errors: list[float]
) -> SeedComparison:
    """Positive t and improvement mean that `method` has the smaller error; NaN where a test is undefined (one seed)."""
    ours, theirs = np.asarray(errors), np.asarray(reference_errors)
    gain = 100 * float(1 - ours.mean() / theirs.mean())
    if len(ours) < 2 or np.ptp(theirs - ours) == 0:
        nan = float("nan")
        return SeedComparison(method, reference, epsilon, gain, nan, nan, nan, nan)
    paired, unpaired = stats.ttest_rel(theirs, ours), stats.ttest_ind(theirs, ours)
    numbers = (paired.statistic, paired.pvalue, unpaired.statistic, unpaired.pvalue)
    return SeedComparison(method, reference, epsilon, gain, *(float(x) for x in numbers))


def clustered_t(difference: Floats, users: Ints, items: Ints) -> tuple[float, float]:
    """t and two-sided p of "the mean difference is zero", errors grouped by user and by item."""
    residual = difference - difference.mean()
    cells = users * (int(items.max()) + 1) + items
    (by_user, n_users), (by_item, n_items) = (_variance(residual, groups) for groups in (users, items))
    variance = max(by_user + by_item - _variance(residual, cells)[0], by_user, by_item)
    degrees = min(n_users, n_items) - 1
    if degrees < 1 or variance <= 0:
        return float("nan"), float("nan")
    t = float(difference.mean() / np.sqrt(variance))
    return t, float(2 * stats.t.sf(abs(t), degrees))


def _variance(residual: Floats, groups: Ints) -> tuple[float, int]:
    """The variance of the mean if groups were independent, and how many there are."""
    _, code = np.unique(groups, return_inverse=True)
    sums = np.bincount(code, residual)
    n = len(sums)
    return (float(n / (n - 1) * np.sum(sums**2) / len(residual) ** 2) if n > 1 else 0.0), n


def wilcoxon_p(differences: Floats) -> float:
    """Two-sided p of Wilcoxon's signed-rank test; zeros are left out, and with none left nothing can be said."""
    told = differences[differences != 0]
    return float(stats.wilcoxon(told).pvalue) if len(told) > 1 else float("nan")


def resampled_p(differences: Floats, test_to_train: float) -> float:
    """Paired t over seeds; the variance is that of overlapping splits, (1/S + test/train) s^2 (Nadeau and Bengio)."""
    n = len(differences)
    if n < 2 or np.ptp(differences) == 0:
        return float("nan")
    t = differences.mean() / np.sqrt((1 / n + test_to_train) * differences.var(ddof=1))
    return float(2 * stats.t.sf(abs(t), n - 1))


def holm(p_values: npt.ArrayLike) -> Floats:
    """Holm's step-down correction; NaN stays NaN and is not counted.

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    corrected = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps * p[order]), 1.0) if len(order) else []
    return corrected


def _group_means(values: Floats, groups: Ints) -> Floats:
    _, code = np.unique(groups, return_inverse=True)
    return np.bincount(code, values) / np.bincount(code)
