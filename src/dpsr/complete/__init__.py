"""Stage 3: low-rank completion by alternating projections."""

from dpsr.complete.projections import alternate_projections

__all__ = ["alternate_projections"]
