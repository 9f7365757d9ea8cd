"""The ledger's refusals in words, and who is writing."""

from __future__ import annotations

import getpass
import os
import socket
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsr.certify.amounts import written_down, written_up
from dpsr.database import Database
from dpsr.privacy.ledger.rules import LONGEST
from dpsr.quoting import printable

if TYPE_CHECKING:
    from dpsr.privacy.ledger.budget import Budget

UNIT_WORDS = {"value": "the value of one rating", "rating": "one rating", "user": "one person"}
"""What a budget protects, for people."""


def current_user(given: str | None) -> str:
    """Who is doing this: as given, or the login and the machine."""
    try:
        login = getpass.getuser()
    except (KeyError, OSError):  # a container without a password file
        login = str(os.getuid())
    name = given or f"{login}@{socket.gethostname()}"
    return "".join(character for character in name if character.isprintable())[: LONGEST["who"]]


def one_line(text: str, column: str) -> str:
    """What somebody wrote, as the ledger keeps it: short and printable."""
    return printable(text, LONGEST[column])


def no_ledger(database: Database) -> str:
    """Nothing was found where a ledger should be."""
    return (
        f"there is no ledger at {database}. Check the address, or start one: "
        "dpsr ledger init --ledger ledger.db --dataset NAME --epsilon 3."
    )


def foreign_columns(database: Database, names: list[str]) -> str:
    """The table is not one that this version made."""
    shown = ", ".join(printable(name, 30) for name in names[:5])
    return (
        f"the table dpsr_events of {database} has other columns than this version knows: {shown}. Use the version of "
        "dpsr that made it, or a copy that was not changed."
    )


def old_format(database: Database) -> str:
    """A ledger of format 1 is not written any more."""
    return (
        f"the ledger {database} is of format 1, which can be read and no longer charged. Nothing was spent. Bring it "
        f"up to date, once and with every charge kept: dpsr ledger migrate --ledger {database}."
    )


def broken(dataset: str, number: int, why: str) -> str:
    """The reader met what the writer does not write."""
    return (
        f"the history of {dataset!r} was changed by other hands than dpsr's: entry {number} {why}. Nothing can be "
        "charged to it. Restore it from a copy that was not changed."
    )


def not_written(why: str) -> str:
    """The writer was asked for what the reader refuses."""
    return (
        f"an entry that {why} is not written, and nothing was spent. Check what was asked for, and the clock of this "
        "machine."
    )


def no_budget(ledger: object, dataset: str) -> str:
    """A data set nobody has set a budget for."""
    return f"{ledger} has no budget for {dataset!r}. Set one with: dpsr ledger init --dataset {dataset!r}."


def other_unit(budget: Budget, unit: str) -> str:
    """A price for one unit of protection is not a price for another."""
    return (
        f"the budget of {budget.dataset!r} is for {UNIT_WORDS[budget.unit]} (unit {budget.unit!r}), and a charge for "
        f"unit {str(unit)!r} was asked for; prices for two units do not add up. Nothing was spent. Ask for unit "
        f"{budget.unit!r}, or set a budget for the other one under a name of its own (dpsr ledger init --unit {unit})."
    )


def overspent(budget: Budget, epsilon: Fraction, delta: Fraction) -> str:
    """Why a charge is refused, and what could be charged instead."""
    asked, left = f"epsilon = {written_up(epsilon)}", f"epsilon = {written_down(budget.left_epsilon)}"
    if delta or budget.delta:
        asked += f", delta = {written_up(delta)}"
        left += f", delta = {written_down(budget.left_delta)}"
    advice = (
        f"Ask for at most {left}."
        if budget.left_epsilon
        else "These ratings are exhausted: use the releases that exist, or other ratings."
    )
    times = "charge" if budget.charges == 1 else "charges"
    return (
        f"{budget.dataset!r} has {left} left of {written_down(budget.epsilon)} ({budget.charges} {times} so far), and "
        f"{asked} was asked for. Nothing was spent. {advice}"
    )
