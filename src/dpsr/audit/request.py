"""What somebody wants audited, and which audit answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpsr.audit.auditing import audit_method, audit_planted, audit_release
from dpsr.audit.findings import AuditReport
from dpsr.data import demo_ratings
from dpsr.errors import ParameterError
from dpsr.release import Release
from dpsr.types import Scale
from dpsr.types.raw import RawRatings

DEMO_SCALE, DEMO_EPSILON = Scale(1, 5), 1.0


@dataclass(frozen=True)
class AuditRequest:
    """One of: a release, ratings of one's own, made-up ratings on a scale, the embedded sample, planted errors."""

    method: str = "default"
    scale: Scale | None = None
    epsilon: float | None = None
    release: Release | None = None
    ratings: RawRatings | None = None
    demo: bool = False
    planted: bool = False
    seed: int | None = None

    def answer(self, progress: Callable[[str], None] = lambda _: None) -> AuditReport:
        """Run the audit that was asked for."""
        self._check()
        if self.release is not None:
            return audit_release(self.release, seed=self.seed, progress=progress)
        scale, epsilon = self.scale or DEMO_SCALE, DEMO_EPSILON if self.epsilon is None else self.epsilon
        if self.planted:
            return audit_planted(scale, epsilon, seed=self.seed, progress=progress)
        ratings = demo_ratings() if self.demo else self.ratings
        report = audit_method(self.method, scale, epsilon, ratings, seed=self.seed, progress=progress)
        return report.open_to_all() if self.demo else report

    def _check(self) -> None:
        if sum((self.release is not None, self.ratings is not None, self.demo, self.planted)) > 1:
            raise ParameterError("audit one thing at a time: a ratings file, a release folder, --demo or --planted.")
        if self.release is not None and (self.scale or self.epsilon is not None):
            raise ParameterError("a release folder states its own scale and epsilon: leave out --scale and --epsilon.")
        if self.demo and self.scale is not None:
            raise ParameterError(f"the embedded sample is on the scale {DEMO_SCALE}: leave out --scale.")
        alone = self.release is not None or self.demo or self.planted
        if not alone and (self.scale is None or self.epsilon is None):
            raise ParameterError("an audit needs --scale and --epsilon, or --demo, --planted or a release folder.")
