"""A per-rating mechanism as a finite table, so that its price is computed and not argued.

    P[symbol y | level x] = weights[x, y] / 2**BITS,   exactly

Attacks on the floating-point representation of noise (Mironov 2012 and after) have nothing to work on: sampling
compares integers (`sampler.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsr.errors import PrivacyError
from dpsr.privacy.noise import NoiseSource, NoiseStream
from dpsr.privacy.sampler import BITS, Sampler, to_weights
from dpsr.types import Scale
from dpsr.types.exact import delta_of, epsilon_of

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Channel:
    """A finite randomiser of rating levels, with everything its price can be computed from.

    `outputs[y]` is the rating value symbol y is published as. `settings` are public facts for the certificate.
    """

    scale: Scale
    outputs: Floats
    weights: npt.NDArray[np.uint64]
    mechanism: str
    settings: dict[str, float]

    def __post_init__(self) -> None:
        k, s = self.weights.shape
        if k != self.scale.n_levels or s != len(self.outputs):
            raise PrivacyError(
                f"a channel needs one row per level and one column per output, found {k} x {s} for "
                f"{self.scale.n_levels} levels and {len(self.outputs)} outputs"
            )
        self._sampler  # noqa: B018 (refuses rows that do not sum up)
        self.weights.setflags(write=False)
        self.outputs.setflags(write=False)

    @classmethod
    def from_probabilities(
        cls, scale: Scale, outputs: Floats, probabilities: Floats, *, mechanism: str, settings: dict[str, float]
    ) -> Channel:
        """A channel from real probabilities, rounded to integers. Its price is that of the integers."""
        return cls(scale, np.asarray(outputs, dtype=np.float64), to_weights(probabilities), mechanism, settings)

    @cached_property
    def epsilon(self) -> float:
        """The exact price of one rating, rounded up to the next float; infinite if a cell is empty."""
        return epsilon_of(self.weights)

    def delta(self, epsilon: float) -> float:
        """The exact delta of one rating at `epsilon`, rounded up. Enumerated once."""
        if epsilon not in self._deltas:
            self._deltas[epsilon] = delta_of(self.weights, BITS, epsilon)
        return self._deltas[epsilon]

    @cached_property
    def _deltas(self) -> dict[float, float]:
        return {}

    @cached_property
    def probabilities(self) -> Floats:
        return self.weights / 2.0**BITS

    def posterior(self, prior: npt.ArrayLike) -> Floats:
        """P[level x | symbol y] under a public prior over levels, one column per symbol."""
        joint = np.asarray(prior, dtype=np.float64)[:, None] * self.probabilities
        evidence = joint.sum(axis=0)
        return joint / np.where(evidence > 0, evidence, 1)

    def expected_error(self, prior: npt.ArrayLike, *, guess: str = "output") -> float:
        """Root mean squared error of a guess at the true rating under a public prior.

        `guess="output"` takes the published value itself, `guess="posterior"` the posterior mean, the best there is.
        """
        p = np.asarray(prior, dtype=np.float64)
        values = self.scale.values
        if guess == "posterior":
            guesses = values @ self.posterior(p)
        elif guess == "output":
            guesses = self.outputs
        else:
            raise PrivacyError(f"guess must be 'output' or 'posterior', found {guess!r}")
        joint = p[:, None] * self.probabilities
        return float(np.sqrt((joint * (values[:, None] - guesses[None, :]) ** 2).sum()))

    def sample(self, levels: npt.NDArray[np.uint16], noise: NoiseSource) -> npt.NDArray[np.uint16]:
        """One symbol per level, exactly as the integer table says."""
        return self.draw(levels, noise.stream())

    def draw(self, levels: npt.NDArray[np.uint16], stream: NoiseStream, start: int = 0) -> npt.NDArray[np.uint16]:
        """The same for ratings that stand from place `start` on in a stream."""
        return self._sampler.draw(levels, stream, start)

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self.weights)
