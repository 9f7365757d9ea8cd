"""Where randomness comes from: a stream cipher keyed once, read by position.

AES-256 in counter mode turns a key into a stream of bits that nobody without the key can tell from coin flips. The key
comes from the operating system's generator, lives in memory only, and is never written or shown. Because any place of
the stream can be read directly, the noise of rating i is a function of (key, question, i): a task that is retried, a
different number of threads or another partition of the work draws the same symbols, so that every rating is answered
exactly once.

`NoiseSource.seeded(seed)` makes its key from a seed, for experiments: whoever has the seed can subtract the noise, so
everything it touches is marked not private.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

_CIPHER_BLOCK = 16
_KEY = 32
_STREAMS = 1 << 63
_ZEROS = bytes(1 << 16)
"""What is encrypted, piece after piece: few enough to stay near the processor, where the stream itself is long."""


@dataclass(frozen=True)
class NoiseStream:
    """One stream of uniform bits under a key; any place can be read, and reads the same every time."""

    _key: bytes
    _number: int

    def half_words(self, n: int, start: int = 0) -> npt.NDArray[np.uint16]:
        """n uniform 16-bit integers, from place `start` on."""
        return self._bytes(2 * start, 2 * n).view(np.uint16)

    def words(self, n: int, start: int = 0) -> npt.NDArray[np.uint64]:
        """n uniform 64-bit integers, from place `start` on."""
        return self._bytes(8 * start, 8 * n).view(np.uint64)

    def fork(self) -> NoiseStream:
        """A second stream that belongs to this one."""
        return NoiseStream(self._key, self._number + _STREAMS)

    def _bytes(self, start: int, n: int) -> npt.NDArray[np.uint8]:
        block, skip = divmod(start, _CIPHER_BLOCK)
        counter = self._number.to_bytes(8, "big") + block.to_bytes(8, "big")
        encryptor = Cipher(algorithms.AES(self._key), modes.CTR(counter)).encryptor()
        if skip + n <= len(_ZEROS):
            return np.frombuffer(encryptor.update(_ZEROS[: skip + n]), dtype=np.uint8)[skip:]
        stream = np.empty(skip + n + _CIPHER_BLOCK - 1, dtype=np.uint8)  # the cipher asks for room to spare
        room = stream.data
        for at in range(0, skip + n, len(_ZEROS)):
            encryptor.update_into(_ZEROS[: skip + n - at], room[at:])
        stream.setflags(write=False)
        return stream[skip : skip + n]

    def __repr__(self) -> str:  # a key is never shown
        return "NoiseStream"


@dataclass(eq=False)
class NoiseSource:
    """A key, and whether it is secret. Every question to the ratings reads a stream of its own."""

    private: bool
    _key: bytes = field(repr=False)
    _asked: int = field(default=0, repr=False)

    @classmethod
    def system(cls) -> NoiseSource:
        """A fresh key from the operating system's cryptographically secure generator."""
        return cls(True, os.urandom(_KEY))

    @classmethod
    def seeded(cls, seed: int) -> NoiseSource:
        """A reproducible key for experiments. NOT PRIVATE."""
        return cls(False, hashlib.sha256(f"dpsr experiment {int(seed)}".encode()).digest())

    @classmethod
    def of_seed(cls, seed: int | None) -> NoiseSource:
        """The system's noise; where there is a seed, that of the experiment. NOT PRIVATE then."""
        return cls.system() if seed is None else cls.seeded(seed)

    @property
    def kind(self) -> str:
        return "system" if self.private else "seeded"

    @property
    def identity(self) -> str:
        """A public name for what was drawn so far, 32 hexadecimal digits; it tells nothing about the key."""
        return hashlib.sha256(b"dpsr draws %d " % self._asked + self._key).hexdigest()[:32]

    def stream(self) -> NoiseStream:
        """The next stream; no two questions share one."""
        self._asked += 1
        return NoiseStream(self._key, self._asked)
