r"""Distinguishing attacks: neighbouring tables told apart by what the product gives out, on every engine.

Every person of a table has one rating at an end of the scale, by a fair secret bit. Each is a pair of neighbours, so
from noisy ratings and noisy sums of all of them the likelihood ratio of the two ends is estimated on one half and the
best event is counted on the other (`dpsr.audit.events`): a lower bound on epsilon at one in a million, held against
what the receipt states. Then whole releases by the command line, from which the bits are guessed
(`dpsr.audit.canaries`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.attack.attempt import Attempt, World
from benchmarks.attack.commands import dpsr
from dpsr import Ratings, Scale, load_release
from dpsr.audit.canaries import guess, plant
from dpsr.audit.events import best_bound
from dpsr.data import realistic
from dpsr.data.ingest import ingest
from dpsr.data.spark.frame import spark_table
from dpsr.data.spark.session import spark_session
from dpsr.engine.incidence import GRID, Division
from dpsr.engine.raw import RawRatings, RawTable
from dpsr.privacy.channels import calibrated_laplace
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import Vault

STARS, RISK = Scale(1, 5), 1e-6
_BINS = 8


def attacks(world: World) -> Iterator[Attempt]:
    """Questions to the vault, and whole releases."""
    engines = ("memory", "disk") if world.quick else ("memory", "disk", "spark")
    for engine in engines:
        yield questions(world, engine)
    for engine in ("memory",) if world.quick else engines:
        yield whole_release(world, engine)


def questions(world: World, engine: str) -> Attempt:
    """Noisy ratings and noisy sums, one rating a person."""
    attempt = Attempt(f"neighbours told apart, {engine}", "")
    n = 16_000 if world.quick else 60_000
    rng = np.random.default_rng()
    bits = rng.integers(0, 2, n).astype(bool)
    people = np.char.add("u", np.char.zfill(np.arange(n).astype(str), 7))
    ratings = Ratings.from_arrays(people, people, np.where(bits, 5, 1), scale=STARS)
    found = []
    with ExitStack() as stack:
        raw = _on(engine, ratings, world.place(f"apart-{engine}"), stack)
        channel = calibrated_laplace(STARS, 1.0)
        vault = Vault(raw, 1.0, noise=NoiseSource.system())
        vault.noisy_ratings(channel, symbol="symbol")
        symbols = np.concatenate([block.columns["symbol"] for block in vault.table.scan(["symbol"])])
        found.append((_bound(symbols, bits), vault.certificate().epsilon, n))
        vault = Vault(raw, 1.0, noise=NoiseSource.system())
        alike = Division.uniform(vault.census.shape, GRID // 2)
        items, users = vault.divided_sums(2.0, 0.5, division=alike, epsilon=1.0)
        labels = _label(items.values) * (_BINS + 1) + _label(users.values)
        found.append((_bound(labels, bits), vault.certificate().epsilon, n))
    told = ", ".join(f"{bound:.3f} of {claim:.3f}" for bound, claim, _ in found)
    attempt.tried = f"likelihood ratios of {n:,} pairs, noisy ratings and sums; epsilon is at least {told}"
    for bound, claim, _ in found:
        attempt.note(f"{bound:.3f} exceeds {claim:.3f}", bound > claim)
        attempt.note("the attack found nothing at all, so it is none", bound < 0.1)
    return attempt


def whole_release(world: World, engine: str) -> Attempt:
    """Bits guessed from a release that the command line made."""
    attempt = Attempt(f"values guessed from a release, {engine}", "")
    rng, place = np.random.default_rng(), world.place(f"guessed-{engine}")
    size = 3_000 if world.quick else 12_000
    table, canaries = plant(realistic(5, n_users=size // 20, n_items=size // 40, n_ratings=size), 0.5, rng)
    csv = _csv(table, place)
    options = ["--scale", "1:5:1", "--epsilon", "3", "--yes", "--engine", engine]
    ended = dpsr("release", csv, *options, "--out", place / "r", cwd=place)
    if ended.code:
        attempt.note(f"it did not run: {ended.said.strip()[-120:]!r}", True)
        return attempt
    release = load_release(place / "r")
    found = guess(release, canaries, alpha=RISK)
    right = f"{found.correct:,} of {found.guesses:,} guesses right"
    attempt.tried = f"secret bits of {size // 2:,} ratings; {right}, epsilon is at least {found.lower:.3f} of 3"
    attempt.note(
        f"{found.lower:.3f} exceeds {release.certificate.epsilon:.3f}", found.lower > release.certificate.epsilon
    )
    return attempt


def _on(engine: str, ratings: Ratings, place: Path, stack: ExitStack) -> RawTable:
    """The same ratings wherever they are to be kept, in many blocks where there are blocks."""
    if engine == "memory":
        return RawTable.of(ratings)
    size = max(len(ratings) // 8, 64)
    if engine == "disk":
        (place / "work").mkdir()
        return ingest(_csv(ratings, place), place / "work", scale=STARS, block_size=lambda _: size)
    session = stack.enter_context(spark_session("2"))
    frame = session.createDataFrame(ratings.to_arrow())
    return spark_table(session, frame, scale=STARS, partitions=2, block_ratings=size)


def _csv(ratings: RawRatings, place: Path) -> Path:
    path = place / "ratings.csv"
    mask = ratings.mask
    users, items = mask.user_ids.take(mask.users).to_pylist(), mask.item_ids.take(mask.items).to_pylist()
    rows = [f"{user},{item},{rating:g}" for user, item, rating in zip(users, items, ratings.values, strict=True)]
    path.write_text("\n".join(["userId,movieId,rating", *rows]) + "\n")
    return path


def _label(values: np.ndarray) -> np.ndarray:
    edges = np.linspace(-0.25, 0.25, _BINS)
    return np.searchsorted(edges, values, side="right")


def _bound(labels: np.ndarray, bits: np.ndarray) -> float:
    """The largest lower bound on epsilon from labels of people with either bit."""
    labels = np.unique(np.asarray(labels), return_inverse=True)[1]
    counts, each = [], min(int(bits.sum()), int((~bits).sum()))
    for half in (slice(0, each // 2), slice(each // 2, 2 * (each // 2))):
        rows = [np.bincount(labels[bits == bit][half], minlength=labels.max() + 1) for bit in (False, True)]
        counts.append(np.array(rows))
    return best_bound(counts[0], counts[1], [(0, 1), (1, 0)], alpha=RISK).lower
