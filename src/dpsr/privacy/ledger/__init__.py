"""One budget per data set, kept across runs and people."""

from dpsr.privacy.ledger.ledger import Budget, Charge, Ledger
from dpsr.privacy.ledger.log import Event

__all__ = ["Budget", "Charge", "Event", "Ledger"]
