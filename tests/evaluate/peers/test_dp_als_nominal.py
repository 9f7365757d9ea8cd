"""What a nominal epsilon of DP-ALS would come to if its sensitivities were not those charged (docs/peers.md)."""

from __future__ import annotations

import re
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from dpsr.evaluate.peers.accounting import gaussian_epsilon
from dpsr.privacy.channels.additive import analytic_sigma

DELTA = 1e-5
PAGE = Path(__file__).parents[3] / "docs" / "peers.md"
SECTION = re.search(r"### Does the reference keep.*?(?=\n## )", PAGE.read_text("utf-8"), re.S)[0]


def epsilon_if(nominal, factor):
    """The price at `DELTA` if mu^2 is `factor` times what the nominal epsilon allows."""
    return gaussian_epsilon(sqrt(factor) / analytic_sigma(nominal, DELTA), DELTA)


def rows_of(header):
    """The rows of the table whose header begins so: numbers."""
    table = SECTION.split(f"| nominal ε | {header}", 1)[1].split("\n\n", 1)[0]
    return [[float(cell) for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:]]


def test_entries_beyond_their_bound_make_of_a_nominal_epsilon_what_the_document_says():
    for nominal, *stated in rows_of("entries"):
        found = [epsilon_if(nominal, (1 + c**2) / 2) for c in (1, 2, 3)]
        np.testing.assert_allclose(stated, found, atol=0.005)


def test_a_sum_of_k_ratings_charged_as_the_root_of_k_makes_of_it_what_the_document_says():
    for nominal, *stated in rows_of("k = 25"):
        found = [epsilon_if(nominal, 1 + 0.02 * (k - 1)) for k in (25, 50, 100)]
        np.testing.assert_allclose(stated, found, atol=0.005)


@pytest.mark.parametrize("c", [1, 2, 3])
def test_a_user_whose_entries_are_all_extreme_moves_gram_matrices_and_right_sides_by_the_stated_lengths(c):
    """k items, one unit vector, all ratings at c: nothing in the bound is slack."""
    k, u = 25, np.array([0.6, 0.8])
    gram = np.stack([np.outer(u, u)] * k)
    right = np.stack([c * u] * k)
    assert np.linalg.norm(gram) == pytest.approx(sqrt(k))
    assert np.linalg.norm(right) == pytest.approx(sqrt(k) * c)
    charged, true = 2 * k, np.linalg.norm(gram) ** 2 + np.linalg.norm(right) ** 2
    assert true / charged == pytest.approx((1 + c**2) / 2)


def test_a_user_who_agrees_with_themselves_moves_a_plain_sum_by_k_and_not_by_its_root():
    k = 25
    moved = abs(np.ones(k).sum())
    assert moved == k
    assert (moved / sqrt(k)) ** 2 == pytest.approx(k), "times what was charged, in squares of mu"


def test_one_user_decides_which_items_are_frequent_where_counts_are_exact():
    counts, user = np.array([10, 10, 3]), np.array([0, 1, 0])

    def frequent(one):
        return int(np.argmax(one))  # ties go to the first: any fixed rule has such a neighbour

    assert frequent(counts) != frequent(counts + user)
