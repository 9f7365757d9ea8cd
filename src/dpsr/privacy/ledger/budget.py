"""What a data set may cost and has cost, and a price paid in advance: the values that a ledger hands out."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsr.certify.amounts import exact, float_below, written_down
from dpsr.certify.certificate import ChargeReference
from dpsr.errors import PrivacyError
from dpsr.privacy.ledger.event import Event
from dpsr.privacy.ledger.messages import other_unit, overspent
from dpsr.privacy.ledger.rules import History

if TYPE_CHECKING:
    from dpsr.certify.certificate import Certificate


@dataclass(frozen=True)
class Budget:
    """What a data set may cost in all, and what it has cost so far.

    `unit` is what the price protects: a value, a rating or a user. `entries` and `head` are the number and the digest
    of the last entry of its history: whoever notes them can tell later whether the history still contains them.
    """

    dataset: str
    epsilon: Fraction
    delta: Fraction
    spent_epsilon: Fraction
    spent_delta: Fraction
    charges: int
    releases: int
    unit: str
    entries: int
    head: str

    @classmethod
    def of(cls, history: History) -> Budget:
        """Basic composition: the releases concern the same ratings, so their prices add up."""
        first = history.events[0]
        return cls(
            dataset=history.dataset,
            epsilon=first.epsilon,
            delta=first.delta,
            spent_epsilon=history.spent_epsilon,
            spent_delta=history.spent_delta,
            charges=len(history.charges),
            releases=len(history.releases),
            unit=history.unit,
            entries=len(history.events),
            head=history.head,
        )

    @property
    def left_epsilon(self) -> Fraction:
        return self.epsilon - self.spent_epsilon

    @property
    def left_delta(self) -> Fraction:
        return self.delta - self.spent_delta

    def check(self, epsilon: Fraction, delta: Fraction = Fraction(0), unit: str = "value") -> None:
        """Refuse a charge for another unit, or one that does not fit into what is left."""
        if unit != self.unit:
            raise PrivacyError(other_unit(self, unit))
        if epsilon > self.left_epsilon or delta > self.left_delta:
            raise PrivacyError(overspent(self, epsilon, delta))


@dataclass(frozen=True)
class Charge:
    """A price paid in advance.

    `id` is chosen before the transaction, so that a lost answer can be looked up. `digest` is that of the charge's
    entry in the ledger's chain; with the id it goes into the certificate (`reference`), so that a certificate belongs
    to one charge, and a folder that was handed out holds on to the history up to there.
    """

    dataset: str
    epsilon: Fraction
    delta: Fraction
    id: str
    digest: str
    unit: str = "value"

    @classmethod
    def of(cls, event: Event, unit: str) -> Charge:
        """As a ledger's own entry says."""
        return cls(event.dataset, event.epsilon, event.delta, event.charge or "", event.digest, unit)

    @property
    def settings(self) -> dict[str, float]:
        """What a pipeline may be told to spend: the largest floats that this charge pays for."""
        return {"epsilon": self.spendable, **({"delta": float_below(self.delta)} if self.delta else {})}

    @property
    def spendable(self) -> float:
        """The largest epsilon, as a float, that this charge pays for."""
        return float_below(self.epsilon)

    @property
    def reference(self) -> ChargeReference:
        """What a certificate says of the charge that paid for it."""
        return ChargeReference(self.id, self.digest)

    def check(self, certificate: Certificate) -> None:
        """Refuse a certificate that is not private, costs more than was paid, or does not name this charge."""
        if not certificate.private:
            raise PrivacyError(
                f"no ledger takes a release that is NOT PRIVATE: {'; '.join(certificate.reasons)}. Release it without "
                "a ledger, for experiments only."
            )
        if exact(certificate.epsilon, "epsilon") > self.epsilon or exact(certificate.delta, "delta") > self.delta:
            raise PrivacyError(
                f"the certificate costs epsilon = {certificate.epsilon!r}, delta = {certificate.delta!r}, and only "
                f"{written_down(self.epsilon)} and {written_down(self.delta)} were charged. Charge before releasing."
            )
        if certificate.unit != self.unit:
            raise PrivacyError(
                f"the certificate protects unit {certificate.unit!r}, and unit {self.unit!r} was charged. Release what "
                "was paid for."
            )
        if certificate.charge != self.reference:
            raise PrivacyError(
                f"the certificate does not name the charge {self.id} that is to pay for it, so it may belong to other "
                "draws. Hand the charge's reference to the estimator before noise is drawn."
            )
