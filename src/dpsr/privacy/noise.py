"""Where randomness comes from.

`NoiseSource.system()` reads the operating system's cryptographic generator. `NoiseSource.seeded(seed)` exists for
experiments: whoever has the seed can subtract the noise, so everything it touches is marked not private.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class NoiseSource:
    """A stream of uniform random bits and whether it can keep a secret."""

    _generator: np.random.Generator | None = None

    @classmethod
    def system(cls) -> NoiseSource:
        """The operating system's cryptographically secure generator."""
        return cls()

    @classmethod
    def seeded(cls, seed: int) -> NoiseSource:
        """A reproducible stream for experiments. NOT PRIVATE."""
        return cls(np.random.Generator(np.random.PCG64(seed)))

    @property
    def private(self) -> bool:
        return self._generator is None

    @property
    def kind(self) -> str:
        return "system" if self.private else "seeded"

    def half_words(self, n: int) -> npt.NDArray[np.uint16]:
        """n uniform 16-bit integers."""
        return np.frombuffer(self._bytes(2 * n), dtype=np.uint16)

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """n uniform 64-bit integers."""
        return np.frombuffer(self._bytes(8 * n), dtype=np.uint64)

    def _bytes(self, n: int) -> bytes:
        return os.urandom(n) if self._generator is None else self._generator.bytes(n)

    def __repr__(self) -> str:  # a seed is never shown
        return f"NoiseSource({self.kind})"
