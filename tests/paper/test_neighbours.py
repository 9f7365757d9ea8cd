"""The neighbours of Stage 2: exact sets, exact order, no dependence on threads."""

import numba
import numpy as np
import pytest
from dense_oracle import Oracle
from paper_stages import blended as blend
from paper_stages import neighbours
from private_by_hand import make_private

from dpsr.errors import ParameterError
from dpsr.linalg import compiled
from dpsr.paper.neighbours import Neighbours


def random_ratings(seed: int, m: int, n: int, density: float, values: list[float]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.choice(values, size=(m, n)), rng.random((m, n)) < density


@pytest.mark.parametrize("values", [[1.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0], [1.1, 2.37, 4.9]], ids=str)
@pytest.mark.parametrize("density", [0.03, 0.2, 0.7])
def test_same_neighbours_in_the_same_order_as_the_oracle(values: list[float], density: float) -> None:
    noisy, mask = random_ratings(3, 40, 60, density, values)
    noisy[:, 50:], mask[:, 50:] = noisy[:, :10], mask[:, :10]
    found = neighbours(make_private(noisy, mask), k=7)
    oracle = Oracle(noisy, mask, K=7)
    S = oracle.similarities()
    for j in range(60):
        expected = oracle.neighbours(S[j], j)
        assert found.items[j][: found.counts[j]].tolist() == expected
        np.testing.assert_allclose(found.similarities[j][: len(expected)], S[j, expected], atol=1e-12)


def test_ties_go_to_the_lower_index_and_an_item_is_never_its_own_neighbour() -> None:
    column = np.array([1.0, 2.0, 5.0])
    found = neighbours(make_private(np.tile(column[:, None], (1, 6)), np.ones((3, 6), bool)), k=3)
    assert found.items.tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    np.testing.assert_allclose(found.similarities, 1.0)


def test_negative_similarity_ranks_by_its_size_and_keeps_its_sign() -> None:
    noisy = np.array([[1.0, 5.0, 1.0], [2.0, 4.0, 2.0], [5.0, 1.0, 1.0], [3.0, 3.0, 5.0]])
    found = neighbours(make_private(noisy, np.ones((4, 3), bool)), k=1)
    assert found.items[0].tolist() == [1]
    np.testing.assert_allclose(found.similarities[0], -1.0)


def test_zero_similarities_are_never_neighbours() -> None:
    """Orthogonal after centring, but not in floating point: 0.1-steps do not cancel exactly."""
    a, b = np.array([1.1, 1.1, 1.4, 1.4]), np.array([2.3, 2.9, 2.3, 2.9])
    found = neighbours(make_private(np.stack([a, b], axis=1), np.ones((4, 2), bool)), k=2)
    assert (found.items == -1).all()
    assert (found.similarities == 0).all()


def test_constant_single_and_empty_columns_have_no_neighbours() -> None:
    noisy, mask = random_ratings(4, 30, 8, 0.8, [1.0, 2.0, 4.0])
    noisy[:, 0] = 0.1 + 0.2 + 3
    mask[:, 1] = False
    mask[:, 2] = [True] + [False] * 29
    found = neighbours(make_private(noisy, mask), k=5)
    assert (found.counts[:3] == 0).all()
    assert not np.isin(found.items[3:], [0, 1, 2]).any()


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
def test_tiny_tables(shape: tuple[int, int]) -> None:
    noisy = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    ratings = make_private(noisy, np.ones(shape, bool))
    found = neighbours(ratings, k=3)
    assert (found.items == -1).all()
    assert (blend(ratings, found, beta=0.3).values == ratings.values).all()


def test_no_ratings_at_all() -> None:
    ratings = make_private(np.ones((3, 4)), np.zeros((3, 4), bool))
    assert (neighbours(ratings, k=2).items == -1).all()


def test_bits_do_not_depend_on_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "WORTH_THREADS", 0)
    ratings = make_private(*random_ratings(5, 200, 150, 0.2, [1.0, 2.0, 3.0, 4.0, 5.0]))
    runs: list[tuple[Neighbours, np.ndarray]] = []
    available = numba.get_num_threads()
    try:
        for threads in sorted({1, min(2, available), available}) * 2:
            numba.set_num_threads(threads)
            found = neighbours(ratings, k=9)
            runs.append((found, blend(ratings, found, beta=0.4).values))
    finally:
        numba.set_num_threads(available)
    for found, blended in runs[1:]:
        assert found.items.tobytes() == runs[0][0].items.tobytes()
        assert found.similarities.tobytes() == runs[0][0].similarities.tobytes()
        assert blended.tobytes() == runs[0][1].tobytes()


def test_blend_reads_stage_one_values_only_and_keeps_the_receipt() -> None:
    """Item 0 and 1 are each other's only neighbour: each takes the other's noisy value, not its blend."""
    noisy, mask = np.array([[1.0, 4.0], [2.0, 5.0], [4.0, 5.0]]), np.ones((3, 2), bool)
    ratings = make_private(noisy, mask)
    blended = blend(ratings, neighbours(ratings, k=1), beta=0.0)
    assert blended.values.tolist() == [4.0, 1.0, 5.0, 2.0, 5.0, 4.0]
    assert blended.certificate is ratings.certificate


def test_blend_clips_to_the_scale_only_what_it_blends() -> None:
    noisy = np.array([[9.0, 9.0, 9.0], [-4.0, -4.0, 1.0], [2.0, 3.0, 1.0]])
    mask = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 1]], bool)
    ratings = make_private(noisy, mask)
    blended = blend(ratings, neighbours(ratings, k=2), beta=0.5)
    assert blended.values.tolist() == [5.0, 5.0, 1.0, 1.0, 2.5, 2.5, 1.0]


def test_settings_out_of_range_say_what_to_choose() -> None:
    ratings = make_private(np.ones((2, 2)), np.ones((2, 2), bool))
    with pytest.raises(ParameterError, match="Choose k between"):
        neighbours(ratings, k=0)
    with pytest.raises(ParameterError, match=r"The paper uses 0\.65"):
        blend(ratings, neighbours(ratings, k=1), beta=1.5)
