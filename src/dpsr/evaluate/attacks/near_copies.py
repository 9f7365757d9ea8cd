r"""Near-copies: is a made-up person a real one by more than chance?

A made-up person with n items meets item j with probability p_j(n), independently of whoever is real, and so shares the
set S of items with a real person with probability at most prod_S p_j. With I = - sum_S log p_j(n) the information in
the items they share, and k ratings of the real person,

    E exp(I) <= prod_j (1 - p_j + p_j / p_j) <= 2^k,      so      P[I >= x] <= 2^k e^-x        (Markov),

and of all pairs the chance that any shares more than x is at most the sum. `excess` is I - k log 2 - log(pairs): above
log(1 / risk) the pair is no accident. Ratings are not looked at for it, so a copy whose ratings were changed is found
as well. People with few ratings of popular items cannot be told from chance, by this or by anybody: such a table is
anybody's.

Beside it the comparison that needs no law: how close the closest made-up person comes, in items and ratings, to people
whose ratings were released from, and to people held out; the two should be alike (`guessing`).

Reads raw ratings: its numbers are **not private**.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy import sparse

from dpsr.arrays import Bools, Floats, Ints
from dpsr.engine.raw import RawRatings
from dpsr.evaluate.attacks.guessing import Guesses, judge
from dpsr.release.nobody import CELL
from dpsr.release.people import ItemRelease
from dpsr.synthesis import chances_met, propensities
from dpsr.types.item_side import activity_of

FEWEST = 5
"""Ratings of a real person that may be recognised at all."""

_CHUNK = 1_000


@dataclass(frozen=True, eq=False)
class Rows:
    """People as a sparse table: cells, and ratings as places on the scale."""

    indptr: Ints
    cells: Ints
    places: Ints

    @property
    def counts(self) -> Ints:
        return np.diff(self.indptr)


@dataclass(frozen=True)
class NearCopies:
    """`excess` of the closest pair over chance, in nats; how many real people have a made-up copy that is no accident;
    and what closeness tells of who was in the data."""

    excess: float
    found: int
    people: int
    membership: Guesses


def attack_near_copies(
    release: ItemRelease, table: pa.Table, train: RawRatings, held: RawRatings, *, risk: float = 1e-6, seed: int = 0
) -> NearCopies:
    """Look for people of `train`, from which the release was made, in a table of made-up people; `held` were not in."""
    made_up = made_up_rows(release, table)
    members, others = (real_rows(release, one) for one in (train, held))
    told = information(release, made_up)
    excess, near = closest(release, members, made_up, told)
    _, far = closest(release, others, made_up, told)
    scores = np.concatenate([near, far])
    truth = np.repeat([True, False], [len(near), len(far)])
    learn: Bools = np.random.default_rng(seed).random(len(truth)) < 0.5
    found = int((excess > np.log(1 / risk)).sum())
    return NearCopies(float(excess.max(initial=-np.inf)), found, len(excess), judge(scores, truth, learn=learn))


def real_rows(release: ItemRelease, ratings: RawRatings) -> Rows:
    """Real people with enough ratings."""
    mask = ratings.mask
    cells, enough = release.index.cells_of(mask.item_ids)[mask.items], mask.user_counts >= FEWEST
    keep = enough[mask.users] & (cells >= 0)
    counts = np.bincount(mask.users[keep], minlength=mask.n_users)[enough]
    return Rows(np.concatenate([[0], np.cumsum(counts)]), cells[keep], ratings.levels[keep].astype(np.int64))


def made_up_rows(release: ItemRelease, table: pa.Table) -> Rows:
    """A table of made-up people by cell."""
    names, codes = np.unique(np.asarray(table["item"].to_pylist(), dtype=object).astype(str), return_inverse=True)
    hashed = release.index.declared is None
    direct = [int(name[len(CELL) :]) if hashed and name.startswith(CELL) else -1 for name in names]
    ids = names if release.index.declared is None else names.astype(_kind(release))
    cells = np.where(np.array(direct) >= 0, direct, release.index.cells_of(pa.array(ids.tolist())))[codes]
    users, rows = np.unique(np.asarray(table["user"]), return_inverse=True)
    order = np.argsort(rows, kind="stable")
    places, _ = release.scale.locate(np.asarray(table["rating"]))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(users)))])
    return Rows(indptr, cells[order], places[order].astype(np.int64))


def _kind(release: ItemRelease) -> str:
    assert release.index.declared is not None
    return "int64" if pa.types.is_integer(release.index.declared.type) else "str"


def information(release: ItemRelease, made_up: Rows) -> dict[int, Floats]:
    """-log p_j(n) of every cell, for the most items n of a made-up person in each octave of activity."""
    crowd, octaves = release.crowd, activity_of(made_up.counts)
    p = propensities(crowd.met, crowd.activity, crowd.weights)
    most = {int(octave): int(made_up.counts[octaves == octave].max()) for octave in np.unique(octaves)}
    return {octave: -np.log(np.maximum(chances_met(n, p), 1e-12)) for octave, n in most.items()}


def closest(release: ItemRelease, real: Rows, made_up: Rows, told: dict[int, Floats]) -> tuple[Floats, Floats]:
    """Of every real person: the largest excess over chance of items shared, and the largest share of their ratings that
    is shared. `told` is the information in a cell by octave of activity."""
    levels, n_cells, people = release.scale.n_levels, release.side.n_cells, len(real.counts)
    met, mine = (_people_by(real, columns, n) for columns, n in _columns(real, n_cells, levels))
    pairs = np.log(max(people, 1)) + np.log(max(len(made_up.counts), 1))
    excess, share = np.full(people, -np.inf), np.zeros(people)
    octaves = activity_of(made_up.counts)
    their_items, theirs = (_people_by(made_up, columns, n) for columns, n in _columns(made_up, n_cells, levels))
    for octave, nats in told.items():
        some = their_items[octaves == octave]
        weighted = sparse.csr_matrix(some.multiply(nats[None, :])).T.tocsc()
        plain = theirs[octaves == octave].T.tocsc()
        for start in range(0, people, _CHUNK):
            here = slice(start, min(start + _CHUNK, people))
            information = np.asarray((met[here] @ weighted).max(axis=1).todense()).ravel()
            shared = np.asarray((mine[here] @ plain).max(axis=1).todense()).ravel()
            counts = real.counts[here]
            excess[here] = np.maximum(excess[here], information - counts * np.log(2) - pairs)
            share[here] = np.maximum(share[here], shared / np.maximum(counts, 1))
    return excess, share


def _columns(rows: Rows, n_cells: int, levels: int) -> tuple[tuple[Ints, int], tuple[Ints, int]]:
    """Where every rating stands by item alone, and by item and rating; and how many such places there are."""
    return (rows.cells, n_cells), (rows.cells * levels + rows.places, n_cells * levels)


def _people_by(rows: Rows, columns: Ints, n: int) -> sparse.csr_matrix:
    """People by columns: one where a person has it, however often."""
    found = sparse.csr_matrix((np.ones(len(columns)), columns, rows.indptr), (len(rows.counts), n))
    found.sum_duplicates()
    found.data[:] = 1.0
    return found
