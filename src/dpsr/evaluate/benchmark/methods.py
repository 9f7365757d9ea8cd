"""Methods by name: those of `evaluate.peers`, and anybody's own as `module:factory`.

A factory is called as factory(epsilon, delta, seed) and returns something that fits, predicts and ranks like a `Peer`.
Write `factory.private = False` for one that takes no budget: it is then run once and not once per epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from dpsr.errors import ParameterError
from dpsr.evaluate.peers.base import Peer
from dpsr.evaluate.peers.registry import build_peer, is_private, peer_names

OURS, CONSTANT, REFERENCE = "dpsr", "constant", "als"
"""Our method, the least that must be beaten, and the model without privacy to whose lists others are compared."""


def build(what: str, epsilon: float | None, delta: float, seed: int) -> Peer:
    """The method, not fitted."""
    return _factory(what)(epsilon, delta, seed) if ":" in what else build_peer(what, epsilon, delta, seed)


def budgeted(names: Sequence[str]) -> list[tuple[str, bool]]:
    """Each name with whether it takes a budget; an unknown name is an error here, before anything is run."""
    unknown = [name for name in names if ":" not in name and name not in peer_names()]
    if unknown or not names:
        raise ParameterError(
            f"methods are {', '.join(peer_names())}, or module:factory for your own; found "
            f"{', '.join(unknown) or 'none'}."
        )
    return [(name, takes_budget(name)) for name in dict.fromkeys(names)]


def takes_budget(name: str) -> bool:
    """Whether a method is run once per epsilon, or once."""
    return bool(getattr(_factory(name), "private", True)) if ":" in name else is_private(name)


def _factory(what: str) -> Any:
    module, _, name = what.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ParameterError(
            f"a method of your own is written module:factory and must be importable, found {what!r} ({error}). "
            "Run from the folder that holds the module, or install it."
        ) from error
