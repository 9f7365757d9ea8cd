"""The card of a release: what it promises, costs and holds, on one page for people."""

from dpsr.report.budget import Budget
from dpsr.report.frontier import Expectation
from dpsr.report.page import card

__all__ = ["Budget", "Expectation", "card"]
