"""The generators do what they say, and the statements would fail if they did not."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from dpsr.data import demo_ratings, paper_matrix, realistic
from dpsr.errors import ParameterError


def full_matrix(seed, n_users=300, n_items=200, rank=8):
    """The paper's R, drawn in the documented order: U, V, E."""
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((n_users, rank)), rng.standard_normal((n_items, rank))
    return U @ V.T + 0.1 * rng.standard_normal((n_users, n_items))


def test_the_paper_matrix_has_the_papers_size_density_and_range():
    ratings = paper_matrix(0)
    assert ratings.mask.shape == (300, 200)
    assert len(ratings) == 6000
    assert (ratings.scale.low, ratings.scale.high, ratings.scale.step) == (1, 5, 0.01)
    assert ratings.scale.n_levels == 401


def test_minmax_maps_the_least_and_greatest_entry_of_the_whole_matrix_to_one_and_five():
    ratings, R = paper_matrix(4), full_matrix(4)
    expected = 1 + 4 * (R - R.min()) / (R.max() - R.min())
    np.testing.assert_allclose(ratings.values, expected[ratings.mask.users, ratings.mask.items], atol=0.005 + 1e-9)
    everything = paper_matrix(4, density=1.0)
    assert (everything.values.min(), everything.values.max()) == (1, 5)
    assert 0.3 < everything.values.std() < 0.5


def test_standardise_is_three_plus_the_standard_score_clipped():
    ratings, R = paper_matrix(4, normalisation="standardise"), full_matrix(4)
    expected = np.clip(3 + (R - R.mean()) / R.std(), 1, 5)
    np.testing.assert_allclose(ratings.values, expected[ratings.mask.users, ratings.mask.items], atol=0.005 + 1e-9)
    assert 0.85 < ratings.values.std() < 1


def test_the_paper_matrix_has_the_stated_rank_and_noise():
    values, R = paper_matrix(1, density=1.0, step=0.004).values.reshape(300, 200), full_matrix(1)
    energy = np.linalg.eigvalsh(values.T @ values)[::-1]
    assert energy[8] > 25 * energy[9]  # rank 8, and the constant of the normalisation
    noise = np.sqrt(energy[9:].sum() / (300 - 9) / (200 - 9)) / (4 / np.ptp(R))
    assert noise == pytest.approx(0.1, rel=0.03)


def test_observed_cells_are_uniform():
    counts = sum(np.bincount(paper_matrix(seed).mask.items, minlength=200) for seed in range(20))
    expected = 20 * 30
    chi_square = ((counts - expected) ** 2 / (expected * 0.9)).sum()
    assert 120 < chi_square < 300  # 199 degrees of freedom


@pytest.mark.parametrize("generator", [paper_matrix, realistic])
def test_a_seed_fixes_the_table(generator):
    assert generator(7).to_arrow() == generator(7).to_arrow()
    assert generator(7).to_arrow() != generator(8).to_arrow()


@pytest.fixture(scope="module")
def people():
    return realistic(0, n_users=1500, n_items=800, n_ratings=100_000, timestamps=True)


def test_realistic_ratings_are_whole_stars_spread_as_in_movielens(people):
    assert people.scale.n_levels == 5
    assert 3.4 < people.values.mean() < 3.65
    assert 1.05 < people.values.std() < 1.2
    np.testing.assert_allclose(np.bincount(people.levels) / len(people), [0.06, 0.11, 0.27, 0.34, 0.22], atol=0.03)


def test_realistic_has_the_exact_shape_and_every_user_rates(people):
    assert people.mask.shape == (1500, 800)
    assert len(people) == 100_000
    assert people.mask.user_counts.min() >= 1
    assert people.mask.user_counts.max() <= 400


@pytest.mark.parametrize("n_ratings", [10, 11, 35, 79, 80])
def test_realistic_counts_are_exact_from_one_each_to_all_cells(n_ratings):
    assert len(realistic(0, n_users=10, n_items=8, n_ratings=n_ratings)) == n_ratings


def test_popularity_and_activity_are_skewed(people):
    for counts in (people.mask.item_counts, people.mask.user_counts):
        busiest_tenth = np.sort(counts)[-len(counts) // 10 :].sum() / counts.sum()
        assert 0.25 < busiest_tenth < 0.7


def test_users_and_items_have_biases(people):
    for codes in (people.mask.users, people.mask.items):
        counts = np.maximum(np.bincount(codes), 1)
        means = np.bincount(codes, people.values) / counts
        explained = ((means[codes] - people.values.mean()) ** 2).mean() - people.values.var() * len(counts) / len(
            people
        )
        assert 0.1 < explained / people.values.var() < 0.4


def lift(ratings):
    """The correlation of ratings, less their item's mean, with the leading factors of the mask."""
    users, items = ratings.mask.users, ratings.mask.items
    weights = 1 / np.sqrt(ratings.mask.user_counts[users] * np.maximum(ratings.mask.item_counts, 1)[items])
    u, s, vt = svds(csr_array((weights, (users, items)), shape=ratings.mask.shape), k=7, rng=0)
    kept = np.argsort(s)[:-1]  # the first factor is popularity and activity
    affinity = np.einsum("rk,k,kr->r", u[users][:, kept], s[kept], vt[kept][:, items])
    means = np.bincount(items, ratings.values, ratings.mask.n_items) / np.maximum(ratings.mask.item_counts, 1)
    return np.corrcoef(affinity, ratings.values - means[items])[0, 1]


def test_who_rated_what_tells_taste_and_without_selection_it_does_not():
    blind = realistic(0, n_users=600, n_items=400, n_ratings=30_000, selection=0)
    telling = realistic(0, n_users=600, n_items=400, n_ratings=30_000)
    assert lift(telling) > 0.08
    assert abs(lift(blind)) < 0.03


def test_times_are_whole_seconds_within_a_few_years_and_optional(people):
    assert people.mask.timestamps.dtype == np.int64
    assert 2 * 365 < np.ptp(people.mask.timestamps) / 86_400 < 5 * 365
    assert realistic(0).mask.timestamps is None


def test_room_is_taken_for_some_people_at_a_time_and_not_for_every_cell(monkeypatch):
    """Four times as many people and cells, with as many ratings, take hardly more room."""
    monkeypatch.setattr("dpsr.data.synthetic._CELLS_AT_A_TIME", 1 << 16)
    peaks = []
    for n_users in (400, 1_600):
        tracemalloc.start()
        try:
            realistic(0, n_users=n_users, n_items=500, n_ratings=4_000)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def test_the_sample_of_the_demo_is_always_the_same():
    sample = demo_ratings()
    assert (sample.mask.shape, len(sample)) == ((1000, 500), 60_000)
    assert sample.to_arrow() == demo_ratings().to_arrow()


@pytest.mark.parametrize("wrong", [{"n_users": 1}, {"n_items": 1}, {"n_ratings": 10}, {"n_ratings": 10**9}])
def test_impossible_shapes_are_refused(wrong):
    with pytest.raises(ParameterError, match=r"(at least 2 users|Choose another number)"):
        realistic(0, **wrong)


def test_impossible_settings_of_the_paper_matrix_are_refused():
    with pytest.raises(ParameterError, match="density"):
        paper_matrix(0, density=1.5)
    with pytest.raises(ParameterError, match="found 'softmax'"):
        paper_matrix(0, normalisation="softmax")
