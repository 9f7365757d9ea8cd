"""Exact integer noise: the right law, the safe side, and no bias where random words run out."""

from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import chisquare, ks_2samp

from dpsr.privacy import noise as exact
from dpsr.privacy.noise import NoiseSource, discrete_laplace, laplace_scale

SCALES = [Fraction(2, 5), Fraction(3, 2), Fraction(7), Fraction(10_000, 3)]


def fit(draws, scale):
    """Chi-square p-value of integer draws against exp(-|z|/scale), normalised exactly, in up to 80 equal cells."""
    q = np.exp(-1 / float(scale))
    edge = max(2, int(4 * float(scale)))
    width = max(1, 2 * edge // 80)
    z = np.arange(-60 * edge, 60 * edge + 1)
    mass = (1 - q) / (1 + q) * q ** np.abs(z)
    cell = np.clip(z // width, -edge // width, edge // width)
    seen = np.clip(draws // width, -edge // width, edge // width)
    cells = np.unique(cell)
    expected = np.array([mass[cell == c].sum() for c in cells]) * len(draws)
    observed = np.array([(seen == c).sum() for c in cells])
    return chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_draws_follow_the_law(scale):
    assert fit(discrete_laplace(scale, 400_000, NoiseSource.seeded(1)), scale) > 1e-4


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_a_five_percent_error_of_the_scale_is_rejected(scale):
    assert fit(discrete_laplace(scale, 400_000, NoiseSource.seeded(1)), scale * Fraction(105, 100)) < 1e-9


def test_system_noise_follows_the_law_too():
    assert fit(discrete_laplace(Fraction(7), 100_000, NoiseSource.system()), Fraction(7)) > 1e-9


def test_draws_agree_with_the_independent_library():
    dp.enable_features("contrib")
    measurement = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=20.0)
    theirs = measurement([0] * 20_000)
    ours = discrete_laplace(Fraction(20), 20_000, NoiseSource.system())
    assert ks_2samp(ours, theirs).pvalue > 1e-9


@pytest.mark.parametrize("words_per_draw", [1, 3, 24])
def test_where_the_random_words_run_out_no_draw_is_favoured(words_per_draw, monkeypatch):
    """With one word a draw nearly every draw is cut short; throwing those away would make the noise too small."""
    monkeypatch.setattr(exact, "_LAPLACE_WORDS", words_per_draw)
    monkeypatch.setattr(exact, "_LAPLACE_CHUNK", 16)
    assert fit(discrete_laplace(Fraction(3), 60_000, NoiseSource.seeded(2)), Fraction(3)) > 1e-4


@pytest.fixture
def held(monkeypatch):
    """How many random words are looked at, at each turn."""
    turns, fill = [], exact._draw_laplaces

    def counted(out, words, t, s):
        turns.append(len(words))
        return fill(out, words, t, s)

    monkeypatch.setattr(exact, "_draw_laplaces", counted)
    return turns


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_work_grows_with_the_draws_and_memory_does_not(held, scale):
    """Words that a chunk had left over used to be carried along: time and memory grew with the square of the draws."""
    looked_at = []
    for n in (4 * exact._LAPLACE_CHUNK, 32 * exact._LAPLACE_CHUNK):
        held.clear()
        discrete_laplace(scale, n, NoiseSource.seeded(3))
        looked_at.append(sum(held))
        assert max(held) <= exact._LAPLACE_WORDS * exact._LAPLACE_CHUNK
    assert looked_at[1] == pytest.approx(8 * looked_at[0], rel=0.2)


@pytest.mark.parametrize(("words_per_draw", "chunk"), [(1, 1), (1, 7), (3, 64), (10, 1 << 14), (24, 1 << 14)])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_values_are_those_of_one_long_read_however_it_is_cut(scale, words_per_draw, chunk, monkeypatch):
    """The oracle: all words at once. Seeded experiments depend on it."""
    n = 3_000 if chunk < 64 else 40_000
    whole = np.empty(n, dtype=np.int64)
    words = NoiseSource.seeded(6).stream().words(40 * n)
    assert exact._draw_laplaces(whole, words, scale.numerator, scale.denominator)[0] == n
    monkeypatch.setattr(exact, "_LAPLACE_WORDS", words_per_draw)
    monkeypatch.setattr(exact, "_FEWEST_LAPLACE_WORDS", 1)
    monkeypatch.setattr(exact, "_LAPLACE_CHUNK", chunk)
    np.testing.assert_array_equal(discrete_laplace(scale, n, NoiseSource.seeded(6)), whole)


def test_seeded_draws_are_what_they_always_were():
    assert discrete_laplace(Fraction(7), 8, NoiseSource.seeded(5)).tolist() == [-15, -7, -1, 2, -11, -9, -5, 3]


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("sensitivity", [1, 4, 100, 123_457])
def test_the_scale_never_undershoots_and_hardly_overshoots(sensitivity, epsilon):
    scale = laplace_scale(sensitivity, epsilon)
    price = Fraction(sensitivity) / scale
    assert price <= Fraction(epsilon)
    assert price >= Fraction(epsilon) * (1 - Fraction(1, 10**6))


def test_neighbouring_statistics_differ_in_probability_by_exactly_their_price():
    """The extremal example: P[Z = z] / P[Z = z + D] = e^(D/scale) for every z >= 0."""
    scale, sensitivity = Fraction(5), 2
    draws = discrete_laplace(scale, 2_000_000, NoiseSource.seeded(4))
    for z in range(4):
        ratio = (draws == z).sum() / (draws == z + sensitivity).sum()
        assert np.log(ratio) == pytest.approx(sensitivity / float(scale), abs=0.02)


def test_noise_is_the_systems_unless_there_is_a_seed_and_zero_is_one():
    assert NoiseSource.of_seed(None).private
    assert NoiseSource.of_seed(None).identity != NoiseSource.of_seed(None).identity
    assert not NoiseSource.of_seed(0).private
    assert NoiseSource.of_seed(0).identity == NoiseSource.seeded(0).identity
