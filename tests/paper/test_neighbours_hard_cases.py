"""Neighbours where single precision alone would be wrong, where ties abound, and where tables are lopsided."""

import numpy as np
import pyarrow as pa
import pytest
from paper_stages import neighbours
from private_by_hand import make_private

from dpsr.paper.neighbours import Neighbours
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
    found = neighbours(make_private(noisy, mask), k=k)
    expected = strongest(S, k)
    assert found_lists(found) == expected
    for row, similarities, truth in zip(expected, found.similarities, S, strict=True):
        np.testing.assert_allclose(similarities[: len(row)], truth[row], rtol=0, atol=1e-12)
    return found


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
    few, many = neighbours(small, k=6), neighbours(large, k=6)
    assert (many.counts[np.delete(np.arange(1_000_000), names)] == 0).all()
    assert (np.where(few.items >= 0, names[few.items], -1) == many.items[names]).all()
    assert many.similarities[names].tobytes() == few.similarities.tobytes()
