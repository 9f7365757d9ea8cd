"""`dpsr serve`: a release behind an address that answers."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from dpsr.cli.release_folder import ReleaseFolder
from dpsr.cli.terminal import err

EXAMPLE = "Example: dpsr serve release/ --port 8000"

ELSEWHERE = (
    "[yellow]Careful[/yellow]: it listens for other machines, and asks nobody who they are. Put a proxy with passwords "
    "and TLS before it."
)


def serve(
    release: ReleaseFolder,
    host: Annotated[str, typer.Option(help="Address to listen on; 127.0.0.1 is this machine alone.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any that is free.")] = 8000,
) -> None:
    """Answer over HTTP with JSON: lists, predictions and fold-in in batches, never more than the release allows.

    Own ratings in a request are used for its answer and forgotten. What may be asked is at /docs. If the folder is
    deleted or replaced, what was loaded is still served and /v1/health says so; SIGHUP loads what is there now.
    """
    from dpsr.web import require_web

    require_web("serve")
    from dpsr.serve.running import serve_release

    if host not in ("127.0.0.1", "localhost", "::1"):
        err.print(ELSEWHERE)
    serve_release(release, host, port, say=lambda words: err.print(escape(words), soft_wrap=True))
