"""A channel samples exactly its table, and its price is the table's."""

import hashlib
import itertools

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.stats import chisquare

from dpsr import Scale
from dpsr.errors import PrivacyError
from dpsr.privacy.channels import Channel, calibrated_laplace, gaussian, laplace, randomised_response
from dpsr.privacy.channels.channel import BITS, _draw_tails, to_weights
from dpsr.privacy.noise import NoiseSource

STARS = Scale(1, 5)


def p_values(channel, table, n, noise):
    """One chi-square p-value per level: do the sampled symbols fit `table`? Rare symbols are pooled."""
    result = []
    for x in range(channel.scale.n_levels):
        symbols = channel.sample(np.full(n, x, dtype=np.uint16), noise)
        observed = np.bincount(symbols, minlength=table.shape[1]).astype(float)
        expected = table[x] * n
        common = expected >= 20
        o = [*observed[common], observed[~common].sum()]
        e = [*expected[common], expected[~common].sum()]
        if e[-1] < 1:
            o, e = o[:-1], e[:-1]
        e = np.array(e) * np.sum(o) / np.sum(e)
        result.append(chisquare(o, e).pvalue)
    return np.array(result)


@pytest.mark.parametrize("scale", [STARS, Scale(0, 1), Scale(0, 10), Scale(0, 100)], ids=str)
@pytest.mark.parametrize("build", [laplace, calibrated_laplace, randomised_response])
def test_sampled_frequencies_fit_the_table(scale, build):
    channel = build(scale, 1.5)
    n = 200_000 if scale.n_levels < 20 else 20_000
    assert p_values(channel, channel.probabilities, n, NoiseSource.seeded(7)).min() > 1e-4 / scale.n_levels


def test_a_five_percent_error_of_the_noise_scale_is_rejected():
    channel, wrong = laplace(STARS, 1.0), laplace(STARS, 1.05)
    assert p_values(channel, wrong.probabilities, 2_000_000, NoiseSource.seeded(7)).min() < 1e-9


def test_system_noise_fits_the_table_too():
    channel = randomised_response(STARS, 1.0)
    assert p_values(channel, channel.probabilities, 100_000, NoiseSource.system()).min() > 1e-9


@pytest.mark.parametrize("channel", [laplace(STARS, 0.7), laplace(Scale(0, 100), 3.0), gaussian(STARS, 1.0, 1e-5)])
def test_the_guide_table_decides_exactly_as_the_cumulative_integers_would(channel):
    """Every head is either decided for all tails, or looked up with its tail."""
    cumulative = np.cumsum(channel.weights, axis=1, dtype=np.uint64)
    rng = np.random.default_rng(1)
    levels = rng.integers(0, channel.scale.n_levels, 20_000).astype(np.uint16)
    symbols = channel.sample(levels, NoiseSource.seeded(3))
    twin = NoiseSource.seeded(3).stream()
    heads = twin.half_words(len(levels)).astype(np.uint64) << np.uint64(46)
    lowest = np.array([np.searchsorted(cumulative[x], h, side="right") for x, h in zip(levels, heads, strict=True)])
    top = np.uint64(2**46 - 1)
    highest = np.array(
        [np.searchsorted(cumulative[x], h | top, side="right") for x, h in zip(levels, heads, strict=True)]
    )
    assert (symbols >= lowest).all()
    assert (symbols <= highest).all()
    guide, shift = channel._sampler._guide
    open_rows = np.flatnonzero(guide[levels, (heads >> np.uint64(46)) >> np.uint64(shift)] == 0xFFFF)
    tails = twin.fork().words(len(levels))[open_rows] >> np.uint64(18)
    for i, tail in zip(open_rows, tails, strict=True):
        assert symbols[i] == np.searchsorted(cumulative[levels[i]], heads[i] | tail, side="right")


@pytest.mark.parametrize("channel", [laplace(STARS, 0.7), gaussian(STARS, 1.0, 1e-5)])
def test_a_word_at_the_end_of_a_symbol_is_the_first_of_the_next(channel):
    """Once in 2**62 draws; one off, and a symbol whose cell is empty would come out."""
    cumulative = np.cumsum(channel.weights, axis=1, dtype=np.uint64)
    for row, edges in enumerate(cumulative):
        words = np.concatenate([edges[:-1], edges - np.uint64(1)])
        words = words[words < edges[-1]]
        heads, tails = (words >> np.uint64(46)).astype(np.uint16), words & np.uint64(2**46 - 1)
        rows, symbols = np.full(len(words), row), np.zeros(len(words), dtype=np.uint16)
        _draw_tails(rows, heads, tails, np.arange(len(words)), cumulative, symbols)
        assert (symbols == np.searchsorted(edges, words, side="right")).all()
        assert (channel.weights[row, symbols] > 0).all()


def test_the_last_symbol_and_the_first_are_reachable_and_no_other_is_invented():
    channel = randomised_response(Scale(0, 1), 1.0)
    symbols = channel.sample(np.zeros(10_000, dtype=np.uint16), NoiseSource.seeded(0))
    assert set(symbols.tolist()) == {0, 1}


def test_an_empty_table_of_ratings_draws_nothing():
    assert len(laplace(STARS, 1.0).sample(np.zeros(0, dtype=np.uint16), NoiseSource.system())) == 0


def test_rows_sum_to_a_power_of_two_exactly():
    for channel in (laplace(STARS, 0.01), gaussian(STARS, 10.0, 1e-5), randomised_response(Scale(0, 100), 20.0)):
        assert all(sum(int(w) for w in row) == 2**BITS for row in channel.weights)


def test_a_table_whose_rows_do_not_sum_up_is_refused():
    weights = to_weights(np.array([[0.5, 0.5], [0.1, 0.9]]))
    weights[0, 0] += 1
    with pytest.raises(PrivacyError, match="must sum to"):
        Channel(Scale(0, 1), np.array([0.0, 1.0]), weights, "broken", {})


def test_a_table_of_the_wrong_shape_is_refused():
    with pytest.raises(PrivacyError, match="one row per level"):
        Channel(STARS, np.array([0.0, 1.0]), to_weights(np.full((2, 2), 0.5)), "broken", {})


def test_the_posterior_is_bayes_rule():
    channel = randomised_response(Scale(0, 1), np.log(3))  # truth with probability 3/4
    posterior = channel.posterior([0.8, 0.2])
    assert posterior[0, 0] == pytest.approx(0.8 * 0.75 / (0.8 * 0.75 + 0.2 * 0.25), abs=1e-8)
    np.testing.assert_allclose(posterior.sum(axis=0), 1)


def test_posterior_odds_move_by_at_most_e_to_the_epsilon():
    channel, prior = laplace(STARS, 1.0), np.full(5, 0.2)
    posterior = channel.posterior(prior)
    assert (posterior.max(axis=0) / posterior.min(axis=0)).max() <= np.exp(1.0)


def test_expected_error_is_what_sampling_shows_and_the_posterior_mean_is_best():
    channel, prior = laplace(STARS, 2.0), np.array([0.05, 0.1, 0.25, 0.4, 0.2])
    rng = np.random.default_rng(0)
    levels = rng.choice(5, p=prior, size=400_000).astype(np.uint16)
    symbols = channel.sample(levels, NoiseSource.seeded(1))
    shown = np.sqrt(np.mean((channel.outputs[symbols] - STARS.values[levels]) ** 2))
    assert channel.expected_error(prior) == pytest.approx(shown, rel=5e-3)
    best = STARS.values @ channel.posterior(prior)
    learned = np.sqrt(np.mean((best[symbols] - STARS.values[levels]) ** 2))
    assert channel.expected_error(prior, guess="posterior") == pytest.approx(learned, rel=5e-3)
    assert channel.expected_error(prior, guess="posterior") < channel.expected_error(prior)


def test_seeded_noise_is_reproducible_and_says_it_is_not_private():
    a, b = NoiseSource.seeded(5), NoiseSource.seeded(5)
    assert (a.stream().words(10) == b.stream().words(10)).all()
    assert not a.private
    assert NoiseSource.system().private
    assert "5" not in repr(a)
    assert (NoiseSource.system().stream().words(4) != NoiseSource.system().stream().words(4)).any()


def test_a_stream_reads_the_same_at_any_place_and_no_two_streams_agree():
    noise = NoiseSource.seeded(5)
    one, two = noise.stream(), noise.stream()
    whole = one.words(1000)
    for start, n in ((0, 1), (3, 10), (17, 983), (999, 1)):
        assert (one.words(n, start) == whole[start : start + n]).all()
    halves = one.half_words(4000)
    assert (one.half_words(7, 333) == halves[333:340]).all()
    for other in (two, one.fork(), NoiseSource.seeded(6).stream()):
        assert (other.words(1000) != whole).mean() > 0.99


def test_no_question_reads_what_belongs_to_another():
    """Nor the second stream of another: tails of one question would be heads of the next."""
    noise = NoiseSource.seeded(5)
    streams = [noise.stream() for _ in range(20)]
    words = np.concatenate([one.words(50) for stream in streams for one in (stream, stream.fork())])
    assert len(np.unique(words)) == len(words)


def test_all_of_the_key_is_the_systems_and_the_name_of_draws_shows_none_of_it():
    keys = np.array([list(NoiseSource.system()._key) for _ in range(40)])
    assert keys.shape == (40, 32)
    assert (np.sort(keys, axis=0)[0] != np.sort(keys, axis=0)[-1]).all(), "a byte that is always the same"
    noise = NoiseSource.seeded(5)
    key, name = noise._key.hex(), noise.identity
    assert len(name) == 32
    assert not {key[at : at + 6] for at in range(59)} & {name[at : at + 6] for at in range(27)}
    noise.stream()
    assert noise.identity != name


def test_noise_is_the_counter_mode_of_the_standard_cipher():
    """Oracle: AES-256 of (stream number, block number), written out by the cipher's plainest mode."""
    key = hashlib.sha256(b"dpsr experiment 5").digest()
    plain = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    blocks = b"".join((1).to_bytes(8, "big") + number.to_bytes(8, "big") for number in range(8))
    assert (NoiseSource.seeded(5).stream().words(16) == np.frombuffer(plain.update(blocks), dtype=np.uint64)).all()


def test_a_rating_gets_the_same_symbol_however_the_work_is_cut():
    channel = laplace(STARS, 0.7)
    levels = np.random.default_rng(1).integers(0, 5, 200_001).astype(np.uint16)
    stream = NoiseSource.system().stream()
    whole = channel.draw(levels, stream)
    cuts = [0, 1, 65_537, 65_600, 199_999, 200_001]
    pieces = [channel.draw(levels[a:b], stream, a) for a, b in itertools.pairwise(cuts)]
    assert (np.concatenate(pieces) == whole).all()
    assert (channel.draw(levels[1:], stream) != whole[1:]).any(), "the place matters"
