"""`dpsr recommend`: lists for one user, for somebody new, or for everybody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsr.cli.reading import Items
from dpsr.cli.release_folder import ReleaseFolder, open_any_release, open_release
from dpsr.cli.rows import Format, FormatOption, JsonRows, show
from dpsr.cli.terminal import err, out
from dpsr.quoting import for_terminal, quoted_list

if TYPE_CHECKING:
    import pyarrow as pa

    from dpsr.release import Release
    from dpsr.release.likes import LikesRelease
    from dpsr.release.people import ItemRelease

EXAMPLE = "Example: dpsr recommend release/ --user 42 -n 10"

ORDER = "Ordered by how likely the user is to meet an item and to like it; the score is the predicted rating."
LIKES_ORDER = "Ordered by how popular an item is with somebody like this; the most popular of all with strangers is 1."
PLAIN_ORDER = "Ordered by predicted rating, unclipped; the score is clipped to the scale."


def recommend(
    release: ReleaseFolder,
    user: Annotated[str | None, typer.Option("--user", "-u", help="Id of a user in the release.")] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Every user in the release; needs --out.")] = False,
    rated: Annotated[
        list[str] | None,
        typer.Option(help="ITEM=RATING of somebody new, used for this list alone and not stored; may be repeated."),
    ] = None,
    liked: Annotated[
        list[str] | None,
        typer.Option(help="ITEM that somebody new did, for a release of interactions; not stored; may be repeated."),
    ] = None,
    n: Annotated[int, typer.Option("-n", "--number", help="Items in a list.")] = 10,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="File for --all, .parquet or .csv: user, rank, item, score.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    items: Items = None,
    how: FormatOption = Format.table,
    as_json: JsonRows = False,
) -> None:
    """Recommend items a user has not rated: for one user, somebody new, or everybody at once."""
    from dpsr.errors import ParameterError
    from dpsr.release.lists.single import unknown_items, why_empty

    if [user is not None, everyone, bool(rated), bool(liked)].count(True) != 1:
        raise ParameterError(
            "say for whom: --user ID, --rated ITEM=RATING or --liked ITEM for somebody new, or --all with --out FILE."
        )
    if everyone != (out_file is not None):
        raise ParameterError("--all and --out FILE belong together; a single list is printed (--format csv > FILE).")
    if out_file is not None:
        _write_all(release, out_file, n, force, items)
        return
    loaded = _titled(open_any_release(release), items)
    rows, shape = _one_list(loaded, user, rated or [], liked or [], n), Format.json if as_json else how
    if strange := unknown_items(loaded, liked or [one.rpartition("=")[0] for one in rated or []]):
        err.print(f"Not in this release, and without a part in the list: {for_terminal(quoted_list(strange), 1_000)}.")
    if shape is Format.table and not len(rows):
        out.print(why_empty(loaded))
    elif shape is Format.table:
        show(rows.drop(["user"]), shape, title=f"For user {user}" if user is not None else "For somebody new")
        out.print(LIKES_ORDER if liked else ORDER if weighs_encounters(loaded) else PLAIN_ORDER)
    else:
        show(rows, shape)


def weighs_encounters(loaded: Release | ItemRelease | LikesRelease) -> bool:
    """Whether lists weigh how likely a person is to meet an item."""
    from dpsr.release.likes import LikesRelease
    from dpsr.release.people import ItemRelease

    return isinstance(loaded, ItemRelease | LikesRelease) or loaded.model.affinity is not None


def _titled(loaded: Any, items: Path | None) -> Any:
    from dpsr.data.files.catalogue import read_catalogue

    return loaded if items is None else loaded.with_titles(read_catalogue(items))


def _one_list(
    loaded: Release | ItemRelease | LikesRelease, user: str | None, rated: list[str], liked: list[str], n: int
) -> pa.Table:
    from dpsr.release.lists.single import list_of_likes, list_of_new_user, list_of_user

    if liked:
        return list_of_likes(loaded, liked, n)
    return list_of_new_user(loaded, rated, n) if user is None else list_of_user(loaded, user, n)


def _write_all(release: Path, out_file: Path, n: int, force: bool, items: Path | None) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from dpsr.release.atomic import check_file

    check_file(out_file, overwrite=force)
    loaded = _titled(open_release(release), items)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("users", total=loaded.mask.n_users)
        loaded.recommend_all(out_file, n, overwrite=force, progress=lambda done, _: bar.update(task, completed=done))
    out.print(f"Lists of {loaded.mask.n_users:,} users written to [bold]{for_terminal(out_file, 400)}[/bold].")
