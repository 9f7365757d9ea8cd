"""`dpsr demo`: the main job on an embedded sample, with a table that keeps us honest and a card worth opening."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from dpsr.cli.terminal import out, receipt, showing_stages

if TYPE_CHECKING:
    from dpsr.evaluate.metrics.ranking import Predictor
    from dpsr.evaluate.metrics.scores import Scores
    from dpsr.types import Census

EXAMPLE = "Example: dpsr demo --out demo-release"


DELTA = 1e-4
"""A tenth of one over the number of people in the sample."""


def demo(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the release of ratings.")] = Path("demo-release"),
    epsilon: Annotated[float, typer.Option(help="Privacy budget of each release.")] = 1.0,
    sample: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the sample as files to try commands on, and stop.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing release folders.")] = False,
) -> None:
    """Release the embedded sample twice, protecting values and protecting people, beside honest yardsticks."""
    from dpsr import DPSR
    from dpsr.certify.amounts import check_epsilon
    from dpsr.data import demo_ratings
    from dpsr.data.synthetic import write_sample
    from dpsr.evaluate.protocol import against_yardsticks
    from dpsr.release import check_target

    if sample is not None:
        written = write_sample(sample)
        out.print(f"Written: {escape(', '.join(map(str, written)))}. The scale is 1:5:1.", soft_wrap=True)
        return
    check_epsilon(epsilon)
    train, test = demo_ratings().split(0.2, seed=0)
    folders = {"value": out_dir, "user": out_dir.with_name(f"{out_dir.name}-people")}
    for folder in folders.values():
        check_target(folder, overwrite=force)
        check_replaceable(folder, train.mask.census)
    out.print(f"Embedded sample (synthetic): {len(train):,} ratings to learn from, {len(test):,} held out.")
    out.print(_choice(epsilon))
    models = {"value": DPSR(epsilon), "user": DPSR(epsilon, unit="user", delta=DELTA, items=train.mask.item_ids)}
    with showing_stages():
        compile_both()
        for unit, model in models.items():
            model.fit(train).save(folders[unit], overwrite=force)
    with out.status("Comparing ..."):
        people = {unit: model.personalise(train).model() for unit, model in models.items()}
        rows: dict[str, Predictor] = {
            "dpsr, unit value: the release": models["value"].model_,
            "dpsr, unit value, personalised": people["value"],
            "dpsr, unit user, personalised": people["user"],
        }
        scores = against_yardsticks(rows, train, test)
    out.print(_comparison(scores, len(rows)))
    for unit, model in models.items():
        out.print(f"\n[bold]--unit {unit}[/bold]  {receipt(model.certificate)}")
    out.print()
    out.print(_contents(folders), soft_wrap=True)


def compile_both() -> None:
    """Compile everything the demo needs, once on a machine, on two processors where there are two."""
    from dpsr.linalg.compiled import in_cache
    from dpsr.people import cells
    from dpsr.pipeline.dpsr import say_compiling
    from dpsr.pipeline.estimator import listening
    from dpsr.value import sweep

    missing = [module for module in (sweep, cells) if not in_cache(module)]
    if not missing:
        return
    say_compiling(missing[0])
    with listening(lambda stage: None), another_process("from dpsr.cli.demo import rehearse_rest; rehearse_rest()"):
        rehearse_values()


@contextmanager
def another_process(program: str) -> Iterator[None]:
    """A second process runs `program`, which compiles into the same cache; leaving waits until it is done.

    Whatever becomes of it, a kernel that is missing is compiled where it is used.
    """
    from subprocess import DEVNULL, Popen

    child = Popen([sys.executable, "-P", "-c", program], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    try:
        yield
        child.wait()
    finally:
        child.kill()
        child.wait()


def rehearse_values() -> None:
    """A fit that protects values, on made-up ratings: about half of what there is to compile."""
    from dpsr import DPSR
    from dpsr.pipeline.dpsr import made_up_ratings

    DPSR(10.0, random_state=0).fit(made_up_ratings())


def rehearse_rest() -> None:
    """All else that the demo does: a fit that protects people, personal lists, the yardsticks.

    Lists need a release and not a good one: at so small an epsilon a fit asks for the mean alone and compiles nothing.
    """
    from dpsr import DPSR
    from dpsr.evaluate.protocol import against_yardsticks
    from dpsr.pipeline.dpsr import compiled_elsewhere, made_up_ratings
    from dpsr.value import sweep

    compiled_elsewhere(sweep)
    train, test = made_up_ratings().split(0.2, seed=0)
    people = DPSR(10.0, unit="user", delta=1e-3, items=train.mask.item_ids, random_state=0)
    models = {"user": people, "value": DPSR(1e-4, random_state=0)}
    lists: dict[str, Predictor] = {unit: model.fit(train).personalise(train).model() for unit, model in models.items()}
    against_yardsticks(lists, train, test)


def _choice(epsilon: float) -> Table:
    """What each release protects, side by side."""
    table = Table("", title=f"The choice, at epsilon = {epsilon:g}", title_justify="left", title_style="bold")
    table.add_column("--unit value")
    table.add_column("--unit user")
    table.add_row("protected", "how much somebody liked something", "every person, with all their ratings")
    table.add_row("[bold]not protected[/bold]", "[bold]who rated what[/bold]", "what everybody together says")
    table.add_row("the folder holds", "a row for every rating", "what is known about items; nobody")
    table.add_row("personalised", "own ratings, for oneself alone", "own ratings, for oneself alone")
    return table


def check_replaceable(folder: Path, sample: Census) -> None:
    """The demo replaces what a demo wrote, and nothing that somebody may have paid for."""
    from dpsr.errors import ReleaseError
    from dpsr.quoting import file_name
    from dpsr.release.folder.examination import examine

    if not folder.is_dir() or not any(folder.iterdir()):
        return
    found = examine(folder).certificate
    counts = {"n_users": sample.n_users, "n_items": sample.n_items, "n_ratings": sample.n_ratings}
    if found is not None and found.unit == "user":
        counts = {"declared_items": sample.n_items}
    if found is None or found.charge is not None or not counts.items() <= found.public.items():
        raise ReleaseError(
            f"the folder {file_name(folder)} is not a release of the embedded sample, so the demo does not replace it. "
            "Choose another name with --out."
        )


def _comparison(scores: dict[str, Scores], ours: int) -> Table:
    table = Table("", title="On held-out ratings", title_justify="left", title_style="bold")
    for name in ("RMSE", "MAE", "Precision@10", "NDCG@10"):
        table.add_column(name, justify="right")
    for place, (name, s) in enumerate(scores.items()):
        row = (f"{s.rmse:.4f}", f"{s.mae:.4f}", f"{s.precision:.4f}", f"{s.ndcg:.4f}")
        table.add_row(name, *row, style="bold" if place < ours else "")
    return table


def _contents(folders: dict[str, Path]) -> str:
    """What lies in the folders and what to do with them; an address in one piece, however narrow the terminal."""
    lines = []
    for unit, words in (("value", "card of values"), ("user", "card of people")):
        link = (folders[unit] / "card.html").resolve().as_uri()
        lines.append(f"[bold green]Open the {words}[/bold green]  [link={link}]{escape(link)}[/link]")
    lines.append(f"Train on the table       {escape(str(folders['value'] / 'ratings.parquet'))}")
    lines.append(f"Check the promises       dpsr verify {escape(str(folders['value']))}")
    return "\n".join(lines)
