"""The ledger's refusals in words, and the names it takes down."""

from __future__ import annotations

import getpass
import os
import socket
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsr.certify.amounts import written_down, written_up
from dpsr.database import Database
from dpsr.errors import LedgerError

if TYPE_CHECKING:
    from dpsr.privacy.ledger.ledger import Budget

_LONGEST = 120


def label(name: str) -> str:
    """A data set's name: one short printable line."""
    if not name.strip() or name != name.strip() or len(name) > _LONGEST or not name.isprintable():
        raise LedgerError(
            f"a data set has a name of 1 to {_LONGEST} printable characters without spaces around it, "
            f"found {name[:_LONGEST]!r}."
        )
    return name


def current_user(given: str | None) -> str:
    """Who is doing this: as given, or the login and the machine."""
    try:
        login = getpass.getuser()
    except (KeyError, OSError):  # a container without a password file
        login = str(os.getuid())
    name = given or f"{login}@{socket.gethostname()}"
    return "".join(character for character in name if character.isprintable())[:_LONGEST]


def no_ledger(database: Database) -> str:
    """Nothing was found where a ledger should be."""
    return (
        f"there is no ledger at {database}. Check the address, or start one: "
        "dpsr ledger init --ledger ledger.db --dataset NAME --epsilon 3."
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
