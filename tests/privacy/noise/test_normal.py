"""The sampler of rounded normal noise: its distribution against exact probabilities, and every rare path by hand."""

from itertools import pairwise
from math import isqrt

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from dpsr.errors import PrivacyError
from dpsr.privacy import noise as exact
from dpsr.privacy.noise import (
    NoiseSource,
    _below,
    _coin,
    _draw_normals,
    _keep,
    _round_exactly,
    _round_many,
    rounded_normal,
)

DRAWS = 200_000
SURELY = 1e-9
"""A p-value that the system's own noise goes below once in a billion tests."""


def probabilities(variance, reach):
    """P[N = n] for |n| <= reach, and both tails, exactly enough."""
    sigma = mpmath.sqrt(variance)
    edges = [mpmath.ncdf((n - mpmath.mpf(0.5)) / sigma) for n in range(-reach, reach + 2)]
    cells = [edges[0], *(b - a for a, b in pairwise(edges)), 1 - edges[-1]]
    return np.array([float(cell) for cell in cells])


def misfit(draws, variance, reach):
    """The p-value of Pearson's statistic against the exact probabilities."""
    clipped = np.clip(draws, -reach - 1, reach + 1) + reach + 1
    counts = np.bincount(clipped, minlength=2 * reach + 3)
    expected = probabilities(variance, reach) * len(draws)
    enough = expected > 8
    return chi2.sf(((counts - expected)[enough] ** 2 / expected[enough]).sum(), enough.sum() - 1)


@pytest.mark.parametrize("variance", [1, 2, 40, 900])
def test_frequencies_fit_the_rounded_normal(variance):
    draws = rounded_normal(variance, DRAWS, NoiseSource.system())
    assert misfit(draws, variance, 4 * isqrt(variance) + 1) > SURELY


@pytest.mark.parametrize("variance", [40, 900])
def test_five_per_cent_less_deviation_would_be_noticed(variance):
    draws = rounded_normal(variance, DRAWS, NoiseSource.system())
    assert misfit(draws, round(variance * 1.1025), 4 * isqrt(variance)) < SURELY


def test_wide_noise_is_normal_to_the_last_digit():
    """Residues of wide noise are uniform: rounding, doubles and their borders leave no trace."""
    draws = rounded_normal(10**18, DRAWS, NoiseSource.system())
    z = np.sort(draws) / 1e9
    grid = np.arange(1, DRAWS + 1) / DRAWS
    from scipy.special import ndtr

    assert np.abs(ndtr(z) - grid).max() * np.sqrt(DRAWS) < 3.3, "2 exp(-2 * 3.3^2): once in a billion"
    counts = np.bincount(draws % 16, minlength=16)
    assert chi2.sf(((counts - DRAWS / 16) ** 2 / (DRAWS / 16)).sum(), 15) > SURELY


def test_the_same_stream_gives_the_same_noise_and_another_does_not():
    a, b, c = (rounded_normal(50, 100, NoiseSource.seeded(s)) for s in (1, 1, 2))
    assert (a == b).all()
    assert (a != c).any()


def test_noise_does_not_depend_on_how_many_draws_are_asked_for_at_a_time():
    few, many = (rounded_normal(50, n, NoiseSource.seeded(3)) for n in (1_000, 70_000))
    assert (few == many[:1_000]).all()


@pytest.mark.parametrize("variance", [0, -1, 1 << 104])
def test_no_noise_and_noise_beyond_the_integers_are_refused(variance):
    with pytest.raises(PrivacyError, match="variance of normal noise"):
        rounded_normal(variance, 1, NoiseSource.system())


def random_words(n, seed=0):
    return np.frombuffer(np.random.default_rng(seed).bytes(8 * n), dtype=np.uint64).copy()  # as a stream hands them out


def frequency(flip, n=100_000):
    words, at, hits, flips = random_words(40 * n), 0, 0, 0
    while flips < n:
        coin, at = flip(words, at)
        hits, flips = hits + (coin == 1), flips + 1
    return hits / n


def test_a_coin_falls_on_one_with_probability_exp_of_minus_a_half():
    assert frequency(_coin) == pytest.approx(np.exp(-0.5), abs=0.008)


@pytest.mark.parametrize(("k", "x"), [(0, 0.3), (0, 0.9), (2, 0.5), (5, 0.99)])
def test_a_fraction_is_kept_with_its_probability(k, x):
    part = (np.uint64(int(x * 2**64)), np.uint64(0), False)

    def flip(words, at):
        coin, _, at = _keep(words, at, k, part)
        return coin, at

    assert frequency(flip, 40_000) == pytest.approx(np.exp(-x * (2 * k + x) / (2 * k + 2)), abs=0.013)


def test_deviates_that_agree_in_64_bits_are_told_apart_by_64_more_which_they_keep():
    words = np.array([7, 9, 1], dtype=np.uint64)
    same = (np.uint64(5), np.uint64(0), False)
    below, u, v, at = _below(words, 0, same, same)
    assert (below, u, v, at) == (True, (5, 7, True), (5, 9, True), 2)
    again, u, _, at = _below(words, 2, u, same)
    assert (again, u, at) == (False, (5, 7, True), 3)
    coin, x, at = _keep(np.array([5, 9, 7], dtype=np.uint64), 0, 0, same)
    assert (coin, x, at) == (1, (5, 7, True), 3), "the fraction that is kept has the bits by which it was compared"


def test_words_that_run_out_in_the_middle_of_a_draw_are_read_again():
    words = random_words(4000)
    whole = [np.empty(20, kind) for kind in (np.int8, np.int64, np.uint64, np.uint64, np.bool_)]
    made, used = _draw_normals(words, *whole)
    assert made == 20
    for cut in range(used):
        parts = [np.empty(20, array.dtype) for array in whole]
        few, at = _draw_normals(words[:cut], *parts)
        assert at <= cut
        assert all((p[:few] == w[:few]).all() for p, w in zip(parts, whole, strict=True))


class Spare:
    def __init__(self, *words):
        self.words = list(words)

    def word(self):
        return self.words.pop(0)


def test_rounding_reads_on_where_the_bits_it_has_leave_the_integer_open():
    """sigma = 1: z = 0.5 - 2^-64 to 0.5 rounds to 0 or to 1; more bits decide."""
    half = 1 << 63
    assert _round_exactly(1, 0, [half - 1], Spare((1 << 64) - 2)) == 0
    assert _round_exactly(1, 0, [half], Spare()) == 1
    assert _round_exactly(1, 0, [half - 1, (1 << 64) - 1], Spare(0)) == 0
    assert _round_exactly(3, 1, [0], Spare(0, 1)) == 2, "sqrt 3 = 1.73"


@pytest.mark.parametrize("variance", [3 << 54, (3 << 70) + 1, (3 << 100) + 7])
def test_words_that_are_read_on_decide_and_are_none_of_those_that_were_drawn_with(variance, monkeypatch):
    """Taken for zeros, or read where draws begin, they would make some whole numbers likelier than others."""
    x, ones = straddling(variance, 5), (1 << 64) - 1
    assert [_round_exactly(variance, 0, [x], Spare(end, end, end)) for end in (0, ones)] == [5, 6]
    streams, noise = [], NoiseSource.seeded(3)

    class Noted(exact._Spare):
        def __init__(self, stream):
            streams.append(stream)
            super().__init__(stream)

    monkeypatch.setattr(exact, "_Spare", Noted)
    rounded_normal(variance, 10, noise)
    drawn = [NoiseSource.seeded(3).stream().words(1_000), noise.stream().words(1_000)]
    assert not np.isin(streams[0].words(1_000), np.concatenate(drawn)).any()


@pytest.mark.parametrize(("chunk", "words_per_draw"), [(7, 3), (1, 1), (64, 2)])
def test_the_draws_are_those_of_one_long_read_however_it_is_cut(chunk, words_per_draw, monkeypatch):
    """Also where a draw is longer than the words at hand: it begins again with the same ones."""
    whole = rounded_normal(10**12, 500, NoiseSource.seeded(8))
    monkeypatch.setattr(exact, "_NORMAL_CHUNK", chunk)
    monkeypatch.setattr(exact, "_NORMAL_WORDS", words_per_draw)
    assert (rounded_normal(10**12, 500, NoiseSource.seeded(8)) == whole).all()


def test_floating_point_rounds_only_what_whole_numbers_round_alike():
    rng = np.random.default_rng(4)
    for variance in (3, 10**6 + 1, 10**15 + 7, (1 << 79) + 1):
        whole, first = rng.integers(0, 6, 4_000), random_words(4_000, 5)
        out, signs = np.empty(4_000, np.int64), np.ones(4_000, np.int8)
        unsure = _round_many(float(variance) ** 0.5, signs, whole, first, out)
        exact = np.array(
            [_round_exactly(variance, int(k), [int(x)], Spare(0, 0, 0)) for k, x in zip(whole, first, strict=True)]
        )
        assert (out == exact)[~unsure].all()
        if variance < 10**16:
            assert unsure.mean() < 0.01


def straddling(variance, h):
    """The 64 bits of x, for which sigma x is below h + 1/2 if all further bits are zeros and above if all are ones."""
    return isqrt((2 * h + 1) ** 2 * (1 << 126) // variance)


@pytest.mark.parametrize("variance", [3, 10**12 + 39, 3 << 54, (3 << 70) + 1, (3 << 100) + 7])
def test_floating_point_is_sure_only_where_no_further_bit_of_the_deviate_could_decide(variance):
    """Near zero, where a number has few significant bits, those that were not read yet are what decides."""
    sigma = float(variance) ** 0.5
    first = np.array([straddling(variance, h) for h in range(min(2_000, int(sigma)))], dtype=np.uint64)
    out, ends = np.empty(len(first), np.int64), (0, (1 << 64) - 1)
    unsure = _round_many(sigma, np.ones(len(first), np.int8), np.zeros(len(first), np.int64), first, out)
    open_ = [len({_round_exactly(variance, 0, [int(x), end], Spare(end)) for end in ends}) == 2 for x in first]
    assert np.mean(open_) > 0.99, "the examples are those where further bits decide"
    assert unsure[open_].all()
