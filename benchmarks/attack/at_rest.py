"""Raw values and keys where nobody put them: temporary folders, Spark's folders and logs, messages, databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from benchmarks.attack.attempt import Attempt, World
from benchmarks.attack.commands import KEY, dpsr, release, secret_ratings, victim
from benchmarks.attack.search import found_in, watched

OFF_SCALE = "4.4321987"
"""A rating that is on no scale, and would be known again."""


def attacks(world: World) -> Iterator[Attempt]:
    """On every engine there is."""
    engines = ("disk",) if world.quick else ("memory", "disk", "spark")
    for engine in engines:
        yield after_a_release(world, engine)
    yield messages(world, engines)
    yield queries(world)


def after_a_release(world: World, engine: str) -> Attempt:
    """Everything that a release leaves, and what Spark writes while it runs."""
    attempt = Attempt(
        f"values and keys at rest, {engine}", "the release, temporary folders, Spark's folders and event log"
    )
    place = world.place(f"rest-{engine}")
    secret = secret_ratings(place, n_users=400)
    elsewhere = {name: place / name for name in ("tmp", "spark", "events", "conf")}
    for folder in elsewhere.values():
        folder.mkdir()
    (elsewhere["conf"] / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.dir file://{elsewhere['events']}\n"
        "spark.memory.fraction 0.05\nspark.shuffle.spill.numElementsForceSpillThreshold 10\n"
    )
    environment = {
        "TMPDIR": str(elsewhere["tmp"]),
        "SPARK_LOCAL_DIRS": str(elsewhere["spark"]),
        "SPARK_CONF_DIR": str(elsewhere["conf"]),
    }
    watch = [elsewhere["spark"], elsewhere["events"]] if engine == "spark" else []
    with watched(watch, secret) as seen:
        ended = victim(release(secret, place / "r", "--engine", engine), cwd=place, key=KEY, **environment)
    attempt.note(f"it did not run: {ended.said.strip()[-120:]!r}", ended.code != 0)
    attempt.note(f"while it ran: {sorted(seen)[:2]}", bool(seen))
    left = found_in([place], secret)
    attempt.note(f"afterwards: {left[:2]}", bool(left))
    if engine == "spark":
        logs = [path for path in elsewhere["events"].rglob("*") if path.is_file()]
        attempt.note("there was no event log to read", not logs)
    return attempt


def messages(world: World, engines: tuple[str, ...]) -> Attempt:
    """Errors that quote a rating."""
    attempt = Attempt(
        "values in messages", "ratings off the scale, in files of two kinds and databases, on every engine"
    )
    place = world.place("messages")
    csv = place / "bad.csv"
    csv.write_text(f"userId,movieId,rating\nu1,i1,3\nu1,i2,{OFF_SCALE}\nu2,i1,2\n")
    options = ["--scale", "1:5:1", "--epsilon", "1", "--yes"]
    for engine in engines:
        ended = dpsr("release", csv, *options, "--out", place / engine, "--engine", engine, cwd=place)
        attempt.note(f"{engine}: {ended.said.strip()[:120]!r}", OFF_SCALE in ended.said or ended.traceback)
    database = place / "shop.db"
    with sqlite3.connect(database) as shop:
        shop.execute("create table reviews (user text, item text, rating real)")
        shop.executemany("insert into reviews values (?, ?, ?)", [("u1", "i1", 3), ("u1", "i2", float(OFF_SCALE))])
    query = ["--query", "select user, item, rating from reviews"]
    ended = dpsr("release", f"sqlite:///{database}", *query, *options, "--out", place / "sql", cwd=place)
    attempt.note(f"SQL: {ended.said.strip()[:120]!r}", OFF_SCALE in ended.said or ended.traceback)
    return attempt


def queries(world: World) -> Attempt:
    """Queries that write."""
    attempt = Attempt("queries that write", "attach, insert, pragma and two statements at once as --query, on SQLite")
    place = world.place("queries")
    database = place / "shop.db"
    with sqlite3.connect(database) as shop:
        shop.execute("create table reviews (user text, item text, rating real)")
        shop.execute("insert into reviews values ('u', 'i', 3)")
    before = database.read_bytes()
    texts = [
        f"attach database '{place / 'made.db'}' as made",
        "insert into reviews values ('v', 'i', 5)",
        "select user, item, rating from reviews; drop table reviews",
        "pragma journal_mode = wal",
        f"vacuum into '{place / 'copy.db'}'",
    ]
    for text in texts[:1] if world.quick else texts:
        options = ["--query", text, "--scale", "1:5:1", "--epsilon", "1", "--yes", "--out", place / "r"]
        ended = dpsr("release", f"sqlite:///{database}", *options, cwd=place)
        made = sorted(path.name for path in place.iterdir() if path.name != database.name)
        attempt.note(f"{text.split()[0]}: {made or 'the table changed'}", bool(made) or database.read_bytes() != before)
        attempt.note(f"{text.split()[0]}: a traceback", ended.traceback)
        for name in made:
            _remove(place / name)
    return attempt


def _remove(path: Path) -> None:
    if path.is_file():
        path.unlink()
