"""What the commands that run a study share: a bar that counts jobs, and what an interruption says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dpsr.cli.terminal import complain, err, out
from dpsr.errors import ParameterError

if TYPE_CHECKING:
    from dpsr.evaluate.studies.study import Study, StudyReport


def run_with_progress(study: Study, folder: Path, **settings: Any) -> StudyReport:
    """Run a study under a progress bar; interrupted, say that the same command goes on from there."""
    from dpsr.evaluate.studies.study import run_study

    columns = (TextColumn("{task.description:50}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, TimeRemainingColumn(), console=err) as bar:
            task = bar.add_task("starting", total=None)

            def tell(done: int, total: int, what: str) -> None:
                bar.update(task, completed=done, total=total, description=what)

            return run_study(study, folder, progress=tell, **settings)
    except KeyboardInterrupt:
        complain(f"interrupted; what is done is kept in {folder}, and the same command goes on from there.")
        raise typer.Exit(130) from None


def refuse_beside(option: str, others: Mapping[str, object]) -> None:
    """Options that mean nothing beside another are refused rather than left unread."""
    given = [name for name, value in others.items() if value]
    if given:
        raise ParameterError(f"{', '.join(given)} cannot stand beside {option}, found both. Leave one out.")


def show_report(report: Path) -> None:
    """The Markdown report, laid out for a terminal and as it is for a pipe."""
    text = report.read_text("utf-8")
    out.print(Markdown(text) if out.is_terminal else text, markup=False, soft_wrap=not out.is_terminal)
