"""The embedded sample of `make demo`: realistic, the same for everyone, and nobody's."""

from __future__ import annotations

from dpsr.data.ratings import Ratings
from dpsr.data.synthetic import realistic


def demo_ratings() -> Ratings:
    """60,000 ratings with timestamps by 1,000 users for 500 items, whole stars from 1 to 5."""
    return realistic(20_240_601, n_users=1_000, n_items=500, n_ratings=60_000, timestamps=True)
