"""The made-up sets are what their names say, and a broken promise is flagged."""

import numpy as np
import pytest
from benchmarks.robustness import Line, main, rises
from benchmarks.robustness_sets import SETS

ONES = np.ones(3)


def line(ours, *, price=0.0, paper=2.0):
    return Line(0.1, ours * ONES, ONES, price, paper * ONES, ONES, ONES)


@pytest.mark.parametrize("name", ["a thousand ratings", "one user rated 40 %", "items nobody rated", "likes"])
def test_a_set_is_a_function_of_its_seed(name):
    first, again, other = SETS[name](0), SETS[name](0), SETS[name](1)
    np.testing.assert_array_equal(first.levels, again.levels)
    np.testing.assert_array_equal(first.mask.items, again.mask.items)
    assert not np.array_equal(first.mask.items, other.mask.items)


def test_the_sets_are_what_their_names_say():
    glutton, unrated, likes = (SETS[name](0) for name in ("one user rated 40 %", "items nobody rated", "likes"))
    assert glutton.mask.user_counts.max() == pytest.approx(0.4 * len(glutton), rel=0.01)
    assert np.count_nonzero(unrated.mask.item_counts == 0) >= 400
    assert likes.scale.n_levels == 2
    jokes = SETS["jokes, 72 % full"](0)
    assert len(jokes) == pytest.approx(0.72 * np.prod(jokes.mask.shape), rel=0.01)
    assert jokes.scale.n_levels == 201
    assert np.std(SETS["nothing to learn"](0).values) > 0.5


def test_a_line_is_flagged_beyond_half_a_per_cent_and_not_before():
    assert line(1.004).broken(None) == []
    assert line(1.006).broken(None) == ["worse than the constant"]
    assert line(0.99, paper=0.98).broken(None) == ["worse than the paper"]


def test_the_price_of_the_mean_is_granted_and_its_own_chance_too():
    assert line(np.sqrt(1.1) * 1.004, price=0.1).broken(None) == []
    chance = 1 + 0.1 * (1 + 2 * np.sqrt(5 / 3))
    assert line(np.sqrt(chance) * 1.004, price=0.1).broken(None) == []
    assert line(np.sqrt(chance) * 1.006, price=0.1).broken(None) == ["worse than the constant"]


def test_rising_is_flagged_only_beyond_chance():
    before = np.array([1.0, 1.1, 0.9])
    assert rises(before, before + 0.01)
    assert not rises(before, before + 0.002)
    assert not rises(before, before + np.array([0.05, -0.04, 0.03]))
    assert line(0.92).broken(line(0.9)) == ["rising"]


def test_the_command_prints_every_epsilon_and_says_whether_a_promise_broke(capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.robustness.lines", lambda name, epsilons, seeds: [line(0.9), line(1.2)])
    assert main(["--set", "likes"]) == 1
    shown = capsys.readouterr().out
    assert "WORSE THAN THE CONSTANT, RISING" in shown
    assert "1 lines break a promise" in shown
    monkeypatch.setattr("benchmarks.robustness.lines", lambda name, epsilons, seeds: [line(0.9)])
    assert main(["--set", "likes"]) == 0
