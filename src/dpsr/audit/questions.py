"""Trials of every question to the vault, asked as a release asks it and in the corners where it is easiest to be wrong.

    narrow windows        one rating in the sums of its item and its user, windows off the centre: what is outside a
                          window must not be seen outside
    divided               one rating in divided sums and, if the division asks it, through a channel
    total                 one rating in the sum of all ratings
    contrasts             one rating in sums over all ratings with public signs
    several channels      one rating through a channel chosen in public, among channels with different symbols
    two blocks            two ratings at the same place of two blocks, many small blocks
    far apart             two ratings of one block, so far apart that their random bits are fetched one after the other

A claim is what the vault's own receipt states, or what was asked if that is less: a receipt for something else than was
drawn is a false claim.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Levels
from dpsr.audit.stage1 import ITEM_SHARE, Draw, in_sums_alone, paired
from dpsr.audit.trials import Labels, Trial, alone, among, as_table, one_by_one, one_rating
from dpsr.engine import BlockResult, MemoryTable
from dpsr.engine.contrasts import Contrasts
from dpsr.engine.incidence import GRID, Division, RowSums, Turns
from dpsr.engine.raw import LEVEL, RawTable
from dpsr.privacy.channels import Channel, optimal_channel, randomised_response
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import Vault
from dpsr.types import Mask, Scale

WINDOWS = ((0.0, 1 / 8), (0.25, 1 / 16), (0.6, 1 / 6), (0.9, 1 / 4))
"""Centre and half-width of windows, both as shares of the scale's width."""

SMALL_BLOCK = 1 << 9
_FAR = 1 << 18
"""Releases of the trial of one block: a quarter of them, and three quarters, are whole fetches of random bits."""

_SYMBOLS = 16
_EDGES = 9
_CLASSES = 100
"""Classes of users, and of items, in the trial of sums with signs."""

_CODES = (1, 4, 6)
"""Numbers of channels with gaps between them, as a pipeline has them."""

Ask = Callable[[Vault], object]


def window(name: str, scale: Scale, epsilon: float, place: float, share: float, runs: int = 1 << 17) -> Trial:
    """Sums over a window around the `place` of the scale, `share` of its width to either side.

    A rating outside counts as one at the window's edge. Were it not clipped, its two sums would move by more than their
    noise was made for, and the outermost bins would show it.
    """
    centre, half, item = scale.low + place * scale.width, share * scale.width, ITEM_SHARE

    def ask(vault: Vault) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        found = vault.divided_sums(centre, half, division=in_sums_alone(vault), epsilon=epsilon)
        return found[0].values, found[1].values

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        items, users = ask(Vault(alone(levels, scale), epsilon, noise=noise))
        return _bins(items, item * half) * (_EDGES + 1) + _bins(users, (1 - item) * half)

    claim = _receipt(scale, epsilon, ask)
    return Trial(name, claim, one_rating(scale.n_levels, most=3), observe, (_EDGES + 1) ** 2, runs)


def divided(name: str, scale: Scale, epsilon: float, runs: int = 1 << 17) -> Trial:
    """Sums that half of all ratings, by their places, spend everything on, and symbols of the others.

    Those weigh a quarter in the sums, and all weight lies on the item.

    A symbol of a rating that is not to be asked, or a full weight of one that is, shows more than either kind paid for.
    """
    channel = optimal_channel(scale, 0.75 * epsilon * (1 - 1e-9), np.ones(scale.n_levels))
    half, width = scale.width / 4, -(-channel.weights.shape[1] // _SYMBOLS)

    def ask(vault: Vault) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64], Labels]:
        division = Division.uniform(vault.census.shape, GRID, asked=GRID // 2, light=GRID // 4)
        items, _ = vault.divided_sums(scale.midpoint, half, division=division, epsilon=epsilon)
        vault.table.run(lambda block: BlockResult({"choice": np.zeros(len(block.items), np.uint8)}), writes=["choice"])
        vault.symbols({0: channel}, choice="choice", symbol="symbol")
        asked = np.concatenate([division.asks(block) for block in vault.table.scan()])
        return asked, items.values, _column(vault, "symbol")

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        asked, items, symbols = ask(Vault(alone(levels, scale), epsilon, noise=noise))
        return (asked * _SYMBOLS + symbols // width) * (_EDGES + 1) + _bins(items, half)

    claim = _receipt(scale, epsilon, ask)
    return Trial(name, claim, one_rating(scale.n_levels, most=3), observe, 2 * _SYMBOLS * (_EDGES + 1), runs)


def in_turns(name: str, scale: Scale, epsilon: float, runs: int = 1 << 16) -> Trial:
    """Symbols in two turns, of one rating each time: its place says in which of the two it is asked.

    A rating that is asked in both shows twice what it paid for.
    """
    channel, turns = optimal_channel(scale, epsilon, np.ones(scale.n_levels)), Turns((128, 128))
    width, budget = -(-channel.weights.shape[1] // _SYMBOLS), channel.epsilon

    def ask(vault: Vault) -> tuple[Labels, Labels]:
        vault.table.run(lambda block: BlockResult({"choice": np.zeros(len(block.items), np.uint8)}), writes=["choice"])
        for symbol in ("first", "second"):
            vault.symbols({0: channel}, choice="choice", symbol=symbol, turns=turns)
        return _column(vault, "first"), _column(vault, "second")

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        first, second = ask(Vault(as_table(levels, scale), budget, noise=noise))
        return first // width * _SYMBOLS + second // width

    return Trial(name, _receipt(scale, budget, ask), one_rating(scale.n_levels), observe, _SYMBOLS**2, runs)


def total(name: str, scale: Scale, epsilon: float, runs: int = 1 << 13) -> Trial:
    """The noisy sum of a table that has a single rating."""
    last, half = scale.n_levels - 1, scale.width / 2

    def ask(vault: Vault) -> float:
        return float(vault.total(scale.midpoint, epsilon=epsilon).values[0])

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        return _bins(np.array([ask(Vault(table, epsilon, noise=noise)) for table in one_by_one(levels, scale)]), half)

    return Trial(name, _receipt(scale, epsilon, ask), ((0,), (last,)), observe, _EDGES + 1, runs)


def contrasts(name: str, scale: Scale, epsilon: float, runs: int = 1 << 13) -> Trial:
    """Sums over all ratings with signs: each rating is alone in the sum of its user's and its item's class.

    All of its weight lies there. So one table releases as many data sets of one rating as there are pairs of classes.
    """
    last, half = scale.n_levels - 1, scale.width / 4

    def ask(vault: Vault) -> npt.NDArray[np.float64]:
        n_users, n_items = vault.census.shape
        division, own = Division.uniform((n_users, n_items), 0, pooled=GRID), np.arange(1, _CLASSES + 1, dtype=np.int8)
        classes = Contrasts(-own[:n_users], own[:n_items], _CLASSES)
        found = vault.divided_sums(scale.midpoint, half, division=division, epsilon=epsilon, contrasts=classes)
        return found[2].values.reshape(_CLASSES, _CLASSES)[:n_users, :n_items].ravel()

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        squares = (levels[start : start + _CLASSES**2] for start in range(0, len(levels), _CLASSES**2))
        tables = (np.resize(some, (-(-len(some) // _CLASSES), _CLASSES)) for some in squares)
        values = [ask(Vault(as_table(table, scale), epsilon, noise=noise)) for table in tables]
        return _bins(np.concatenate(values)[: len(levels)], half)

    return Trial(name, _receipt(scale, epsilon, ask), ((0,), (last,)), observe, _EDGES + 1, runs)


def sums_in_turns(name: str, scale: Scale, epsilon: float, runs: int = 1 << 17) -> Trial:
    """A rating's item has its sum in the first turn, its user in the second one, through another, narrower window."""
    half, item, late = scale.width / 4, ITEM_SHARE, scale.width / 8

    def ask(vault: Vault) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        asked, division = RowSums.all(vault.census), in_sums_alone(vault)
        first, then = RowSums(asked.items, ~asked.users), RowSums(~asked.items, asked.users)
        items, _ = vault.divided_sums(scale.midpoint, half, division=division, epsilon=epsilon, rows=first)
        _, users = vault.divided_sums(scale.low + late, late, division=division, epsilon=epsilon, rows=then)
        return items.values, users.values

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        items, users = ask(Vault(alone(levels, scale), epsilon, noise=noise))
        return _bins(items, item * half) * (_EDGES + 1) + _bins(users, (1 - item) * late)

    claim = _receipt(scale, epsilon, ask)
    return Trial(name, claim, one_rating(scale.n_levels, most=3), observe, (_EDGES + 1) ** 2, runs)


def several_channels(name: str, scale: Scale, epsilon: float, runs: int = 1 << 16) -> Trial:
    """One rating through one of three channels, which its place in the table chooses and everybody knows.

    They have different numbers of symbols, so that a channel chosen by anything else shows in symbols that it cannot
    give.
    """
    channels = dict(zip(_CODES, _different_channels(scale, epsilon), strict=True))
    width = -(-max(channel.weights.shape[1] for channel in channels.values()) // _SYMBOLS)
    budget = max(channel.epsilon for channel in channels.values())

    def ask(vault: Vault) -> Labels:
        order = np.array(_CODES, dtype=np.uint8)[np.arange(vault.census.n_ratings) % len(_CODES)]
        vault.table.run(lambda block: BlockResult({"choice": order[block.ratings]}), writes=["choice"])
        vault.symbols(channels, choice="choice", symbol="symbol")
        return _column(vault, "symbol")

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        symbols = ask(Vault(as_table(levels, scale), budget, noise=noise)) // width
        return np.arange(len(levels)) % len(_CODES) * _SYMBOLS + symbols

    claim = _receipt(scale, budget, ask)
    return Trial(name, claim, one_rating(scale.n_levels), observe, len(_CODES) * _SYMBOLS, runs)


def two_blocks(name: str, channel: Channel, runs: int = 1 << 15) -> Trial:
    """Two ratings at the same place of two blocks, one of them changed: no block begins the random bits anew."""
    return paired(name, channel, _apart(channel, SMALL_BLOCK), channel.epsilon, runs)


def far_apart(name: str, channel: Channel, runs: int = _FAR) -> Trial:
    """Two ratings of one block at a distance of whole fetches of random bits: no fetch begins them anew."""
    return paired(name, channel, _apart(channel, 2 * runs), channel.epsilon, runs)


def _apart(channel: Channel, block_ratings: int) -> Draw:
    """Symbols by the vault, first the first ratings of all rows, then the second ones."""

    def draw(levels: Levels, noise: NoiseSource) -> npt.NDArray[np.integer]:
        secret = np.ascontiguousarray(levels.T).ravel()
        table = MemoryTable(_everyone_once(len(secret)), {LEVEL: secret}, block_ratings=block_ratings)
        vault = Vault(RawTable(table, channel.scale), channel.epsilon, noise=noise)
        vault.noisy_ratings(channel, symbol="symbol")
        return _column(vault, "symbol").reshape(levels.shape[::-1]).T

    return draw


def _different_channels(scale: Scale, epsilon: float) -> tuple[Channel, Channel, Channel]:
    """For low ratings, for any ratings with a symbol a level, for high ratings."""
    place = np.linspace(-1, 1, scale.n_levels)
    low, high = (optimal_channel(scale, epsilon, np.exp(-((place - at) ** 2) / 0.2)) for at in (-0.8, 0.8))
    return low, randomised_response(scale, epsilon), high


def _receipt(scale: Scale, epsilon: float, ask: Ask) -> float:
    """What the vault's receipt states for a question, or what was asked for it if that is less."""
    vault = Vault(as_table(np.array([[0]], dtype=np.uint16), scale), epsilon, noise=NoiseSource.seeded(0))
    ask(vault)
    return min(epsilon, vault.certificate().epsilon)


def _column(vault: Vault, name: str) -> Labels:
    return np.concatenate([block.columns[name] for block in vault.table.scan([name])]).astype(np.int64)


def _bins(values: npt.NDArray[np.float64], half: float) -> Labels:
    """Where a noisy sum lies between what the two ends of a window would add to it."""
    return among(np.linspace(-half, half, _EDGES), values)


def _everyone_once(n: int) -> Mask:
    """n users with one rating each, all of one item."""
    users, item = pa.array(np.arange(n, dtype=np.int64)), pa.array(np.zeros(1, dtype=np.int64))
    return Mask(users, item, np.arange(n + 1, dtype=np.int64), np.zeros(n, dtype=np.int32))
