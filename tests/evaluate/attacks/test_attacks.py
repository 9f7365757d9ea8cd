"""Attacks: as good as the analysis says, below what epsilon allows, above it where a promise is broken."""

from math import exp, inf, tanh

import numpy as np
import pytest
from scipy import stats

from dpsr.certify.amounts import guess_right
from dpsr.data import realistic
from dpsr.evaluate.attacks.guessing import (
    best_threshold,
    epsilon_shown,
    judge,
    most_advantage,
    most_right,
    most_true_positives,
)
from dpsr.evaluate.attacks.mechanisms import attack_certificate, attack_mean, best_advantage
from dpsr.evaluate.attacks.outputs import attack_membership, attack_reconstruction, attack_values, evidence, plant
from dpsr.evaluate.measure.attack import attack_best_guess, attack_leak, attack_method
from dpsr.evaluate.registry import build
from dpsr.pipeline import DPSR
from dpsr.privacy.channels import Channel, laplace, randomised_response
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise
from dpsr.types import Scale

SCALE, TRIALS = Scale(1, 5), 40_000


@pytest.fixture(scope="module")
def split():
    return realistic(0, n_users=150, n_items=80, n_ratings=5000).split(0.2, seed=0)


class Echo:
    """Predicts at every cell what it was given there: no privacy at all."""

    def __init__(self, ratings, values, elsewhere=3.0):
        self.values, self.elsewhere, self.n = values, elsewhere, ratings.mask.n_items
        self.cells = ratings.mask.users.astype(np.int64) * self.n + ratings.mask.items

    def predict(self, users, items):
        wanted = np.asarray(users, dtype=np.int64) * self.n + items
        place = np.minimum(np.searchsorted(self.cells, wanted), len(self.cells) - 1)
        return np.where(self.cells[place] == wanted, self.values[place], self.elsewhere)

    def scores(self, user):
        return self.predict(np.full(self.n, user), np.arange(self.n))


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_randomised_response_attains_every_bound(epsilon):
    """Two levels: truth with probability e^eps / (1 + e^eps). TPR and FPR are that and its complement."""
    p = exp(epsilon) / (1 + exp(epsilon))
    assert (
        most_advantage(epsilon) == pytest.approx(p - (1 - p)) == pytest.approx((exp(epsilon) - 1) / (exp(epsilon) + 1))
    )
    assert most_true_positives(epsilon, 1 - p) == pytest.approx(p)
    assert most_right(epsilon, 1 / 5) == pytest.approx(exp(epsilon) / (exp(epsilon) + 4))
    assert tanh(epsilon / 2) == pytest.approx(most_advantage(epsilon))


def test_bounds_grow_with_delta_and_end_at_one():
    assert most_advantage(1.0, 0.01) > most_advantage(1.0)
    assert most_true_positives(1.0, 0.05, 0.01) == pytest.approx(exp(1) * 0.05 + 0.01)
    assert most_advantage(inf) == most_true_positives(inf, 0.01) == most_right(inf, 0.1) == 1.0
    assert most_true_positives(1.0, 0.0) == 0.0


# --- guessing ---------------------------------------------------------------------------------------------------------


def test_the_threshold_is_the_best_of_all_thresholds():
    rng = np.random.default_rng(0)
    for _ in range(30):
        truth = rng.random(40) < 0.5
        scores = np.round(rng.normal(truth * 0.5, 1), 1)
        cut = best_threshold(scores, truth)
        gains = [(scores[truth] > c).mean() - (scores[~truth] > c).mean() for c in [-inf, *scores]]
        reached = (scores[truth] > cut).mean() - (scores[~truth] > cut).mean()
        assert reached == pytest.approx(max(0.0, *gains))


def test_scores_that_say_nothing_reach_nothing_and_scores_that_say_all_reach_all():
    rng = np.random.default_rng(1)
    truth, learn = rng.random(TRIALS) < 0.5, rng.random(TRIALS) < 0.5
    nothing = judge(rng.random(TRIALS), truth, learn=learn)
    assert abs(nothing.advantage) < 0.03
    assert nothing.epsilon_low < 0.03
    assert nothing.tpr_at_5 == pytest.approx(0.05, abs=0.01)
    assert nothing.tpr_at_1 == pytest.approx(0.01, abs=0.005)
    everything = judge(truth.astype(float), truth, learn=learn)
    assert everything.advantage == 1.0
    assert everything.advantage_low > 0.95
    assert everything.epsilon_low > 7


def test_the_epsilon_shown_is_rarely_above_the_true_one_and_close_with_many_trials():
    rng, wrong = np.random.default_rng(2), 0
    for _ in range(300):
        hits, alarms = rng.binomial(200, exp(1) / (1 + exp(1))), rng.binomial(200, 1 / (1 + exp(1)))
        wrong += epsilon_shown(hits, 200, alarms, 200) > 1.0
    assert stats.binomtest(wrong, 300, 0.05, alternative="greater").pvalue > 0.01
    n = 10**6
    assert 0.98 < epsilon_shown(round(n * exp(1) / (1 + exp(1))), n, round(n / (1 + exp(1))), n) < 1.0


# --- best guess -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_best_guess_against_randomised_response_is_the_analytic_one(epsilon):
    k, channel = 5, randomised_response(SCALE, epsilon)
    analytic = (exp(epsilon) - 1) / (exp(epsilon) + k - 1)
    assert best_advantage(channel.probabilities) == pytest.approx(analytic, rel=1e-6)
    assert guess_right(channel.weights.tolist()) == pytest.approx(most_right(epsilon, 1 / k), rel=1e-6)
    ratings = realistic(0, n_users=30, n_items=20, n_ratings=200)
    certificate = privatise(ratings, channel, noise=NoiseSource.seeded(0)).certificate
    found = attack_certificate(certificate, trials=TRIALS, seed=0)
    assert found.advantage == pytest.approx(analytic, abs=0.02)
    assert epsilon - 0.25 < found.epsilon_low <= epsilon


def test_laplace_reaches_its_analytic_advantage():
    """Clipped Laplace noise of scale D / eps between the two ends: TV = 1 - exp(-eps / 2)."""
    table = laplace(SCALE, 1.0).probabilities
    assert best_advantage(table) == pytest.approx(1 - exp(-0.5), abs=0.01)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0, 6.0])
def test_the_best_guess_at_a_rating_in_our_release_stays_below_what_epsilon_allows(split, epsilon):
    certificate = DPSR(epsilon, random_state=0).fit(split[0]).certificate
    found = attack_certificate(certificate, trials=TRIALS, seed=1)
    assert found.advantage <= most_advantage(epsilon) + 0.01
    assert found.epsilon_low <= epsilon
    assert found.tpr_at_5 <= most_true_positives(epsilon, 0.05) + 0.015
    assert found.advantage > 0.6 * most_advantage(epsilon), "an attack that finds nothing proves nothing"


def test_a_table_that_is_dearer_than_it_says_is_caught(split):
    """Planted: a mechanism of epsilon 1.5 that is sold as 1."""
    honest = randomised_response(SCALE, 1.5)
    ratings = split[0]
    certificate = privatise(ratings, honest, noise=NoiseSource.seeded(0)).certificate
    assert attack_certificate(certificate, trials=4 * TRIALS, seed=0).epsilon_low > 1.0


# --- canaries ---------------------------------------------------------------------------------------------------------


def test_canaries_are_fair_coins_at_the_ends_of_the_scale_and_nothing_else_changes(split):
    train, _ = split
    coins = plant(train, 3)
    changed = np.zeros(len(train), dtype=bool)
    changed[coins.places] = True
    assert np.array_equal(coins.ratings.levels[~changed], train.levels[~changed])
    assert set(coins.ratings.values[changed]) == {1.0, 5.0}
    assert np.array_equal(coins.ratings.values[coins.places] == 5.0, coins.top)
    assert abs(coins.top.mean() - 0.5) < 0.15


def test_an_output_that_repeats_its_ratings_is_read_completely(split):
    coins = plant(split[0], 0)
    found = attack_values(coins, Echo(coins.ratings, coins.ratings.values), None, 0)
    assert found.advantage > 0.95


def test_noisy_ratings_are_read_as_far_as_epsilon_allows_and_no_further(split):
    epsilon, coins = 2.0, plant(split[0], 0)
    noisy = privatise(coins.ratings, laplace(SCALE, epsilon), noise=NoiseSource.seeded(1)).values
    found = attack_values(coins, Echo(coins.ratings, noisy), None, 0)
    assert found.epsilon_low <= epsilon
    assert 0.3 < found.advantage <= most_advantage(epsilon) + 0.1


def test_our_release_and_its_table_stay_below_what_epsilon_allows(split):
    coins = plant(split[0], 0)
    release = DPSR(1.0, random_state=0).fit(coins.ratings).release
    found = attack_values(coins, release.model, release.ratings, 0)
    assert found.advantage_low <= most_advantage(1.0)
    assert found.epsilon_low <= 1.0


def test_what_others_are_shown_holds_nothing_about_the_users_own_cell(split):
    coins = plant(split[0], 0)
    assert evidence(coins, Echo(coins.ratings, coins.ratings.values), None, 0, others_only=True).shape[1] == 2
    alone = attack_values(coins, Echo(coins.ratings, coins.ratings.values), None, 0, others_only=True)
    assert abs(alone.advantage) < 0.35, "an echo tells others nothing about the canary"


# --- membership and reconstruction ------------------------------------------------------------------------------------


def test_memory_is_seen_as_membership_and_a_constant_remembers_nothing(split):
    train, test = split
    assert attack_membership(Echo(train, train.values), train, test, 0).advantage > 0.5
    flat = Echo(train, np.full(len(train), 3.0))
    assert abs(attack_membership(flat, train, test, 0).advantage) < 0.1


def test_reconstruction_counts_exact_hits_on_either_side(split):
    train, test = split
    seen, unseen = attack_reconstruction(Echo(train, train.values, elsewhere=4.0), None, train, test)
    assert seen == 1.0
    assert unseen == pytest.approx(np.mean(test.values == 4.0))
    seen, _ = attack_reconstruction(Echo(train, train.values), np.full(len(train), 2.2), train, test)
    assert seen == pytest.approx(np.mean(train.values == 2.0)), "the released table is read where there is one"


# --- the mean leak ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_stage_one_as_published_exceeds_its_nominal_bound(epsilon):
    leak = attack_mean(SCALE, epsilon, trials=400_000, seed=0)
    assert leak.epsilon_low > epsilon
    assert leak.excess > 0.0


def test_the_others_alone_betray_the_target_through_the_mean():
    """Nobody's rating is looked at but the crowd's: with a public centre their noise would say nothing."""
    leak = attack_mean(SCALE, 0.5, size=5, trials=400_000, seed=0, own=False)
    assert leak.guesses.epsilon_low > 0.0
    assert leak.guesses.advantage > 0.02


def test_the_same_attack_on_the_repaired_stage_finds_no_excess():
    channel = DPSR.paper(0.5)._mechanism(SCALE)
    assert isinstance(channel, Channel)
    table, rng, n = channel.probabilities, np.random.default_rng(0), 400_000
    truth = rng.random(n) < 0.5
    one, other = table[0], table[-1]
    drawn = np.where(truth, rng.choice(len(one), n, p=one), rng.choice(len(one), n, p=other))
    ratio = np.log(one / other)[drawn]
    for cut in np.quantile(ratio, [0.02, 0.1, 0.5, 0.9, 0.98]):
        hits, alarms = (ratio[truth] >= cut), (ratio[~truth] >= cut)
        assert epsilon_shown(int(hits.sum()), len(hits), int(alarms.sum()), len(alarms)) <= 0.5


# --- rows -------------------------------------------------------------------------------------------------------------


def test_every_attack_is_a_row_with_its_bound(split):
    train, test = split

    def fit(ratings):
        return build("constant", None, 1e-5, 0).fit(ratings), None

    rows = attack_method(fit, train, test, None, 0)
    assert [row["attack"] for row in rows] == ["value", "membership", "reconstruction"]
    assert all(row["bound"] == 1.0 or row["attack"] == "reconstruction" for row in rows)
    assert rows[0]["unit"] == "none"
    assert abs(rows[0]["advantage"]) < 0.25
    names = [row["method"] for row in attack_best_guess(train, 1.0, 1e-5, 0, 1)]
    assert names == ["laplace", "gaussian", "randomised response", "dpsr-paper", "dpsr"]
    leaks = attack_leak(SCALE, 0.5, 0, 1)
    assert [row["attack"] for row in leaks] == ["mean leak", "mean leak"]
    assert leaks[0]["bound"] == pytest.approx(tanh(0.25))
