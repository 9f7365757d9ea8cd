"""Stage 3 from its start to its end: which start, how many sweeps.

Averaging over uncertain factors shrinks them, and where noise hides them it may shrink them away before they can show:
variational inference has several fixed points there, and the start decides on one. So there are three starts,

    cautious    what is not explained yet is residual: factors must show
    hopeful     factors are expected, at their prior size
    bold        factors are taken for known, as alternating least squares does

and noisy ratings that were held out choose among them; then the chosen one learns on with all ratings. On large sets
rows are well known, and the cautious start is the only one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.complete.slopes import Slopes
from dpsr.types.effects import Message
from dpsr.types.levels import LevelFamily, with_variance

Floats = npt.NDArray[np.float64]

_SWEEPS, _SETTLED = 8, 0.005
_BOLD_SWEEPS, _STALLED = 60, 0.96
TRIAL_RATINGS = 200_000
"""The most ratings with which several starts are tried: three times the work."""


@dataclass(frozen=True)
class Learning:
    """What all starts have in common: the symbols' channels, the levels and their use, and what the sums say."""

    tables: Mapping[int, Floats]
    y: Floats
    log_base: Floats
    messages: tuple[Message, Message]

    def learn(self, state: Slopes, released: str) -> Slopes:
        """The state after learning; the mean of every rating becomes the column `released`."""
        several = state.design.census.n_ratings <= TRIAL_RATINGS
        state.find_effects(self.tables, self._family(state))
        state.find_factors(self.tables, self._family(state), trial=several)
        if several:
            state = self._from_best_start(state)
        else:
            self._settle(state, begin=True)
        state.finish(self.tables, self._family(state), self.messages[1], released)
        return state

    def _family(self, state: Slopes) -> LevelFamily:
        """Ratings around their means as a state sees them."""
        return with_variance(self.y, self.log_base, state.residual, state.sample)

    def _from_best_start(self, state: Slopes) -> Slopes:
        """Each start learns without the ratings held out; the most likely one learns on with them."""
        cautious, hopeful, bold = state.fork(), state.fork(), state.fork()
        hopeful.expect_factors()
        for start in (cautious, hopeful):
            self._settle(start, begin=True, trial=True)
        self._take_for_known(bold, begin=True, trial=True)
        self._settle(bold, trial=True)
        best = self._most_likely([cautious, hopeful, bold])
        if best is bold:
            self._take_for_known(best)
        self._settle(best)
        return best

    def _take_for_known(self, state: Slopes, *, begin: bool = False, trial: bool = False) -> None:
        """Bold sweeps, two by two, as long as each pair leaves clearly less unexplained."""
        before = np.inf
        for pair in range(_BOLD_SWEEPS // 2):
            now = self._family(state)
            state.sweep(self.tables, now, self.messages, users=pair > 0 or not begin, bold=True, trial=trial)
            state.sweep(self.tables, now, self.messages, bold=True, trial=trial)
            if pair > 1 and state.residual > _STALLED * before:
                break
            before = state.residual

    def _settle(self, state: Slopes, *, begin: bool = False, trial: bool = False) -> None:
        """Sweep until the means settle; the spread of ratings around them is learned on the way.

        At the beginning items come first, because users know nothing yet about their factors.
        """
        for sweep in range(_SWEEPS):
            if sweep % 2 == 0:
                now = self._family(state)
            begins = begin and sweep == 0
            moved = state.sweep(self.tables, now, self.messages, users=not begins, trial=trial)
            if moved < _SETTLED and not begins:
                break

    def _most_likely(self, states: Sequence[Slopes]) -> Slopes:
        """The first, or a later one under which held-out symbols are more likely, by more than a standard error."""
        family = self._family(states[0])  # one spread for all, because the boldest know least how far they are off
        best, found = states[0], states[0].held_out(self.tables, family)
        for state in states[1:]:
            chances = state.held_out(self.tables, family)
            gain = chances - found
            if gain.sum() > np.sqrt(len(gain)) * gain.std():
                best, found = state, chances
        return best
