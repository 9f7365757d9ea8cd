"""Stage 3: low-rank completion by alternating projections."""

from dpsr.complete.projections import alternate_projections, predictions_at_ratings

__all__ = ["alternate_projections", "predictions_at_ratings"]
