"""`dpsr plan`: what accuracy to expect at each epsilon, before anything is spent."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from dpsr.cli.ledger import LEDGER_HELP, Dataset
from dpsr.cli.reading import (
    Delimiter,
    Duplicates,
    Item,
    OnDuplicates,
    Query,
    Rating,
    RatingsFile,
    Reading,
    ScaleText,
    Snap,
    Timestamp,
    User,
)
from dpsr.cli.terminal import out

EXAMPLE = "Example: dpsr plan ratings.csv --scale 1:5:1 --spread 1.1"

NOTE = (
    "Expected RMSE as a share of predicting one constant, from who rated what and typical shares of variance; no value "
    "was used. Of the squared error: what cannot be known, what too few ratings cost, what privacy costs."
)


def plan(
    ratings: RatingsFile,
    scale: ScaleText,
    epsilon: Annotated[str, typer.Option(help="Budgets to compare, separated by commas.")] = "0.1,0.5,1,2,3,5,10",
    spread: Annotated[
        float | None, typer.Option(help="Standard deviation of ratings, if you know it: RMSE in rating points.")
    ] = None,
    measure: Annotated[
        float | None, typer.Option(help="Spend this much epsilon to measure spread and shares of variance privately.")
    ] = None,
    user: User = None,
    item: Item = None,
    rating: Rating = None,
    timestamp: Timestamp = None,
    delimiter: Delimiter = None,
    duplicates: OnDuplicates = Duplicates.error,
    snap: Snap = False,
    query: Query = None,
    ledger: Annotated[
        str | None, typer.Option(envvar="DPSR_LEDGER", help=f"Charge --measure to this ledger: {LEDGER_HELP}")
    ] = None,
    dataset: Dataset = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Say what accuracy to expect at each epsilon, before anything is spent."""
    from dpsr.pipeline.plan import plan_table
    from dpsr.pipeline.publish import Account

    table = Reading(ratings, scale, user, item, rating, timestamp, delimiter, duplicates, snap, query).read()
    account = Account.open(ledger, dataset, measure, "dpsr plan --measure") if ledger and measure is not None else None
    report = plan_table(table, epsilon, spread=spread, measure=measure, account=account)
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2))
        return
    columns = ("epsilon", "RMSE / constant", "unknowable", "too few ratings", "privacy")
    shown = Table(*columns, *(("RMSE",) if report.spread else ()), title="What to expect", title_justify="left")
    for row in report.rows():
        shown.add_row(*row)
    out.print(shown)
    out.print(NOTE if report.certificate is None else report.certificate_words)
