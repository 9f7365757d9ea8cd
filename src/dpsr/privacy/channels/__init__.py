"""Finite randomisers of one rating: tables of integers whose exact price anyone can recompute."""

from dpsr.privacy.channels.additive import (
    calibrated_laplace,
    gaussian,
    gaussian_classical,
    laplace,
    randomised_response,
)
from dpsr.privacy.channels.channel import Channel
from dpsr.privacy.channels.optimal import optimal_channel
from dpsr.privacy.channels.published import AsPublished

__all__ = [
    "AsPublished",
    "Channel",
    "calibrated_laplace",
    "gaussian",
    "gaussian_classical",
    "laplace",
    "optimal_channel",
    "randomised_response",
]
