"""The card of a release, with the forecasts its public mask allows."""

from __future__ import annotations

from pathlib import Path

from dpsr.errors import DpsrError, ReleaseError
from dpsr.release import load_release
from dpsr.release.release import Contents
from dpsr.report import Budget, Expectation, card
from dpsr.report.card import FILE as BUDGET_PAGE
from dpsr.report.files import check_files, write_files
from dpsr.value.allocation import forecast

CARD_PAGE = "card.html"
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
_APART = 1.15
"""Budgets nearer than this to the one asked for would be drawn on top of it."""


def pages_of(contents: Contents, budget: Budget | None = None) -> dict[str, str]:
    """The further pages of a release folder: the card, and what the ledger said if one was used."""
    pages = {CARD_PAGE: card_of(contents, budget=budget)}
    return pages if budget is None else {**pages, BUDGET_PAGE: budget.to_json()}


def card_of(contents: Contents, *, budget: Budget | None = None) -> str:
    """The page that goes into the folder: reads what the folder holds, public counts and what the ledger said."""
    return card(contents, forecasts=expected_accuracy(contents), budget=budget)


def expected_accuracy(contents: Contents) -> tuple[Expectation, ...]:
    """What each epsilon would buy, this release's own among them; empty for methods the forecast does not describe."""
    asked = contents.certificate.nominal
    if contents.method != "default" or asked is None:
        return ()
    census = contents.table.census
    others = [epsilon for epsilon in EPSILONS if not 1 / _APART < epsilon / asked < _APART]
    found = [forecast(census, contents.model.scale, epsilon) for epsilon in sorted([*others, asked])]
    return tuple(Expectation(f.epsilon, f.unknowable, f.learning, f.noise) for f in found)


def redraw(folder: Path, page: Path, plots: Path | None = None, *, overwrite: bool = False) -> list[Path]:
    """Draw the card of a release folder again as `page`, its plots into `plots`; the folder itself stays as it is."""
    check_files([page], overwrite=overwrite)
    contents = load_release(folder).contents
    try:
        files = {page: card_of(contents, budget=_budget_of(folder)).encode()}
        if plots is not None:
            from dpsr.report.figures import figures  # matplotlib, for those who want pictures

            files |= {plots / name: data for name, data in figures(contents, expected_accuracy(contents)).items()}
    except DpsrError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ReleaseError(
            f"{folder.name} reads like a release and holds something no release has ({type(error).__name__}). "
            "Check it with `dpsr verify`, and take the folder as `dpsr release` wrote it."
        ) from error
    return write_files(files, overwrite=overwrite)


def _budget_of(folder: Path) -> Budget | None:
    page = folder / BUDGET_PAGE
    return Budget.from_json(page.read_text("utf-8")) if page.exists() else None
