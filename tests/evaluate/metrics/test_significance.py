"""Tests of differences: equal to scipy's where theirs apply, sure of what is planted, not of what is not."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from dpsr.evaluate.metrics.significance import (
    clustered_t,
    compare_errors,
    compare_seeds,
    holm,
    resampled_p,
    wilcoxon_p,
)


def crossed(rng, n_users=80, n_items=60, n=2000):
    return rng.integers(0, n_users, n), rng.integers(0, n_items, n)


def test_one_rating_a_person_and_item_is_the_paired_t_test():
    rng = np.random.default_rng(0)
    ours, theirs = rng.random(50), rng.random(50) + 0.1
    t, p = clustered_t(theirs - ours, np.arange(50), np.arange(50))
    expected = stats.ttest_rel(theirs, ours)
    assert t == pytest.approx(expected.statistic)
    assert p == pytest.approx(expected.pvalue)


def test_groups_by_user_alone_are_the_ratio_of_cluster_sums():
    """Every item rated once: only users group, and the variance is the textbook's for cluster sums."""
    rng = np.random.default_rng(1)
    users, d = np.repeat(np.arange(30), 5), rng.normal(0.2, 1, 150) + np.repeat(rng.normal(0, 1, 30), 5)
    t, p = clustered_t(d, users, np.arange(150))
    sums = np.array([(d - d.mean())[users == u].sum() for u in range(30)])
    expected = d.mean() / np.sqrt(30 / 29 * (sums**2).sum() / 150**2)
    assert t == pytest.approx(expected)
    assert p == pytest.approx(2 * stats.t.sf(abs(expected), 29))


def test_a_rating_tested_under_several_seeds_counts_as_one():
    """Copying every rating ten times makes a naive test surer; this one hardly."""
    rng = np.random.default_rng(2)
    users, items = crossed(rng, n=400)
    cells = np.unique(users * 60 + items)
    users, items = cells // 60, cells % 60
    d = rng.normal(0.1, 1, len(cells))
    once, often = clustered_t(d, users, items), clustered_t(*(np.tile(x, 10) for x in (d, users, items)))
    assert often[0] == pytest.approx(once[0], rel=1e-6)
    assert stats.ttest_1samp(np.tile(d, 10), 0).statistic > 2.5 * stats.ttest_1samp(d, 0).statistic


def test_no_effect_is_called_one_in_twenty_times_and_a_naive_test_calls_far_more():
    rng = np.random.default_rng(3)
    false, naive, n = 0, 0, 300
    for _ in range(n):
        users, items = crossed(rng)
        d = rng.normal(0, 1, 80)[users] + rng.normal(0, 1, 60)[items] + rng.normal(0, 1, len(users))
        false += clustered_t(d, users, items)[1] < 0.05
        naive += stats.ttest_1samp(d, 0).pvalue < 0.05
    assert stats.binomtest(false, n, 0.05, alternative="greater").pvalue > 0.001
    assert naive / n > 0.4


def test_a_planted_effect_is_found():
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(50):
        users, items = crossed(rng)
        d = 0.6 + rng.normal(0, 1, 80)[users] + rng.normal(0, 1, 60)[items] + rng.normal(0, 1, len(users))
        found += compare_errors(d, users, items, np.zeros(len(users), dtype=np.int64)).p < 0.05
    assert found >= 40


def test_wilcoxon_is_scipys_on_the_means_of_users():
    rng = np.random.default_rng(5)
    users, items = crossed(rng, n=900)
    d = rng.normal(0.05, 1, 900)
    means = np.array([d[users == u].mean() for u in np.unique(users)])
    found = compare_errors(d, users, items, rng.integers(0, 3, 900))
    assert found.wilcoxon_p == pytest.approx(stats.wilcoxon(means).pvalue)
    assert found.n_users == len(means)


def test_over_seeds_the_variance_is_that_of_overlapping_splits():
    values = np.array([0.1, 0.2, 0.15])
    plain = stats.ttest_1samp(values, 0)
    shrunk = plain.statistic * np.sqrt((1 / 3) / (1 / 3 + 0.25))
    assert resampled_p(values, 0.25) == pytest.approx(2 * stats.t.sf(shrunk, 2))
    assert resampled_p(values, 0.25) > plain.pvalue
    assert resampled_p(values, 0.0) == pytest.approx(plain.pvalue)


def test_undefined_tests_say_so():
    one = compare_errors(np.array([0.5]), np.array([0]), np.array([0]), np.array([0]))
    assert np.isnan([one.t, one.p, one.wilcoxon_p, one.seeds_p]).all()
    same = compare_errors(np.zeros(9), np.arange(9), np.arange(9), np.arange(9) % 3)
    assert np.isnan(same.p)
    assert np.isnan(wilcoxon_p(np.zeros(5)))


def test_holm_is_the_step_down_of_a_plain_loop():
    rng = np.random.default_rng(6)
    p = rng.random(12) ** 3
    expected, running = np.empty(12), 0.0
    for step, index in enumerate(np.argsort(p)):
        running = max(running, min(1.0, (12 - step) * p[index]))
        expected[index] = running
    assert holm(p) == pytest.approx(expected)
    with_gap = holm([0.01, float("nan"), 0.02])
    assert with_gap[0] == pytest.approx(0.02)
    assert np.isnan(with_gap[1])
    assert with_gap[2] == pytest.approx(0.02)


def test_holm_keeps_the_rate_of_any_false_call():
    rng = np.random.default_rng(7)
    wrong = sum((holm(rng.random(20)) < 0.05).any() for _ in range(400))
    assert stats.binomtest(wrong, 400, 0.05, alternative="greater").pvalue > 0.001
    uncorrected = sum((rng.random(20) < 0.05).any() for _ in range(400))
    assert uncorrected > 200


def test_over_seeds_it_is_the_paired_test_by_its_definition():
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(1.0, 0.1, 5), rng.normal(1.1, 0.1, 5)
    difference = theirs - ours
    t = difference.mean() / (difference.std(ddof=1) / sqrt(5))
    found = compare_seeds("a", "b", 1.0, ours.tolist(), theirs.tolist())
    assert found.paired_t == pytest.approx(t)
    assert found.paired_p == pytest.approx(2 * stats.t.sf(abs(t), 4))
    assert found.improvement_percent == pytest.approx(100 * (theirs.mean() - ours.mean()) / theirs.mean())


def test_pairing_sees_a_small_constant_gain_that_the_unpaired_test_misses():
    level = np.array([0.8, 0.9, 1.0, 1.1, 1.2])
    found = compare_seeds("a", "b", None, (level - 0.01 + 0.001 * np.arange(5)).tolist(), level.tolist())
    assert found.paired_p < 0.05 < found.unpaired_p


def test_a_single_seed_gives_an_improvement_and_no_test():
    found = compare_seeds("a", "b", 1.0, [0.9], [1.0])
    assert found.improvement_percent == pytest.approx(10)
    assert np.isnan(found.paired_p)
