"""The stages of a long command, shown as they begin: live on a terminal, one line each in a log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from dpsr.cli.interrupts import check
from dpsr.cli.terminal import err


@contextmanager
def showing_stages() -> Iterator[None]:
    """While this is open, stderr shows every stage that is announced."""
    from dpsr.pipeline.progress import listening

    columns = (SpinnerColumn(finished_text="[green]✓[/green]"), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:

        def begin(stage: str) -> None:
            check()
            for task in bar.tasks:
                bar.update(task.id, total=1, completed=1)
            if err.is_terminal:
                bar.add_task(stage, total=None)
            else:
                err.print(f"{stage} ...")

        with listening(begin):
            yield
        for task in bar.tasks:
            bar.update(task.id, total=1, completed=1)
