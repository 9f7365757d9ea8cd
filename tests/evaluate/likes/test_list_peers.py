"""Private peers for lists: every release moves by at most what it is charged for when a person comes or goes."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from transcript import movement, record, replay

from dpsr.data import realistic
from dpsr.errors import PrivacyError
from dpsr.evaluate.contract import JOINT
from dpsr.evaluate.likes.contract import baskets_of
from dpsr.evaluate.likes.peers import dp_ials, noisy_popularity, randomised_baskets
from dpsr.evaluate.likes.protocol import LIST_PROTOCOLS, score_lists
from dpsr.evaluate.likes.registry import LIST_METHODS
from dpsr.evaluate.peers import adaptive
from dpsr.evaluate.peers.accounting import gaussian_epsilon
from dpsr.evaluate.registry import built

CENTRAL = ("noisy-popularity", "dp-ials", "dp-two-tower")
PRIVATE = (*CENTRAL, "randomised-baskets")
DELTA, ROUNDING = 1e-5, 1 + 1e-9


def build(name, epsilon, delta, seed):
    return built(LIST_METHODS[name], epsilon, delta, seed)


@pytest.fixture(scope="module")
def likes():
    return realistic(2, n_users=60, n_items=30, n_ratings=500).liked(at_least=1)


def without(likes, user):
    """The neighbour that the person is not in: the rows are gone, codes stay."""
    return likes[likes.mask.users != user]


def moves(monkeypatch, name, likes, neighbour, epsilon=2.0):
    _, releases = record(monkeypatch, name, epsilon, likes, build=build)
    _, asked = replay(monkeypatch, name, epsilon, neighbour, releases, build=build)
    return np.array([
        movement(release, statistic)[0] / release.price.sensitivity
        for release, statistic in zip(releases, asked, strict=True)
    ])  # fmt: skip


@pytest.fixture(scope="module")
def two_tower():
    from dpsr.evaluate.likes.peers import two_tower  # PyTorch takes seconds: in this worker alone

    return two_tower


@pytest.fixture(autouse=True)
def few_steps(monkeypatch, two_tower):
    monkeypatch.setattr(two_tower, "STEPS", 4)
    monkeypatch.setattr(dp_ials, "LEAST_ITEMS", 20)


@pytest.mark.parametrize("name", CENTRAL)
@pytest.mark.parametrize("user", [0, 17, 59])
def test_a_person_moves_no_release_beyond_its_sensitivity(monkeypatch, likes, name, user):
    for epsilon in (0.5, 20.0):
        used = moves(monkeypatch, name, likes, without(likes, user), epsilon)
        assert used.max() <= ROUNDING
        assert used[0] > 0.99, "popularity: everybody's vector has length one"


@pytest.mark.parametrize("name", CENTRAL)
def test_a_person_with_everything_moves_no_more_than_one_with_a_single_item(monkeypatch, likes, name):
    """The extremal neighbour: one person with the whole catalogue."""
    rows = likes.to_arrow().to_pydict()
    everything = type(likes).from_arrays([*rows["user"], *([999] * 30)], [*rows["item"], *likes.item_ids.to_pylist()])
    used = moves(monkeypatch, name, everything, without(everything, everything.n_users - 1))
    assert used.max() <= ROUNDING
    assert used[0] == pytest.approx(1.0)


def test_counts_that_weigh_every_item_alike_are_measured_as_an_error(monkeypatch, likes):
    monkeypatch.setattr(
        noisy_popularity, "spread_counts", lambda mask: np.bincount(mask.items, minlength=mask.n_items).astype(float)
    )
    assert moves(monkeypatch, "noisy-popularity", likes, without(likes, 0)).max() > 1.5


@pytest.mark.parametrize(
    "broken",
    [
        lambda weights: 2 * weights,  # a person gives twice what is charged
        lambda weights: np.ones_like(weights),  # the weights are forgotten
    ],
)
def test_weights_longer_than_one_are_measured_as_an_error(monkeypatch, likes, broken):
    honest = adaptive.adaptive_weights
    monkeypatch.setattr(dp_ials, "adaptive_weights", lambda *given: broken(honest(*given)))
    busiest = int(np.argmax(likes.mask.user_counts))
    assert moves(monkeypatch, "dp-ials", likes, without(likes, busiest)).max() > 1.05


def test_gradients_clipped_twice_as_wide_as_is_paid_for_are_measured_as_an_error(monkeypatch, likes, two_tower):
    honest = two_tower.clipped_gradients
    monkeypatch.setattr(two_tower, "START", 3.0)
    monkeypatch.setattr(two_tower, "clipped_gradients", lambda *given: honest(*given[:-1], 2 * given[-1]))
    assert max(moves(monkeypatch, "dp-two-tower", likes, without(likes, u)).max() for u in range(3)) > 1.05


def test_sums_of_clipped_gradients_are_those_of_autograd_person_by_person(two_tower):
    import torch

    rng = np.random.default_rng(0)
    shown, wanted = (rng.random((2, 12, 9)) < 0.4).astype(float)
    shown[0], wanted[1] = 0, 0  # nothing shown, nothing wanted
    bias, tables = rng.normal(0, 1, 9), rng.normal(0, 1, (2, 9, 3))
    for clip in (0.05, 0.5, 1e9):
        total = np.zeros((2, 9, 3))
        for inside, target in zip(shown, wanted, strict=True):
            if not target.any():
                continue
            a, q = (torch.tensor(one, requires_grad=True) for one in tables)
            x = torch.tensor(inside / np.sqrt(max(inside.sum(), 1))) @ a
            logits = torch.log_softmax(torch.tensor(bias) + q @ x, dim=0)
            (-(torch.tensor(target / target.sum()) * logits).sum()).backward()
            gradient = np.stack([a.grad.numpy(), q.grad.numpy()])
            total += gradient * min(1.0, clip / max(np.linalg.norm(gradient), 1e-300))
        found = two_tower.clipped_gradients(shown, wanted, bias, *(torch.tensor(one) for one in tables), clip)
        np.testing.assert_allclose(found, total, atol=1e-10)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_two_baskets_of_kept_items_are_told_apart_by_exactly_epsilon(epsilon):
    """All reports of four items, enumerated: the largest log-ratio between baskets of one kept item is the price."""
    q = randomised_baskets.no_probability(epsilon)

    def chance(basket, report):
        return np.prod(
            [
                (0.5 if kept else q) if said else (0.5 if kept else 1 - q)
                for kept, said in zip(basket, report, strict=True)
            ]
        )

    baskets = [tuple(int(i == kept) for i in range(4)) for kept in range(4)]
    reports = list(product((0, 1), repeat=4))
    for basket in baskets:
        assert sum(chance(basket, report) for report in reports) == pytest.approx(1)
    worst = max(np.log(chance(a, r) / chance(b, r)) for a in baskets for b in baskets for r in reports)
    assert worst == pytest.approx(epsilon)
    assert randomised_baskets.pair_price(epsilon) == pytest.approx(epsilon)
    nobody = (0, 0, 0, 0)
    assert max(abs(np.log(chance(a, r) / chance(nobody, r))) for a in baskets for r in reports) <= epsilon


def test_a_basket_is_cut_to_what_is_kept_and_reports_are_right_on_average(likes):
    chance = np.random.default_rng(0)
    kept = randomised_baskets.keep(likes.mask, np.arange(60), 3, chance)
    assert (kept.sum(axis=1) == np.minimum(likes.mask.user_counts, 3)).all()
    assert not (kept & (baskets_of(likes.mask).toarray() == 0)).any()
    sums = []
    for seed in range(40):
        (reports,) = randomised_baskets.RandomisedBaskets(0.5, noise_seed=seed)._reports(likes.mask, 1)
        sums.append(randomised_baskets._debiased(reports, np.arange(30), 0.5).sum())
    assert np.mean(sums) == pytest.approx(60, abs=4 * np.std(sums) / np.sqrt(len(sums)))


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("epsilon", [0.3, 5.0])
def test_the_price_is_composed_from_what_was_drawn_and_is_at_most_what_was_asked(monkeypatch, likes, name, epsilon):
    method, releases = record(monkeypatch, name, epsilon, likes, build=build)
    assert 0.95 * epsilon <= method.protection.epsilon <= epsilon * (1 + 1e-12)
    assert method.protection.unit == LIST_METHODS[name].unit == "user"
    assert (JOINT in method.protection.note) == LIST_METHODS[name].joint
    if name in ("noisy-popularity", "dp-ials"):
        mu = np.sqrt(sum(1 / release.price.multiplier**2 for release in releases))
        assert method.protection.epsilon == pytest.approx(gaussian_epsilon(mu, DELTA))


@pytest.mark.parametrize("name", PRIVATE)
def test_a_budget_that_means_no_noise_is_refused(likes, name):
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(PrivacyError, match="finite epsilon above 0"):
            build(name, wrong, DELTA, 0).fit(likes)
    with pytest.raises(PrivacyError, match="needs an epsilon"):
        build(name, None, DELTA, 0)


@pytest.mark.parametrize("name", PRIVATE)
def test_the_same_seed_gives_the_same_lists_and_another_does_not(likes, name):
    first, again, other = (
        build(name, 1.0, DELTA, seed).fit(likes).scores_of(baskets_of(likes.mask)) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", ["noisy-popularity", "dp-ials", "dp-two-tower"])
def test_with_hardly_any_noise_lists_are_about_as_good_as_popularity(likes, name):
    crowd = realistic(5, n_users=800, n_items=60, n_ratings=9000).liked(at_least=1)
    split = LIST_PROTOCOLS["held-out people"].split(crowd, 0)
    score = partial(score_lists, split=split)
    plain = score(built(LIST_METHODS["popularity"], None, DELTA, 0).fit(split.train)).means["recall_at_20"]
    private = score(build(name, 100.0, DELTA, 0).fit(split.train)).means["recall_at_20"]
    assert private > 0.9 * plain
