"""`dpsr ledger`: budgets of data sets, kept across runs and people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from dpsr.cli.terminal import out

if TYPE_CHECKING:
    from dpsr.privacy.ledger.ledger import Budget
    from dpsr.privacy.ledger.log import Event

app = typer.Typer(help="Budgets of data sets, kept across runs and people.", no_args_is_help=True)

LEDGER_HELP = "a file such as ledger.db, or postgresql://user@host/database."

LedgerAddress = Annotated[str, typer.Option("--ledger", envvar="DPSR_LEDGER", help=f"The ledger: {LEDGER_HELP}")]
Dataset = Annotated[str | None, typer.Option(help="The data set in the ledger, if it holds more than one.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


@app.command(epilog="Example: dpsr ledger init --ledger ledger.db --dataset ratings --epsilon 3")
def init(
    ledger: LedgerAddress,
    dataset: Annotated[str, typer.Option(help="A name for the ratings, for good.")],
    epsilon: Annotated[str, typer.Option(help="All that may ever be spent per rating, over all releases.")],
    delta: Annotated[str, typer.Option(help="The same for delta; 0 allows pure differential privacy only.")] = "0",
    note: Annotated[str, typer.Option(help="A line for the history, such as who decided.")] = "",
    as_json: AsJson = False,
) -> None:
    """Give a data set its budget, once; the ledger is made if it is not there."""
    from dpsr.privacy.ledger.ledger import Ledger

    budget = Ledger.create(ledger, dataset, epsilon, delta, note=note).budget(dataset)
    if as_json:
        typer.echo(json.dumps(budget_record(budget), indent=2))
        return
    out.print(
        f"[bold]{escape(dataset)}[/bold] may cost epsilon = {escape(epsilon)} per rating in all. Spend from it with: "
        "dpsr release ... --ledger",
        escape(str(Ledger.open(ledger))),
    )


@app.command(epilog="Example: dpsr ledger show --ledger ledger.db")
def show(ledger: LedgerAddress, as_json: AsJson = False) -> None:
    """What every data set may cost, has cost and has left."""
    from dpsr.certify.amounts import written_down, written_up
    from dpsr.privacy.ledger.ledger import Ledger

    budgets = Ledger.open(ledger).budgets()
    if as_json:
        typer.echo(json.dumps([budget_record(budget) for budget in budgets], indent=2))
        return
    table = Table("data set", "budget", "spent", "left", "charges", "releases")
    for b in budgets:
        amounts = [
            _pair(write(epsilon), write(delta) if b.delta else "")
            for write, epsilon, delta in (
                (written_down, b.epsilon, b.delta),
                (written_up, b.spent_epsilon, b.spent_delta),
                (written_down, b.left_epsilon, b.left_delta),
            )
        ]
        table.add_row(escape(b.dataset), *amounts, str(b.charges), str(b.releases))
    out.print(table)


@app.command(epilog="Example: dpsr ledger history --ledger ledger.db --dataset ratings")
def history(ledger: LedgerAddress, dataset: Dataset = None, as_json: AsJson = False) -> None:
    """Who spent what, when, on which data set, and for which certificate."""
    from dpsr.certify.amounts import written_up
    from dpsr.privacy.ledger.ledger import Ledger
    from dpsr.quoting import printable

    book = Ledger.open(ledger)
    events = book.history(None if dataset is None else book.budget(dataset).dataset)
    if as_json:
        typer.echo(json.dumps([event_record(event) for event in events], indent=2))
        return
    table = Table("when (UTC)", "who", "data set", "what", "epsilon", "method", "certificate", "note")
    for event in events:
        when = event.at.replace("T", " ").removesuffix("+00:00")
        price = _pair(written_up(event.epsilon), written_up(event.delta) if event.delta else "")
        words = (when, event.who, event.dataset, event.kind, price, event.method, _short(event), event.note)
        table.add_row(*(escape(printable(word, 200)) for word in words))
    out.print(table)


def _pair(epsilon: str, delta: str) -> str:
    return f"{epsilon}, delta {delta}" if delta else epsilon


def _short(event: Event) -> str:
    """Enough of a certificate's SHA-256 to find the folder; --json has all of it."""
    return (event.certificate or "")[:16]


def budget_record(budget: Budget) -> dict[str, Any]:
    """Exact fractions as text, with floats beside them that err on the safe side."""
    from dpsr.certify.amounts import float_below
    from dpsr.certify.exact import float_up

    return {
        "dataset": budget.dataset,
        "epsilon": float_below(budget.epsilon),
        "delta": float_below(budget.delta),
        "spent_epsilon": float_up(budget.spent_epsilon),
        "spent_delta": float_up(budget.spent_delta),
        "left_epsilon": float_below(budget.left_epsilon),
        "left_delta": float_below(budget.left_delta),
        "exact": {"epsilon": str(budget.epsilon), "spent": str(budget.spent_epsilon), "left": str(budget.left_epsilon)},
        "charges": budget.charges,
        "releases": budget.releases,
    }


def event_record(event: Event) -> dict[str, Any]:
    """One line of the history; amounts are exact fractions."""
    return event.row()
