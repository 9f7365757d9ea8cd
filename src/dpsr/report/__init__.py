"""The card of a release: what it promises, costs and holds, on one page for people."""

from dpsr.release.folder.budget_page import Budget
from dpsr.report.card import card, folder_pages

__all__ = ["Budget", "card", "folder_pages"]
