"""Methods of lists side by side, on interactions: both protocols, the unit of protection on every line."""

from dpsr.evaluate.studies.likes.study import FRONTIER_EPSILONS, likes_frontier, likes_study, requested_likes

__all__ = ["FRONTIER_EPSILONS", "likes_frontier", "likes_study", "requested_likes"]
