"""The frontier of privacy and accuracy on real rating sets: who reaches which error at which epsilon."""

from dpsr.evaluate.studies.frontier.study import frontier_study, people_frontier_study

__all__ = ["frontier_study", "people_frontier_study"]
