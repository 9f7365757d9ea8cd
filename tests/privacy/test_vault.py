"""The vault: answers with prices, measured on real neighbours, and no overspending."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsr import Ratings, Scale
from dpsr.errors import PrivacyError
from dpsr.privacy import NoiseSource, Vault, optimal_channel, randomised_response, vault
from dpsr.privacy.vault import VALUE_GRID, WEIGHT_GRID, Group
from dpsr.types.exact import epsilon_of

STARS = Scale(1, 5)


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    cells = rng.choice(60 * 40, size=900, replace=False)
    return Ratings.from_arrays(cells // 40, cells % 40, rng.integers(1, 6, 900), scale=STARS)


@pytest.fixture
def silent(monkeypatch):
    """No noise: what is left is the statistic itself, so that its sensitivity can be measured."""
    monkeypatch.setattr(vault, "discrete_laplace", lambda scale, n, noise: np.zeros(n, dtype=np.int64))


def neighbour(ratings, row, level):
    levels = ratings.levels.copy()
    levels[row] = level
    return replace(ratings, levels=levels)


def groups(ratings, rng):
    w = rng.random(len(ratings))
    return (
        Group(ratings.mask.items, w, ratings.mask.n_items),
        Group(ratings.mask.users, 1 - w, ratings.mask.n_users),
    )


def test_window_sums_move_by_at_most_the_sensitivity_when_one_rating_changes(ratings, silent):
    """Measured on real neighbours; the largest change comes close, so the bound is not idle."""
    rng = np.random.default_rng(1)
    centre, w = rng.uniform(1, 5, len(ratings)), groups(ratings, rng)
    unit = STARS.width / 2 / VALUE_GRID / WEIGHT_GRID
    seen = []
    for _ in range(300):
        row, level = int(rng.integers(len(ratings))), int(rng.integers(5))
        a, b = (Vault(r, 1.0, noise=NoiseSource.system()) for r in (ratings, neighbour(ratings, row, level)))
        before, after = (v.window_sums(centre, 0.8, w, epsilon=0.5) for v in (a, b))
        change = sum(np.abs(x.values - y.values).sum() for x, y in zip(before, after, strict=True)) / unit
        limit = a.certificate().parts[0].sensitivity
        assert change <= limit * (1 + 1e-9)
        seen.append(change / limit)
    assert max(seen) > 0.95


def test_the_extremal_rating_attains_the_sensitivity(ratings, silent):
    """A centre in the middle of the scale, full weight, from one end to the other."""
    w = (Group(ratings.mask.items, np.ones(len(ratings)), ratings.mask.n_items),)
    low, high = neighbour(ratings, 3, 0), neighbour(ratings, 3, 4)
    a, b = Vault(low, 1.0, noise=NoiseSource.system()), Vault(high, 1.0, noise=NoiseSource.system())
    (x,), (y,) = (v.window_sums(np.full(len(ratings), 3.0), 1.5, w, epsilon=0.5) for v in (a, b))
    unit = STARS.width / 2 / VALUE_GRID / WEIGHT_GRID
    assert np.abs(x.values - y.values).sum() / unit == pytest.approx(a.certificate().parts[0].sensitivity)


def test_a_histogram_moves_by_two_when_one_rating_changes(ratings, silent):
    bins = np.array([0, 0, 1, 2, 2])
    for level in range(5):
        a, b = (Vault(r, 1.0, noise=NoiseSource.system()) for r in (ratings, neighbour(ratings, 7, level)))
        change = np.abs(a.histogram(bins, epsilon=0.1).values - b.histogram(bins, epsilon=0.1).values).sum()
        assert change in (0, 2)
        assert a.certificate().parts[0].sensitivity == 2


def test_without_noise_the_sums_are_the_sums(ratings, silent):
    rng = np.random.default_rng(2)
    centre, w = rng.uniform(1, 5, len(ratings)), groups(ratings, rng)
    items, users = Vault(ratings, 1.0, noise=NoiseSource.system()).window_sums(centre, 1.2, w, epsilon=0.5)
    plain = np.clip(ratings.values - centre, -1.2, 1.2)
    for answer, group in ((items, w[0]), (users, w[1])):
        fixed = np.floor(group.weights * WEIGHT_GRID) / WEIGHT_GRID
        np.testing.assert_allclose(answer.values, np.bincount(group.labels, fixed * plain, group.size), atol=0.02)


def test_the_noise_has_the_variance_it_states(ratings):
    w = (Group(np.zeros(len(ratings), dtype=np.int64), np.ones(len(ratings)), 20_000),)
    v = Vault(ratings, 1.0, noise=NoiseSource.seeded(0))
    (answer,) = v.window_sums(np.full(len(ratings), 3.0), 2.0, w, epsilon=0.7)
    assert answer.values[1:].var() == pytest.approx(answer.noise_variance, rel=0.05)


def test_every_price_can_be_recomputed_from_the_certificate(ratings):
    v = Vault(ratings, 2.0, noise=NoiseSource.system())
    v.histogram(np.arange(5), epsilon=0.1)
    v.window_sums(np.full(len(ratings), 3.0), 1.0, groups(ratings, np.random.default_rng(0)), epsilon=0.9)
    v.symbols([optimal_channel(STARS, 1.0, np.ones(5)), randomised_response(STARS, 0.8)], np.arange(len(ratings)) % 2)
    certificate = v.certificate()
    assert certificate.private
    assert certificate.epsilon <= 2.0
    for part in certificate.parts[:2]:
        assert Fraction(part.epsilon) >= Fraction(part.sensitivity) / Fraction(part.noise_scale)
    ratios = [epsilon_of(np.array(table, dtype=np.uint64)) for table in certificate.parts[2].tables]
    assert max(ratios) == certificate.parts[2].epsilon


def test_overspending_is_refused_before_anything_is_drawn(ratings):
    v = Vault(ratings, 1.0, noise=NoiseSource.system())
    v.histogram(np.arange(5), epsilon=0.3)
    with pytest.raises(PrivacyError, match=r"only 0\.7.* is left.*Nothing was drawn"):
        v.symbols([randomised_response(STARS, 0.8)], np.zeros(len(ratings), dtype=np.int64))
    assert len(v.certificate().parts) == 1
    v.symbols([randomised_response(STARS, v.left)], np.zeros(len(ratings), dtype=np.int64))
    assert v.certificate().epsilon <= 1.0


def test_each_rating_passes_through_the_channel_chosen_for_it(ratings):
    sure, coin = randomised_response(STARS, 20.0), randomised_response(STARS, 0.01)
    choice = np.arange(len(ratings)) % 2
    symbols = Vault(ratings, 20.0, noise=NoiseSource.seeded(0)).symbols([sure, coin], choice)
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
    assert public == {"mask", "scale", "epsilon", "delta"}


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("weight", [0.3125, 0.5, 0.6875])
def test_gaussian_noise_never_helps_sums_at_a_delta_worth_the_name(epsilon, weight):
    """Only a delta above about epsilon / 240 would; a delta worth the name is far below."""
    for share in (1 / 500, 1e-4, 1e-8):
        assert not vault.gaussian_is_better([weight, 1 - weight], epsilon, epsilon * share)
    assert vault.gaussian_is_better([0.5, 0.5], 0.01, 0.01 / 200)


def test_gaussian_noise_would_help_statistics_that_one_rating_moves_in_many_places():
    """The comparison is not idle: spread over 400 sums, the Gaussian wins."""
    assert vault.gaussian_is_better([1 / 400] * 400, 1.0, 1e-6)


def test_a_delta_is_accepted_and_the_stronger_promise_is_certified(ratings):
    v = Vault(ratings, 1.0, delta=1e-6, noise=NoiseSource.system())
    v.window_sums(np.full(len(ratings), 3.0), 1.0, groups(ratings, np.random.default_rng(0)), epsilon=0.9)
    assert v.certificate().delta == 0
