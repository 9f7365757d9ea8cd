"""The card of a release: what it promises, costs and holds, on one page for people."""

from dpsr.release.folder.budget_page import Budget
from dpsr.report.card import card
from dpsr.report.plots import Expectation

__all__ = ["Budget", "Expectation", "card"]
