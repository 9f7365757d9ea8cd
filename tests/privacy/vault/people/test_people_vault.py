"""The vaults for people and for ratings: charged before drawn, measured on real neighbours, the same on every engine.

Two vaults with the same seed draw the same noise, so the difference of their answers is that of the exact sums.
"""

from fractions import Fraction
from math import isqrt, sqrt

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm
from spark_cases import needs_spark, on_spark

from dpsr import DPSR, Ratings, Scale
from dpsr.certify.check import check_certificate
from dpsr.certify.normal_price import SAMPLER_SLACK, affordable_squared_mu, gaussian_delta
from dpsr.certify.one_rating import moment_weight
from dpsr.certify.people import PersonPart, RatingPart
from dpsr.data import realistic
from dpsr.engine.disk import ITEMS, DiskTable
from dpsr.engine.raw import LEVEL, RawTable
from dpsr.engine.table import MemoryTable
from dpsr.errors import PrivacyError
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.journal import Journal
from dpsr.privacy.vault.people import PeopleVault, RatingVault
from dpsr.privacy.vault.people.rating_vault import _add_rating_moments, _add_rating_scores
from dpsr.privacy.vault.people.vault import RowReader
from dpsr.types.id_order import spelt
from dpsr.types.item_side import ACTIVITY_BINS, HASHED_CELLS, ItemSide, hashed_cells

STARS = Scale(1, 5)
J = 40
DECLARED = pa.array(np.arange(J))


def table(n_users=50, seed=0):
    """Rows (user, item, value) of some people."""
    rng = np.random.default_rng(seed)
    places = np.sort(rng.choice(n_users * J, 6 * n_users, replace=False))
    return np.column_stack([places // J, places % J, rng.integers(1, 6, len(places))])


def ratings(rows):
    return Ratings.from_arrays(rows[:, 0], rows[:, 1], rows[:, 2], scale=STARS)


def side(n_cells=J, seed=3):
    """An item side with two factors, as if earlier answers had told it."""
    rng = np.random.default_rng(seed)
    return ItemSide(
        STARS,
        0.4 * rng.normal(size=n_cells),
        rng.uniform(0, 0.3, n_cells),
        0.5 * rng.normal(size=(n_cells, 4)),
        0.8,
        0.4,
        0.1 * rng.normal(size=ACTIVITY_BINS),
        np.zeros(5),
        np.diag([0.4, 0.2, 0.05, 0.03, 0.02]),
    )


def opened(rows, kind=PeopleVault, seed=1, epsilon=3.0, declared=DECLARED, noise=None):
    raw = rows if isinstance(rows, RawTable) else RawTable.of(ratings(rows))
    return kind(raw, epsilon, 1e-5, noise=noise or NoiseSource.seeded(seed), declared=declared)


OF_PEOPLE = {
    "levels": lambda vault: vault.totals(0.1),
    "activity": lambda vault: vault.activity(0.1),
    "coefficients": lambda vault: vault.coefficients(0.1, side()),
    "scores": lambda vault: vault.scores(0.1, side(), alpha=0.7, gamma=1.0),
}
QUESTIONS = {
    **{("user", name): question for name, question in OF_PEOPLE.items()},
    ("user", "second moments"): lambda vault: vault.second_moments(0.1, side(), np.arange(0, J, 2), 0.1),
    ("user", "scores above a floor"): lambda vault: vault.scores(0.1, side(), alpha=0.5, gamma=2.0, floor=8.0),
    **{("rating", name): question for name, question in OF_PEOPLE.items()},
    ("rating", "second moments"): lambda vault: vault.rating_moments(0.1, side(), np.arange(0, J, 2), level=0.5),
    ("rating", "scores of ratings"): lambda vault: vault.rating_scores(0.1, side(), level=0.5, shrink=40.0),
    ("rating", "scores without levels"): lambda vault: vault.rating_scores(0.1, side(), level=0.5, shrink=0.0),
}
VAULTS = {"user": PeopleVault, "rating": RatingVault}


def moved(rows, others, case):
    """The squared distance of the exact sums of two data sets, in whole numbers, and the part that was charged."""
    vaults = [opened(one, VAULTS[case[0]]) for one in (rows, others)]
    a, b = (QUESTIONS[case](vault) for vault in vaults)
    part = vaults[0].certificate().parts[0]
    assert vaults[1].certificate().parts == (part,)
    difference = (a.values - b.values) * (sqrt(part.variance) / a.noise)
    whole = np.rint(difference)
    assert np.abs(difference - whole).max() < 1e-3
    return int((whole.astype(object) ** 2).sum()), part


def everything(user, values):
    """Somebody who rated all items."""
    return np.column_stack([np.full(J, user), np.arange(J), np.broadcast_to(values, J)])


CONSTRUCTED = {
    "all ones": everything(99, 1),
    "all fives": everything(99, 5),
    "either end in turn": everything(99, np.tile([1, 5], J // 2)),
    "a single one": np.array([[99, 7, 1]]),
    "two": np.array([[99, 0, 1], [99, 2, 5]]),
}


@pytest.mark.parametrize("case", [case for case in QUESTIONS if case[0] == "user"], ids=str)
def test_a_person_more_moves_the_exact_sums_by_at_most_the_bound(case):
    """Random people are taken away, constructed ones are added; some come near the bound."""
    rows, seen = table(), []
    for person in (0, 17, 49):
        square, part = moved(rows, rows[rows[:, 0] != person], case)
        seen.append(square / part.squared_sensitivity("user"))
    for more in CONSTRUCTED.values():
        square, part = moved(rows, np.concatenate([rows, more]), case)
        seen.append(square / part.squared_sensitivity("user"))
    assert max(seen) <= 1
    assert max(seen) > (0.3 if case[1] == "coefficients" else 0.6)


@pytest.mark.parametrize("case", QUESTIONS, ids=str)
def test_one_rating_more_or_changed_moves_the_exact_sums_by_at_most_what_is_stated(case):
    """At both units: a person's other contributions move along, and that is part of the figure."""
    rows = np.concatenate([table(), CONSTRUCTED["either end in turn"], CONSTRUCTED["two"] - [10, 0, 0]])
    for place in (0, 130, 305, 320, -1):
        square, part = moved(rows, np.delete(rows, place % len(rows), axis=0), case)
        assert square <= part.squared_sensitivity("rating")
        changed = rows.copy()
        changed[place, 2] = 6 - rows[place, 2] if rows[place, 2] != 3 else 1
        square, part = moved(rows, changed, case)
        assert square <= part.squared_sensitivity("value")


@pytest.mark.parametrize("case", QUESTIONS, ids=str)
def test_ratings_of_items_outside_a_declared_list_are_in_no_answer(case):
    """Nor in a person's own level, nor in the last cell, which is what a cell of minus one would be."""
    rows = table()
    outside = [[user, item, 5] for user in range(50) for item in (98, 99)]
    assert moved(rows, np.concatenate([rows, outside]), case)[0] == 0


def test_scores_at_the_unit_rating_reach_most_of_their_bound():
    """One rating of an extreme value, of somebody with no other."""
    more = np.concatenate([table(), [[99, 7, 1]]])
    square, part = moved(table(), more, ("rating", "scores of ratings"))
    assert square > 0.6 * part.squared_sensitivity("rating")


def kernel_rows(rows, level):
    """Pointers, cells and residuals at `side()`, as the kernels of the unit `rating` take them."""
    raw, at = ratings(rows), side()
    cells = raw.mask.item_ids.to_numpy()[raw.mask.items]
    y = (raw.values - STARS.midpoint) / (STARS.width / 2)
    return raw.mask.indptr.copy(), cells, y / at.spread - level - at.effects[cells]


def without_noise(rows, ask):
    """The exact sums of a question at the unit `rating`, in deviations of the noise, and its receipt."""
    vault = opened(rows, RatingVault)
    vault._draw = lambda variance, n: np.zeros(n, dtype=np.int64)
    answer, part = ask(vault), vault.certificate().parts[0]
    return np.rint(answer.values * (sqrt(part.variance) / answer.noise)), part.settings


@pytest.mark.parametrize("shrink", [0.0, 7.0, 40.0])
def test_sums_of_ratings_are_made_with_the_settings_on_their_receipt(shrink):
    """The bound is computed from these: a receipt of more shrinkage, or a narrower clip, would be one of less noise."""
    rows = table()
    found, how = without_noise(rows, lambda vault: vault.rating_scores(0.1, side(), level=0.5, shrink=shrink))
    out = np.zeros((J, 2), dtype=np.int64)
    _add_rating_scores(*kernel_rows(rows, 0.5), how["clip"], how["shrink"], how["width"], out)
    np.testing.assert_array_equal(found, out)


def test_second_moments_of_ratings_are_made_with_the_settings_on_their_receipt():
    rows, asked = table(), np.arange(0, J, 2)
    found, how = without_noise(rows, lambda vault: vault.rating_moments(0.1, side(), asked, level=0.5))
    place, out = np.full(J, -1), np.zeros((len(asked), len(asked)), dtype=np.int64)
    place[asked] = np.arange(len(asked))
    weights = np.array([moment_weight(n, int(how["ramp"])) for n in range(int(how["cells"]) + 1)])
    _add_rating_moments(*kernel_rows(rows, 0.5), place, how["clip"], how["shrink"], how["width"], weights, out)
    np.testing.assert_array_equal(found, np.triu(out, 1))
    assert np.count_nonzero(out) > 50


@pytest.mark.parametrize("unit", VAULTS)
def test_a_weight_that_only_meets_the_threshold_is_not_named(unit):
    """The chance that is stated is that of noise beyond it: half a step less would be named more often."""
    for above, named in ((0, 0), (1, J)):
        vault = opened(table(200), VAULTS[unit], declared=None)
        vault._noisy = lambda part, one, shape, *_, more=above, **__: np.full(shape, part.cut + more)
        assert len(vault.names(0.1, np.arange(HASHED_CELLS))) == named


# --- what is charged ---


@pytest.mark.parametrize("case", QUESTIONS, ids=str)
def test_every_question_is_charged_before_anything_is_read_or_drawn(case, monkeypatch):
    """The pass over the people fails: the price stays paid, and no noise was drawn."""

    def broken(self, *args, **how):
        raise OSError("the disk is gone")

    noise = NoiseSource.seeded(1)
    vault, before = opened(table(), VAULTS[case[0]], noise=noise), noise.identity
    monkeypatch.setattr(MemoryTable, "run", broken)
    with pytest.raises(OSError, match="gone"):
        QUESTIONS[case](vault)
    assert float(vault.spent / vault.squared_mu) == pytest.approx(0.1)
    assert noise.identity == before


@pytest.mark.parametrize("case", QUESTIONS, ids=str)
def test_a_question_beyond_the_budget_is_refused_and_nothing_is_drawn(case):
    noise = NoiseSource.seeded(1)
    vault = opened(table(), VAULTS[case[0]], noise=noise)
    vault.totals(0.95)
    drawn, spent = noise.identity, vault.spent
    with pytest.raises(PrivacyError, match=r"5\.00% of the budget that are left. Nothing was drawn"):
        QUESTIONS[case](vault)
    assert noise.identity == drawn
    assert vault.spent == spent


@pytest.mark.parametrize("share", [k / 97 for k in range(1, 97, 5)])
def test_all_that_is_left_can_be_asked_for(share):
    """A float to the nearest would be a little more than there is, every other time: a paid fit that is refused."""
    vault = opened(table())
    vault.totals(share)
    assert Fraction(vault.left) <= 1 - vault.spent / vault.squared_mu
    vault.totals(vault.left)
    assert 0 <= vault.left < 1e-9


def test_names_beyond_the_budget_are_refused_too():
    vault = opened(table(), declared=None)
    vault.totals(0.95)
    with pytest.raises(PrivacyError, match="Nothing was drawn"):
        vault.names(0.1, np.arange(HASHED_CELLS))


@pytest.mark.parametrize("unit", VAULTS)
def test_names_are_asked_once_for_they_take_all_of_delta_that_is_kept_for_them(unit):
    """Two questions with a threshold for the whole of it each would be dearer than the epsilon that was asked for."""
    noise = NoiseSource.seeded(1)
    vault = opened(table(), VAULTS[unit], declared=None, noise=noise)
    vault.names(0.1, np.arange(HASHED_CELLS))
    drawn, spent = noise.identity, vault.spent
    with pytest.raises(PrivacyError, match=r"1e-06 that is kept for them\. Nothing was drawn\. Ask for names once"):
        vault.names(0.1, np.arange(HASHED_CELLS))
    assert (noise.identity, vault.spent) == (drawn, spent)
    vault.totals(vault.left)
    assert vault.certificate().epsilon == 3.0


@pytest.mark.parametrize("unit", VAULTS)
@pytest.mark.parametrize(("epsilon", "declared"), [(0.05, DECLARED), (1.0, None), (10.0, DECLARED)])
def test_everything_spent_costs_the_nominal_epsilon_and_never_more(unit, epsilon, declared):
    vault = opened(table(), VAULTS[unit], epsilon=epsilon, declared=declared, noise=NoiseSource.system())
    vault.totals(0.3)
    vault.activity(0.5)
    if declared is None:
        vault.names((1 - 1e-9) * vault.left, np.arange(HASHED_CELLS))
    else:
        vault.totals((1 - 1e-9) * vault.left)
    certificate = vault.certificate()
    assert 0.999 * epsilon < certificate.epsilon <= epsilon
    assert certificate.delta == 1e-5
    assert certificate.unit == unit
    assert certificate.private
    checks, _ = check_certificate(certificate.to_json().encode())
    assert all(check.holds for check in checks)


def test_seeded_noise_is_never_called_private():
    vault = opened(table())
    vault.totals(0.5)
    assert not vault.certificate().private
    assert "seed" in vault.certificate().reasons[0]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-7), (0.1, 1e-5), (1.0, 1e-9), (30.0, 0.01)])
def test_what_can_be_afforded_is_the_largest_that_epsilon_and_delta_allow(epsilon, delta):
    squared = affordable_squared_mu(epsilon, delta)
    assert gaussian_delta(squared, epsilon) <= delta
    assert gaussian_delta(squared * Fraction(1_000_001, 1_000_000), epsilon) > delta * (1 - 1e-6)


def test_a_budget_so_small_that_the_sampler_has_no_such_noise_is_refused_before_anything_is_asked():
    with pytest.raises(PrivacyError, match="Use a larger epsilon or a larger delta"):
        affordable_squared_mu(1e-6, 1e-7)


@pytest.mark.parametrize(("epsilon", "more"), [(0.0, 1.0), (1e-9, 0.5), (0.1, 1e-9), (1.0, 1e-9), (100.0, 2.0**-52)])
def test_a_delta_hardly_above_what_the_sampler_may_be_off_is_refused_in_a_sentence(epsilon, more):
    """Certificates may state any: whoever verifies a forged one gets no traceback."""
    with pytest.raises(PrivacyError, match="Use a larger epsilon or a larger delta"):
        affordable_squared_mu(epsilon, SAMPLER_SLACK * (1 + more))


@pytest.mark.parametrize(("epsilon", "more"), [(0.1, 0.01), (1.0, 0.5), (100.0, 1e-9)])
def test_what_such_a_delta_does_afford_leaves_room_for_the_sampler(epsilon, more):
    squared = affordable_squared_mu(epsilon, SAMPLER_SLACK * (1 + more))
    assert (
        0 < Fraction(gaussian_delta(squared, epsilon)) <= Fraction(SAMPLER_SLACK * (1 + more)) - Fraction(SAMPLER_SLACK)
    )


def test_a_delta_below_what_the_sampler_can_promise_is_refused():
    with pytest.raises(PrivacyError, match="Use a larger one"):
        PeopleVault(RawTable.of(ratings(table())), 1.0, 1e-25, noise=NoiseSource.system(), declared=DECLARED)


@pytest.mark.parametrize("unit", VAULTS)
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-5), (1e-3, 1e-5), (0.01, 1e-9), (30.0, 1e-5)])
def test_the_certificate_of_any_epsilon_is_read_back(unit, epsilon, delta):
    """At a thousandth the variance of the noise has more than 64 bits: once, nobody could read what was paid for."""
    raw = RawTable.of(ratings(table()))
    vault = VAULTS[unit](raw, epsilon, delta, noise=NoiseSource.system(), declared=DECLARED)
    vault.totals(0.02)
    vault.activity(0.03)
    checks, found = check_certificate(vault.certificate().to_json().encode())
    assert all(check.holds for check in checks)
    assert found is not None
    assert found.parts == vault.certificate().parts


# --- a run that was killed ---


@pytest.mark.parametrize("unit", VAULTS)
def test_a_run_that_goes_on_repeats_the_answers_it_gave_and_draws_only_what_is_new(unit, tmp_path):
    """A fresh key, and the journal of the run before."""

    def run(share):
        noise = NoiseSource.system()
        raw, journal = RawTable.of(ratings(table())), Journal(tmp_path, {"run": 1})
        vault = VAULTS[unit](raw, 3.0, 1e-5, noise=noise, journal=journal)
        answers = [vault.totals(0.1), vault.activity(share)]
        named = vault.names(0.5, np.arange(HASHED_CELLS))
        return answers, named, vault.certificate()

    (first, named, certificate), (again, named_again, certificate_again) = run(0.1), run(0.1)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.values, b.values)
    assert named.equals(named_again)
    assert certificate.parts == certificate_again.parts
    with pytest.raises(PrivacyError, match="another question"):
        run(0.2)


# --- the noise ---


def variance_is_off(draws):
    """Whether the mean square of standard normal draws is further from one than six deviations of it."""
    return abs((draws**2).mean() - 1) > 6 * sqrt(2 / draws.size)


@pytest.mark.parametrize("unit", VAULTS)
def test_the_noise_has_the_stated_deviation_and_five_per_cent_off_is_rejected(unit):
    """40,000 sums without anybody in them: six deviations for sound noise, and seven more until five per cent pass."""
    cells, two = 20_000, np.array([[0, 7, 3], [1, 8, 3]])
    vault = opened(two, VAULTS[unit], epsilon=0.5, declared=pa.array(np.arange(cells)), noise=NoiseSource.system())
    answer = (
        vault.scores(0.5, side(cells), alpha=0.7)
        if unit == "user"
        else vault.rating_scores(0.5, side(cells), level=0.0, shrink=0.0)
    )
    draws = np.delete(answer.values, [7, 8], axis=0)[:, [0, -1]] / answer.noise
    assert draws.size > 39_990
    assert not variance_is_off(draws)
    assert variance_is_off(1.05 * draws)
    assert variance_is_off(draws / 1.05)


def noise_alone(unit):
    """Everything a vault can be asked, one question after the other, where nobody rated anything on the list: noise in
    whole steps, number by number."""
    vault, found = opened(table() + np.array([0, J, 0]), VAULTS[unit], epsilon=0.01), []
    for case in [case for case in QUESTIONS if case[0] == unit]:
        answer = QUESTIONS[case](vault)
        part = vault.certificate().parts[-1]
        values = answer.values if "moments" not in case[1] else answer.values[np.triu_indices(len(answer.values), 1)]
        assert values.size == part.numbers
        found.append(np.rint(values.ravel() * (sqrt(part.variance) / answer.noise)).astype(np.int64))
    return np.concatenate(found)


@pytest.mark.parametrize("unit", VAULTS)
def test_every_number_of_every_answer_has_noise_of_its_own(unit):
    """None is without, and no two have the same, nor one the other's with another sign: their sum or difference would
    be exact. With deviations of thousands of millions, two of some hundred numbers do not meet by chance."""
    noise = np.abs(noise_alone(unit))
    assert len(noise) > 500
    assert noise.min() > 0
    assert len(np.unique(noise)) == len(noise)


@pytest.mark.parametrize("unit", VAULTS)
def test_no_hashed_cell_is_without_noise_of_its_own(unit):
    """All 65,536 of them but those in which somebody rated something; a few may meet by chance in so many draws."""
    vault = opened(table(), VAULTS[unit], epsilon=0.01, declared=None)
    answer = {
        "user": lambda: vault.scores(0.1, side(HASHED_CELLS), alpha=0.7),
        "rating": lambda: vault.rating_scores(0.1, side(HASHED_CELLS), level=0.5, shrink=40.0),
    }[unit]()
    part = vault.certificate().parts[0]
    empty = np.delete(answer.values, np.unique(hashed_cells(DECLARED)), axis=0)
    noise = np.abs(np.rint(empty.ravel() * (sqrt(part.variance) / answer.noise)))
    assert len(noise) > 130_000
    assert noise.min() > 0
    assert len(np.unique(noise)) > len(noise) - 100


# --- names ---


def crowd(n=400):
    """One item that everybody rated, and one that a single person did."""
    rows = [[u, i, 3] for u in range(n) for i in (0, 1 + u % 7)]
    return np.array([*rows, [0, 999, 5]])


@pytest.mark.parametrize("unit", VAULTS)
def test_items_of_many_are_named_and_the_item_of_one_is_not(unit):
    vault = opened(crowd(), VAULTS[unit], epsilon=5.0, declared=None, noise=NoiseSource.system())
    named = vault.names(0.9, np.arange(HASHED_CELLS))
    assert "0" in named.to_pylist()
    assert "999" not in named.to_pylist()
    assert named.to_pylist() == sorted(named.to_pylist())
    assert vault.certificate().parts[0].numbers == 0


@pytest.mark.parametrize("unit", VAULTS)
def test_the_threshold_is_the_lowest_that_keeps_the_tail_inside_its_part_of_delta(unit):
    vault = opened(crowd(), VAULTS[unit], epsilon=1.0, declared=None)
    vault.names(0.5, np.arange(HASHED_CELLS))
    part = vault.certificate().parts[0]
    lower = part.__class__(**{**vars(part), "threshold": part.cut - isqrt(part.variance) // 100})
    assert part.tail(unit) <= 1e-6 < lower.tail(unit)
    assert vault.naming_threshold(0.5) == pytest.approx(part.cut / (1 << 20), rel=1e-3)


@pytest.mark.parametrize("unit", VAULTS)
def test_named_items_come_with_the_weights_by_which_they_passed(unit):
    """Oracle: everybody has two items, and noise is small at a large epsilon."""
    vault = opened(crowd(), VAULTS[unit], epsilon=30.0, declared=None)
    found = vault.named(0.9, np.arange(HASHED_CELLS))
    part = vault.certificate().parts[0]
    assert found.noise == pytest.approx(sqrt(part.variance) / (1 << 20)) == pytest.approx(vault.naming_noise(0.9))
    assert (found.values > vault.naming_threshold(0.9)).all()
    weight = dict(zip(found.names.to_pylist(), found.values, strict=True))["0"]
    expected = {"user": 399 / np.sqrt(2) + 1 / np.sqrt(3), "rating": 400.0}[unit]
    assert weight == pytest.approx(expected, abs=6 * found.noise)


def test_items_in_cells_that_were_not_wanted_are_not_named():
    vault = opened(crowd(), epsilon=10.0, declared=None)
    wanted = vault._reader.cell_of[vault._items.to_pylist().index(0)]
    named = vault.names(0.9, np.array([wanted]))
    assert named.to_pylist() == ["0"]


@pytest.mark.parametrize("unit", VAULTS)
def test_an_item_to_which_nobody_gave_a_weight_cannot_pass_however_large_its_noise(unit, monkeypatch):
    """Otherwise the more items one person alone rated, the likelier one of them would be named."""
    lone = np.array([[0, item, 3] for item in range(1000, 6200)])
    vault = opened(np.concatenate([crowd(), lone]), VAULTS[unit], epsilon=5.0, declared=None)
    low = {  # a threshold that half of all noise passes
        "user": PersonPart("names", 1 << 60, 0, 1 << 40, 0),
        "rating": RatingPart("names", 1 << 60, 0, {"bound": float(1 << 20)}, 0),
    }
    monkeypatch.setattr(vault, "_describe_names", lambda *_, **__: low[unit])
    monkeypatch.setattr(vault, "_charge", lambda part: None)  # such a threshold is refused
    cells = vault._reader.cell_of
    named = vault.names(0.5, cells[:1])
    assert set(named.to_pylist()) <= {one for one, c in zip(spelt(vault._items), cells, strict=True) if c == cells[0]}


def test_one_odd_id_changes_neither_the_cells_nor_the_spelling_of_the_others():
    numbers, texts = pa.array([7, 12, 345]), pa.array(["007", "12", "345", "x-1"])
    assert hashed_cells(numbers).tolist() == hashed_cells(texts).tolist()[:3]
    assert spelt(numbers) == spelt(texts)[:3]


def weights_of(rows, most, cells=None, kind=PeopleVault):
    """What people add to the weights of items, by name, without noise, and the receipt."""
    vault, found = opened(rows, kind, declared=None), {}
    ask = vault._noisy
    vault._draw = lambda variance, n: np.zeros(n, dtype=np.int64)

    def kept(part, contribute, *more, **facts):
        answer = ask(part, contribute, *more, **facts)
        ids = np.unique(np.array(spelt(vault._items), dtype=object))
        found.update({name: int(one) for name, one in zip(ids, answer, strict=True) if one > 0})
        return answer

    vault._noisy = kept
    vault.named(0.5, np.arange(HASHED_CELLS) if cells is None else cells, most)
    return found, vault.certificate().parts[0]


def apart(a, b):
    """The squared distance of weights by name."""
    return sum((a.get(name, 0) - b.get(name, 0)) ** 2 for name in a.keys() | b.keys())


SMALL = [1, 2, 3, 8, J, 4096]


def names_hold(rows, most, fewer):
    """Whether two data sets that differ in a person, `fewer` without them, are as near as the threshold takes them to
    be: one vector of length one at most, and so many new items at most, each of the weight 1 / sqrt of their number."""
    (more, part), (less, _) = (weights_of(one, most) for one in (rows, fewer))
    new = more.keys() - less.keys()
    light = all(more[name] ** 2 * len(new) <= part.squared_bound for name in new)
    return apart(more, less) <= part.squared_sensitivity("user") and len(new) <= most and light


@pytest.mark.parametrize("most", SMALL)
def test_a_person_more_moves_names_by_a_vector_of_length_one_over_so_many_items_at_most(most):
    """All neighbours of a small table, and somebody with everything, who is alone with some of it."""
    rows = table(12)
    for user in np.unique(rows[:, 0]):
        assert names_hold(rows, most, rows[rows[:, 0] != user])
    for extra in CONSTRUCTED.values():
        assert names_hold(np.concatenate([rows, extra]), most, rows)


@pytest.mark.parametrize("most", SMALL)
def test_one_rating_moves_names_by_at_most_root_two_and_names_no_more_items_than_count(most):
    """At the unit `user`, where the rating of somebody with more items than count may replace another."""
    rows = np.concatenate([table(8), everything(99, 3)])
    base, part = weights_of(rows, most)
    for place in range(0, len(rows), 3):
        less, _ = weights_of(np.delete(rows, place, axis=0), most)
        assert apart(base, less) <= part.squared_sensitivity("rating") == 2 * part.squared_bound
        for one, other in ((base, less), (less, base)):
            new = one.keys() - other.keys()
            assert all(one[name] ** 2 * len(new) <= part.squared_bound for name in new)


@pytest.mark.parametrize("items", [7, 8, 9, J])
def test_somebody_alone_with_as_many_items_as_count_or_more_reaches_the_bound_and_no_further(items):
    """Exactly 8 of their items count, if they have as many, each with the weight 1 / sqrt 8."""
    alone = everything(0, 5)[:items]
    found, part = weights_of(alone, 8)
    assert part.most_named == 8
    assert len(found) == min(items, 8)
    assert 0.999 * part.squared_bound <= apart(found, {}) <= part.squared_bound
    weight = max(found.values())
    assert len(found) * norm.sf((part.threshold - weight) / sqrt(part.variance)) <= 1e-6


def test_whoever_is_counted_beyond_the_number_of_the_receipt_is_noticed_by_these_tests(monkeypatch):
    """The planted error: twice as many of somebody's items count as the receipt says."""
    rows, extra = table(12), CONSTRUCTED["all fives"] + [0, 1000, 0]  # items of their own
    assert names_hold(np.concatenate([rows, extra]), 8, rows)
    right = PeopleVault._add_names
    monkeypatch.setattr(
        PeopleVault, "_add_names", staticmethod(lambda a, b, c, most, out: right(a, b, c, 2 * most, out))
    )
    assert not names_hold(np.concatenate([rows, extra]), 8, rows)


def test_only_items_in_the_cells_asked_about_count_against_the_number():
    """Somebody with 40 items, of whom names are asked about eight: all of those count."""
    alone = everything(0, 5)
    cells = hashed_cells(pa.array(np.arange(8)))
    assert weights_of(alone, 8, cells)[0].keys() == {str(i) for i in range(8)}


def test_names_of_ratings_count_every_rating_whatever_the_number():
    """At the unit `rating` a rating adds its weight to its item, and nobody's other ratings matter."""
    rows = np.concatenate([table(8), everything(99, 3)])
    (few, part), (many, _) = (weights_of(rows, most, kind=RatingVault) for most in (1, 4096))
    assert few == many
    assert not hasattr(part, "most_named")
    for place in range(0, len(rows), 7):
        less, _ = weights_of(np.delete(rows, place, axis=0), 1, kind=RatingVault)
        assert apart(few, less) == part.squared_sensitivity("rating")


@pytest.mark.parametrize("most", [0, -1, 4097])
def test_a_number_of_items_out_of_range_is_refused_before_anything_is_asked(most):
    vault = opened(crowd(), declared=None)
    with pytest.raises(PrivacyError, match="from 1 to 4,096"):
        vault.named(0.5, np.arange(HASHED_CELLS), most)
    assert vault.spent == 0


# --- engines ---


def on_disk(data, folder, size):
    made = DiskTable(folder, data.mask.census, block_ratings=size)
    for number in range(made.n_blocks):
        for name, column in {ITEMS: data.mask.items, LEVEL: data.levels}.items():
            made.write(name, number, column[made.ratings_of(number)])
    return RawTable(made, data.scale)


@pytest.mark.parametrize("case", QUESTIONS, ids=str)
def test_answers_from_disk_are_those_of_memory_bit_for_bit(case, tmp_path):
    data = ratings(table())
    raw = on_disk(data, tmp_path, 60)
    assert raw.table.n_blocks > 3
    expected, found = (QUESTIONS[case](opened(one, VAULTS[case[0]])) for one in (RawTable.of(data), raw))
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.noise == expected.noise


@pytest.mark.parametrize("most", [1, 3, 4096])
@pytest.mark.parametrize("unit", VAULTS)
def test_names_from_disk_are_those_of_memory(unit, most, tmp_path):
    data = ratings(crowd())
    raw = on_disk(data, tmp_path, 60)
    assert raw.table.n_blocks > 3
    same_names(RawTable.of(data), raw, unit, most)


def same_names(raw, other, unit, most):
    """Asked of two engines; something is named."""
    vaults = [opened(one, VAULTS[unit], epsilon=8.0, declared=None) for one in (raw, other)]
    expected, found = (vault.named(0.9, np.arange(HASHED_CELLS), most) for vault in vaults)
    assert found.names.equals(expected.names)
    assert len(found.names) > 0
    np.testing.assert_array_equal(found.values, expected.values)
    assert vaults[0].certificate().parts == vaults[1].certificate().parts


def same_side(found, expected):
    for name in ("effects", "uncertainty", "features", "own_levels", "mean", "covariance"):
        np.testing.assert_array_equal(getattr(found.side, name), getattr(expected.side, name))
    assert found.index.named.to_pylist() == expected.index.named.to_pylist()
    assert found.certificate.parts == expected.certificate.parts


def fitted(unit, epsilon=8.0, declared=True):
    return DPSR(epsilon, unit=unit, delta=1e-5, items=np.arange(50) if declared else None, random_state=0)


def some_people():
    return realistic(0, n_users=200, n_items=50, n_ratings=2_500)


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("unit", VAULTS)
def test_a_whole_fit_from_disk_is_the_one_in_memory_bit_for_bit(unit, declared, tmp_path):
    data = some_people()
    expected = fitted(unit, declared=declared).fit(data)
    same_side(fitted(unit, declared=declared).fit_table(on_disk(data, tmp_path, 300)), expected.release_)
    assert len(expected.release_.index.named) > 3


def test_a_fit_without_a_list_says_how_many_items_of_a_person_count_and_asks_single_ratings_about_all_cells():
    """Few people with few cells each: fewer than 4,096 do, and the certificate holds."""
    for unit in VAULTS:
        made = fitted(unit, declared=False).fit(some_people()).certificate
        part = next(part for part in made.parts if part.name == "names")
        assert getattr(part, "most_named", None) in ((1, 2, 4, 8, 16, 32, 64) if unit == "user" else (None,))
        checks, _ = check_certificate(made.to_json().encode())
        assert all(check.holds for check in checks)


@needs_spark[2]
@needs_spark[1]
@needs_spark[0]
@pytest.mark.parametrize("unit", VAULTS)
def test_names_on_spark_are_those_of_memory(unit, lasting_spark):
    data = ratings(crowd())
    same_names(RawTable.of(data), on_spark(lasting_spark, data), unit, 3)


@needs_spark[2]
@needs_spark[1]
@needs_spark[0]
@pytest.mark.parametrize(("unit", "declared"), [("user", True), ("user", False), ("rating", True)])
def test_a_whole_fit_on_spark_is_the_one_in_memory_bit_for_bit(unit, declared, lasting_spark):
    data = some_people()
    made = fitted(unit, declared=declared).fit_table(on_spark(lasting_spark, data))
    same_side(made, fitted(unit, declared=declared).fit(data).release_)


def test_what_a_person_adds_is_read_in_the_order_of_their_own_ratings():
    """The order of items is that of all ids, and a single one that is text makes it another; sums of floats know it."""
    rng, n = np.random.default_rng(5), 400
    ids, levels = rng.permutation(n), rng.integers(0, 101, n)
    cell_of = np.maximum(np.arange(n) - n // 4, 0)  # a quarter of the items share a cell
    found = []
    for items in (ids, ids.astype(str)):
        raw = RawTable.of(Ratings.from_arrays(np.zeros(n, dtype=np.int64), items, levels, scale=Scale(0, 100)))
        reader = RowReader(cell_of[raw.table.census.item_ids.cast(pa.int64()).to_numpy()], np.linspace(-1, 1, 101))
        (block,) = raw.table.scan([LEVEL])
        rows = reader.rows(block)
        found.append([part.tolist() for part in (rows.cells, rows.y, *reader.ratings(block))])
    assert found[0] == found[1]
