"""`dpsr ledger`: budgets of data sets, kept across runs and people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from dpsr.cli.help import Application
from dpsr.cli.rows import Json
from dpsr.cli.terminal import out
from dpsr.cli.units import Unit

if TYPE_CHECKING:
    from dpsr.privacy.ledger.budget import Budget
    from dpsr.privacy.ledger.event import Event

app = Application(help="Budgets of data sets, kept across runs and people.")

LEDGER_HELP = "a file such as ledger.db, or postgresql://user@host/database."

LedgerAddress = Annotated[str, typer.Option("--ledger", envvar="DPSR_LEDGER", help=f"The ledger: {LEDGER_HELP}")]
Dataset = Annotated[str | None, typer.Option(help="The data set in the ledger, if it holds more than one.")]


@app.command(epilog="Example: dpsr ledger init --ledger ledger.db --dataset ratings --epsilon 3")
def init(
    ledger: LedgerAddress,
    dataset: Annotated[str, typer.Option(help="A name for the ratings, for good.")],
    epsilon: Annotated[str, typer.Option(help="All that may ever be spent per unit, over all releases.")],
    delta: Annotated[str, typer.Option(help="The same for delta; 0 allows pure differential privacy only.")] = "0",
    unit: Annotated[
        Unit, typer.Option(help="What is protected: the value of a rating, a rating, or a person with all of them.")
    ] = Unit.value,
    note: Annotated[str, typer.Option(help="A line for the history, such as who decided.")] = "",
    as_json: Json = False,
) -> None:
    """Give a data set its budget, once; the ledger is made if it is not there."""
    from dpsr.certify.amounts import exact
    from dpsr.errors import PrivacyError
    from dpsr.privacy.ledger.ledger import Ledger
    from dpsr.privacy.ledger.messages import UNIT_WORDS

    if unit is not Unit.value and not exact(delta, "delta"):
        raise PrivacyError(
            f"a budget for unit '{unit}' needs a delta, or no release could be charged to it: every release costs one. "
            "Add --delta, the sum for all releases, such as 1e-5."
        )
    book = Ledger.create(ledger, dataset, epsilon, delta, unit=unit.value, note=note)
    budget = book.budget(dataset)
    if as_json:
        typer.echo(json.dumps(budget_record(budget), indent=2))
        return
    most_delta = f", delta = {escape(delta)}" if budget.delta else ""
    out.print(
        f"[bold]{escape(budget.dataset)}[/bold] may cost epsilon = {escape(epsilon)}{most_delta} in all, for "
        f"{UNIT_WORDS[budget.unit]}. Spend from it with: dpsr release ... --ledger {escape(str(book))}"
    )


@app.command(epilog="Example: dpsr ledger show --ledger ledger.db")
def show(ledger: LedgerAddress, as_json: Json = False) -> None:
    """What every data set may cost, has cost and has left, and the head of its history."""
    from dpsr.privacy.ledger.ledger import Ledger

    budgets = Ledger.open(ledger).budgets()
    if as_json:
        typer.echo(json.dumps([budget_record(budget) for budget in budgets], indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("data set", "unit", "budget", "spent", "left", "charges", "releases"):
        table.add_column(name, overflow="fold")
    for budget in budgets:
        table.add_row(escape(budget.dataset), budget.unit, *amounts(budget), str(budget.charges), str(budget.releases))
    out.print(table)
    out.print("\nHeads, to be noted elsewhere and compared by: dpsr ledger check --head")
    for budget in budgets:
        out.print(f"{escape(budget.dataset)}={budget.head}  (entry {budget.entries})", soft_wrap=True)


@app.command(epilog="Example: dpsr ledger history --ledger ledger.db --dataset ratings")
def history(ledger: LedgerAddress, dataset: Dataset = None, as_json: Json = False) -> None:
    """Who spent what, when, on which data set, and for which certificate."""
    from dpsr.privacy.ledger.ledger import Ledger

    book = Ledger.open(ledger)
    events = book.history(None if dataset is None else book.budget(dataset).dataset)
    if as_json:
        typer.echo(json.dumps([event.row() for event in events], indent=2))
        return
    for event in events:
        out.print("\n".join(lines(event)), soft_wrap=True)


@app.command(epilog="Example: dpsr ledger check --ledger ledger.db --release release/")
def check(
    ledger: LedgerAddress,
    head: Annotated[
        list[str] | None, typer.Option(help="DATASET=DIGEST as `show` printed it earlier: it must still occur.")
    ] = None,
    release: Annotated[
        list[Path] | None, typer.Option(help="A release folder: the charge it names must still occur.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read every history again by all rules, and compare it with heads noted earlier and folders handed out.

    Exit code 0: everything holds. 1: something does not, each with a line. 2: there is no ledger there.
    """
    from dpsr.privacy.ledger.examination import examine, head_of
    from dpsr.privacy.ledger.ledger import Ledger

    checks = examine(Ledger.open(ledger), [head_of(text) for text in head or ()], release or ())
    sound = all(one.holds for one in checks)
    if as_json:
        record = {"sound": sound, "holds": [c.words for c in checks if c.holds]}
        typer.echo(json.dumps({**record, "fails": [c.words for c in checks if not c.holds]}, indent=2))
        raise typer.Exit(not sound)
    for one in checks:
        word = "[green]holds[/green]" if one.holds else "[red]FAILS[/red]"
        out.print(f"{word}  {escape(one.words)}", soft_wrap=True)
    raise typer.Exit(not sound)


@app.command(epilog="Example: dpsr ledger migrate --ledger ledger.db")
def migrate(ledger: LedgerAddress) -> None:
    """Bring a ledger of an older version up to date, in one transaction, with every entry as it is."""
    from dpsr.privacy.ledger.migration import migrate as bring_up_to_date

    done = bring_up_to_date(ledger)
    entries = f"{done.entries} {'entry' if done.entries == 1 else 'entries'}"
    out.print(f"Up to date, with {entries} as before." if done.done else f"Nothing to do: {entries}, up to date.")
    if done.copy is not None:
        out.print(f"The ledger as it was is kept: {escape(done.copy.name)}", soft_wrap=True)
    for one, other in done.look_alikes:
        out.print(f"Two names that look alike have a budget each: {one!a}, {other!a}", soft_wrap=True)


def amounts(budget: Budget) -> tuple[str, str, str]:
    """Budget, spent and left, each rounded to the safe side."""
    from dpsr.certify.amounts import written_down, written_up

    pairs = (
        (written_down, budget.epsilon, budget.delta),
        (written_up, budget.spent_epsilon, budget.spent_delta),
        (written_down, budget.left_epsilon, budget.left_delta),
    )
    total, spent, left = (write(e) + (f", delta {write(d)}" if budget.delta else "") for write, e, d in pairs)
    return total, spent, left


def lines(event: Event) -> list[str]:
    """One entry in lines that fit a terminal of 80 columns unless people wrote more; nothing is cut."""
    from dpsr.certify.amounts import written_up
    from dpsr.quoting import printable

    price = f"epsilon = {written_up(event.epsilon)}" + (f", delta = {written_up(event.delta)}" if event.delta else "")
    per = f" per {event.unit}" if event.unit else ""
    when = event.at.replace("T", " ").removesuffix("+00:00")
    facts = [event.method and f"method {event.method}", event.note]
    named = ("charge", "certificate", "manifest", "fingerprint", "digest")
    shown = [
        f"{event.dataset} {event.number}: {event.kind}, {price}{per}",
        f"  {when} UTC, {event.who}",
        *(f"  {fact}" for fact in facts if fact),
        *(f"  {name:<11} {getattr(event, name)}" for name in named if getattr(event, name)),
    ]
    return [escape(printable(line, 600)) for line in shown]


def budget_record(budget: Budget) -> dict[str, Any]:
    """Exact fractions as text, with floats beside them that err on the safe side."""
    from dpsr.certify.amounts import float_below, float_up

    return {
        "dataset": budget.dataset,
        "unit": budget.unit,
        "epsilon": float_below(budget.epsilon),
        "delta": float_below(budget.delta),
        "spent_epsilon": float_up(budget.spent_epsilon),
        "spent_delta": float_up(budget.spent_delta),
        "left_epsilon": float_below(budget.left_epsilon),
        "left_delta": float_below(budget.left_delta),
        "exact": {"epsilon": str(budget.epsilon), "spent": str(budget.spent_epsilon), "left": str(budget.left_epsilon)},
        "charges": budget.charges,
        "releases": budget.releases,
        "entries": budget.entries,
        "head": budget.head,
    }
