"""Channel symbols as pseudo-observations: Bayes by loops, the score by differences, and the two extreme channels."""

import numpy as np
import pytest

from dpsr.engine import Block
from dpsr.value.levels import GRID, tabulate
from dpsr.value.sweep import Reader, Tally

RESIDUAL = 0.13


class Symbols:
    """Symbols of some channels, read at given means."""

    def __init__(self, choice, symbol, tables):
        n = len(choice)
        columns = {"choice": choice.astype(np.uint8), "symbol": symbol.astype(np.uint16)}
        self.block = Block(0, 0, np.array([0, n]), np.zeros(n, dtype=np.int32), 1, columns)
        self.tables = dict(enumerate(tables))

    def read(self, family, m, residual):
        return Reader.of(self.tables, family).read(self.block, m, residual)


def family_of(n, seed=0):
    return tabulate(np.linspace(-1, 1, n), np.random.default_rng(seed).normal(0, 0.4, n), -1.0)


def channel_of(n, s, seed):
    table = np.random.default_rng(seed).gamma(0.7, size=(n, s)) + 0.02
    return table / table.sum(axis=1, keepdims=True)


def bayes(family, table, g):
    """Oracle: P[s], E[y | s] for every symbol at grid mean g, and the share of variance the symbol explains."""
    chance, guess = [], []
    for s in range(table.shape[1]):
        joint = [family.table[g, x] * table[x, s] for x in range(len(family.y))]
        chance.append(sum(joint))
        guess.append(sum(p * y for p, y in zip(joint, family.y, strict=True)) / sum(joint))
    explained = sum(c * (r - family.means[g]) ** 2 for c, r in zip(chance, guess, strict=True)) / family.variance[g]
    return np.array(chance), np.array(guess), explained


def every_symbol_at_every_mean(tables, family):
    cells = [(c, s, g) for c, t in enumerate(tables) for s in range(t.shape[1]) for g in range(GRID)]
    choice, symbol, g = (np.array(column) for column in zip(*cells, strict=True))
    return Symbols(choice, symbol.astype(np.uint16), tables), family.means[g], cells


@pytest.mark.parametrize("n", [2, 5, 21])
def test_readings_are_bayes_by_loops(n):
    """Two channels with different numbers of symbols, every symbol at every tabulated mean."""
    family, tables = family_of(n), (channel_of(n, 3, 1), channel_of(n, 6, 2))
    symbols, m, cells = every_symbol_at_every_mean(tables, family)
    z, w = symbols.read(family, m, RESIDUAL)
    for e, (c, s, g) in enumerate(cells):
        _, guess, rho = bayes(family, tables[c], g)
        expected = 1 / (RESIDUAL + family.variance[g] * (1 / rho - 1)) if n == 2 else rho / RESIDUAL
        assert w[e] == pytest.approx(expected, rel=1e-6)
        assert z[e] == pytest.approx(m[e] + (guess[s] - m[e]) / rho, abs=1e-6)


def test_between_the_tabulated_means_guess_and_share_are_interpolated():
    family, table = family_of(5), channel_of(5, 4, 3)
    f, g = 0.3, 33
    m = family.means[g] + f * family.spacing
    (_, low, rho_low), (_, high, rho_high) = bayes(family, table, g), bayes(family, table, g + 1)
    for s in range(4):
        z, w = Symbols(np.array([0]), np.array([s]), (table,)).read(family, np.array([m]), RESIDUAL)
        rho = (1 - f) * rho_low + f * rho_high
        assert w[0] == pytest.approx(rho / RESIDUAL)
        assert z[0] == pytest.approx(m + ((1 - f) * low[s] + f * high[s] - m) / rho)


@pytest.mark.parametrize("n", [2, 5, 21, 101])
def test_a_channel_without_noise_gives_the_rating_itself_with_full_weight(n):
    family = family_of(n)
    levels = np.arange(n).repeat(3)
    m = np.tile([-0.6, 0.013, 0.71], n)
    symbols = Symbols(np.zeros(3 * n, dtype=np.int64), levels, (np.eye(n),))
    z, w = symbols.read(family, m, RESIDUAL)
    np.testing.assert_allclose(z, family.y[levels], atol=1e-6)
    np.testing.assert_allclose(w, 1 / RESIDUAL, rtol=1e-6)


def test_a_channel_that_says_nothing_weighs_nothing():
    family = family_of(5)
    symbols = Symbols(np.zeros(8, dtype=np.int64), np.arange(8) % 2, (np.full((5, 2), 0.5),))
    m = np.linspace(-0.9, 0.9, 8)
    z, w = symbols.read(family, m, RESIDUAL)
    assert (w * RESIDUAL <= 1e-5).all()
    np.testing.assert_allclose(w * (z - m), 0, atol=1e-6)


def test_the_weighted_reading_is_the_score_of_the_symbol():
    """d/dm log P[s | m] = (E[y | s] - m) / V: five-point differences, any channel."""
    family, table = family_of(5), channel_of(5, 4, 4)
    log_chance = np.log(family.table @ table)
    for g in range(12, GRID - 12, 4):
        slope = (log_chance[g - 2] - 8 * log_chance[g - 1] + 8 * log_chance[g + 1] - log_chance[g + 2]) / (
            12 * family.spacing
        )
        v = family.variance[g]
        symbols = Symbols(np.zeros(4, dtype=np.int64), np.arange(4), (table,))
        z, w = symbols.read(family, np.full(4, family.means[g]), v)
        np.testing.assert_allclose(w * (z - family.means[g]), slope, rtol=0.01, atol=0.01)


def test_readings_are_unbiased_at_the_true_mean_and_as_wide_as_their_weight_says():
    """Exact moments: E[z] = m and Var[z] = V / rho, summed over symbols."""
    family, table = family_of(5), channel_of(5, 4, 5)
    for g in range(0, GRID, 10):
        chance, _, rho = bayes(family, table, g)
        symbols = Symbols(np.zeros(4, dtype=np.int64), np.arange(4), (table,))
        z, _ = symbols.read(family, np.full(4, family.means[g]), RESIDUAL)
        assert chance @ z == pytest.approx(family.means[g], abs=1e-7)
        assert chance @ (z - family.means[g]) ** 2 == pytest.approx(family.variance[g] / rho, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_thumbs_weigh_the_same_whatever_is_believed_of_them(epsilon):
    """A channel that flips adds 4 e / (e - 1)^2, e = exp(epsilon), to the variance of a reading, at every mean.

    Weights that follow beliefs count readings that lowered them more: with 95 % up all means sank.
    """
    flip = 1 / (1 + np.exp(epsilon))
    table = np.array([[1 - flip, flip], [flip, 1 - flip]])
    symbols, m, _ = every_symbol_at_every_mean((table,), family_of(2))
    inside = np.abs(m) < 0.97
    _, w = symbols.read(family_of(2), m, RESIDUAL)
    np.testing.assert_allclose(w[inside], 1 / (RESIDUAL + 1 / np.sinh(epsilon / 2) ** 2), rtol=1e-3)


def test_means_outside_the_table_are_read_at_its_edge():
    family, table = family_of(5), channel_of(5, 4, 6)
    symbols = Symbols(np.zeros(2, dtype=np.int64), np.array([1, 1]), (table,))
    for outside, edge in ((-3.0, family.means[0]), (1.4, family.means[-1])):
        z, w = symbols.read(family, np.array([outside, edge]), RESIDUAL)
        assert z[0] == pytest.approx(z[1])
        assert w[0] == pytest.approx(w[1])


def tally_of(rho, left, *, scores=1.0, n=1000, before=0.3, variance=0.5):
    """Sums over ratings of one channel, whose means have no mean and leave so much of the variance."""
    w = rho / before
    return Tally(np.array([scores * n * w, n * w, 0.0, 0.0, 0.0, n * (variance - left), n * w, n * w**2]))


def test_without_noise_the_scores_alone_say_what_the_residual_is_and_with_much_noise_what_is_left():
    """Half a step in logs either way; the share of either is rho squared, and the rest."""
    clear, noisy = tally_of(1.0, 0.4, scores=1.21), tally_of(0.1, 0.4, scores=1.21)
    assert clear.residual(0.3, 0.5, 1000, bold=False) == pytest.approx(0.3 * 1.1)
    wanted = 0.3 * 1.1**0.01 * (0.4 / 0.3) ** 0.495
    assert noisy.residual(0.3, 0.5, 1000, bold=False) == pytest.approx(wanted)
    assert noisy.residual(0.3, 0.5, 1000, bold=True) == pytest.approx(0.3 * 1.1)


def test_what_is_left_counts_little_where_it_is_a_small_difference_and_never_halves_the_residual_twice():
    small = tally_of(0.5, 0.2, before=0.05).residual(0.05, 0.5, 1000, bold=False)
    assert small == pytest.approx(0.05 * 2 ** (0.75 * 0.2**2))
    gone = tally_of(0.001, -1.0).residual(0.3, 0.5, 1000, bold=False)
    assert gone == pytest.approx(0.3 * np.sqrt(0.5), rel=1e-4)


def test_before_items_are_known_the_residual_stays_as_it_is():
    assert Tally.none().residual(0.3, 0.5, 1000, bold=False) == 0.3
