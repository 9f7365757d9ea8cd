"""Made-up people: real ones looked for among them, and put among them.

From a release that the command line made of half of some people, `synthetic.parquet` and a table of more people are
searched for near-copies of either half (`dpsr.evaluate.attacks.near_copies`). A copied person must be found, or the
search is none. Then a folder into which a real person was put is handed to `verify`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from folders import resealed

from benchmarks.attack.attempt import Attempt, World
from benchmarks.attack.commands import dpsr
from benchmarks.attack.distinguish import _csv
from dpsr import Ratings, load_release
from dpsr.data import realistic
from dpsr.evaluate.attacks.near_copies import attack_near_copies
from dpsr.release.people import ItemRelease

RISK = 1e-6


def attacks(world: World) -> Iterator[Attempt]:
    """At both units that have made-up people."""
    for unit in ("user",) if world.quick else ("user", "rating"):
        yield near_copies(world, unit)
    yield put_among_them(world)


def near_copies(world: World, unit: str) -> Attempt:
    """Real people among the made-up ones of a release and of more made later."""
    attempt = Attempt(f"real people among made-up ones, unit {unit}", "")
    place = world.place(f"made-up-{unit}")
    train, held = _halves(1_000 if world.quick else 4_000)
    release = _released(attempt, place, train, unit)
    if release is None:
        return attempt
    ended = dpsr("synthesise", place / "r", "--people", "5000", "--out", place / "more.parquet", cwd=place)
    attempt.note(f"it did not run: {ended.said.strip()[-120:]!r}", ended.code != 0)
    worst, people = -np.inf, 0
    for file in (place / "r" / "synthetic.parquet", place / "more.parquet"):
        table = pq.read_table(file)
        found = attack_near_copies(release, table, train, held, risk=RISK)
        worst, people = max(worst, found.excess), found.people
        attempt.note(f"{found.found} people of {file.name} are no accident", found.found > 0)
        low, claim = found.membership.epsilon_low, release.certificate.epsilon
        attempt.note(f"closeness shows epsilon {low:.2f} > {claim:.2f}", low > claim)
    copied = attack_near_copies(release, _with(release, table, train), train, held, risk=RISK)
    attempt.note("a copied person was not found, so the search is none", copied.found < 1)
    attempt.tried = (
        f"{people:,} people searched for in two tables; the closest pair is {worst:+.1f} nats from chance, "
        f"a copied person {copied.excess:+.1f} (an accident below {np.log(1 / RISK):.1f})"
    )
    return attempt


def put_among_them(world: World) -> Attempt:
    """A real person's rows in `synthetic.parquet`, with a manifest made to fit."""
    attempt = Attempt("a real person put among made-up ones", "a folder resealed after the table was changed")
    place = world.place("put-among")
    train, _ = _halves(600)
    release = _released(attempt, place, train, "user")
    if release is None:
        return attempt
    file = place / "r" / "synthetic.parquet"
    table = pq.read_table(file)
    last = table["user"].to_numpy() == release.synthetic.people if release.synthetic else None
    rows = _with(release, table.filter(pa.array(~last)), train)
    pq.write_table(rows, file)
    attempt.note("verify let it pass", resealed(place / "r").intact)
    return attempt


def _halves(people: int) -> tuple[Ratings, Ratings]:
    ratings = realistic(3, n_users=people, n_items=people // 2, n_ratings=20 * people)
    odd = ratings.mask.users % 2 == 1
    return ratings[~odd], ratings[odd]


def _released(attempt: Attempt, place: Path, train: Ratings, unit: str) -> ItemRelease | None:
    options = ["--scale", "1:5:1", "--epsilon", "5", "--unit", unit, "--delta", "1e-6", "--yes"]
    ended = dpsr("release", _csv(train, place), *options, "--out", place / "r", cwd=place)
    if ended.code:
        attempt.note(f"it did not run: {ended.said.strip()[-120:]!r}", True)
        return None
    release: ItemRelease = load_release(place / "r")
    return release


def _with(release: ItemRelease, table: pa.Table, train: Ratings) -> pa.Table:
    """The table, and the person with most ratings besides."""
    mask = train.mask
    here = slice(*mask.indptr[(person := int(np.argmax(mask.user_counts))) : person + 2])
    items = release.synthetic_items(mask.item_ids.take(pa.array(mask.items[here])))
    user = np.full(len(items), table["user"].to_numpy().max() + 1)
    rows = pa.table({"user": user, "item": items, "rating": train.values[here]}, schema=table.schema)
    return pa.concat_tables([table, rows])
