"""`dpsr demo`: the main job on an embedded sample, with a table that keeps us honest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from dpsr.cli.terminal import out, promise, verdict

EXAMPLE = "Example: dpsr demo --out demo-release"


def demo(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the release.")] = Path("demo-release"),
    epsilon: Annotated[float, typer.Option(help="Privacy budget per rating.")] = 1.0,
) -> None:
    """Release the embedded sample privately and compare it with honest yardsticks."""
    from dpsr import DPSR
    from dpsr.data import demo_ratings
    from dpsr.evaluate.yardsticks import against_yardsticks

    train, test = demo_ratings().split(0.2, seed=0)
    out.print(f"Embedded sample (synthetic): {len(train):,} ratings to learn from, {len(test):,} held out.")
    out.print(promise(epsilon))
    with out.status("Releasing ..."):
        model = DPSR(epsilon).fit(train)
        folder = model.save(out_dir, overwrite=True)
    with out.status("Comparing ..."):
        scores = against_yardsticks({f"dpsr, private at epsilon = {epsilon:g}": model.model_}, train, test)
    table = Table("", "RMSE", "MAE", "Precision@10", "NDCG@10", title="On held-out ratings", title_justify="left")
    for name, s in scores.items():
        table.add_row(name, f"{s.rmse:.4f}", f"{s.mae:.4f}", f"{s.precision:.4f}", f"{s.ndcg:.4f}")
    out.print(table)
    out.print(verdict(model.certificate))
    out.print(f"Release written to [bold]{folder}[/bold]: {', '.join(sorted(file.name for file in folder.iterdir()))}")
