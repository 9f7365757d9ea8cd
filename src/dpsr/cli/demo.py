"""`dpsr demo`: the main job on an embedded sample, with a table that keeps us honest and a card worth opening."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from dpsr.cli.stages import showing_stages
from dpsr.cli.terminal import out, promise, verdict

if TYPE_CHECKING:
    from dpsr.evaluate.metrics.scores import Scores
    from dpsr.types import Census

EXAMPLE = "Example: dpsr demo --out demo-release"


def demo(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the release.")] = Path("demo-release"),
    epsilon: Annotated[float, typer.Option(help="Privacy budget per rating.")] = 1.0,
    sample: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the sample as files to try commands on, and stop.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release folder.")] = False,
) -> None:
    """Release the embedded sample privately and compare it with honest yardsticks."""
    from dpsr import DPSR
    from dpsr.certify.amounts import check_epsilon
    from dpsr.data import demo_ratings
    from dpsr.data.sample import write_sample
    from dpsr.evaluate.protocol import against_yardsticks
    from dpsr.release import check_target

    if sample is not None:
        written = write_sample(sample)
        out.print(f"Written: {escape(', '.join(map(str, written)))}. The scale is 1:5:1.", soft_wrap=True)
        return
    check_epsilon(epsilon)
    check_target(out_dir, overwrite=force)
    train, test = demo_ratings().split(0.2, seed=0)
    check_replaceable(out_dir, train.mask.census)
    out.print(f"Embedded sample (synthetic): {len(train):,} ratings to learn from, {len(test):,} held out.")
    out.print(f"{promise(epsilon)}\n")
    with showing_stages():
        model = DPSR(epsilon).fit(train)
        folder = model.save(out_dir, overwrite=force)
    with out.status("Comparing ..."):
        scores = against_yardsticks({f"dpsr, private at epsilon = {epsilon:g}": model.model_}, train, test)
    out.print(_comparison(scores))
    out.print(f"\n{verdict(model.certificate)}\n")
    out.print(_contents(folder))


def check_replaceable(folder: Path, sample: Census) -> None:
    """The demo replaces what a demo wrote, and nothing that somebody may have paid for."""
    from dpsr.errors import ReleaseError
    from dpsr.quoting import file_name
    from dpsr.release.folder.examination import examine

    if not folder.is_dir() or not any(folder.iterdir()):
        return
    found = examine(folder).certificate
    counts = {"n_users": sample.n_users, "n_items": sample.n_items, "n_ratings": sample.n_ratings}
    if found is None or found.charge is not None or not counts.items() <= found.public.items():
        raise ReleaseError(
            f"the folder {file_name(folder)} is not a release of the embedded sample, so the demo does not replace it. "
            "Choose another name with --out."
        )


def _comparison(scores: dict[str, Scores]) -> Table:
    table = Table("", title="On held-out ratings", title_justify="left", title_style="bold")
    for name in ("RMSE", "MAE", "Precision@10", "NDCG@10"):
        table.add_column(name, justify="right")
    for place, (name, s) in enumerate(scores.items()):
        row = (f"{s.rmse:.4f}", f"{s.mae:.4f}", f"{s.precision:.4f}", f"{s.ndcg:.4f}")
        table.add_row(name, *row, style="bold" if place == 0 else "")
    return table


def _contents(folder: Path) -> Table:
    """What lies in the folder and what to do with it."""
    page = folder / "card.html"
    grid = Table.grid(padding=(0, 3))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    link = page.resolve().as_uri()
    grid.add_row("[bold green]Open the card[/bold green]", f"[link={link}]{escape(link)}[/link]")
    grid.add_row("Train on the table", escape(str(folder / "ratings.parquet")))
    grid.add_row("Check the promise", f"dpsr verify {escape(str(folder))}")
    return grid
