"""The event is searched on one set of counts and tested on another; only so does the bound hold."""

from math import log

import numpy as np
import pytest

from dpsr.audit.bounds import epsilon_at_least
from dpsr.audit.events import best_bound, promising_event

P = np.array([0.40, 0.20, 0.15, 0.15, 0.10])
Q = np.array([0.10, 0.15, 0.15, 0.20, 0.40])


def counts(rng, n, *rows):
    return np.array([rng.multinomial(n, row) for row in rows])


def test_with_many_counts_the_event_is_the_output_of_the_largest_ratio():
    event = promising_event(*counts(np.random.default_rng(0), 10**8, P, Q))
    assert event.tolist() == [0]


def test_with_few_counts_a_union_of_outputs_beats_the_best_single_one():
    """Two hundred outputs, all of the same ratio: alone each is noise, together they are evidence."""
    half = np.full(200, 1 / 200)
    p, q = (half * np.repeat([1.5, 0.5], 100), half * np.repeat([0.5, 1.5], 100))
    rng = np.random.default_rng(1)
    pilot, fresh = counts(rng, 20_000, p, q), counts(rng, 20_000, p, q)
    found = best_bound(pilot, fresh, [(0, 1)], alpha=0.05)
    single = epsilon_at_least(fresh[0], fresh[1], 20_000, 0.05 / 200).max()
    assert single < found.lower < log(3)
    assert found.lower > 0.9
    assert len(found.event) > 10


def test_the_bound_stays_below_the_truth_and_comes_near_it():
    rng = np.random.default_rng(2)
    truth = log((P / Q).max())
    bounds = [best_bound(counts(rng, n, P, Q), counts(rng, n, P, Q), [(0, 1), (1, 0)], alpha=0.05).lower
              for n in (10**3, 10**4, 10**5, 10**6, 10**7)]  # fmt: skip
    assert all(bound <= truth for bound in bounds)
    assert bounds[-1] > 0.995 * truth
    assert sorted(bounds) == bounds


def test_testing_on_the_counts_that_chose_the_event_would_cheat_and_is_not_done():
    """Two identical laws over many rare outputs: the winner's curse invents a ratio unless fresh counts are used."""
    law = np.full(2000, 1 / 2000)
    rng = np.random.default_rng(3)
    honest = cheating = 0
    for _ in range(100):
        pilot, fresh = counts(rng, 20_000, law, law), counts(rng, 20_000, law, law)
        honest += best_bound(pilot, fresh, [(0, 1)], alpha=0.05).lower > 0
        order = np.argsort(pilot[1] - pilot[0])[:600]
        cheating += float(epsilon_at_least(pilot[0, order].sum(), pilot[1, order].sum(), 20_000, 0.05)) > 0
    assert honest <= 5
    assert cheating > 90


@pytest.mark.parametrize("pairs", [1, 20, 400])
def test_more_pairs_cost_confidence_and_never_add_risk(pairs):
    """All pairs are equal in law, so the best of many would be a lie without the correction."""
    rng = np.random.default_rng(4)
    wrong = 0
    for _ in range(60):
        fresh, pilot = counts(rng, 5_000, *[P] * 21), counts(rng, 5_000, *[P] * 21)
        chosen = [(x, z) for x in range(21) for z in range(21) if x != z][:pairs]
        wrong += best_bound(pilot, fresh, chosen, alpha=0.05).lower > 0
    assert wrong <= 6
