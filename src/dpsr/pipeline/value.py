"""The default pipeline: three questions to the vault, then inference on the answers.

    1. a noisy histogram of levels           how the scale is used, and the mean
    2. noisy windowed sums of items, users   weights of public features, item and user effects     (`value.effects`)
       and, with public signs, all ratings   in two turns, rows that noise hardly hides first      (`value.windows`)
    3. one channel symbol for some ratings   slopes and factors, by evidence                       (`value.evidence`)
                                             and a taste that the mask makes smooth                (`value.assembly`)

A public division (`value.allocation`) says which ratings are asked for a symbol; the others spend all they have on the
sums. On so little budget that the mean alone is worth buying, one noisy sum of all ratings is the only question. Each
question depends on the public mask and on earlier answers alone, so what a rating pays for them adds up to epsilon.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from string import ascii_lowercase

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.engine import Block, BlockResult, Table
from dpsr.engine.contrasts import contrast_map
from dpsr.engine.incidence import DividedIncidence, Division, Turns, at_ratings
from dpsr.pipeline.estimator import announce
from dpsr.privacy.channels import optimal_channel
from dpsr.privacy.vault import Vault
from dpsr.types import Model
from dpsr.value.allocation import Allocation, Components, allocate
from dpsr.value.assembly import MaskTaste, assemble, learn_mask_taste, personal_prior
from dpsr.value.design import Design
from dpsr.value.effects import FEW_ROUNDS, MORE_ROUNDS, ROUNDS, Effects, learn_effects, own_observations
from dpsr.value.evidence import N_FACTORS, EvidenceState
from dpsr.value.levels import Usage, level_bins, mean_usage, scale_usage, tabulate, with_variance
from dpsr.value.noisy_sums import Heard, NoisySums, PooledSums
from dpsr.value.priors import EFFECT, SLOPES, ridge
from dpsr.value.schedule import BETWEEN_TURNS, learn_between_turns, learn_from_symbols
from dpsr.value.sweep import CHOICE, NOISY, SYMBOL, WEIGHT
from dpsr.value.windows import (
    CENTRES,
    AtMean,
    ExpectedRatings,
    Scatter,
    SumTurn,
    View,
    around_expected,
    around_mean,
    best_width,
    in_turns,
    read_again,
)

RELEASED = "released"
"""The column of private ratings that the pipeline ends with."""


def learn_value(vault: Vault, epsilon: float, recipe: Recipe) -> tuple[Model, Allocation]:
    """All questions in order, and the model they end with; private ratings become the column `released`."""
    announce("Reading the public mask")
    design = recipe.design(vault.table)
    shown = Components().with_structure(design.structure)
    shares = recipe.allocate(vault.census, vault.scale, epsilon, shown)
    y = (vault.scale.values - vault.scale.midpoint) / (vault.scale.width / 2)
    announce("Asking how the scale is used")
    usage = ask_usage(vault, y, shares.histogram) if shares.division else ask_mean(vault)
    announce("Asking for noisy sums of items and users")
    sums = recipe.ask_sums(vault, design, usage, y, shares) if shares.division else NoisySums.unasked(design)
    rounds = FEW_ROUNDS if shares.asks_ratings else ROUNDS
    effects, heard, state, expected = expect(design, sums, usage, y, rounds=rounds)
    if sums.turns and not shares.asks_ratings:
        sums = all_read_again(vault.table, sums, expected, scatter_of(effects, state, usage, y), usage.mean)
        effects, heard, state, expected = expect(design, sums, usage, y, rounds=MORE_ROUNDS, begun=(effects, heard))
    observations = own_observations(design, heard, effects)

    def learn_so_far(tables: dict[int, Floats]) -> ExpectedRatings:
        learn_between_turns(state, tables, y, usage.log_base, observations)
        around = with_variance(y, usage.log_base, BETWEEN_TURNS * state.residual, state.sample)
        return ExpectedRatings(around, state.left, state.right)

    if shares.asks_ratings:
        announce("Drawing noise for every rating")
        tables = recipe.ask_ratings(vault, expected, shares, learn_so_far)
        announce("Learning tastes from the noisy ratings")
        state.add_factors(recipe.n_factors)
        state = recipe.learn(state, tables, y, usage.log_base, observations, RELEASED)
        taste = recipe.learn_taste(state, RELEASED)
    else:
        taste = MaskTaste.none(design)
    around = with_variance(y, usage.log_base, state.residual, state.sample)
    personal = personal_prior(state, around, effects, observations[1])
    model = assemble(vault.table.cells, vault.scale, state, taste, personal)
    write_released(vault.table, model, noisy=shares.asks_ratings)
    return model, shares


def ask_usage(vault: Vault, y: Floats, epsilon: float) -> Usage:
    """Question 1: how the scale is used."""
    bins = level_bins(len(y), vault.census.n_ratings, epsilon)
    counts = vault.histogram(bins, epsilon=epsilon)
    return scale_usage(y, bins, counts.values, counts.noise_variance, vault.census.n_ratings)


def ask_mean(vault: Vault) -> Usage:
    """Question 1 where epsilon buys nothing but the mean: one noisy sum of all ratings, for all of it."""
    half = vault.scale.width / 2
    y = (vault.scale.values - vault.scale.midpoint) / half
    total = vault.total(vault.scale.midpoint, epsilon=vault.left)
    return mean_usage(y, float(total.values[0]) / half, total.noise_variance / half**2, vault.census.n_ratings)


def ask_sums(
    vault: Vault,
    design: Design,
    usage: Usage,
    y: Floats,
    shares: Allocation,
    *,
    turns: Callable[..., list[SumTurn]] = in_turns,
) -> NoisySums:
    """Question 2: sums over items, users and, with signs, all of ratings clipped to a window around what is expected.

    In turns: the first windows are around the mean, those of the second around what the sums of the first say. Other
    `turns` are for ablations.
    """
    assert shares.division is not None
    weights = DividedIncidence(design.table, shares.division)
    sizes, half = weights.sizes(), vault.scale.width / 2
    spend = min(shares.rest, vault.left)  # shares are floats; the vault counts exactly
    sums, contrasts = None, design.contrasts if shares.division.pooled else None
    for turn in turns(vault.census, sizes, spend):
        if sums is None:
            family = tabulate(y, usage.log_base, 0.0)
            view = around_mean(family, usage.mean, best_width(family, usage, spend, turn, sizes))
            sums = NoisySums.unasked(design, weights, gain=view.gain)
            at_mean = AtMean(view.level * sizes.item, view.level * sizes.user)
        else:
            effects, _, state, expected = expect(design, sums, usage, y, rounds=1)
            width, contrasts = best_width(expected.around, usage, spend, turn, sizes), None
            scatter = scatter_of(effects, state, usage, y)
            view, at_mean = around_expected(vault.table, weights, expected, scatter, usage.mean, width, CHOICE)
        items, users, *together = vault.divided_sums(
            vault.scale.midpoint + half * view.centres,
            half * view.half_width,
            division=shares.division,
            epsilon=spend,
            contrasts=contrasts,
            rows=turn.rows,
            choice=view.choice,
        )
        noise = items.noise_variance / half**2
        heard = Heard(turn.rows, view, items.values / half, users.values / half)
        sums = sums.with_turn(heard, at_mean, noise=noise, sizes=sizes)
        if contrasts is not None:
            pooled = read_contrasts(design, shares.division, view, usage, together[0].values / half, noise)
            sums = replace(sums, pooled=pooled)
    assert sums is not None
    return sums


def read_contrasts(
    design: Design, division: Division, view: View, usage: Usage, values: Floats, noise: float
) -> PooledSums:
    """Sums over all ratings with signs, as observations of what features have to do with each other."""
    contrasts = design.contrasts
    through = contrast_map(design.table, division, contrasts, design.x, design.z)
    typical = usage.variance * SLOPES / contrasts.n
    at_mean = values - view.level * through.signed_sizes
    return PooledSums.of(
        contrasts, through, at_mean, noise=noise, spread=view.spread, gain=view.gain, one_slope=typical
    )


def expect(
    design: Design,
    sums: NoisySums,
    usage: Usage,
    y: Floats,
    *,
    rounds: int,
    begun: tuple[Effects, NoisySums] | None = None,
) -> tuple[Effects, NoisySums, EvidenceState, ExpectedRatings]:
    """What sums say: as effects and normal observations, as the state from which sweeps set out, and of all ratings."""
    prior = ridge(usage.variance, usage.mean_variance)
    effects, heard = learn_effects(design, sums, prior, usage.variance, rounds=rounds, begun=begun)
    state = EvidenceState(design, effects, prior, mean=usage.mean, variance=usage.variance, k=0)
    around = with_variance(y, usage.log_base, state.residual + state.mean_uncertainty, state.sample)
    return effects, heard, state, ExpectedRatings(around, state.left, state.right)


def all_read_again(
    table: Table, sums: NoisySums, expected: ExpectedRatings, scatter: Scatter, mean: float
) -> NoisySums:
    """The sums of every turn, read around what all of them say of ratings."""
    for turn in sums.turns:
        sums = sums.read(turn, read_again(turn.view, table, sums.weights, expected, scatter, mean))
    return sums


def scatter_of(effects: Effects, state: EvidenceState, usage: Usage, y: Floats) -> Scatter:
    """How ratings scatter around what is expected of them now."""
    return Scatter.of(
        effects.user_posterior_variance,
        effects.item_posterior_variance,
        most=2 * EFFECT * usage.variance,
        residual=state.residual,
        around=partial(with_variance, y, usage.log_base, centres=state.sample),
    )


def ask_ratings(
    vault: Vault,
    expected: ExpectedRatings,
    shares: Allocation,
    learn_so_far: Callable[[dict[int, Floats]], ExpectedRatings],
) -> dict[int, Floats]:
    """Question 3: ratings once, those that the division asks, through the channel tuned to their private prediction.

    They are asked in turns, and what was heard in earlier ones makes the predictions for the next. What the channels
    are: P[symbol | level], by the number that the column `choice` holds. The last number is that of ratings which are
    not asked, or not yet: a channel that tells nothing.
    """
    turns, spend, silent = shares.turns, vault.left, shares.turns.number * len(CENTRES)
    tables = {silent: np.ones((vault.scale.n_levels, 1))}
    for turn in range(turns.number):
        if turn > 0:
            expected = learn_so_far(tables)
        used = _choose_channels(vault, expected, shares, turn)
        some = np.flatnonzero(used) if used.any() else np.array([len(CENTRES) // 2])
        levels, first = expected.around.table, turn * len(CENTRES)
        channels = {first + int(c): optimal_channel(vault.scale, spend, levels[CENTRES[c]]) for c in some}
        vault.symbols(channels, choice=CHOICE, symbol=_answer(turns, turn), turns=turns)
        _hear(vault.table, turns, turn)
        tables |= {c: channel.probabilities for c, channel in channels.items()}
    return tables


def _choose_channels(vault: Vault, expected: ExpectedRatings, shares: Allocation, turn: int) -> npt.NDArray[np.int64]:
    """The column `choice` of the ratings whose turn it is, and how many of them use each channel."""
    turns, division, silent = shares.turns, shares.division, shares.turns.number * len(CENTRES)
    assert division is not None

    def choose(block: Block, used: npt.NDArray[np.int64]) -> BlockResult:
        choice = expected.nearest(block)
        now = division.asks(block) & (turns.of(block) == turn)
        used += np.bincount(choice[now], minlength=len(used))
        others = block.columns[CHOICE] if turn > 0 else silent
        return BlockResult({CHOICE: np.where(now, turn * len(used) + choice, others).astype(np.uint8)})

    reads = [CHOICE] if turn > 0 else []
    return vault.table.run(choose, [np.zeros(len(CENTRES), dtype=np.int64)], reads=reads, writes=[CHOICE]).sums[0]


def _answer(turns: Turns, turn: int) -> str:
    """The column of a turn's answers. It is kept as it is, for a run that was killed and goes on."""
    return SYMBOL if turns.number == 1 else f"turn_{ascii_lowercase[turn]}"


def _hear(table: Table, turns: Turns, turn: int) -> None:
    """The column of symbols: those of a turn beside those of earlier ones."""
    answer, first = _answer(turns, turn), turn == 0

    def merge(block: Block) -> BlockResult:
        new = block.columns[answer]
        return BlockResult({SYMBOL: new if first else np.where(turns.of(block) == turn, new, block.columns[SYMBOL])})

    if answer != SYMBOL:
        table.run(merge, reads=[answer] if first else [answer, SYMBOL], writes=[SYMBOL])


def write_released(table: Table, model: Model, *, noisy: bool) -> None:
    """Released columns in rating points: what the model says of every rating, inside the scale, and noisy readings."""
    scale, half = model.scale, model.scale.width / 2

    def write(block: Block) -> BlockResult:
        columns = {RELEASED: scale.clip(at_ratings(block, model.user_factors[block.users], model.item_factors))}
        if noisy:
            columns[NOISY] = (scale.midpoint + half * block.columns[NOISY]).astype(np.float32)
            columns[WEIGHT] = (block.columns[WEIGHT] / half**2).astype(np.float32)
        return BlockResult(columns)

    readings = [NOISY, WEIGHT] if noisy else []
    table.run(write, reads=readings, writes=[RELEASED, *readings])


@dataclass(frozen=True)
class Recipe:
    """The parts that the pipeline is made of; an ablation puts another in the place of one."""

    allocate: Callable[..., Allocation] = allocate
    design: Callable[[Table], Design] = Design.of
    ask_sums: Callable[..., NoisySums] = ask_sums
    ask_ratings: Callable[..., dict[int, Floats]] = ask_ratings
    learn: Callable[..., EvidenceState] = learn_from_symbols
    learn_taste: Callable[..., MaskTaste] = learn_mask_taste
    n_factors: int = N_FACTORS
