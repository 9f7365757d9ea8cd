"""How many sweeps, and of which kind: the order in which slopes and factors are learned from noisy ratings.

**One start.** Averaging over uncertain factors shrinks them, and where noise hides them it may shrink them away before
they can show: variational inference has several fixed points there, and the start decides on one. Caution, under which
what is not explained yet is residual, is right on large sets, whose rows are well known, where there is nothing to
find, and where who rated what shows tastes, for slopes on its embeddings find these. On small sets without that a
direction that stands out of what random signs give (`start.py`) says that there is taste; there sweeps are bold at
first: they take factors for known, as alternating least squares does, for as long as each pair of sweeps leaves clearly
less unexplained. Caution follows, and takes back what was too much (decisions 44 and 62). Where no direction exceeds
what random signs give, there are no factors: they would be made of noise (decision 54).

**Factors that others bear out.** On larger sets a sixteenth of the ratings is left out of the first sweeps, and factors
are kept if those ratings follow them by a half and more: by less, predictions are better without them. Where nearly all
ratings are fives, a few ones lie eight deviations off; factors fit these one by one, every sweep finds less residual
and fits them closer, and neither caution nor a posterior variance sees it (decision 68).

**When to stop.** When means move by a small part of their own posterior deviation: what they may be off by anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpsr.arrays import Floats
from dpsr.engine.incidence import Turns
from dpsr.value.evidence import EvidenceState, Observations
from dpsr.value.levels import with_variance
from dpsr.value.sweep import Reader

_SWEEPS, _STABLE = 7, 0.04
"""Sweeps at most, and how far the means may still move, in deviations of what is uncertain about them: a thousandth of
the error that noise leaves."""

_BOLD_PAIRS, _CLEARLY_LESS = 30, 0.93
"""Pairs of bold sweeps at most, and what the second of a pair must leave unexplained of what was before."""

_BY_CHANCE, _STANDS_OUT = 1.01, 1.03
"""Strengths of directions: up to the first there is nothing that chance would not give, and factors are left out; from
the second on sweeps are bold at first, where the mask has no structure. Chance alone moves a strength by less than a
hundredth."""

_HELD_OUT, _TRIAL, _BORNE_OUT = Turns((240, 16)), 3, 0.5
"""Ratings that are left out, the second turn, of so many sweeps, and how far they must follow factors: half way, from
where on factors take away more of the error than they add."""

BETWEEN_TURNS = 1.1
"""By how much more ratings are expected to scatter around the means found between turns than a residual says: means are
off, too."""

SMALL = 20_000
"""The most ratings with which sweeps may be bold: on more, rows are known well enough for caution to find what there is
(decision 40)."""


def learn_from_symbols(
    state: EvidenceState,
    tables: Mapping[int, Floats],
    y: Floats,
    log_base: Floats,
    observations: Observations,
    released: str,
    *,
    may_be_bold: bool = True,
    effects_from_pairs: bool = True,
) -> EvidenceState:
    """Run the whole stage; the mean of every rating becomes the column `released`.

    `tables` are P[symbol | level] of every channel in use, `y` and `log_base` the levels and how they are used,
    `observations` what the sums say about items and about users. The two switches are for ablations.
    """
    learning = Learning(state, tables, y, log_base, observations)
    if effects_from_pairs:
        state.find_effects(learning.reader())
    if state.k > 0 and state.design.census.n_ratings > SMALL:
        learning.try_factors()
        learning.sweep_until_stable(_SWEEPS - _TRIAL)
    else:
        learning.start_small(may_be_bold=may_be_bold)
        learning.sweep_until_stable()
    state.finish(learning.reader(), observations[1], released)
    return state


def learn_between_turns(
    state: EvidenceState, tables: Mapping[int, Floats], y: Floats, log_base: Floats, observations: Observations
) -> None:
    """What the ratings of earlier turns say, roughly: how later ones are asked depends on it, and where learning from
    all of them starts. The state goes on from the turn before."""
    learning = Learning(state, tables, y, log_base, observations)
    if state.items is None:
        state.find_effects(learning.reader())
        learning.sweep_items()
    state.sweep(learning.reader(), observations)


@dataclass(frozen=True)
class Learning:
    """A state, and what all its sweeps read beside it."""

    state: EvidenceState
    tables: Mapping[int, Floats]
    y: Floats
    log_base: Floats
    observations: Observations

    def reader(self, held_out: Turns | None = None) -> Reader:
        """How symbols are read, with ratings around their means as the state sees them now."""
        family = with_variance(self.y, self.log_base, self.state.residual, self.state.sample)
        return replace(Reader.of(self.tables, family), held_out=held_out)

    def start_small(self, *, may_be_bold: bool) -> None:
        """Directions of taste against random signs: no factors, cautious ones, or bold sweeps to find them."""
        strength = self.state.find_factors(self.reader(), compare=may_be_bold)
        if strength is not None and strength < _BY_CHANCE:
            self.state.forget_factors()
        self.sweep_items()
        if strength is not None and strength > _STANDS_OUT and self.state.design.structure == 0:
            self.sweep_boldly()

    def try_factors(self) -> None:
        """A few sweeps without some ratings, which then tell whether factors are to be believed."""
        state, before = self.state, self.state.residual
        state.find_factors(self.reader(_HELD_OUT), compare=False)
        self.sweep_items(_HELD_OUT)
        for done in range(_TRIAL):
            state.sweep(self.reader(_HELD_OUT), self.observations)
            if done == 0:  # directions explain the ratings that they were just found in better than any others
                state.residual = before
        if state.factor_slope(self.reader(), _HELD_OUT) < _BORNE_OUT:
            state.forget_factors()
            state.residual = before

    def sweep_items(self, held_out: Turns | None = None) -> None:
        """At the beginning items alone: users know nothing yet about their factors."""
        self.state.sweep(self.reader(held_out), self.observations, users=False)

    def sweep_boldly(self) -> None:
        """Bold sweeps, two by two, as long as each pair leaves clearly less unexplained."""
        for _ in range(_BOLD_PAIRS):
            before, reader = self.state.residual, self.reader()
            for _ in range(2):
                self.state.sweep(reader, self.observations, bold=True)
            if self.state.residual > _CLEARLY_LESS * before:
                break

    def sweep_until_stable(self, most: int = _SWEEPS) -> None:
        """Sweep until the means are stable; the spread of ratings around them is looked at every second time."""
        for done in range(most):
            if done % 2 == 0:
                reader = self.reader()
            if self.state.sweep(reader, self.observations) < _STABLE:
                break
