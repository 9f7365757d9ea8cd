"""The only room that reads raw values: channels, noise, and the receipt for what they cost."""

from dpsr.privacy.channel import Channel
from dpsr.privacy.mechanisms import (
    calibrated_laplace,
    gaussian,
    gaussian_classical,
    laplace,
    randomised_response,
)
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.optimal import optimal_channel
from dpsr.privacy.privatise import declared_private, privatise
from dpsr.privacy.published import AsPublished
from dpsr.privacy.vault import Noisy, Vault

__all__ = [
    "AsPublished",
    "Channel",
    "NoiseSource",
    "Noisy",
    "Vault",
    "calibrated_laplace",
    "declared_private",
    "gaussian",
    "gaussian_classical",
    "laplace",
    "optimal_channel",
    "privatise",
    "randomised_response",
]
