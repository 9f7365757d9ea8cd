"""A stranger's folder: forged so that it verifies, or made so that its reader dies or is steered."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.attack.attempt import Attempt, World
from benchmarks.attack.commands import ROOT, dpsr
from dpsr import DPSR, Ratings, Scale
from dpsr.certify import Certificate
from dpsr.certify.certificate import COMPOSITIONS
from dpsr.certify.folder import write_manifest
from dpsr.data import realistic
from dpsr.errors import DpsrError
from dpsr.pipeline.account import Account
from dpsr.pipeline.publish import publish
from dpsr.pipeline.verification import verify_release
from dpsr.privacy.ledger.ledger import Ledger

STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What steers a terminal: control characters but for the end of a line, and marks that turn text around."""

HOSTILE = "x\x1b]0;pwned\x07\x1b[2J\u202e[red]y[/red]\r\n"
HOSTILE_NAME = HOSTILE.strip().replace("/", "|")


def attacks(world: World) -> Iterator[Attempt]:
    """All of them, on a folder that was charged."""
    place, ratings = world.place("folders"), realistic(3, n_users=40, n_items=30, n_ratings=500)
    ledger = str(place / "ledger.db")
    Ledger.create(ledger, "films", "9")
    paid = publish(ratings, DPSR(4.0), place / "paid", account=Account.open(ledger, None, 4.0)).folder
    yield fresh_noise(place, ratings, paid, ledger, 1 if world.quick else 5)
    yield raw_ratings(place, ratings, paid)
    yield contradictions(place, paid)
    yield special_files(place, paid, world.quick)
    yield steering(place, ratings, world.quick)
    yield fuzzed(place, 20, 10**6) if world.quick else fuzzed(place, 600, int(np.random.default_rng().integers(10**9)))


def fresh_noise(place: Path, ratings: Any, paid: Path, ledger: str, times: int) -> Attempt:
    """Uncharged releases under the record of one that was charged."""
    attempt = Attempt("fresh noise", "uncharged releases under the certificate and budget of a charged one")
    for number in range(times):
        fresh = DPSR(4.0).fit(ratings).save(place / f"fresh{number}")
        for name in ("certificate.json", "budget.json"):
            shutil.copy(paid / name, fresh)
        (fresh / "card.html").unlink()
        write_manifest(fresh)
        attempt.note("verified by the ledger", verify_release(fresh, ledger=ledger).intact)
    return attempt


def raw_ratings(place: Path, ratings: Any, paid: Path) -> Attempt:
    """Raw values in the table to share."""
    attempt = Attempt(
        "raw ratings inside", "raw or barely blurred ratings in ratings.parquet, resealed, no ledger asked"
    )
    table = pq.read_table(paid / "ratings.parquet")
    private = table["rating"].to_numpy()
    for share in (1.0, 0.5, 0.05, 0.001):
        folder = _copy(paid, place / f"raw{share}")
        values = (1 - share) * private + share * ratings.values
        changed = table.set_column(table.column_names.index("rating"), "rating", pa.array(values))
        pq.write_table(changed, folder / "ratings.parquet")
        (folder / "card.html").unlink()
        write_manifest(folder)
        attempt.note(f"{share:.1%} raw", verify_release(folder).intact)
    folder, raw = _copy(paid, place / "predicted"), pa.array(ratings.values)
    overridden = table.select(["user", "item"]).append_column("rating", raw).append_column("predicted", raw)
    pq.write_table(overridden, folder / "ratings.parquet")
    (folder / "card.html").unlink()
    write_manifest(folder)
    attempt.note("raw, as a column that overrides the model", verify_release(folder).intact)
    return attempt


def contradictions(place: Path, paid: Path) -> Attempt:
    """Folders that contradict themselves, their tables or the scale."""
    attempt = Attempt(
        "forged certificates and models", "prices, descriptions, facts, numbers, columns and files changed"
    )
    for number, (name, change) in enumerate(FORGERIES.items()):
        folder = _copy(paid, place / f"forged{number}")
        change(folder)
        (folder / "card.html").unlink(missing_ok=True)
        write_manifest(folder)
        try:
            attempt.note(name, verify_release(folder).intact)
        except DpsrError:
            attempt.note(name, False)
    return attempt


def _certificate(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    return _json("certificate.json", change)


def _json(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        record = json.loads((folder / name).read_text("utf-8"))
        change(record)
        (folder / name).write_text(json.dumps(record, separators=(",", ":")), "utf-8")

    return edit


def _part(place: int, **fields: Any) -> Callable[[Path], None]:
    return _certificate(lambda record: record["parts"][place].update(**fields))


def _cheaper_steps(record: dict[str, Any]) -> None:
    """Half the steps, half the noise: the price stays, the promise does not."""
    part = record["parts"][1]
    part["steps"] = [[step // 2 for step in row] for row in part["steps"]]


def _free_channel(record: dict[str, Any]) -> None:
    """The rating itself, with a delta of one."""
    part, n = record["parts"][2], record["public"]["levels"]
    part["tables"] = [[[(1 << part["bits"]) * (x == y) for y in range(n)] for x in range(n)]]
    part.update(at_epsilon=0.1, epsilon=0.1, delta=1.0)


def _million(record: dict[str, Any]) -> None:
    record.update(nominal=1e6, epsilon=1e6)
    record["parts"][1].update(noise_scale="1/1000", epsilon=1e6)


def _left_out(place: int) -> Callable[[Path], None]:
    """A question left out, and everything that the certificate states computed anew without it."""

    def change(record: dict[str, Any]) -> None:
        record["parts"].pop(place)
        record.update(Certificate.from_record(record).to_record())

    return _certificate(change)


def _more_files(folder: Path) -> None:
    (folder / "raw.csv").write_text("user,item,rating\n1,1,5\n")


def _more_columns(folder: Path) -> None:
    table = pq.read_table(folder / "ratings.parquet")
    pq.write_table(table.append_column("raw", table["rating"]), folder / "ratings.parquet")


def _footer(change: Callable[[bytes, pa.Table], bytes]) -> Callable[[Path], None]:
    """What the footer of the table says of its rows besides them, which other readers show and believe."""

    def edit(folder: Path) -> None:
        file = folder / "ratings.parquet"
        data, table = file.read_bytes(), pq.read_table(file)
        start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        file.write_bytes(data[:start] + change(data[start:-8], table) + data[-8:])

    return edit


def _narrower(footer: bytes, table: pa.Table) -> bytes:
    """Nobody rated below 4.9: polars, DuckDB and Arrow find no such row then."""
    ratings = table["rating"].to_numpy()
    return footer.replace(struct.pack("<d", ratings.min()), struct.pack("<d", 4.9))


FORGERIES: dict[str, Callable[[Path], None]] = {
    "a part with a table and a sensitivity": _part(0, tables=[[[1, 1], [1, 1]]]),
    "a sensitivity stated": _part(1, sensitivity=1),
    "a histogram of one bin": _part(0, bins=[0, 0, 0, 0, 0]),
    "a price stated lower": _part(1, epsilon=1e-3),
    "noise stated wider": _part(1, noise_scale="999999999"),
    "steps halved": _certificate(_cheaper_steps),
    "steps of another grid": _part(1, step=1.0),
    "sums of fewer families": _part(1, weights=[16], families=[["items", 30]]),
    "identity channel with delta one": _certificate(_free_channel),
    "epsilon of a million": _certificate(_million),
    "a part left out": _certificate(lambda record: record["parts"].pop()),
    **{f"{what} left out, and its price": _left_out(i) for i, what in enumerate(("the histogram", "sums", "symbols"))},
    "a part of no known kind": _part(0, kind="magic"),
    "an unknown field": _certificate(lambda record: record.update(comment="trust me")),
    "another unit": _certificate(lambda record: record.update(unit="user")),
    "fewer users stated": _certificate(lambda record: record["public"].update(n_users=39)),
    "another scale stated": _certificate(lambda record: record["public"].update(scale="0:4:1")),
    "lighter users stated": _certificate(lambda record: record["public"].update(max_ratings_per_user=1)),
    "reasons struck out": _certificate(lambda record: record.update(private=False, reasons=[])),
    "prices that add up otherwise": _certificate(lambda record: record.update(composition=COMPOSITIONS["value"])),
    "a promise for a version": _certificate(lambda record: record.update(software="dpsr 0.1.0: epsilon = 0.01")),
    "a sentence for a mechanism": _part(2, mechanism="approved by the authority at epsilon = 0.01"),
    "a mechanism that was asked for less": _part(2, settings={"nominal": 0.01}),
    "a model that was asked for less": _json("model.json", lambda record: record["settings"].update(epsilon=0.01)),
    "a number that is none": _json("model.json", lambda record: record.update(overall=float("nan"))),
    "a model of another method": _json("model.json", lambda record: record.update(method="raw")),
    "a column more": _more_columns,
    "a file more": _more_files,
    "ratings that others would not find": _footer(_narrower),
    "a sentence for whoever wrote a table": _footer(
        lambda footer, _: footer.replace(b"parquet-cpp-arrow version", b"u1 gave i5 five stars ver")
    ),
}


def special_files(place: Path, paid: Path, quick: bool) -> Attempt:
    """Files that never end or never begin."""
    attempt = Attempt(
        "special files", "FIFOs, devices, endless and huge files in place of a folder's own; verify must end"
    )
    makers: dict[str, Callable[[Path], object]] = {
        "a FIFO": os.mkfifo,
        "a device": lambda path: path.symlink_to("/dev/zero"),
        "a huge file": lambda path: _sparse(path, 1 << 42),
    }
    for kind, make in list(makers.items())[: 1 if quick else 3]:
        for name in ("manifest.json", "ratings.parquet")[: 1 if quick else 2]:
            folder = _copy(paid, place / f"special-{kind}-{name}")
            (folder / name).unlink()
            make(folder / name)
            ended = dpsr("verify", folder, cwd=place, limit=120)
            attempt.note(f"{kind} as {name}: {ended.said[-60:]!r}", ended.code not in (1, 2) or ended.traceback)
            shutil.rmtree(folder)
    return attempt


def steering(place: Path, ratings: Any, quick: bool) -> Attempt:
    """Text by strangers on a terminal."""
    attempt = Attempt(
        "terminal injection", "control characters, turned text and markup in ids, names, notes and reasons"
    )
    table = ratings.to_arrow().to_pydict()
    users = [HOSTILE + str(user) for user in table["user"]]
    items = [HOSTILE + str(item) for item in table["item"]]
    hostile = Ratings.from_arrays(users, items, table["rating"], scale=Scale(1, 5))
    folder = DPSR(1.0).fit(hostile).save(place / "hostile")
    (folder / f"{HOSTILE_NAME}.txt").write_text("x")
    forged = _copy(folder, place / "reasons")
    _certificate(lambda record: record.update(private=False, reasons=[HOSTILE]))(forged)
    write_manifest(forged)
    good = DPSR(1.0).fit(hostile).save(place / "good")
    book = str(place / "notes.db")
    Ledger.create(book, "films", "3", note=HOSTILE)
    options = ("--scale", "1:5:1", "--epsilon", "1", "--out", place / "o")
    commands: list[tuple[object, ...]] = [("verify", folder), ("recommend", good, "--user", HOSTILE + "1")]
    if not quick:
        commands += [
            ("describe", good), ("verify", forged), ("explain", "--release", forged),
            ("ledger", "history", "--ledger", book),
            ("compare", good, forged), ("release", place / f"{HOSTILE_NAME}.csv", *options),
            ("predict", good, "--user", HOSTILE + "1", "--item", HOSTILE + "2"),
        ]  # fmt: skip
    for command in commands:
        ended = dpsr(*command, cwd=place)
        found = STEERS.findall(ended.said)
        attempt.note(f"{command[0]}: {found[:3]!r}", bool(found) or ended.traceback)
    return attempt


def fuzzed(place: Path, cases: int, first: int) -> Attempt:
    """Folders changed at random, read by everything that reads folders: always the same cases in the short form."""
    attempt = Attempt(
        "fuzzed folders", "random changes, mostly resealed; verify and load agree, what loads serves, nothing dies"
    )
    script, work = ROOT / "tests" / "helpers" / "mutated_folders.py", place / "fuzz"
    work.mkdir()
    command = [sys.executable, str(script), str(work), str(first), str(cases)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    attempt.times = cases
    if run.returncode:
        attempt.succeeded.append(f"first case {first}: ended with {run.returncode}: {run.stderr[-300:]!r}")
    return attempt


def _copy(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to, symlinks=True))


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)
