"""Randomness from the operating system, and exact noise for integer statistics."""

from dpsr.privacy.noise.source import NoiseSource

__all__ = ["NoiseSource"]
