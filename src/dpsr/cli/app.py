"""The command tree."""

from __future__ import annotations

from importlib.metadata import version
from types import ModuleType

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

COMMANDS: dict[str, dict[str, tuple[ModuleType, str | None]]] = {
    "First steps": {
        "demo": (demo, "Try it on an embedded sample"),
        "studio": (studio, "From a file to a release in the browser, on this machine"),
        "describe": (describe, "What a rating file holds, without looking at a rating"),
        "plan": (plan, "What accuracy each epsilon would buy; spends nothing"),
        "explain": (explain, "What an epsilon means"),
    },
    "Release": {
        "ledger": (ledger, None),
        "keys": (keys, None),
        "release": (release, "Ratings in, private release out"),
        "card": (card, "Draw the card of a release again, and its plots"),
    },
    "Use a release": {
        "recommend": (recommend, "Lists for one user, somebody new, or everybody"),
        "predict": (predict, "Predicted ratings for a file of pairs"),
        "personalise": (personalise, "Your own people: lists from their own ratings, for them alone"),
        "synthesise": (synthesise, "Made-up people from a release that protects real ones"),
        "serve": (serve, "A release behind an address that answers (JSON)"),
        "compare": (compare, "Releases side by side"),
    },
    "Check": {
        "verify": (verify, "Recompute the promise, check every byte"),
        "audit": (audit, "Attack the claim"),
        "doctor": (doctor, "Is this machine fit"),
    },
    "Research": {
        "reproduce": (reproduce, "The paper's experiment"),
        "frontier": (frontier, "Accuracy against epsilon on real ratings (not private)"),
        "benchmark": (benchmark, "Every method side by side (not private)"),
    },
}
"""By what they are for, in the order in which somebody meets them: the module of each, whose function has its name, and
a line about it; a group of commands has none."""


class _Root(Group):
    order = tuple(name for commands in COMMANDS.values() for name in commands)


app = Application(
    cls=_Root,
    name="dpsr",
    help="Share ratings, or learn from them, without giving anyone away.",
    epilog="Example: dpsr release ratings.csv --scale 1:5:1 --epsilon 1 --out release/\nHelp on one command: "
    "dpsr release -h",
)
for panel, commands in COMMANDS.items():
    for name, (module, summary) in commands.items():
        if summary is None:
            app.add_typer(module.app, name=name, rich_help_panel=panel)
        else:
            function = getattr(module, name)
            app.command(name, short_help=summary, epilog=module.EXAMPLE, rich_help_panel=panel)(function)


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
