"""Private recommenders from the literature and models without privacy under one contract: **for experiments only**.

Noise here is seeded, and most of it is floating-point, so nothing in this room is private enough to release. What each
method protects, and what it treats as public, is its `Protection`; `docs/peers.md` has one section per method.
"""

from dpsr.evaluate.peers.base import Peer, Protection
from dpsr.evaluate.peers.registry import build_peer, peer_names

__all__ = ["Peer", "Protection", "build_peer", "peer_names"]
