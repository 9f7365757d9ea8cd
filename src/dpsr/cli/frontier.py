"""`dpsr frontier`: privacy and accuracy on real rating sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dpsr.cli.terminal import err, out

EXAMPLE = "Example: dpsr frontier --data data/ --out frontier/"


def frontier(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for tables and figures; an old run is resumed.")],
    data: Annotated[Path, typer.Option("--data", help="Folder with the rating sets (Parquet).")] = Path(
        "../shared/data"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="How many random splits.")] = 3,
    epsilons: Annotated[str, typer.Option(help="Budgets, separated by commas.")] = "0.1,0.5,1,2,3,5,10",
    ideas: Annotated[bool, typer.Option("--ablation", help="Leave out one idea at a time instead.")] = False,
) -> None:
    """Measure every method on real ratings at every epsilon, with the targets beside. NOT PRIVATE."""
    from dpsr.evaluate.frontier import frontier as run
    from dpsr.evaluate.frontier import parse_epsilons
    from dpsr.evaluate.frontier_ablation import ablation

    budgets = parse_epsilons(epsilons)
    columns = (TextColumn("{task.description:50}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err) as bar:
        task = bar.add_task("starting", total=None)

        def report(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        measure = ablation if ideas else run
        result = measure(data, out_dir, seeds=range(seeds), epsilons=budgets, progress=report)
    report_file = result.files[0]
    text = report_file.read_text("utf-8")
    out.print(Markdown(text) if out.is_terminal else text, markup=False, soft_wrap=not out.is_terminal)
    out.print(f"{len(result.files)} tables and figures in [bold]{out_dir}[/bold]; {report_file.name} is above.")
