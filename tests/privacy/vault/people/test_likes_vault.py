"""The vaults of interactions: charged before drawn, measured on real neighbours, the same in memory and on disk.

Two vaults with the same seed draw the same noise, so the difference of their answers is that of the exact sums.
"""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpsr import Interactions
from dpsr.certify.check import check_certificate
from dpsr.certify.normal_price import gaussian_delta
from dpsr.certify.people import GRID, PRESENCE_GRID
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


def ask(one, question):
    centre = np.full(len(CELLS), 1 / len(CELLS))
    if question == "moments":
        return one.presence_moments(0.1, CELLS, centre, np.ones(len(CELLS))).values
    return getattr(one, question)(0.1, CELLS).values


STEPS = {"numbers": GRID, "counts": GRID, "moments": PRESENCE_GRID**2}


@pytest.mark.parametrize("unit", VAULTS)
@pytest.mark.parametrize("question", STEPS)
def test_answers_on_real_neighbours_differ_by_at_most_what_the_receipt_says(unit, question):
    """All neighbours of a table with one person, or one interaction, less."""
    table = rows()
    base = vault(unit, table)
    answer = ask(base, question)
    limit = base.certificate().parts[0].squared_sensitivity(unit) / STEPS[question] ** 2
    keys = table[:, 0] if unit == "user" else np.arange(len(table))
    for key in np.unique(keys)[:40]:
        neighbour = ask(vault(unit, table[keys != key]), question)
        assert ((answer - neighbour) ** 2).sum() <= limit * (1 + 1e-12)


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
    for name, unit in (("memory", "user"), ("memory", "rating")):
        tables = InteractionTable.of(likes).table, disk.table
        sides = []
        for one in tables:
            asked = VAULTS[unit](one, 8.0, DELTA, noise=NoiseSource.seeded(3), declared=DECLARED)
            sides.append(learn_likes(asked)[0])
        for field in ("popularity", "frequent", "entry", "exit"):
            np.testing.assert_array_equal(*(getattr(side, field) for side in sides), err_msg=name)


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
