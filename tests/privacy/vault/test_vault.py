"""The vault: answers with prices, measured on real neighbours, and no overspending."""

from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest
from benchmarks.prices import gaussian_is_better

from dpsr import Ratings, Scale
from dpsr.certify.parts import DIVIDED_GRID
from dpsr.certify.table_price import epsilon_of
from dpsr.engine import BlockResult
from dpsr.engine.contrasts import Contrasts
from dpsr.engine.incidence import ITEM_SHARES, Division, RowSums, Turns
from dpsr.engine.raw import RawTable
from dpsr.errors import PrivacyError
from dpsr.privacy.channels import optimal_channel, randomised_response
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import Vault
from dpsr.privacy.vault.vault import VALUE_GRID

STARS = Scale(1, 5)


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    cells = rng.choice(60 * 40, size=900, replace=False)
    return Ratings.from_arrays(cells // 40, cells % 40, rng.integers(1, 6, 900), scale=STARS)


@pytest.fixture
def silent(monkeypatch):
    """No noise: what is left is the statistic itself, so that its sensitivity can be measured."""
    monkeypatch.setattr(
        "dpsr.privacy.vault.vault.discrete_laplace", lambda scale, n, noise: np.zeros(n, dtype=np.int64)
    )


def neighbour(ratings, row, level):
    levels = ratings.levels.copy()
    levels[row] = level
    return replace(ratings, levels=levels)


def window_sums(v, centre, half_width, *, item, epsilon):
    """Sums in which every rating has all of its weight, so many 256ths of it with its item."""
    return v.divided_sums(centre, half_width, division=Division.uniform(v.census.shape, item), epsilon=epsilon)


def pass_through(v, channels, choice):
    """Every rating once through the channel chosen for it; the symbols."""
    v.table.run(lambda block: BlockResult({"choice": choice[block.ratings].astype(np.uint8)}), writes=["choice"])
    v.symbols(dict(enumerate(channels)), choice="choice", symbol="symbol")
    return v.table["symbol"]


@pytest.mark.parametrize("item", [0, 1, 80, 128, 254])
def test_window_sums_move_by_at_most_the_sensitivity_when_one_rating_changes(ratings, silent, item):
    """Measured on real neighbours; the largest change comes close, so the bound is not idle."""
    rng = np.random.default_rng(1)
    unit = STARS.width / 2 / VALUE_GRID / DIVIDED_GRID
    seen = []
    for _ in range(100):
        row, level, centre = int(rng.integers(len(ratings))), int(rng.integers(5)), rng.uniform(1, 5)
        a, b = (Vault(r, 1.0, noise=NoiseSource.system()) for r in (ratings, neighbour(ratings, row, level)))
        before, after = (window_sums(v, centre, 0.8, item=item, epsilon=0.5) for v in (a, b))
        change = sum(np.abs(x.values - y.values).sum() for x, y in zip(before, after, strict=True)) / unit
        limit = a.certificate().parts[0].sensitivity
        assert change <= limit * (1 + 1e-9)
        seen.append(change / limit)
    assert max(seen) > 0.95


def test_the_extremal_rating_attains_the_sensitivity(ratings, silent):
    """A centre in the middle of the scale, from one end to the other: both of its sums move by their weight."""
    low, high = neighbour(ratings, 3, 0), neighbour(ratings, 3, 4)
    a, b = Vault(low, 1.0, noise=NoiseSource.system()), Vault(high, 1.0, noise=NoiseSource.system())
    x, y = (window_sums(v, 3.0, 1.5, item=64, epsilon=0.5) for v in (a, b))
    unit = STARS.width / 2 / VALUE_GRID / DIVIDED_GRID
    moved = [np.abs(one.values - other.values).sum() / unit for one, other in zip(x, y, strict=True)]
    assert sum(moved) == pytest.approx(a.certificate().parts[0].sensitivity)
    assert moved[1] == pytest.approx(3 * moved[0])


@pytest.fixture
def division(ratings):
    return division_of(ratings)


def division_of(ratings):
    """Three classes a side; some ratings are asked one by one, and weigh 40 of 256 in the sums."""
    rng = np.random.default_rng(5)
    items, users = (rng.integers(0, 3, n).astype(np.uint8) for n in (ratings.mask.n_items, ratings.mask.n_users))
    return Division(items, users, rng.choice(ITEM_SHARES, (3, 3)), rng.integers(60, 200, (3, 3)), 40)


def asked_of(ratings, division):
    """Which ratings a division asks one by one."""
    return division.asks(next(iter(RawTable.of(ratings).table.scan())))


def test_divided_sums_move_by_at_most_what_each_rating_pays_for(ratings, silent, division):
    """Enumerated over every seventh rating, from one end of the scale to the other: both kinds attain their bound."""
    unit, asked = STARS.width / 2 / VALUE_GRID / DIVIDED_GRID, asked_of(ratings, division)
    most = {True: 0.0, False: 0.0}
    for row in range(0, len(ratings), 7):
        vaults = [Vault(neighbour(ratings, row, x), 1.0, noise=NoiseSource.system()) for x in (0, 4)]
        low, high = (v.divided_sums(3.0, 1.5, division=division, epsilon=0.5) for v in vaults)
        moved = sum(np.abs(x.values - y.values).sum() for x, y in zip(low, high, strict=True)) / unit
        kind = bool(asked[row])
        most[kind] = max(most[kind], moved)
    part = vaults[0].certificate().parts[0]
    scale = Fraction(part.noise_scale)
    assert most[False] == pytest.approx(part.sensitivity)
    assert most[True] / float(scale) == pytest.approx(part.light_epsilon)
    assert part.epsilon == pytest.approx(0.5)
    assert part.light_epsilon == pytest.approx(0.5 * 40 / 256)


def test_without_noise_divided_sums_are_weighted_sums(ratings, silent, division):
    """Oracle: rating by rating, with the weights that the tables state."""
    v, mask = Vault(ratings, 1.0, noise=NoiseSource.system()), ratings.mask
    items, users = v.divided_sums(3.3, 1.2, division=division, epsilon=0.5)
    plain, asked = np.clip(ratings.values - 3.3, -1.2, 1.2), asked_of(ratings, division)
    wanted_items, wanted_users = np.zeros(mask.n_items), np.zeros(mask.n_users)
    for u, j, y, single in zip(mask.users, mask.items, plain, asked, strict=True):
        share = division.item[division.item_class[j], division.user_class[u]] / 256
        whole = 40 / 256 if single else 1.0
        wanted_items[j] += int(256 * whole * share) / 256 * y
        wanted_users[u] += (whole - int(256 * whole * share) / 256) * y
    np.testing.assert_allclose(items.values, wanted_items, atol=0.02)
    np.testing.assert_allclose(users.values, wanted_users, atol=0.02)


@pytest.fixture
def contrasts(ratings):
    return contrasts_of(ratings)


def contrasts_of(ratings):
    """Three classes a side, either sign, and a class of none."""
    rng = np.random.default_rng(6)
    return Contrasts(*(rng.integers(-3, 4, n).astype(np.int8) for n in (ratings.mask.n_users, ratings.mask.n_items)), 3)


def test_sums_over_all_ratings_are_paid_for_with_those_of_rows(ratings, silent, division, contrasts):
    """Enumerated as above: a rating is in one of them with its sign, and all three weights of the dearest add up."""
    division = replace(division, pooled=48)
    unit, asked = STARS.width / 2 / VALUE_GRID / DIVIDED_GRID, asked_of(ratings, division)
    most, most_together, one_place = {True: 0.0, False: 0.0}, 0.0, True
    for row in range(0, len(ratings), 7):
        vaults = [Vault(neighbour(ratings, row, x), 1.0, noise=NoiseSource.system()) for x in (0, 4)]
        low, high = (v.divided_sums(3.0, 1.5, division=division, epsilon=0.5, contrasts=contrasts) for v in vaults)
        moved = [np.abs(x.values - y.values) / unit for x, y in zip(low, high, strict=True)]
        kind, one_place = bool(asked[row]), one_place and np.count_nonzero(moved[2]) <= 1
        most[kind] = max(most[kind], sum(family.sum() for family in moved))
        most_together = max(most_together, moved[2].sum())
    part = vaults[0].certificate().parts[0]
    assert one_place
    assert most[False] == pytest.approx(part.sensitivity)
    assert most[True] / float(Fraction(part.noise_scale)) == pytest.approx(part.light_epsilon)
    assert most_together == pytest.approx(part.sensitivity * 48 / 256)
    assert part.epsilon == pytest.approx(0.5)
    assert part.families[2] == ("contrasts", 9)


def test_without_noise_sums_over_all_ratings_are_signed_sums(ratings, silent, division, contrasts):
    """Oracle: rating by rating; the others get what is left."""
    division, mask = replace(division, pooled=48), ratings.mask
    v = Vault(ratings, 1.0, noise=NoiseSource.system())
    items, users, together = v.divided_sums(3.3, 1.2, division=division, epsilon=0.5, contrasts=contrasts)
    plain, asked, wanted = np.clip(ratings.values - 3.3, -1.2, 1.2), asked_of(ratings, division), np.zeros((3, 3))
    left = 0.0
    for u, j, y, single in zip(mask.users, mask.items, plain, asked, strict=True):
        k, line, whole = int(contrasts.users[u]), int(contrasts.items[j]), 40 if single else 256
        left += (whole - whole * 48 // 256) / 256 * y
        if k and line:
            wanted[abs(k) - 1, abs(line) - 1] += np.sign(k) * np.sign(line) * (whole * 48 // 256) / 256 * y
    np.testing.assert_allclose(together.values, wanted.ravel(), atol=0.02)
    assert items.values.sum() + users.values.sum() == pytest.approx(left, abs=0.1)


CENTRES = np.array([1.7, 2.6, 3.0, 4.4])


def rows_of(ratings):
    """Sums of two turns: every third item and every other user come first."""
    items, users = np.arange(ratings.mask.n_items) % 3 == 0, np.arange(ratings.mask.n_users) % 2 == 0
    return RowSums(items, users), RowSums(~items, ~users)


def window_of(ratings):
    """Which of the second turn's windows every rating is seen through; one of them by nobody."""
    return np.random.default_rng(9).choice([0, 1, 3], len(ratings)).astype(np.uint8)


def sums_in_turns(ratings, division, contrasts=None, second=MappingProxyType({})):
    """A vault, and the answers of both turns; `second` says what the second one asks otherwise."""
    v, window = Vault(ratings, 1.0, noise=NoiseSource.system()), window_of(ratings)
    first, then = rows_of(ratings)
    early = v.divided_sums(3.3, 1.2, division=division, epsilon=0.5, contrasts=contrasts, rows=first)
    v.table.run(lambda block: BlockResult({"choice": window[block.ratings]}), writes=["choice"])
    asked = {"division": division, "epsilon": 0.5, "rows": then, "choice": "choice"} | dict(second)
    return v, early, v.divided_sums(CENTRES, 0.7, **asked)


def test_sums_in_turns_cost_what_they_cost_at_once(ratings, division, contrasts):
    division = replace(division, pooled=48)
    v, early, late = sums_in_turns(ratings, division, contrasts)
    at_once = Vault(ratings, 1.0, noise=NoiseSource.system())
    at_once.divided_sums(3.3, 1.2, division=division, epsilon=0.5, contrasts=contrasts)
    (part,), (other,) = v.certificate().parts, at_once.certificate().parts
    assert part == replace(other, steps=part.steps, step=part.step)
    assert part.epsilon == other.epsilon == pytest.approx(0.5)
    assert len(part.steps) == 4, "the window of the first turn, and those of the second that somebody is seen through"
    assert v.certificate().private
    assert [len(one.values) for one in early] == [14, 30, 9]
    assert [len(one.values) for one in late] == [26, 30]
    assert late[0].noise_variance == pytest.approx(early[0].noise_variance * (0.7 / 1.2) ** 2, rel=1e-2)


def test_sums_in_turns_move_by_at_most_what_each_rating_pays_for(ratings, silent, division, contrasts):
    """Enumerated over every seventh rating, from one end of the scale to the other: both kinds attain their bound."""
    division, asked = replace(division, pooled=48), asked_of(ratings, division)
    most = {True: 0.0, False: 0.0}
    for row in range(0, len(ratings), 7):
        moved, answers = 0.0, [sums_in_turns(neighbour(ratings, row, x), division, contrasts) for x in (0, 4)]
        (v, *low), (_, *high) = answers
        part = v.certificate().parts[0]
        for unit, one, other in zip((part.step[0], part.step[-1]), low, high, strict=True):
            moved += sum(np.abs(x.values - y.values).sum() for x, y in zip(one, other, strict=True)) / unit
        most[bool(asked[row])] = max(most[bool(asked[row])], moved)
    assert most[False] == pytest.approx(part.sensitivity, rel=1e-3)
    assert most[True] / float(Fraction(part.noise_scale)) == pytest.approx(part.light_epsilon, rel=1e-3)
    assert max(most.values()) <= part.sensitivity * (1 + 1e-9)


def test_without_noise_sums_in_turns_are_those_of_their_windows(ratings, silent, division):
    """Oracle: rating by rating, each through the window that it has in the turn of the sum."""
    mask, asked, window = ratings.mask, asked_of(ratings, division), window_of(ratings)
    rows, (_, early, late) = rows_of(ratings), sums_in_turns(ratings, division)
    for turn, answers in enumerate((early, late)):
        wanted = np.zeros(mask.n_items), np.zeros(mask.n_users)
        for e, (u, j, y) in enumerate(zip(mask.users, mask.items, ratings.values, strict=True)):
            centre, half = (3.3, 1.2) if turn == 0 else (CENTRES[window[e]], 0.7)
            whole = 40 if asked[e] else 256
            item = whole * int(division.item[division.item_class[j], division.user_class[u]]) // 256
            wanted[0][j] += item / 256 * np.clip(y - centre, -half, half)
            wanted[1][u] += (whole - item) / 256 * np.clip(y - centre, -half, half)
        np.testing.assert_allclose(answers[0].values, wanted[0][rows[turn].items], atol=0.02)
        np.testing.assert_allclose(answers[1].values, wanted[1][rows[turn].users], atol=0.02)


def test_a_sum_is_asked_once_and_turns_are_alike(ratings, division, contrasts):
    """Refused before anything is drawn: a sum again, another epsilon or division, signs that come late."""
    first, then = rows_of(ratings)
    again = RowSums(first.items, ~first.users)
    refused = [
        ({"rows": again}, "each of the sums once"),
        ({"rows": RowSums.all(ratings.mask.census)}, "each of the sums once"),
        ({"epsilon": 0.51}, "one epsilon"),
        ({"epsilon": 0.1}, "one epsilon"),
        ({"division": replace(division, light=41)}, "one division"),
        ({"contrasts": contrasts}, "first turn"),
    ]
    for changed, words in refused:
        with pytest.raises(PrivacyError, match=words):
            sums_in_turns(ratings, division, second=changed)
    v, *_ = sums_in_turns(ratings, division)
    with pytest.raises(PrivacyError, match="each of the sums once"):
        v.divided_sums(3.0, 0.7, division=division, epsilon=0.5, rows=then)
    pass_through(v, [randomised_response(STARS, 0.4)], np.zeros(len(ratings)))
    with pytest.raises(PrivacyError, match="divided already"):
        v.divided_sums(3.0, 0.7, division=division, epsilon=0.5, rows=then)


def test_rows_that_are_numbers_are_refused_for_they_could_name_one_twice():
    """One item's place, a hundred times: as many answers to one sum, each with noise of its own."""
    with pytest.raises(PrivacyError, match="true or false for every row"):
        RowSums(np.zeros(100, dtype=np.int64), np.zeros(1, dtype=bool))
    with pytest.raises(PrivacyError, match="true or false for every row"):
        RowSums(np.zeros(40, dtype=bool), np.ones((60, 1), dtype=bool))


def test_what_was_asked_stays_known_when_its_rows_are_changed_afterwards(ratings, division):
    v, rows = Vault(ratings, 1.0, noise=NoiseSource.system()), RowSums.all(ratings.mask.census)
    v.divided_sums(3.0, 1.0, division=division, epsilon=0.5, rows=rows)
    rows.items[:] = rows.users[:] = False
    with pytest.raises(PrivacyError, match="each of the sums once"):
        v.divided_sums(3.0, 1.0, division=division, epsilon=0.5)


def test_the_secret_itself_chooses_no_window_and_no_channel(ratings, division):
    """Of windows at either end a rating would move a sum by twice their width; which channel it used would tell it."""
    v = Vault(ratings, 1.0, noise=NoiseSource.system())
    with pytest.raises(PrivacyError, match=r"level is the secret.*Nothing was drawn"):
        v.divided_sums(CENTRES, 1.0, division=division, epsilon=0.5, choice="level")
    with pytest.raises(PrivacyError, match=r"level is the secret.*Nothing was drawn"):
        v.symbols({x: randomised_response(STARS, 0.1) for x in range(5)}, choice="level", symbol="symbol")
    assert v.left == 1.0


def test_a_weight_over_all_ratings_without_signs_is_refused_and_signs_without_a_weight_too(
    ratings, division, contrasts
):
    v = Vault(ratings, 1.0, noise=NoiseSource.system())
    with pytest.raises(PrivacyError, match="go together"):
        v.divided_sums(3.0, 1.0, division=replace(division, pooled=48), epsilon=0.5)
    with pytest.raises(PrivacyError, match="go together"):
        v.divided_sums(3.0, 1.0, division=division, epsilon=0.5, contrasts=contrasts)
    assert v.left == 1.0


TURNS = Turns((40, 90, 126))


def turn_of(ratings):
    """The turn of every rating."""
    return TURNS.of(next(iter(RawTable.of(ratings).table.scan())))


def ask_turn(v, channel, name="symbol"):
    """The symbols of the next turn, all through one channel."""
    v.table.run(lambda block: BlockResult({"choice": np.zeros(len(block.items), np.uint8)}), writes=["choice"])
    v.symbols({0: channel}, choice="choice", symbol=name, turns=TURNS)
    return v.table[name].copy()


def test_in_turns_every_rating_is_asked_once_and_the_dearest_turn_is_what_they_cost(ratings):
    """A channel that shows every value: symbols of a turn are the levels of its ratings, all others are zero."""
    v, turns = Vault(ratings, 20.0, noise=NoiseSource.seeded(0)), turn_of(ratings)
    prices = (19.0, 20.0, 18.0)
    heard = [ask_turn(v, randomised_response(STARS, price), f"turn {t}") for t, price in enumerate(prices)]
    for turn, symbols in enumerate(heard):
        np.testing.assert_array_equal(symbols, np.where(turns == turn, ratings.levels, 0))
    (part,) = v.certificate().parts
    assert len(part.tables) == 3
    assert part.epsilon == max(epsilon_of(table) for table in part.tables)
    assert v.spent == Fraction(part.epsilon)


def test_turns_have_the_shares_that_were_announced(ratings):
    """Within five deviations of so many draws."""
    share = np.bincount(turn_of(ratings), minlength=3) / len(ratings)
    wanted = np.array(TURNS.shares) / 256
    assert (np.abs(share - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / len(ratings))).all()


def test_a_turn_that_costs_more_than_is_left_is_refused_and_so_are_other_turns_halfway(ratings):
    v = Vault(ratings, 2.0, noise=NoiseSource.seeded(0))
    ask_turn(v, randomised_response(STARS, 1.5))
    with pytest.raises(PrivacyError, match="Nothing was drawn"):
        ask_turn(v, randomised_response(STARS, 2.5))
    with pytest.raises(PrivacyError, match="in turns that were announced"):
        v.symbols({0: randomised_response(STARS, 1.0)}, choice="choice", symbol="symbol")
    assert v.spent <= Fraction(3, 2)
    for _ in range(2):
        ask_turn(v, randomised_response(STARS, 2.0))
    with pytest.raises(PrivacyError, match="only"):  # after the last one, asking again is paid for again
        ask_turn(v, randomised_response(STARS, 1.0))


def test_shares_of_turns_that_do_not_add_up_are_refused():
    with pytest.raises(PrivacyError, match="add up to 256"):
        Turns((100, 100))


def test_a_rating_in_the_sums_alone_has_a_symbol_that_does_not_depend_on_it(ratings, division):
    """A channel that shows every value: the others' symbols are their levels, theirs are zero."""
    v, sure = Vault(ratings, 25.0, noise=NoiseSource.seeded(0)), randomised_response(STARS, 20.0)
    v.divided_sums(3.0, 1.0, division=division, epsilon=20.0)
    symbols, asked = pass_through(v, [sure], np.full(len(ratings), 7)), asked_of(ratings, division)
    np.testing.assert_array_equal(symbols[asked], ratings.levels[asked])
    assert not symbols[~asked].any()
    assert 100 < asked.sum() < 800


def test_a_divided_budget_is_what_the_dearest_rating_pays(ratings, division):
    """Sums for 0.8 and symbols for 0.8 cost 0.925 together, not 1.6; a rating more costly than that is refused."""
    v = Vault(ratings, 1.0, noise=NoiseSource.system())
    v.divided_sums(3.0, 1.0, division=division, epsilon=0.8)
    assert v.left == pytest.approx(1 - 0.8 * 40 / 256)
    with pytest.raises(PrivacyError, match="Nothing was drawn"):
        pass_through(v, [randomised_response(STARS, 0.9)], np.zeros(len(ratings)))
    pass_through(v, [randomised_response(STARS, 0.8)], np.zeros(len(ratings)))
    certificate = v.certificate()
    assert certificate.private
    assert certificate.epsilon == pytest.approx(0.8 + 0.8 * 40 / 256)
    assert "dearest" in certificate.composition
    with pytest.raises(PrivacyError, match="Nothing was drawn"):
        v.histogram(np.arange(5), epsilon=0.3)


def test_a_divided_vault_is_divided_once_and_asks_nobody_for_everything(ratings, division):
    v = Vault(ratings, 1.0, noise=NoiseSource.system())
    v.divided_sums(3.0, 1.0, division=division, epsilon=0.2)
    with pytest.raises(PrivacyError, match="divided already"):
        v.divided_sums(3.0, 1.0, division=division, epsilon=0.2)
    with pytest.raises(PrivacyError, match="not all of them"):
        v.noisy_ratings(randomised_response(STARS, 0.1), symbol="symbol")


def test_who_was_asked_before_a_division_pays_for_that_too(ratings, division):
    """Everybody gave a symbol for 0.8; a division for 0.3 afterwards would be 1.1 for ratings in the sums alone."""
    v = Vault(ratings, 1.0, noise=NoiseSource.system())
    pass_through(v, [randomised_response(STARS, 0.8)], np.zeros(len(ratings)))
    with pytest.raises(PrivacyError, match="Nothing was drawn"):
        v.divided_sums(3.0, 1.0, division=division, epsilon=0.3)


def test_a_window_narrower_than_the_grid_is_one_step_wide(ratings):
    v = Vault(ratings, 1.0, noise=NoiseSource.system())
    window_sums(v, 3.0, 1e-9, item=128, epsilon=0.5)
    assert v.certificate().parts[0].sensitivity == 2 * DIVIDED_GRID


def test_a_histogram_moves_by_two_when_one_rating_changes(ratings, silent):
    bins = np.array([0, 0, 1, 2, 2])
    for level in range(5):
        a, b = (Vault(r, 1.0, noise=NoiseSource.system()) for r in (ratings, neighbour(ratings, 7, level)))
        change = np.abs(a.histogram(bins, epsilon=0.1).values - b.histogram(bins, epsilon=0.1).values).sum()
        assert change in (0, 2)
        assert a.certificate().parts[0].sensitivity == 2


def test_the_total_moves_by_at_most_the_scales_width_and_the_ends_attain_it(ratings, silent):
    unit = STARS.width / 2 / VALUE_GRID
    seen = []
    for level in range(5):
        a, b = (Vault(neighbour(ratings, 3, x), 1.0, noise=NoiseSource.system()) for x in (0, level))
        before, after = (v.total(2.7, epsilon=0.5).values[0] for v in (a, b))
        seen.append(abs(after - before) / unit / a.certificate().parts[0].sensitivity)
        assert before == pytest.approx((neighbour(ratings, 3, 0).values - 2.7).sum(), abs=0.3)
    assert max(seen) == pytest.approx(1)


def test_the_noise_has_the_variance_it_states():
    """Twenty thousand items of which one is rated: the sums of the others are noise alone."""
    ids = np.arange(20_000)
    everything = Ratings.from_arrays(ids % 2, ids, np.full(20_000, 3), scale=STARS)
    one = Ratings(everything.mask.select(ids == 0), everything.levels[:1], STARS)
    items, _ = window_sums(Vault(one, 1.0, noise=NoiseSource.seeded(0)), 3.0, 2.0, item=128, epsilon=0.7)
    assert items.values[1:].var() == pytest.approx(items.noise_variance, rel=0.05)


def test_every_price_can_be_recomputed_from_the_certificate(ratings):
    v = Vault(ratings, 2.0, noise=NoiseSource.system())
    v.histogram(np.arange(5), epsilon=0.1)
    window_sums(v, 3.0, 1.0, item=96, epsilon=0.9)
    channels = [optimal_channel(STARS, 1.0, np.ones(5)), randomised_response(STARS, 0.8)]
    pass_through(v, channels, np.arange(len(ratings)) % 2)
    certificate = v.certificate()
    assert certificate.private
    assert certificate.epsilon <= 2.0
    for part in certificate.parts[:2]:
        assert Fraction(part.epsilon) >= Fraction(part.sensitivity) / Fraction(part.noise_scale)
    ratios = [epsilon_of(table) for table in certificate.parts[2].tables]
    assert max(ratios) == certificate.parts[2].epsilon


def test_overspending_is_refused_before_anything_is_drawn(ratings):
    v = Vault(ratings, 1.0, noise=NoiseSource.system())
    v.histogram(np.arange(5), epsilon=0.3)
    with pytest.raises(PrivacyError, match=r"only 0\.7.* is left.*Nothing was drawn"):
        pass_through(v, [randomised_response(STARS, 0.8)], np.zeros(len(ratings)))
    assert len(v.certificate().parts) == 1
    pass_through(v, [randomised_response(STARS, v.left)], np.zeros(len(ratings)))
    assert v.certificate().epsilon <= 1.0


def test_each_rating_passes_through_the_channel_chosen_for_it(ratings):
    sure, coin = randomised_response(STARS, 20.0), randomised_response(STARS, 0.01)
    choice = np.arange(len(ratings)) % 2
    symbols = pass_through(Vault(ratings, 20.0, noise=NoiseSource.seeded(0)), [sure, coin], choice)
    right = symbols == ratings.levels
    assert right[choice == 0].all()
    assert 0.1 < right[choice == 1].mean() < 0.3


def test_a_seeded_vault_says_so(ratings):
    v = Vault(ratings, 1.0, noise=NoiseSource.seeded(0))
    v.histogram(np.arange(5), epsilon=0.3)
    assert not v.certificate().private


def test_the_vault_shows_no_rating(ratings):
    v = Vault(ratings, 1.0, noise=NoiseSource.system())
    public = {name for name in vars(v) if not name.startswith("_")}
    assert public == {"census", "table", "scale", "epsilon"}
    with pytest.raises(KeyError, match="hidden"):
        v.table.run(lambda block: None, reads=["level"])


def test_two_vaults_never_draw_the_same_noise_and_two_questions_neither(ratings):
    def answers():
        v = Vault(ratings, 1.0, noise=NoiseSource.system())
        return [v.histogram(np.arange(5), epsilon=1e-4).values for _ in range(2)]

    (a, b), (c, _) = answers(), answers()
    assert (a != b).any()
    assert (a != c).any()


def test_every_number_of_every_answer_has_noise_of_its_own(ratings, division, contrasts):
    """All ratings are threes, so every answer is known but for its noise. None is without, and no two have the same,
    nor one the other's with another sign: their sum or difference would be exact."""
    threes = replace(ratings, levels=np.full_like(ratings.levels, 2))
    v, division = Vault(threes, 1.0, noise=NoiseSource.seeded(0)), replace(division, pooled=48)
    counts = v.histogram(np.arange(5), epsilon=1e-4).values - [0, 0, len(threes), 0, 0]
    total = v.total(3.0, epsilon=1e-4).values / (STARS.width / 2 / VALUE_GRID)
    sums = v.divided_sums(3.0, 1.5, division=division, epsilon=1e-4, contrasts=contrasts)
    step = STARS.width / 2 / VALUE_GRID / DIVIDED_GRID
    noise = np.abs(np.rint(np.concatenate([counts, total, *(one.values / step for one in sums)])))
    assert len(noise) > 100
    assert noise.min() > 0
    assert len(np.unique(noise)) == len(noise)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("weight", [0.3125, 0.5, 0.6875])
def test_gaussian_noise_never_helps_sums_at_a_delta_worth_the_name(epsilon, weight):
    """Only a delta above about epsilon / 240 would; a delta worth the name is far below."""
    for share in (1 / 500, 1e-4, 1e-8):
        assert not gaussian_is_better([weight, 1 - weight], epsilon, epsilon * share)
    assert gaussian_is_better([0.5, 0.5], 0.01, 0.01 / 200)


def test_gaussian_noise_would_help_statistics_that_one_rating_moves_in_many_places():
    """The comparison is not idle: spread over 400 sums, the Gaussian wins."""
    assert gaussian_is_better([1 / 400] * 400, 1.0, 1e-6)
