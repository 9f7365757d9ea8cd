"""What is left to be chosen follows from released readings and the public mask."""

import numpy as np

from dpsr.release.personalise import choice as module
from dpsr.release.personalise.choice import KERNEL, SLOPE_SPREAD, choose
from dpsr.release.personalise.mask_kernel import mask_kernel
from dpsr.release.personalise.posterior import Choice
from dpsr.release.personalise.released_side import ReleasedSide
from dpsr.types import NoisyRatings


def chosen(fitted, noisy=None, strength=None):
    kernel, release = mask_kernel(fitted.release.mask), fitted.release
    side = ReleasedSide(release.model, release.noisy if noisy is None else noisy, kernel.features)
    return choose(side, release.mask, kernel.strength if strength is None else strength), side


def test_without_readings_the_strength_of_the_mask_decides(sums_only):
    found, side = chosen(sums_only, strength=0.5)
    assert found == Choice(KERNEL * side.prior.variance * 0.5, SLOPE_SPREAD, family=False)
    assert chosen(sums_only, strength=0.01)[0] == Choice(0.0, 0.0, family=False)


def test_without_structure_readings_do_not_bring_the_kernel_back(with_readings):
    assert chosen(with_readings, strength=0.0)[0].tau == 0


def test_readings_without_any_taste_in_them_switch_off_what_they_can(with_readings):
    """Readings that are the released means themselves and pure noise: nothing more complicated is worth it."""
    noisy, mask = with_readings.release.noisy, with_readings.release.mask
    means = with_readings.release.model.predict(mask.users, mask.items)
    noise = np.random.default_rng(0).normal(size=len(means)) / np.sqrt(noisy.weights)
    plain = NoisyRatings((means + noise).astype(np.float32), noisy.weights)
    found, _ = chosen(with_readings, plain)
    assert not found.family
    assert found.factors == 0.5


def test_a_fifth_is_held_out_and_the_same_one_every_time(with_readings):
    people = module._some_people(with_readings.release.mask)
    fifth = module.random_folds(people)
    np.testing.assert_allclose(np.bincount(fifth.astype(int)) / len(fifth), 0.2, atol=0.02)
    np.testing.assert_array_equal(fifth, module.random_folds(people))


def test_on_large_sets_people_evenly_spread_decide(with_readings, monkeypatch):
    mask = with_readings.release.mask
    monkeypatch.setattr(module, "ENOUGH", mask.n_ratings // 3)
    some = module._some_people(mask)
    np.testing.assert_array_equal(some.users, np.arange(0, mask.n_users, 3))
    np.testing.assert_array_equal(mask.users[some.places], some.users[some.rows])
    np.testing.assert_array_equal(mask.items[some.places], some.items)
