"""Every section: importing a module registers what it measures. Add yours here."""

from benchmarks.registry import SECTIONS

NAMES = sorted(SECTIONS)
