"""Every method of lists by name, with what it protects and how it is priced. Private methods first, ours among them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dpsr.data import Interactions
from dpsr.evaluate.contract import Method, Price
from dpsr.evaluate.downstream.learners import needed
from dpsr.evaluate.likes.baselines import ease, ials, item_knn, popularity
from dpsr.evaluate.likes.contract import ListMethod, ListModel, ListsWithoutPrivacy
from dpsr.evaluate.likes.peers.dp_ials import DPiALS
from dpsr.evaluate.likes.peers.noisy_popularity import NoisyPopularity
from dpsr.evaluate.likes.peers.randomised_baskets import RandomisedBaskets
from dpsr.evaluate.likes.pipeline import LikesPipeline

OUR_LISTS, NOISY_POPULARITY, EASE = "dpsr-likes", "noisy-popularity", "ease"
"""Our method, the floor it never falls below, and the model without privacy that it is measured by."""

OUR_UNLISTED = "dpsr-likes-unlisted"
"""Ours where nobody declared the list of items."""


def _without_privacy(name: str, learn: Callable[[Interactions, int], ListModel]) -> Method[ListMethod]:
    def build(_: float | None, __: float, ___: int, learner_seed: int) -> ListMethod:
        return ListsWithoutPrivacy(learn, learner_seed)

    return Method(name, build, budgeted=False)


def _two_tower(epsilon: float | None, delta: float, noise_seed: int, learner_seed: int) -> ListMethod:
    two_tower = needed("dpsr.evaluate.likes.peers.two_tower", "PyTorch")  # which only this method waits for
    method: ListMethod = two_tower.TwoTower(epsilon, delta, noise_seed, learner_seed)
    return method


def _private(
    name: str, build: Callable[..., ListMethod], price: Price = "with delta", **facts: Any
) -> Method[ListMethod]:
    return Method(name, build, "user", price, **facts)


LIST_METHODS: dict[str, Method[ListMethod]] = {
    method.name: method
    for method in (
        _private(OUR_LISTS, LikesPipeline, joint=True),
        _private(NOISY_POPULARITY, NoisyPopularity),
        _private("dp-ials", DPiALS, joint=True),
        _private("dp-two-tower", _two_tower, joint=True),
        _private("randomised-baskets", RandomisedBaskets, "pure"),
        _without_privacy("popularity", popularity),
        _without_privacy("item-knn", item_knn),
        _without_privacy(EASE, ease),
        _without_privacy("ials", ials),
        _private(OUR_UNLISTED, partial(LikesPipeline, declared=False), joint=True, variant_of=OUR_LISTS),
    )
}
"""In the order in which tables show them."""


def compared_lists() -> list[str]:
    """The names of all methods but variants of our own."""
    return [name for name, method in LIST_METHODS.items() if method.variant_of is None]
