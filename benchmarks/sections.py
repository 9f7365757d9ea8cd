"""Every section: importing a module registers what it measures. Add yours here."""

from benchmarks import (  # noqa: F401
    dense,
    first_call,
    fit,
    growth,
    large,
    likes,
    neighbours,
    paper,
    people,
    sampler,
    spark,
    stage_three,
)
from benchmarks.registry import SECTIONS

NAMES = sorted(SECTIONS)
