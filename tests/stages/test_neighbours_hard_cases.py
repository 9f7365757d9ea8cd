"""Neighbours where single precision alone would be wrong, where ties abound, and where tables are lopsided."""

import numpy as np
import pyarrow as pa
import pytest
from private_by_hand import make_private

from dpsr.denoise import Neighbours, item_neighbours
from dpsr.denoise.columns import centred
from dpsr.denoise.heap import LAST
from dpsr.denoise.neighbours import SPARE
from dpsr.denoise.proposals import BLOCK, Proposals, error_bound, propose, weakness
from dpsr.denoise.verdict import settle
from dpsr.types import Mask, PrivateRatings, Scale


def normalised(noisy: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Columns centred by their own mean and of length one; zero where constant or empty."""
    X = np.where(mask, noisy - np.where(mask, noisy, 0).sum(0) / np.maximum(mask.sum(0), 1), 0)
    spread = np.where(mask, noisy, -np.inf).max(0) - np.where(mask, noisy, np.inf).min(0)
    return np.where(spread > 2.0**-28, X / np.maximum(np.linalg.norm(X, axis=0), 1e-300), 0)


def strongest(S: np.ndarray, k: int) -> list[list[int]]:
    """The k largest |s| of each row on the grid, ties to the lower index, zeros never."""
    quanta = np.rint(np.abs(S) * 2.0**31)
    np.fill_diagonal(quanta, 0)
    order = np.argsort(-quanta, axis=1, kind="stable")[:, :k]
    return [[int(q) for q in row if quanta[p, q] > 0] for p, row in enumerate(order)]


def found_lists(found: Neighbours) -> list[list[int]]:
    return [row[:count].tolist() for row, count in zip(found.items, found.counts, strict=True)]


def assert_strongest(noisy: np.ndarray, mask: np.ndarray, k: int) -> Neighbours:
    X = normalised(noisy, mask)
    S = X.T @ X
    found = item_neighbours(make_private(noisy, mask), k=k)
    expected = strongest(S, k)
    assert found_lists(found) == expected
    for row, similarities, truth in zip(expected, found.similarities, S, strict=True):
        np.testing.assert_allclose(similarities[: len(row)], truth[row], rtol=0, atol=1e-12)
    return found


def by_proposals(noisy: np.ndarray, mask: np.ndarray, k: int) -> tuple[PrivateRatings, Proposals]:
    ratings = make_private(noisy, mask)
    columns, lists = centred(ratings, 1)
    return ratings, propose(lists, len(columns.order), k + SPARE, 1)


def near_ties(seed: int, items: int = 90, raters: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Columns that are one column but for changes of some 1e-5: their similarities are apart by 1e-9 and less."""
    rng = np.random.default_rng(seed)
    column = rng.uniform(1, 5, raters)
    return column[:, None] + 3e-5 * rng.standard_normal((raters, items)), np.ones((raters, items), bool)


@pytest.mark.parametrize("seed", range(4))
def test_similarities_apart_by_less_than_a_float_can_tell_are_ranked_in_double_precision(seed: int) -> None:
    noisy, mask = near_ties(seed)
    assert_strongest(noisy, mask, k=12)


def test_single_precision_alone_would_fail_those_cases() -> None:
    """The planted error: the same selection from floats is another one."""
    X = normalised(*near_ties(0))
    floats = X.astype(np.float32)
    exact, naive = strongest(X.T @ X, 12), strongest((floats.T @ floats).astype(np.float64), 12)
    assert sum(set(a) != set(b) for a, b in zip(exact, naive, strict=True)) > 45


@pytest.mark.parametrize("shape", [(300, 130, 0.4), (2_300, 40, 0.8), (90, 400, 0.3)], ids=str)
def test_proposals_err_by_no_more_than_their_bound_and_leave_out_nothing_stronger(
    shape: tuple[int, int, float],
) -> None:
    m, n, density = shape
    rng = np.random.default_rng(1)
    noisy, mask = rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], size=(m, n)), rng.random((m, n)) < density
    ratings, proposals = by_proposals(noisy, mask, 10)
    order, X = centred(ratings, 1)[0].order, normalised(noisy, mask)
    S = np.abs(X.T @ X)[np.ix_(order, order)]
    np.fill_diagonal(S, 0)
    for p, keys in enumerate(proposals.keys[0]):
        kept = keys[keys > 0]
        partners, values = LAST - (kept & LAST), np.array([weakness(key) for key in kept])
        assert np.abs(values - S[p, partners]).max(initial=0) <= proposals.error
        weakest = values.min() if len(kept) == len(keys) else 0.0
        assert np.delete(S[p], partners).max(initial=0) <= max(weakest, proposals.error) + proposals.error
    assert proposals.error < 1e-4, "a bound so wide would send every item to the second look"


def test_the_bound_covers_the_worst_order_of_additions_and_grows_with_the_raters() -> None:
    """Many blocks: a large sum first, then products that are each rounded up by half a unit in the last place."""
    assert error_bound(10) >= (BLOCK + 4) * 2.0**-24
    assert error_bound(10**6) > error_bound(10**5) > error_bound(1)
    total = np.float32(0.5)
    rounded = np.float32(2.0**-25 * 1.0001)
    steps = BLOCK + 10
    for _ in range(steps):
        total = np.float32(total + rounded)
    exact = 0.5 + steps * float(rounded)
    assert 0.4 * error_bound(1) < abs(float(total) - exact) < error_bound(1)


def test_what_proposals_decide_and_what_the_second_look_decides_are_the_same() -> None:
    """With a bound that is never met every item gets the second look."""
    rng = np.random.default_rng(2)
    noisy, mask = rng.uniform(1, 5, (200, 150)), rng.random((200, 150)) < 0.5
    ratings = make_private(noisy, mask)
    columns, lists = centred(ratings, 1)
    proposals = propose(lists, len(columns.order), 7 + SPARE, 1)
    hopeless = Proposals(np.zeros_like(proposals.keys), proposals.error)
    first, second = (settle(columns, lists, given, 150, 7, 1) for given in (proposals, hopeless))
    assert (first[0] == second[0]).all()
    assert first[1].tobytes() == second[1].tobytes()


def test_proposals_decide_nearly_all_items_of_an_ordinary_table() -> None:
    """Else the fast path would be a slow one: wrong proposals must not change what they decide."""
    rng = np.random.default_rng(3)
    noisy, mask = rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], size=(400, 200)), rng.random((400, 200)) < 0.4
    ratings, proposals = by_proposals(noisy, mask, 5)
    columns, lists = centred(ratings, 1)
    spoilt = proposals.keys ^ (proposals.keys > 0)  # every even candidate takes the next one's name, and the reverse
    truth = settle(columns, lists, proposals, 200, 5, 1)[0]
    wrong = settle(columns, lists, Proposals(spoilt, proposals.error), 200, 5, 1)[0]
    assert (truth != wrong).any(axis=1).mean() > 0.9


def test_more_clones_than_there_is_room_for_tie_towards_the_lower_index() -> None:
    rng = np.random.default_rng(4)
    noisy, mask = rng.uniform(1, 5, (50, 80)), rng.random((50, 80)) < 0.6
    noisy[:, 10:70], mask[:, 10:70] = noisy[:, 10:11], mask[:, 10:11]
    found = assert_strongest(noisy, mask, k=6)
    assert found.items[40].tolist() == [10, 11, 12, 13, 14, 15]
    assert found.items[12].tolist() == [10, 11, 13, 14, 15, 16]


@pytest.mark.parametrize("seed", range(3))
def test_two_values_and_hardly_any_raters_tie_everywhere(seed: int) -> None:
    rng = np.random.default_rng(seed)
    noisy, mask = rng.choice([1.0, 5.0], size=(25, 300)), rng.random((25, 300)) < 0.12
    assert_strongest(noisy, mask, k=5)


def test_one_user_with_two_fifths_of_all_ratings() -> None:
    rng = np.random.default_rng(5)
    noisy, mask = rng.uniform(1, 5, (61, 400)), rng.random((61, 400)) < 600 / 24_000
    mask[0] = True
    assert 0.35 < mask[0].sum() / mask.sum() < 0.45
    assert_strongest(noisy, mask, k=8)


def test_items_with_one_rater_and_items_with_none_stay_alone() -> None:
    rng = np.random.default_rng(6)
    noisy, mask = rng.uniform(1, 5, (40, 60)), rng.random((40, 60)) < 0.3
    mask[:, ::3] = False
    mask[7, 3::6] = True
    found = assert_strongest(noisy, mask, k=4)
    assert (found.counts[::3] == 0).all()
    assert (found.items[~np.isin(np.arange(60), np.arange(0, 60, 3))] % 3 != 0).any()


def test_a_million_items_of_which_a_few_are_rated() -> None:
    """Those that are rated stand far apart; the answer is that of the small table with their names."""
    rng = np.random.default_rng(7)
    noisy, mask = rng.choice([1.0, 2.0, 5.0], size=(30, 50)), rng.random((30, 50)) < 0.4
    small = make_private(noisy, mask)
    names = np.sort(rng.choice(1_000_000, 50, replace=False)).astype(np.int32)
    ids = pa.array(np.arange(1_000_000))
    large = PrivateRatings(
        Mask(small.mask.user_ids, ids, small.mask.indptr, names[small.mask.items]),
        small.values,
        Scale(1, 5),
        small.certificate,
    )
    few, many = item_neighbours(small, k=6), item_neighbours(large, k=6)
    assert (many.counts[np.delete(np.arange(1_000_000), names)] == 0).all()
    assert (np.where(few.items >= 0, names[few.items], -1) == many.items[names]).all()
    assert many.similarities[names].tobytes() == few.similarities.tobytes()


def test_a_catalogue_too_wide_for_a_tile_per_thread_is_done_by_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    ratings = make_private(rng.uniform(1, 5, (50, 40)), rng.random((50, 40)) < 0.5)
    columns, lists = centred(ratings, 3)
    wide = propose(lists, len(columns.order), 13, 3)
    monkeypatch.setattr("dpsr.denoise.proposals._ROOM", 0)
    narrow = propose(lists, len(columns.order), 13, 3)
    assert (len(wide.keys), len(narrow.keys)) == (3, 1)
    first, second = (settle(columns, lists, given, 40, 5, 3) for given in (wide, narrow))
    assert (first[0] == second[0]).all()
    assert first[1].tobytes() == second[1].tobytes()
