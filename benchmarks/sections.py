"""Every section: importing a module registers what it measures. Add yours here."""

from benchmarks import dense, first_call, fit, growth, large, neighbours, paper, people, sampler, spark, stage_three  # noqa: F401
from benchmarks.registry import SECTIONS

NAMES = sorted(SECTIONS)
