"""One budget per data set, kept across runs and people."""

from dpsr.privacy.ledger.event import Event
from dpsr.privacy.ledger.ledger import Budget, Charge, Ledger

__all__ = ["Budget", "Charge", "Event", "Ledger"]
