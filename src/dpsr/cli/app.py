"""The command tree."""

from __future__ import annotations

from importlib.metadata import version

import typer
from rich.markup import escape

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
    serve,
    studio,
    synthesise,
    verify,
)
from dpsr.cli.help import Application, Group
from dpsr.cli.settings import FILE, defaults, read_settings
from dpsr.cli.terminal import err, out

FIRST, RELEASE, USE, CHECK, RESEARCH = "First steps", "Release", "Use a release", "Check", "Research"


class _Root(Group):
    order = (
        "demo", "studio", "describe", "plan", "explain", "ledger", "keys", "release", "card", "recommend", "predict",
        "personalise", "synthesise", "serve", "compare", "verify", "audit", "doctor", "reproduce", "frontier",
        "benchmark",
    )  # fmt: skip


app = Application(
    cls=_Root,
    name="dpsr",
    help="Share ratings, or learn from them, without giving anyone away.",
    epilog="Example: dpsr release ratings.csv --scale 1:5:1 --epsilon 1 --out release/\nHelp on one command: "
    "dpsr release -h",
)
app.command("demo", short_help="Try it on an embedded sample", epilog=demo.EXAMPLE, rich_help_panel=FIRST)(demo.demo)
app.command(
    "studio",
    short_help="From a file to a release in the browser, on this machine",
    epilog=studio.EXAMPLE,
    rich_help_panel=FIRST,
)(studio.studio)
app.command(
    "describe",
    short_help="What a rating file holds, without looking at a rating",
    epilog=describe.EXAMPLE,
    rich_help_panel=FIRST,
)(describe.describe)
app.command(
    "plan",
    short_help="What accuracy each epsilon would buy; spends nothing",
    epilog=plan.EXAMPLE,
    rich_help_panel=FIRST,
)(plan.plan)
app.command("explain", short_help="What an epsilon means", epilog=explain.EXAMPLE, rich_help_panel=FIRST)(
    explain.explain
)
app.add_typer(ledger.app, name="ledger", rich_help_panel=RELEASE)
app.add_typer(keys.app, name="keys", rich_help_panel=RELEASE)
app.command("release", short_help="Ratings in, private release out", epilog=release.EXAMPLE, rich_help_panel=RELEASE)(
    release.release
)
app.command(
    "card", short_help="Draw the card of a release again, and its plots", epilog=card.EXAMPLE, rich_help_panel=RELEASE
)(card.card)
app.command(
    "recommend",
    short_help="Lists for one user, somebody new, or everybody",
    epilog=recommend.EXAMPLE,
    rich_help_panel=USE,
)(recommend.recommend)
app.command("predict", short_help="Predicted ratings for a file of pairs", epilog=predict.EXAMPLE, rich_help_panel=USE)(
    predict.predict
)
app.command(
    "personalise",
    short_help="Your own people: lists from their own ratings, for them alone",
    epilog=personalise.EXAMPLE,
    rich_help_panel=USE,
)(personalise.personalise)
app.command(
    "synthesise",
    short_help="Made-up people from a release that protects real ones",
    epilog=synthesise.EXAMPLE,
    rich_help_panel=USE,
)(synthesise.synthesise)
app.command(
    "serve", short_help="A release behind an address that answers (JSON)", epilog=serve.EXAMPLE, rich_help_panel=USE
)(serve.serve)
app.command("compare", short_help="Releases side by side", epilog=compare.EXAMPLE, rich_help_panel=USE)(compare.compare)
app.command(
    "verify", short_help="Recompute the promise, check every byte", epilog=verify.EXAMPLE, rich_help_panel=CHECK
)(verify.verify)
app.command("audit", short_help="Attack the claim", epilog=audit.EXAMPLE, rich_help_panel=CHECK)(audit.audit)
app.command("doctor", short_help="Is this machine fit", epilog=doctor.EXAMPLE, rich_help_panel=CHECK)(doctor.doctor)
app.command("reproduce", short_help="The paper's experiment", epilog=reproduce.EXAMPLE, rich_help_panel=RESEARCH)(
    reproduce.reproduce
)
app.command(
    "frontier",
    short_help="Accuracy against epsilon on real ratings (not private)",
    epilog=frontier.EXAMPLE,
    rich_help_panel=RESEARCH,
)(frontier.frontier)
app.command(
    "benchmark",
    short_help="Every method side by side (not private)",
    epilog=benchmark.EXAMPLE,
    rich_help_panel=RESEARCH,
)(benchmark.benchmark)


def _show_version(asked: bool) -> None:
    if asked:
        out.print(f"dpsr {version('dpsr')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Share ratings, or learn from them, without giving anyone away."""
    if settings := read_settings():
        context.default_map = defaults(context.command, settings)
        if any(context.default_map.get(context.invoked_subcommand or "", {}).values()):
            err.print(f"Settings of {FILE}: {escape(', '.join(f'{k} = {v}' for k, v in settings.items()))}")
