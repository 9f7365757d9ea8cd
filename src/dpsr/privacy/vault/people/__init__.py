"""Questions to people: contributions that are bounded where they are added, and the counter that prices them."""

from dpsr.privacy.vault.people.asking import NoisyAnswer
from dpsr.privacy.vault.people.rating_vault import RatingVault
from dpsr.privacy.vault.people.vault import PeopleVault

__all__ = ["NoisyAnswer", "PeopleVault", "RatingVault"]
