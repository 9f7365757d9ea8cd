"""`dpsr frontier`: privacy and accuracy on real rating sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsr.cli.studies import refuse_beside, run_with_progress, show_report
from dpsr.cli.terminal import out

EXAMPLE = "Example: dpsr frontier --data data/ --out frontier/"


def frontier(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for tables and figures; an old run is resumed.")],
    data: Annotated[Path, typer.Option("--data", help="Folder with the rating sets (Parquet).")] = Path(
        "../shared/data"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="How many random splits.")] = 3,
    epsilons: Annotated[
        str | None, typer.Option(help="Budgets, separated by commas; usually 0.1 to 10, or to 20 where people are.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Some methods only, by name, separated by commas: dpsr,dpsr-personalised.")
    ] = None,
    unit: Annotated[
        str, typer.Option(help="What is protected: value, rating or user. Every unit has tables of its own.")
    ] = "value",
    likes: Annotated[
        bool, typer.Option("--likes", help="Rows are interactions: Recall@20 for held-out people, unit user.")
    ] = False,
    ablation: Annotated[bool, typer.Option("--ablation", help="Leave out one idea at a time instead.")] = False,
) -> None:
    """Measure every method on real ratings at every epsilon, with the targets beside. NOT PRIVATE."""
    from dpsr.evaluate.studies.ablation import ablation_study
    from dpsr.evaluate.studies.frontier import frontier_study, people_frontier_study
    from dpsr.evaluate.studies.frontier.targets import EPSILONS, PEOPLE_EPSILONS
    from dpsr.evaluate.studies.likes import FRONTIER_EPSILONS, likes_frontier
    from dpsr.pipeline.plan import parse_epsilons

    usual = FRONTIER_EPSILONS if likes else EPSILONS if unit == "value" else PEOPLE_EPSILONS
    splits = range(seeds)
    budgets = usual if epsilons is None else parse_epsilons(epsilons)
    chosen = None if methods is None else methods.split(",")
    if likes:
        refuse_beside("--likes", {"--ablation": ablation, "--unit": unit not in ("value", "user")})
        study = likes_frontier(data, epsilons=budgets, seeds=splits, methods=chosen)
    elif ablation:
        study = ablation_study(data, epsilons=budgets, seeds=splits)
    elif unit == "value":
        study = frontier_study(data, epsilons=budgets, seeds=splits, methods=chosen)
    else:
        study = people_frontier_study(data, unit, epsilons=budgets, seeds=splits, methods=chosen)
    result = run_with_progress(study, out_dir)
    show_report(result.report)
    out.print(f"{len(result.files)} tables and figures in [bold]{out_dir}[/bold]; {result.report.name} is above.")
