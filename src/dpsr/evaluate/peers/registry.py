"""Every method of the comparison by name, in the order in which a table shows them."""

from __future__ import annotations

from collections.abc import Callable

from dpsr.errors import ParameterError, PrivacyError
from dpsr.evaluate.peers.base import Peer
from dpsr.evaluate.peers.berlioz import Berlioz
from dpsr.evaluate.peers.denoised import Denoised
from dpsr.evaluate.peers.dp_als import DPALS
from dpsr.evaluate.peers.dp_sgd import DPSGD
from dpsr.evaluate.peers.dpsr_methods import Pipeline
from dpsr.evaluate.peers.mcsherry_mironov import McSherryMironov
from dpsr.evaluate.peers.noisy_ratings import NoisyRatings
from dpsr.evaluate.peers.objective import ObjectivePerturbation
from dpsr.evaluate.peers.shin import LocalMF
from dpsr.evaluate.peers.without_privacy import WithoutPrivacy

PRIVATE: dict[str, Callable[..., Peer]] = {
    "dpsr": Pipeline,
    "dpsr-paper": Pipeline,
    "dpsr-as-published": Pipeline,
    "laplace-als": NoisyRatings,
    "laplace-mf": NoisyRatings,
    "gaussian-als": NoisyRatings,
    "gaussian-mf": NoisyRatings,
    "dp-sgd-mf": DPSGD,
    "denoised-dp-mf": Denoised,
    "objective-mf": ObjectivePerturbation,
    "objective-mf-local": ObjectivePerturbation,
    "berlioz-input": Berlioz,
    "berlioz-als": Berlioz,
    "mcsherry-mironov": McSherryMironov,
    "mcsherry-mironov-svd": McSherryMironov,
    "shin-ldp-mf": LocalMF,
    "dp-als": DPALS,
}
NOT_PRIVATE = ("constant", "popularity", "bias", "item-knn", "als", "svd++", "paper-mf")


def peer_names() -> list[str]:
    """All methods, the private ones first."""
    return [*PRIVATE, *NOT_PRIVATE]


def is_private(name: str) -> bool:
    """Whether a method takes a budget; without one it is run once and not once per epsilon."""
    _known(name)
    return name in PRIVATE


def build_peer(name: str, epsilon: float | None, delta: float, seed: int) -> Peer:
    """The method `name` with its budget and seed, not fitted. Methods without privacy take no epsilon."""
    _known(name)
    if name in NOT_PRIVATE:
        return WithoutPrivacy(name, random_state=seed)
    if epsilon is None:
        raise PrivacyError(f"the method {name} is private and needs an epsilon, found none. Give one, for example 1.")
    return PRIVATE[name](epsilon=epsilon, delta=delta, random_state=seed, name=name)


def _known(name: str) -> None:
    if name not in PRIVATE and name not in NOT_PRIVATE:
        raise ParameterError(f"a method is one of {', '.join(peer_names())}, found {name!r}.")
