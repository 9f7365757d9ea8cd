"""What somebody wants audited, and which audit answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpsr.audit.auditing import audit_method, audit_planted, audit_release
from dpsr.audit.findings import AuditReport
from dpsr.audit.likes.auditing import audit_likes, audit_planted_likes
from dpsr.audit.people.auditing import audit_people, audit_planted_people
from dpsr.data import demo_ratings
from dpsr.engine.raw import RawRatings
from dpsr.errors import ParameterError
from dpsr.release import Release
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.types import Scale

DEMO_SCALE, DEMO_EPSILON, DEMO_DELTA = Scale(1, 5), 1.0, 1e-5


@dataclass(frozen=True)
class AuditRequest:
    """One of: a release, ratings of one's own, made-up ratings on a scale, the embedded sample, planted errors."""

    method: str = "default"
    scale: Scale | None = None
    epsilon: float | None = None
    release: Release | ItemRelease | LikesRelease | None = None
    ratings: RawRatings | None = None
    demo: bool = False
    planted: bool = False
    seed: int | None = None
    unit: str = "value"
    delta: float | None = None
    likes: bool = False

    def answer(self, progress: Callable[[str], None] = lambda _: None) -> AuditReport:
        """Run the audit that was asked for."""
        self._check()
        if self.likes or isinstance(self.release, LikesRelease):
            return self._answer_likes(progress)
        if self.unit != "value" or isinstance(self.release, ItemRelease):
            return self._answer_people(progress)
        if isinstance(self.release, Release):
            return audit_release(self.release, seed=self.seed, progress=progress)
        scale, epsilon = self.scale or DEMO_SCALE, DEMO_EPSILON if self.epsilon is None else self.epsilon
        if self.planted:
            return audit_planted(scale, epsilon, seed=self.seed, progress=progress)
        ratings = demo_ratings() if self.demo else self.ratings
        report = audit_method(self.method, scale, epsilon, ratings, seed=self.seed, progress=progress)
        return report.open_to_all() if self.demo else report

    def _answer_people(self, progress: Callable[[str], None]) -> AuditReport:
        """Canary people; what a release of people states is audited by asking its questions again."""
        unit, scale, epsilon, delta = self.unit, self.scale or DEMO_SCALE, self.epsilon or DEMO_EPSILON, self.delta
        if isinstance(self.release, ItemRelease):
            stated = self.release.certificate
            unit, scale = stated.unit, self.release.scale
            epsilon, delta = float(stated.nominal or stated.epsilon), stated.delta
        delta = DEMO_DELTA if delta is None else delta
        if self.planted:
            return audit_planted_people(scale, epsilon, delta, seed=self.seed, progress=progress)
        return audit_people(unit, scale, epsilon, delta, seed=self.seed, progress=progress)

    def _answer_likes(self, progress: Callable[[str], None]) -> AuditReport:
        """Canary people who do not rate; what a release of likes states is audited by asking its questions again."""
        unit, epsilon, delta = self.unit, self.epsilon or DEMO_EPSILON, self.delta
        if isinstance(self.release, LikesRelease):
            stated = self.release.certificate
            unit, epsilon, delta = stated.unit, float(stated.nominal or stated.epsilon), stated.delta
        delta = DEMO_DELTA if delta is None else delta
        if self.planted:
            return audit_planted_likes(epsilon, delta, seed=self.seed, progress=progress)
        return audit_likes(unit, epsilon, delta, seed=self.seed, progress=progress)

    def _check(self) -> None:
        if self.likes and (self.scale is not None or self.demo):
            raise ParameterError("interactions have no scale, and the embedded sample has ratings: leave both out.")
        if self.unit == "value" and self.delta is not None:
            raise ParameterError("the value of a rating is protected without a delta: leave it out, or name a --unit.")
        if self.unit != "value" and (self.ratings is not None or self.method != "default"):
            raise ParameterError(
                "units of people are audited with made-up people, who may be there or not; those in a file are. Leave "
                "the file and --method out."
            )
        if sum((self.release is not None, self.ratings is not None, self.demo, self.planted)) > 1:
            raise ParameterError("audit one thing at a time: a ratings file, a release folder, --demo or --planted.")
        if self.release is not None and (self.scale or self.epsilon is not None):
            raise ParameterError("a release folder states its own scale and epsilon: leave out --scale and --epsilon.")
        if self.demo and self.scale is not None:
            raise ParameterError(f"the embedded sample is on the scale {DEMO_SCALE}: leave out --scale.")
        alone = self.release is not None or self.demo or self.planted
        if self.likes and not alone and self.epsilon is None:
            raise ParameterError("an audit of likes needs --epsilon and --unit user or rating, or a release folder.")
        if not self.likes and not alone and (self.scale is None or self.epsilon is None):
            raise ParameterError("an audit needs --scale and --epsilon, or --demo, --planted or a release folder.")
