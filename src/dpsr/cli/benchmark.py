"""`dpsr benchmark`: every method side by side on one protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsr.cli.studies import refuse_beside, run_with_progress, show_report
from dpsr.cli.terminal import out

EXAMPLE = "Example: dpsr benchmark realistic paper --methods dpsr,dpsr-paper,als --epsilons 0.5,1 --out benchmark/"


def benchmark(
    data: Annotated[
        list[str],
        typer.Argument(
            help="Rating files, folders of known sets, or generators: `realistic`, `taste-1m`, `taste-10m`, `paper`."
        ),
    ],
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for tables and charts; an old run is resumed.")] = Path(
        "benchmark"
    ),
    methods: Annotated[
        str | None, typer.Option(help="Methods, separated by commas; your own as module:factory; `none`. Without: all.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Methods that protect one unit alone: value, rating or user. Without: all.")
    ] = None,
    epsilons: Annotated[str | None, typer.Option(help="Budgets, separated by commas.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many random splits, counted from 1.")] = None,
    scale: Annotated[
        list[str] | None, typer.Option(help="NAME=LOW:HIGH:STEP of a rating file; may be given several times.")
    ] = None,
    downstream: Annotated[bool, typer.Option("--downstream", help="Also train learners on released ratings.")] = False,
    attacks: Annotated[bool, typer.Option("--attacks", help="Also attack every method's output.")] = False,
    likes: Annotated[
        bool, typer.Option("--likes", help="Rows are interactions: lists, at the level of people, both protocols.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="All methods and budgets on five seeds; learners and attacks on one.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=0, help="Runs at a time; 0 for one per core.")] = 0,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds a single run may take.")] = 900,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed before.")] = False,
    document: Annotated[
        Path | None, typer.Option(help="Markdown file whose generated sections are to be refilled.")
    ] = None,
) -> None:
    """Measure every method side by side: error, ranking, significance, time, memory, attacks. NOT PRIVATE."""
    from dpsr.evaluate.studies.benchmark import requested_benchmark
    from dpsr.evaluate.studies.likes import requested_likes

    if likes:
        refuse_beside("--likes", {"--scale": scale, "--downstream": downstream, "--unit": unit})
        study = requested_likes(
            data, methods=methods, epsilons=epsilons, seeds=seeds, attacks=attacks, full=full, document=document
        )
    else:
        study = requested_benchmark(
            data, scales=scale or [], methods=methods, unit=unit, epsilons=epsilons, seeds=seeds, downstream=downstream,
            attacks=attacks, full=full, timeout=timeout, workers=jobs, document=document,
        )  # fmt: skip
    result = run_with_progress(study, out_dir, workers=jobs, timeout=timeout, retry=retry)
    show_report(result.report)
    out.print(f"{len(result.files)} tables and charts in [bold]{out_dir}[/bold]; {result.report.name} is above.")
