"""The vaults of interactions: charged before drawn, measured on real neighbours, the same in memory and on disk.

Two vaults with the same seed draw the same noise, so the difference of their answers is that of the exact sums.
"""

from fractions import Fraction
from itertools import product
from math import isqrt

import numpy as np
import pyarrow as pa
import pytest

from dpsr import Interactions
from dpsr.certify.check import _sizes_fit, check_certificate
from dpsr.certify.normal_price import gaussian_delta
from dpsr.certify.one_rating import MOST_CELLS, pair_weight
from dpsr.certify.people import GRID, PAIRS, PRESENCE_GRID, PersonPart, RatingPart
from dpsr.data.ingest_interactions import ingest_interactions
from dpsr.engine.raw import InteractionTable
from dpsr.errors import DataError, PrivacyError
from dpsr.pipeline.likes import learn_likes
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.people.likes_vault import PeopleLikesVault, SingleLikesVault

J, EPSILON, DELTA = 24, 3.0, 1e-5
DECLARED = pa.array(np.arange(J))
CELLS = np.arange(0, J, 2)
VAULTS = {"user": PeopleLikesVault, "rating": SingleLikesVault}


def rows(n_users=40, seed=0):
    rng = np.random.default_rng(seed)
    places = np.sort(rng.choice(n_users * J, 5 * n_users, replace=False))
    return np.column_stack([places // J, places % J, rng.integers(1, 9, len(places))])


def vault(unit, table, seed=1, epsilon=EPSILON, declared=DECLARED, **more):
    likes = Interactions.from_arrays(table[:, 0], table[:, 1], table[:, 2])
    noise = NoiseSource.seeded(seed)
    return VAULTS[unit](InteractionTable.of(likes).table, epsilon, DELTA, noise=noise, declared=declared, **more)


def ask(one, question, cells=CELLS):
    centre = np.full(len(cells), 1 / len(cells))
    if question == "moments":
        return one.presence_moments(0.1, cells, centre, np.ones(len(cells))).values
    return getattr(one, question)(0.1, cells).values


STEPS = {"numbers": GRID, "counts": GRID, "moments": PRESENCE_GRID**2}


def steps(unit, question):
    return GRID if unit == "rating" else STEPS[question]


@pytest.mark.parametrize("unit", VAULTS)
@pytest.mark.parametrize("question", STEPS)
def test_answers_on_real_neighbours_differ_by_at_most_what_the_receipt_says(unit, question):
    """All neighbours of a table with one person, or one interaction, less."""
    table = rows()
    base = vault(unit, table)
    answer = ask(base, question)
    limit = base.certificate().parts[0].squared_sensitivity(unit) / steps(unit, question) ** 2
    keys = table[:, 0] if unit == "user" else np.arange(len(table))
    for key in np.unique(keys)[:40]:
        neighbour = ask(vault(unit, table[keys != key]), question)
        assert ((answer - neighbour) ** 2).sum() <= limit * (1 + 1e-12)


@pytest.mark.parametrize("unit", VAULTS)
@pytest.mark.parametrize("question", STEPS)
def test_items_outside_a_declared_list_are_in_no_answer(unit, question):
    """Least of all in that about the last cell, which is what a place of minus one would be."""
    table, everybody = rows(), np.arange(40)
    table[:, 2] = 1  # strengths are next to a person's own mean
    more = np.vstack([table, np.column_stack([everybody, np.full(40, 99), np.ones(40, dtype=np.int64)])])
    np.testing.assert_array_equal(*(ask(vault(unit, one), question, np.arange(J)) for one in (table, more)))


@pytest.mark.parametrize("most", [1, 2, 5, J])
def test_nobody_moves_the_weights_of_names_by_more_than_one_nor_names_more_items_than_count(most):
    """All neighbours with one person less. Noise that is nothing: weights of a list that is not declared."""

    def weights(table):
        one = vault("user", table, declared=None)
        one._draw = lambda variance, n: np.zeros(n, dtype=np.int64)
        one._describe_names = lambda share, most: PersonPart("names", 1, 0, GRID**2, 0, most)
        one._charge = lambda part: None
        found = one.named(0.1, np.arange(one.n_cells), most)
        return dict(zip(found.names.to_pylist(), found.values, strict=True))

    table = rows()
    base = weights(table)
    for user in np.unique(table[:, 0]):
        less = weights(table[table[:, 0] != user])
        change = [base[name] - less.get(name, 0.0) for name in base]
        assert less.keys() <= base.keys()
        assert sum(one**2 for one in change) <= 1
        assert np.count_nonzero(change) <= most


def test_how_many_items_of_a_person_count_is_chosen_and_certified():
    """People with five interactions each at a small budget: few items count, and the receipt says so."""
    one = vault("user", rows(400), declared=None)
    learn_likes(one)
    part = next(part for part in one.certificate().parts if part.name == "names")
    assert part.most_named in (1, 2, 4, 8, 16)
    assert part.tail("user") <= 0.1 * DELTA


@pytest.mark.parametrize("unit", VAULTS)
def test_the_whole_pipeline_spends_no_more_than_was_asked_and_its_certificate_holds(unit):
    for declared in (DECLARED, None):
        one = vault(unit, rows(200), declared=declared)
        learn_likes(one)
        certificate = one.certificate()
        checks, read = check_certificate(certificate.to_json().encode())
        assert [check.words for check in checks if not check.holds] == []
        assert read.likes
        assert certificate.epsilon <= EPSILON
        assert certificate.epsilon > 0.98 * EPSILON
        assert not certificate.private  # seeded
        squares = sum((part.squared_mu(unit) for part in certificate.parts), Fraction(0))
        tails = sum(part.tail(unit) for part in certificate.parts)
        assert gaussian_delta(squares, EPSILON) + tails + 2.0**-80 <= DELTA


def test_noise_has_the_variance_of_its_receipt():
    """The answers of many seeds about the same table: a deviation 10 % off would be rejected."""
    found = np.array([vault("user", rows(), seed).counts(0.1, CELLS).values for seed in range(200)])
    stated = vault("user", rows()).counts(0.1, CELLS).noise
    assert found.std(axis=0).mean() == pytest.approx(stated, rel=0.06)


def test_a_question_beyond_the_budget_is_refused_before_anything_is_drawn():
    one = vault("user", rows())
    one.counts(0.9, CELLS)
    with pytest.raises(PrivacyError, match="Nothing was drawn"):
        one.counts(0.2, CELLS)
    assert len(one.certificate().parts) == 1


def test_an_answer_from_disk_is_the_one_from_memory_bit_for_bit(tmp_path):
    """Blocks of some twenty interactions; whole weights, repeated rows added up."""
    table = rows(80)
    table = np.concatenate([table, table[:9]])
    file = tmp_path / "log.csv"
    np.savetxt(file, table, fmt="%d", delimiter=",", header="user,item,count", comments="")
    (tmp_path / "work").mkdir()
    disk = ingest_interactions(file, tmp_path / "work", block_size=lambda census: 20)
    assert disk.notes[0].startswith("9 interactions repeat an earlier one")
    likes = Interactions.read(file)
    for unit, declared in product(VAULTS, (DECLARED, None)):
        tables = InteractionTable.of(likes).table, disk.table
        sides, named, parts = [], [], []
        for one in tables:
            asked = VAULTS[unit](one, 8.0, DELTA, noise=NoiseSource.seeded(3), declared=declared)
            side, index = learn_likes(asked)
            sides.append(side)
            named.append(index.named.to_pylist())
            parts.append(asked.certificate().parts)
        for field in ("popularity", "frequent", "entry", "exit"):
            np.testing.assert_array_equal(*(getattr(side, field) for side in sides), err_msg=unit)
        assert named[0] == named[1] != []
        assert parts[0] == parts[1]


def test_a_file_on_disk_has_the_errors_of_one_in_memory(tmp_path):
    (tmp_path / "work").mkdir()
    for weight in ("-1", "inf", "nan", "zero"):
        file = tmp_path / "log.csv"
        file.write_text(f"user,item,weight\nann,heat,1\nbob,heat,2\nbob,alien,{weight}\n")
        with pytest.raises(DataError) as disk:
            ingest_interactions(file, tmp_path / "work")
        with pytest.raises(DataError) as memory:
            Interactions.read(file)
        assert str(disk.value) == str(memory.value)


def test_somebody_with_a_million_interactions_adds_no_more_than_anybody():
    n = 1_000_000
    heavy = Interactions.from_arrays(["ann", *["bob"] * n], np.concatenate([[0], np.arange(n)]))
    light = Interactions.from_arrays(["ann", "bob", "bob"], [0, 0, 1])
    answers = []
    for likes in (heavy, light):
        one = PeopleLikesVault(
            InteractionTable.of(likes).table, EPSILON, DELTA, noise=NoiseSource.seeded(1), declared=DECLARED
        )
        answers.append(one.counts(0.5, np.arange(J)).values)
    assert ((answers[0] - answers[1]) ** 2).sum() <= 2


def exact_pairs(people, seed=1):
    """The sums of pairs in steps: two vaults with the same noise, one of them without anybody who has two cells."""
    table = np.array([(u, j, 1) for u, own in enumerate(people) for j in own])
    nobody = np.array([(u, own[0], 1) for u, own in enumerate(people)])
    one, none = (
        vault("rating", rows, seed).presence_moments(0.1, np.arange(J), None, None) for rows in (table, nobody)
    )
    return np.round((one.values - none.values) * GRID).astype(np.int64)


def test_pairs_weigh_one_over_the_root_of_how_many_cells_their_person_has():
    """Oracle: people one by one, in whole numbers."""
    people = [(3, 1), (1, 2, 5, 7), tuple(range(J)), (0,)]
    expected = np.zeros((J, J), dtype=np.int64)
    for own in people:
        for i in own:
            for j in own:
                expected[i, j] += isqrt(GRID**2 // len(own)) if i < j else 0
    np.testing.assert_array_equal(exact_pairs(people), expected)


def test_one_interaction_moves_pairs_by_no_more_than_its_bound_and_a_busy_person_reaches_it():
    """For every number of cells that may be asked about, in whole numbers; the bound is not larger by much."""
    A = [pair_weight(n, GRID) for n in range(MOST_CELLS + 2)]
    moved = [n * A[n + 1] ** 2 + n * (n - 1) // 2 * (A[n] - A[n + 1]) ** 2 for n in range(1, MOST_CELLS + 1)]
    bound = RatingPart(PAIRS, 1, 1, {"bound": GRID}).squared_sensitivity("rating")
    assert 0.999 * bound < max(moved) <= bound
    heavier = [n * 1.05**2 * A[n + 1] ** 2 for n in range(1, MOST_CELLS + 1)]
    assert max(heavier) > bound, "weights five per cent too large would not be covered"
    busy = tuple(range(J - 1))
    difference = exact_pairs([(*busy, J - 1), (1, 0)]) - exact_pairs([busy, (1, 0)])
    assert (difference.astype(object) ** 2).sum() == moved[J - 2]


def test_a_second_interaction_in_a_cell_moves_no_pair_and_too_many_cells_are_refused():
    table = np.array([(0, 4, 1), (0, 2, 1), (1, 6, 1)])
    once = vault("rating", table).presence_moments(0.1, CELLS, None, None)
    again = vault("rating", np.vstack([table, (0, 2, 5)])).presence_moments(0.1, CELLS, None, None)
    np.testing.assert_array_equal(once.values, again.values)
    with pytest.raises(PrivacyError, match="at most 4,096 cells"):
        vault("rating", rows()).presence_moments(0.1, np.zeros(MOST_CELLS + 1, dtype=np.int64), None, None)


def test_pairs_have_no_price_for_a_person():
    with pytest.raises(PrivacyError, match="none for a person"):
        PersonPart(PAIRS, 1, 1, GRID**2).squared_mu("user")
    assert RatingPart(PAIRS, 1, 1, {"bound": GRID}).squared_mu("user") is None


def test_more_pairs_than_their_bound_covers_are_no_price():
    """Whoever writes a certificate by hand: a price for pairs of more than 4,096 cells is not what they cost."""
    most, public = MOST_CELLS * (MOST_CELLS - 1) // 2, {"cells": 2 * MOST_CELLS}
    assert _sizes_fit(RatingPart(PAIRS, 1, most, {"bound": GRID}), public)
    for more in (most + 1, most + MOST_CELLS):  # no such number; one cell more
        assert not _sizes_fit(RatingPart(PAIRS, 1, more, {"bound": GRID}), public)


def test_an_id_that_is_text_moves_nobody_elses_counts():
    """Ids of a file are numbers if all of them are, and text is sorted otherwise: 10, 11, 9. These weights, added up in
    either order, give totals whose last bits decide on a step of the grid; with 2,000 such people one person more moved
    the counts by more than the bound."""
    mine, many = [1.0375872112626925, 1.0375872112626925, 1.5636681397730563], 2000
    people, weights = np.repeat(np.arange(many), 3).tolist(), np.tile(mine, many).tolist()
    numbers = ["9", "10", "11"] * many

    def counts(likes):
        table = InteractionTable.of(likes).table
        one = PeopleLikesVault(table, EPSILON, DELTA, noise=NoiseSource.seeded(1))
        return one.counts(0.5, np.arange(one.n_cells)).values

    fewer = Interactions.from_arrays(people, [int(one) for one in numbers], weights)
    more = Interactions.from_arrays([*people, many], [*numbers, "zz"], [*weights, 1.0])
    moved = (counts(more) - counts(fewer)) * GRID
    assert np.count_nonzero(np.abs(moved) > 0.5) == 1
    assert (moved**2).sum() <= GRID**2
