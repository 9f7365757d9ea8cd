"""Stage 3 of the default: it starts where the sums ended, finds factors where there are any, and never runs away."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from value_states import Y, clear_symbols, design_of, effects_of

from dpsr import DPSR, Ratings, Scale
from dpsr.data import realistic
from dpsr.engine import MemoryTable
from dpsr.engine.incidence import Turns, at_ratings
from dpsr.engine.raw import raw_table
from dpsr.evaluate.baselines import Bias
from dpsr.pipeline.value import Recipe
from dpsr.types import Mask
from dpsr.value import schedule
from dpsr.value.design import Design, degree_scales
from dpsr.value.effects import EffectObservation
from dpsr.value.evidence import EvidenceState, moments_at_ratings
from dpsr.value.levels import with_variance
from dpsr.value.priors import ridge
from dpsr.value.schedule import Learning, learn_between_turns, learn_from_symbols
from dpsr.value.start import leading_directions
from dpsr.value.sweep import CHOICE, SYMBOL, Reader


def means(state):
    """eta at every rating."""
    mask = state.design.table.mask
    return np.einsum("ed,ed->e", state.left[mask.users], state.right[mask.items])


def sweeps(state, tables, messages, rounds):
    """Items first, then users and items in turn; how far each users' update moved the means."""
    moves = []
    for step in range(rounds):
        family = with_variance(Y, np.zeros(len(Y)), state.residual, means(state)[::20])
        moves.append(state.sweep(Reader.of(tables, family), messages, users=step > 0))
    return moves[1:]


@pytest.mark.parametrize("size", [1, 7, 60, 1 << 19])
def test_moments_of_means_are_those_of_all_ratings_however_the_table_is_cut(size):
    mask = design_of(70, 40, 0.2, 0).table.mask
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(70, 4)), rng.normal(size=(40, 4))
    plain = np.einsum("ed,ed->e", left[mask.users], right[mask.items])
    mean, variance, sample = moments_at_ratings(MemoryTable(mask, block_ratings=size), left, right, 50)
    assert mean == pytest.approx(plain.mean())
    assert variance == pytest.approx(plain.var())
    np.testing.assert_allclose(sample, plain[:: len(plain) // 50], atol=1e-12)


def test_before_the_first_sweep_the_model_is_what_the_sums_said():
    design = design_of(30, 20, 0.3, 0)
    effects = effects_of(design, np.random.default_rng(1))
    state = EvidenceState(design, effects, ridge(0.1, 1e-4), mean=0.17, variance=0.1, k=4)
    mask, own = design.table.mask, design.item_products.at(effects.products)
    assert np.std(own) > 0.02
    for e in range(0, mask.n_ratings, 7):
        u, j = mask.users[e], mask.items[e]
        said = 0.17 + design.z[j] @ effects.weights @ design.x[u] + effects.item[j] + effects.user[u] + own[j]
        assert means(state)[e] == pytest.approx(said)
        assert state.left[u : u + 1][0] @ state.right[j] == pytest.approx(said)


def test_an_item_that_is_to_have_one_rating_more_is_what_its_features_say_then():
    """Oracle: item by item, as far as its own ratings have not told its level, products of features included."""
    design = design_of(30, 20, 0.3, 0)
    effects = effects_of(design, np.random.default_rng(1))
    state = EvidenceState(design, effects, ridge(0.1, 1e-4), mean=0.17, variance=0.1, k=0)
    state.item_prior.weights = 0.03 * np.random.default_rng(2).normal(size=state.item_prior.weights.shape)
    weights, Q = effects.weights + state.item_prior.weights, effects.products
    after, (_, more) = state.predicting[1], design.with_one_more
    for j, count in enumerate(design.item_counts):
        known = count / (count + state.residual / state.item_prior.covariance[0, 0])
        now = design.z[j]
        then = now + (1 - known) * (more[j] - now)
        change = (then - now) @ weights[:, 0] + then[1:] @ Q @ then[1:] - now[1:] @ Q @ now[1:]
        assert after[j, 0] == pytest.approx(state.right[j, 0] + change)
        np.testing.assert_allclose(after[j, design.x.shape[1] :], then)


def low_rank(seed, m=150, n=100, density=0.35, rank=2):
    """Factors and nothing else, missing at random: the mask says nothing, biases say nothing."""
    design = design_of(m, n, density, seed)
    rng = np.random.default_rng(seed + 1)
    p, q = rng.normal(size=(m, rank)), rng.normal(size=(n, rank))
    eta = np.clip(0.22 * p @ q.T, -0.95, 0.95)
    mask = design.table.mask
    clear = eta[mask.users, mask.items] + rng.normal(0, 0.08, mask.n_ratings)
    levels = np.clip(np.rint((clear + 1) / 2 * (len(Y) - 1)), 0, len(Y) - 1).astype(np.int64)
    return design, eta, levels


def silent(design):
    m, n = design.census.shape
    return EffectObservation(np.zeros(n), np.full(n, 1e12)), EffectObservation(np.zeros(m), np.full(m, 1e12))


def test_factors_take_over_where_the_mask_says_nothing():
    """Symbols without noise: unseen cells are predicted to a third of what no factors leave, and the noise is found."""
    design, eta, levels = low_rank(2)
    variance = float(Y[levels].var())
    tables = clear_symbols(design, levels)
    state = EvidenceState(
        design, effects_of(design), ridge(variance, 1e-4), mean=float(Y[levels].mean()), variance=variance, k=4
    )
    plain = state.left[:] @ state.right.T
    moves = sweeps(state, tables, silent(design), 9)
    mask = design.table.mask
    unseen = np.ones(mask.shape, dtype=bool)
    unseen[mask.users, mask.items] = False
    before, after = (np.sqrt(np.mean((table - eta)[unseen] ** 2)) for table in (plain, state.left[:] @ state.right.T))
    assert after < before / 3
    assert moves[-1] < 0.2 * max(moves)
    assert state.residual <= 0.2 * variance, "most of the variance is known to be explained"
    assert state.residual >= 0.003 * variance - 1e-12


def test_a_sweep_adds_to_what_the_sums_said_and_does_not_count_it_twice():
    """Effects and shared weights known only half from the sums: the other half comes from the ratings."""
    design = design_of(80, 60, 0.4, 7)
    rng = np.random.default_rng(8)
    truth = effects_of(design, rng)
    level = truth.item + design.item_products.at(truth.products)
    eta = (0.25 + design.z @ truth.weights @ design.x.T + level[:, None] + truth.user).T
    clear = eta[design.table.mask.users, design.table.mask.items]
    levels = np.rint((clear + rng.normal(0, 0.1, len(clear)) + 1) / 2 * 40).clip(0, 40).astype(np.int64)
    tables = clear_symbols(design, levels)
    half = replace(truth, item=truth.item / 2, user=truth.user / 2, weights=truth.weights / 2)
    variance = float(Y[levels].var())
    state = EvidenceState(design, half, ridge(variance, 1e-4), mean=0.25, variance=variance, k=0)
    before = np.std(state.left[:] @ state.right.T - eta)
    moved = sweeps(state, tables, silent(design), 5)[-1]
    off = state.left[:] @ state.right.T - eta
    assert np.std(off) < 0.4 * before
    assert abs(off.mean()) < 0.02
    assert moved < 0.1
    assert state.residual == pytest.approx(0.1**2, rel=0.5)


def test_factors_that_are_added_later_change_nothing_of_what_was_learned():
    design, _, levels = low_rank(6)
    variance, tables = float(Y[levels].var()), clear_symbols(design, levels)
    state = EvidenceState(
        design, effects_of(design), ridge(variance, 1e-4), mean=float(Y[levels].mean()), variance=variance, k=0
    )
    sweeps(state, tables, silent(design), 3)
    before, learned = means(state), [prior.covariance for prior in (state.item_prior, state.user_prior)]
    state.add_factors(3)
    np.testing.assert_array_equal(means(state), before)
    for prior, covariance in zip((state.item_prior, state.user_prior), learned, strict=True):
        d = len(covariance)
        assert prior.dimensions == len(prior.start) == d + 3
        np.testing.assert_array_equal(prior.covariance[:d, :d], covariance)
        assert not prior.covariance[:d, d:].any()
        assert (np.diag(prior.covariance)[d:] > 0).all()


def test_learning_between_turns_goes_on_from_the_turn_before(monkeypatch):
    """Effects are looked for, and items met alone, the first time only."""
    design, _, levels = low_rank(7)
    variance, tables = float(Y[levels].var()), clear_symbols(design, levels)
    state = EvidenceState(design, effects_of(design), ridge(variance, 1e-4), mean=0.0, variance=variance, k=0)
    learn_between_turns(state, tables, Y, np.zeros(len(Y)), silent(design))
    before = means(state)
    monkeypatch.setattr(EvidenceState, "find_effects", None)
    learn_between_turns(state, tables, Y, np.zeros(len(Y)), silent(design))
    assert 0 < np.std(means(state) - before) < np.std(before)


def test_without_factors_in_the_data_none_are_invented():
    """Pure noise around one mean: the model stays within a few per cent of a deviation of it."""
    design, _, levels = low_rank(3)
    levels = np.random.default_rng(4).permutation(levels)
    variance = float(Y[levels].var())
    tables = clear_symbols(design, levels)
    state = EvidenceState(
        design, effects_of(design), ridge(variance, 1e-4), mean=float(Y[levels].mean()), variance=variance, k=4
    )
    sweeps(state, tables, silent(design), 6)
    off = state.left[:] @ state.right.T - Y[levels].mean()
    assert np.sqrt(np.mean(off**2)) < 0.3 * np.sqrt(variance)
    assert state.residual > 0.8 * variance


def test_at_a_generous_epsilon_the_whole_pipeline_beats_the_raw_bias_model_on_low_rank_ratings():
    design, _, levels = low_rank(5)
    ratings = Ratings(design.table.mask, levels.astype(np.uint16), Scale(0, 40))
    train, test = ratings.split(0.2, seed=0)
    model = DPSR(20, random_state=0).fit(train).model_
    bias = Bias().fit(train.mask, train.values, train.scale)
    ours, theirs = (
        np.sqrt(np.mean((one.predict(test.mask.users, test.mask.items) - test.values) ** 2)) for one in (model, bias)
    )
    assert ours < 0.7 * theirs


SHAPES = {
    "2 x 2": (2, 2, 3, Scale(1, 5)),
    "tiny": (5, 4, 9, Scale(1, 5)),
    "dense": (20, 15, 300, Scale(1, 5)),
    "extremely sparse": (150, 120, 160, Scale(1, 5)),
    "two levels": (25, 20, 150, Scale(0, 1)),
    "three rows": (3, 150, 200, Scale(1, 10)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("values", ["random", "all the top mark", "two camps"])
def test_nothing_diverges_on_any_mask_at_any_epsilon(shape, values):
    m, n, N, scale = SHAPES[shape]
    rng = np.random.default_rng(6)
    cells = np.sort(rng.choice(m * n, N, replace=False))
    top = scale.n_levels - 1
    levels = {
        "random": rng.integers(0, top + 1, N),
        "all the top mark": np.full(N, top),
        "two camps": np.where((cells // n + cells % n) % 2, 0, top),
    }[values]
    ids = (pa.array(np.arange(size, dtype=np.int64)) for size in (m, n))
    ratings = Ratings(Mask.of_cells(cells, *ids), levels.astype(np.uint16), scale)
    for epsilon in (0.01, 0.1, 1, 5, 20):
        model = DPSR(epsilon, random_state=0).fit(ratings).model_
        table = model.user_factors @ model.item_factors.T
        assert np.isfinite(table).all()
        assert np.abs(table - scale.midpoint).max() < 3 * scale.width
        assert 0 < model.residual_variance <= scale.width**2


def test_factors_start_along_what_the_means_leave_unexplained():
    """Noiseless symbols of a rank-one matrix: the first factor is the truth, up to its sign and size."""
    rng = np.random.default_rng(0)
    m, n, scale = 120, 60, Scale(0, 100)
    u, v = rng.normal(size=m), rng.normal(size=n)
    cells = np.flatnonzero(rng.random(m * n) < 0.4)
    values = np.clip(np.rint(65 + 8 * u[cells // n] * v[cells % n]), 0, 100)
    ratings = Ratings.from_arrays(cells // n, cells % n, values, scale=scale)
    design = Design.of(ratings.mask)
    zeros = replace(effects_of(design), item_prior_variance=0.1, user_prior_variance=0.1,
                    item_posterior_variance=np.zeros(n), user_posterior_variance=np.zeros(m))  # fmt: skip
    state = EvidenceState(design, zeros, np.ones(10), mean=0.3, variance=0.1, k=2)
    y = np.linspace(-1, 1, 101)
    clear_symbols(design, ratings.levels)
    family = with_variance(y, np.zeros(101), 0.05, np.zeros(1))
    state.find_factors(Reader.of({0: np.eye(101)}, family), compare=False)
    assert abs(np.corrcoef(state.f[:, 0], u)[0, 1]) > 0.95
    assert state.f.std(axis=0) == pytest.approx(1, abs=0.2)


def state_of(design, levels, k=8):
    variance = float(Y[levels].var())
    state = EvidenceState(
        design, effects_of(design), ridge(variance, 1e-4), mean=float(Y[levels].mean()), variance=variance, k=k
    )
    return Learning(state, clear_symbols(design, levels), Y, np.zeros(len(Y)), silent(design))


def learn(learning, **how):
    rest = learning.tables, learning.y, learning.log_base, learning.observations
    return learn_from_symbols(learning.state, *rest, "released", **how)


def test_a_bold_start_is_chosen_where_caution_shrinks_factors_away(monkeypatch):
    """As many factors as half a user's ratings and hardly any noise: the paper's generator in small."""
    rng = np.random.default_rng(12)
    design = design_of(150, 100, 0.2, 11)
    eta = 0.1 * rng.normal(size=(150, 8)) @ rng.normal(size=(8, 100))
    mask = design.table.mask
    levels = np.rint((eta[mask.users, mask.items] + 1) / 2 * 40).clip(0, 40).astype(np.int64)
    unseen = np.ones(mask.shape, dtype=bool)
    unseen[mask.users, mask.items] = False

    def error(state):
        return float(np.sqrt(np.mean((state.left[:] @ state.right.T - eta)[unseen] ** 2)))

    found, cautious = learn(state_of(design, levels)), learn(state_of(design, levels), may_be_bold=False)
    assert found.residual < 0.5 * cautious.residual
    assert error(found) < 0.7 * error(cautious)


HELD_OUT = Turns((240, 16))


def test_ratings_that_are_held_out_weigh_nothing_and_all_others_what_they_weighed():
    design, _, levels = low_rank(3)
    learning = state_of(design, levels)

    def compare(block):
        at, residual = np.zeros(len(block.items)), learning.state.residual
        (z, w), (z_some, w_some) = (learning.reader(out).read(block, at, residual) for out in (None, HELD_OUT))
        out = HELD_OUT.of(block) == 1
        assert 0.03 < out.mean() < 0.1
        assert not w_some[out].any()
        assert np.array_equal(w_some[~out], w[~out])
        assert np.array_equal(z_some, z)

    design.table.run(compare, reads=[CHOICE, SYMBOL])


@pytest.mark.parametrize("size", [0.5, 1.0, 2.0])
def test_ratings_that_were_held_out_tell_how_far_factors_are_right(size):
    """Factors that are twice too large are followed half way; those of other people are not followed at all."""
    design, eta, levels = low_rank(4, m=400, n=150)
    learning = state_of(design, levels)
    u, s, vt = np.linalg.svd(eta, full_matrices=False)
    state, k = learning.state, learning.state.k
    state.f, state.g = u[:, :k] * s[:k], size * vt[:k].T
    assert state.factor_slope(learning.reader(), HELD_OUT) == pytest.approx(1 / size, rel=0.15)
    state.f = np.roll(state.f, 1, axis=0)
    assert abs(state.factor_slope(learning.reader(), HELD_OUT)) < 0.25 / size


def test_a_residual_is_not_believed_right_after_directions_were_found(monkeypatch):
    """They explain chance in the ratings that they were found in: people with few ratings, and no taste at all."""
    design, rng = design_of(3_000, 400, 0.01, 6), np.random.default_rng(6)
    levels = np.rint((0.3 * rng.normal(size=design.census.n_ratings) + 1) / 2 * 40).clip(0, 40).astype(np.int64)
    learning, sweep, residuals = state_of(design, levels), EvidenceState.sweep, []

    def watched(state, *given, **how):
        before = state.residual
        moved = sweep(state, *given, **how)
        residuals.append((before, state.residual))
        return moved

    monkeypatch.setattr(EvidenceState, "sweep", watched)
    before = learning.state.residual
    learning.try_factors()
    (_, first), (second, _) = residuals[1:3]
    assert first < 0.8 * float(Y[levels].var()), "the first sweep takes chance for taste"
    assert second == before


def test_where_nearly_all_ratings_are_fives_no_factors_are_made_of_the_others(monkeypatch):
    """A few ones, eight deviations off: believed, factors fit them and predict worse than one constant does."""
    rng = np.random.default_rng(5)
    cells = np.sort(rng.choice(3_000 * 400, 32_000, replace=False))
    users, items = np.divmod(cells, 400)
    liking = 0.5 * rng.normal(size=3_000)[users] + 0.5 * rng.normal(size=400)[items] + rng.normal(size=len(cells))
    stars = 1 + np.searchsorted(np.quantile(liking, (0.01, 0.02, 0.03, 0.05)), liking)
    train, test = Ratings.from_arrays(users, items, stars, scale="1:5:1").split(0.2, seed=0)

    def error():
        fitted = DPSR(10.0, random_state=1).fit(train)
        guess = fitted.model_.predict(test.mask.users.astype(np.int64), test.mask.items.astype(np.int64))
        return float(np.sqrt(np.mean((guess - test.values) ** 2)))

    constant = float(np.sqrt(np.mean((train.values.mean() - test.values) ** 2)))
    assert error() < constant
    monkeypatch.setattr(schedule, "_BORNE_OUT", -np.inf)
    assert error() > 1.02 * constant


def test_where_the_mask_shows_tastes_sweeps_are_cautious_however_far_directions_stand_out(monkeypatch):
    design, _, levels = low_rank(2)
    bold = []
    monkeypatch.setattr(Learning, "sweep_boldly", lambda *_: bold.append(True))
    learn(state_of(replace(design, structure=0.0), levels))
    assert bold == [True], "there is something to be bold about"
    learn(state_of(replace(design, structure=0.25), levels))
    assert bold == [True]


def test_tastes_that_show_in_the_mask_are_predicted_better_without_bold_sweeps():
    """Made-up people who rate what they like, on every seed: bold sweeps cost some half of a per cent there."""

    def careless(state, *rest):
        design, state.design = state.design, replace(state.design, structure=0.0)
        learn_from_symbols(state, *rest)
        state.design = design
        return state

    for seed in range(3):
        train, test = realistic(seed, n_users=300, n_items=200, n_ratings=6000).split(0.2, seed=seed)
        test_users, test_items = test.mask.users, test.mask.items

        def error(seed=seed, train=train, test=test, users=test_users, items=test_items, **recipe):
            model = DPSR(5.0, random_state=seed).fit_table(raw_table(train), recipe=Recipe(**recipe)).model
            predicted = (model.user_factors[users] * model.item_factors[items]).sum(axis=1)
            return np.mean((train.scale.clip(predicted) - test.values) ** 2)

        assert error() < error(learn=careless)


def test_bold_sweeps_overfit_where_there_is_nothing_to_learn_and_are_not_made(monkeypatch):
    """Shuffled ratings: whatever explains more of them is wrong."""
    design, _, levels = low_rank(3)
    shuffled = np.random.default_rng(4).permutation(levels)
    bold = state_of(design, shuffled)
    bold.state.find_factors(bold.reader(), compare=False)
    bold.sweep_items()
    bold.sweep_boldly()
    monkeypatch.setattr(Learning, "sweep_boldly", lambda *_: pytest.fail("a bold sweep"))
    found = learn(state_of(design, shuffled))
    assert found.residual > 0.75 * found.variance
    assert means(bold.state).std() > 1.5 * means(found).std(), "bold sweeps overfit, so there was something to refuse"


@pytest.mark.parametrize("shuffled", [False, True])
def test_taste_stands_out_of_random_signs_and_shuffled_ratings_do_not(shuffled):
    """Oracle: singular values of the dense matrix of residuals, with and without random signs of the oracle's own."""
    design, _, levels = low_rank(3)
    rng = np.random.default_rng(5)
    levels = rng.permutation(levels) if shuffled else levels
    learning = state_of(design, levels)
    state, reader = learning.state, learning.reader()
    found = leading_directions(design.table, state.left, state.right, reader, state.residual, 8, compare=True)
    block = next(iter(design.table.scan([CHOICE, SYMBOL])))
    eta = at_ratings(block, state.left[block.users], state.right)
    z, w = reader.read(block, eta, state.residual)
    mask, dense = design.table.mask, np.zeros(design.table.mask.shape)
    scale = degree_scales(mask.census.user_counts)[mask.users] * degree_scales(mask.census.item_counts)[mask.items]
    values = w * (z - eta) * scale

    def leading(values):
        dense[mask.users, mask.items] = values
        return np.linalg.svd(dense, compute_uv=False)[:8].sum()

    by_chance = np.mean([leading(values * rng.choice([-1, 1], len(values))) for _ in range(20)])
    assert found.strength == pytest.approx(leading(values) / by_chance, rel=0.02)
    assert (found.strength > 1.03) == (not shuffled)


def test_a_bold_sweep_takes_the_partners_for_known():
    design, _, levels = low_rank(2)
    learning = state_of(design, levels)
    learning.state.find_factors(learning.reader(), compare=False)
    learning.sweep_items()
    bold, shy = deepcopy(learning.state), deepcopy(learning.state)
    bold.sweep(learning.reader(), learning.observations, bold=True)
    shy.sweep(learning.reader(), learning.observations)
    assert np.linalg.norm(bold.f) > np.linalg.norm(shy.f), "uncertain partners shrink"


def test_sweeps_end_once_means_move_by_little_against_what_they_may_be_off_by(monkeypatch):
    """However slow the way: with a bound that the third sweep meets there are three, with none there are seven."""
    design, _, levels = low_rank(2)
    moves, sweep = [], EvidenceState.sweep
    monkeypatch.setattr(EvidenceState, "sweep", lambda *a, **how: moves.append(sweep(*a, **how)) or moves[-1])

    def moved(bound):
        learning = state_of(design, levels)
        learning.state.find_factors(learning.reader(), compare=False)
        learning.sweep_items()
        assert moves[-1] == np.inf, "before users and items are known nothing can be said"
        moves.clear()
        monkeypatch.setattr("dpsr.value.schedule._STABLE", bound)
        learning.sweep_until_stable()
        return moves.copy()

    all_moves = moved(0.0)
    assert len(all_moves) == 7
    assert all_moves[-1] < all_moves[2]
    assert len(moved(1.01 * all_moves[2])) <= 3


def test_large_sets_are_swept_cautiously_and_are_not_compared_with_random_signs(monkeypatch):
    design, _, levels = low_rank(2)
    learning = state_of(design, levels)
    compared, find = [], leading_directions
    monkeypatch.setattr(
        "dpsr.value.evidence.leading_directions",
        lambda *a, **how: compared.append(find(*a, **how).strength) or find(*a, **how),
    )
    monkeypatch.setattr("dpsr.value.schedule.SMALL", len(levels) - 1)
    monkeypatch.setattr(Learning, "sweep_boldly", lambda *_: pytest.fail("a bold sweep"))
    learn(learning)
    assert compared == [None]


def test_factors_are_left_out_where_directions_are_such_as_chance_gives():
    """Ratings without any structure: no factor is left, neither in the state nor in its priors."""
    design = design_of(300, 200, 0.1, 7)
    levels = np.random.default_rng(8).integers(0, len(Y), design.census.n_ratings)
    state = learn(state_of(design, levels, k=8))
    assert state.k == 0
    assert state.f.shape[1] == state.g.shape[1] == 0
    assert state.item_prior.dimensions == design.x.shape[1]
    assert state.user_prior.dimensions == design.z.shape[1]
