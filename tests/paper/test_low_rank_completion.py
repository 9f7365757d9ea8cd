"""Stage 3 by itself: the closed form, what the model holds, determinism and memory."""

import tracemalloc

import numba
import numpy as np
import pyarrow as pa
import pytest
from paper_stages import NOISY, SMOOTHED, completed, released, table_of
from private_by_hand import make_private

from dpsr.errors import ParameterError
from dpsr.linalg import compiled
from dpsr.paper.blend import blend_with_neighbours
from dpsr.paper.completion import Completion, complete_by_projections
from dpsr.paper.neighbours import item_neighbours
from dpsr.types import Mask, Model, PrivateRatings, Scale


def smoothed(seed: int = 0, m: int = 120, n: int = 90, density: float = 0.15) -> PrivateRatings:
    rng = np.random.default_rng(seed)
    return make_private(rng.uniform(1, 5, (m, n)), rng.random((m, n)) < density)


def complete(ratings: PrivateRatings, *, rank: int = 8, lam: float = 0.7, n_iter: int = 50, period: int = 10) -> Model:
    return completed(ratings, rank=rank, lam=lam, n_iter=n_iter, period=period)


@pytest.mark.parametrize("steps", [1, 2, 7, 9])
@pytest.mark.parametrize("lam", [0.0, 0.3, 0.7, 1.0])
def test_the_closed_form_is_that_many_literal_steps(steps: int, lam: float) -> None:
    ratings = smoothed()
    start, moved = complete(ratings, n_iter=0), complete(ratings, n_iter=steps, lam=lam)
    u, j = ratings.mask.users, ratings.mask.items
    cells = np.einsum("rd,rd->r", start.user_factors[u], start.item_factors[j])
    for _ in range(steps):
        cells = lam * cells + (1 - lam) * ratings.values
    assert moved.observed is not None
    np.testing.assert_allclose(moved.observed, cells, atol=1e-12)


@pytest.mark.parametrize(("n_iter", "period"), [(0, 10), (50, 10), (10, 1)])
def test_nothing_is_observed_beside_the_factors_after_a_cut(n_iter: int, period: int) -> None:
    assert complete(smoothed(), n_iter=n_iter, period=period).observed is None


def test_observed_values_are_not_clipped_but_predictions_are() -> None:
    ratings = make_private(np.full((4, 4), 9.0), np.eye(4, dtype=bool))
    model = complete(ratings, n_iter=3, lam=0.0)
    assert model.observed is not None
    assert (model.observed > 5).all()
    assert model.predict(np.array([0]), np.array([0])).tolist() == [5.0]


@pytest.mark.parametrize("n_iter", [50, 53])
@pytest.mark.parametrize("rank", [3, 8, 11])
def test_predictions_at_the_ratings_are_the_models_own(n_iter: int, rank: int) -> None:
    ratings = smoothed()
    model = complete(ratings, n_iter=n_iter, rank=rank)
    plain = model.predict(ratings.mask.users, ratings.mask.items)
    column = released(ratings, rank=rank, lam=0.7, n_iter=n_iter, period=10)
    np.testing.assert_allclose(column, plain, rtol=0, atol=1e-12)


def test_item_factors_are_orthonormal_and_the_rank_is_at_most_the_smaller_side() -> None:
    model = complete(smoothed(m=30, n=20), rank=64)
    assert model.rank == 20
    np.testing.assert_allclose(model.item_factors.T @ model.item_factors, np.eye(20), atol=1e-10)


def test_means_fall_back_to_the_overall_mean() -> None:
    noisy, mask = np.array([[1.0, 2.0, 5.0], [4.0, 3.0, 3.0]]), np.array([[1, 1, 0], [0, 0, 0]], bool)
    model = complete(make_private(noisy, mask))
    assert model.overall == 1.5
    assert model.user_means.tolist() == [1.5, 1.5]
    assert model.item_means.tolist() == [1.0, 2.0, 1.5]


def test_no_ratings_predict_the_midpoint() -> None:
    model = complete(make_private(np.ones((3, 2)), np.zeros((3, 2), bool)))
    np.testing.assert_allclose(model.predict(np.array([0, 2, -1]), np.array([1, 0, 0])), 3.0)


def test_the_same_ratings_twice_give_the_same_bits_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "WORTH_THREADS", 0)
    ratings, available, bits = smoothed(m=300, n=200), numba.get_num_threads(), set()
    try:
        for threads in (1, available, available):
            numba.set_num_threads(threads)
            model = complete(ratings, n_iter=23)
            assert model.observed is not None
            bits.add(model.user_factors.tobytes() + model.item_factors.tobytes() + model.observed.tobytes())
            assert numba.get_num_threads() == threads, "the stage must leave the thread count as it found it"
    finally:
        numba.set_num_threads(available)
    assert len(bits) == 1


def test_memory_stays_far_below_a_dense_matrix_and_keeps_to_its_allowance() -> None:
    """3,000 x 2,000 with 20,000 ratings: a dense matrix is 48 MB, a dense item-item matrix 32 MB."""
    m, n = 3_000, 2_000
    cells = np.sort(np.random.default_rng(0).choice(m * n, 20_000, replace=False))
    indptr = np.searchsorted(cells, np.arange(m + 1) * n).astype(np.int64)
    mask = Mask(pa.array(range(m)), pa.array(range(n)), indptr, (cells % n).astype(np.int32))
    values = np.random.default_rng(1).uniform(1, 5, len(cells))
    everything(smoothed())  # compile, import
    tracemalloc.start()
    try:
        everything(PrivateRatings(mask, values, Scale(1, 5), smoothed().certificate))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < m * n * 8 / 4


def everything(ratings: PrivateRatings) -> None:
    """Stages 2 and 3 with four megabytes for sums over pairs of items."""
    table = table_of(ratings)
    table.sum_bytes = 4 << 20
    similar = item_neighbours(table, NOISY, ratings.scale, k=15)
    blend_with_neighbours(table, NOISY, similar, ratings.scale, beta=0.65, blended=SMOOTHED)
    ends = Completion("released", "observed")
    complete_by_projections(table, SMOOTHED, ratings.scale, ends, rank=8, lam=0.7, n_iter=55, period=10)


@pytest.mark.parametrize(
    ("setting", "advice"),
    [({"rank": 0}, "uses 8"), ({"lam": -0.1}, "uses 0.7"), ({"n_iter": -1}, "uses 50"), ({"period": 0}, "uses 10")],
    ids=str,
)
def test_settings_out_of_range_say_what_the_paper_uses(setting: dict[str, float], advice: str) -> None:
    with pytest.raises(ParameterError, match=advice):
        complete(smoothed(m=5, n=5, density=1.0), **setting)  # type: ignore[arg-type]
