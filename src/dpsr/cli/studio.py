"""`dpsr studio`: choose by looking, in the browser, on this machine alone."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from dpsr.cli.terminal import err

EXAMPLE = "Example: dpsr studio ratings.csv"


def studio(
    ratings: Annotated[str | None, typer.Argument(metavar="FILE", help="File of ratings to begin with.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 for any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page in the browser of this machine.")] = False,
) -> None:
    """From a file to a release in the browser: columns, scale, unit and epsilon by looking, card, try-out.

    It listens on 127.0.0.1 alone, behind a link that works once. Nothing is written or spent without a click, and every
    step shows the command that does the same.
    """
    from dpsr.web import require_web

    require_web("studio")
    from dpsr.studio.running import run_studio

    run_studio(ratings, port, browser=browser, say=lambda words: err.print(escape(words), soft_wrap=True))
