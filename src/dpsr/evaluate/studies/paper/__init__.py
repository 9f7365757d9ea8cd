"""The paper's experiment, repeated: every method, budget and seed on the paper's generator, under several readings."""

from dpsr.evaluate.studies.paper.study import paper_study

__all__ = ["paper_study"]
