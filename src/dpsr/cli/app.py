"""The command tree."""

from __future__ import annotations

from importlib.metadata import version

import typer

from dpsr.cli import (
    audit,
    benchmark,
    card,
    compare,
    demo,
    describe,
    doctor,
    explain,
    frontier,
    keys,
    ledger,
    personalise,
    plan,
    predict,
    recommend,
    release,
    reproduce,
    verify,
)
from dpsr.cli.terminal import out

app = typer.Typer(
    name="dpsr",
    help="Share ratings, or learn from them, without giving anyone away: differentially private sparse reconstruction.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Example: dpsr release ratings.csv --scale 1:5:1 --epsilon 1 --out release/",
)
app.command("release", epilog=release.EXAMPLE)(release.release)
app.command("card", epilog=card.EXAMPLE)(card.card)
app.command("verify", epilog=verify.EXAMPLE)(verify.verify)
app.command("audit", epilog=audit.EXAMPLE)(audit.audit)
app.command("explain", epilog=explain.EXAMPLE)(explain.explain)
app.add_typer(ledger.app, name="ledger")
app.add_typer(keys.app, name="keys")
app.command("plan", epilog=plan.EXAMPLE)(plan.plan)
app.command("describe", epilog=describe.EXAMPLE)(describe.describe)
app.command("recommend", epilog=recommend.EXAMPLE)(recommend.recommend)
app.command("predict", epilog=predict.EXAMPLE)(predict.predict)
app.command("personalise", epilog=personalise.EXAMPLE)(personalise.personalise)
app.command("compare", epilog=compare.EXAMPLE)(compare.compare)
app.command("doctor", epilog=doctor.EXAMPLE)(doctor.doctor)
app.command("reproduce", epilog=reproduce.EXAMPLE)(reproduce.reproduce)
app.command("frontier", epilog=frontier.EXAMPLE)(frontier.frontier)
app.command("benchmark", epilog=benchmark.EXAMPLE)(benchmark.benchmark)
app.command("demo", epilog=demo.EXAMPLE)(demo.demo)


def _show_version(asked: bool) -> None:
    if asked:
        out.print(f"dpsr {version('dpsr')}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Share ratings, or learn from them, without giving anyone away."""
