"""Raw ratings behind a counter that hands out noisy answers with their receipts."""

from dpsr.privacy.vault.privatise import declared_private, privatise
from dpsr.privacy.vault.vault import NoisyStatistic, Vault

__all__ = ["NoisyStatistic", "Vault", "declared_private", "privatise"]
