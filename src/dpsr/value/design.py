"""The public design: what who rated what says about users and items, at no cost.

**Embeddings.** With M the 0/1 mask, n_u and c_j its row and column sums and n, c their averages over those that have
any, the degree-normalised mask is

    N = (D_u + n)^-1/2  M  (D_j + c)^-1/2.

Adding the average degree is the regularisation of spectral clustering (Amini, Chen, Bickel and Levina 2013): without
it, a few people who rated nothing but each other's items have a singular value of one of their own, and on sparse sets
such islands are all that the leading vectors show. The first pair of N is popularity times activity and is left out;
the next d singular pairs (U, S, V) are the embeddings. U_u / sqrt(n_u + n) is an average over u's items, shrunk where
it rests on few; so V_j likewise. Further ones, of items, are what a finer taste may be smooth over (`assembly.py`). All
pairs together, undone from the normalisation, say who is likely to meet what (`Affinity`): M_uj is nearly
sqrt((n_u + n) (c_j + c)) (U S V')_uj.

**Places.** Ids are often given in the order in which items appear, so that neighbours have something in common. With
q_j the share of all ratings that are for items before j in the order of ids, half of j's own included, an item's places
are cos(pi k q_j), k = 1, 2: old or new, and in the middle or not.

**Features.** The constant, counts and embeddings; of an item also its places and how active its users are. That is an
average, shrunk where it rests on few, as embeddings are: an item with one rating would be described by whoever gave it,
and predictions are about others. Where no singular value of the mask stands out of the bulk (`mask_structure`) there
are the first two embeddings alone and no places. Every column but the constant is centred and scaled to unit mean
square *over ratings* and winsorised at three, so that one coefficient means the same everywhere and nobody is an
outlier.

**Octaves.** Counts of items and of users by powers of two (`Side`): all that the rule of the budget looks at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Ints
from dpsr.engine import MemoryTable, Table
from dpsr.engine.contrasts import Contrasts
from dpsr.engine.incidence import Incidence
from dpsr.linalg.lanczos import Gram, leading_pairs, restricted, scattered
from dpsr.types import Affinity, Census, Mask
from dpsr.value.priors import Components
from dpsr.value.quadratic import Quadratic

OCTAVES = 20
"""Classes of counts: 1, 2 to 3, 4 to 7, and so on; the last one is open."""


class Side(NamedTuple):
    """Items, or users, by octave of their counts."""

    rows: Floats
    mass: Floats
    other: Floats
    effect: float
    slopes: float

    @classmethod
    def of(cls, counts: Ints, effect: float, slopes: float) -> Side:
        """`other` is how many more ratings the rows of an octave have beside the one that is predicted."""
        some = counts[counts > 0]
        place = octaves(some)
        rows = np.bincount(place, minlength=OCTAVES).astype(np.float64)
        total = np.bincount(place, some, OCTAVES)
        return cls(rows, total / max(total.sum(), 1), np.maximum(total / np.maximum(rows, 1) - 1, 0.0), effect, slopes)


def octaves(counts: Ints) -> Ints:
    """floor(log2 count), exactly; zero where there is nothing."""
    return np.minimum(np.frexp(np.maximum(counts, 1).astype(np.float64))[1] - 1, OCTAVES - 1).astype(np.int64)


SMOOTH = 32
"""Leading vectors of the mask over which a taste may be smooth (`assembly.py`): more of them than are features."""

_WIDTH, _PRODUCTS = 6, 12
"""Of products with the mask, from which all vectors come: narrow ones, many of them, have the leading vectors nearly
exact and the others well enough (decision 72)."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """User and item embeddings, row by row, and the affinity they imply; `smooth` has more of items, S V."""

    users: Floats
    items: Floats
    affinity: Affinity
    structure: float
    smooth: Floats

    @property
    def shown(self) -> tuple[Floats, Floats]:
        """Those that are features: all, or the first few where none stands out."""
        number = self.users.shape[1] if self.structure > 0 else _FEW
        return self.users[:, :number], self.items[:, :number]


_FEW = 2
"""Embeddings used where the mask has no structure. Each is a coefficient more for everybody to be learned from noise:
with eight, factors are found later or not at all, and with none what little the mask does tell is lost (decision 48).
Places are left out there for the same reason (decision 74)."""


def degree_scales(counts: npt.NDArray[np.int64]) -> Floats:
    """1 / sqrt(count + average count)."""
    return 1 / np.sqrt(counts + max(counts.sum(), 1) / max(np.count_nonzero(counts), 1))


def mask_embeddings(table: Table, rank: int, scales: Callable[[Ints], Floats] = degree_scales) -> Embeddings:
    """Embeddings with at most `rank` columns; none where the mask is too small to have any."""
    census, mask = table.census, Incidence(table)
    rank = max(0, min(rank, min(census.shape) - 2))
    left, right = scales(census.user_counts), scales(census.item_counts)
    s, V = _leading_items(partial(mask.gram, left, right), census.item_counts > 0, max(rank, SMOOTH) + 1)
    smooth = (V[:, 1:] * s[1:])[:, :SMOOTH] * right[:, None]
    s, V = s[: rank + 1], V[:, : rank + 1]
    _, met = mask.both(np.empty((census.n_users, 0)), right[:, None] * V)
    US = left[:, None] * met
    U = US / np.where(s > 1e-7 * s[0], s, np.inf)
    affinity = Affinity(users=US / left[:, None], items=V / right[:, None])
    structure = structure_of(census, affinity)
    if structure == 0:  # who meets what follows from counts, as far as can be seen: the rest would be chance
        affinity = Affinity(users=affinity.users[:, :1], items=affinity.items[:, :1])
    return Embeddings(U[:, 1:] * left[:, None], V[:, 1:] * right[:, None], affinity, structure, smooth)


_LEAST, _MORE, _CLEAR = 0.2, 0.1, 0.1
"""(s_2 / s_last)^2 - 1 up to which a mask shows nothing: what chance gives and so much more, since counts differ, but
never less than the first; so much above that there are clearly tastes in it."""

_THIRD, _LAST = 4.088, 11.008
"""Second and eighth zero of Airy's function, with the sign left out."""


def _by_chance(m: int, n: int) -> float:
    """(s_2 / s_8)^2 - 1 of an m x n matrix of independent entries.

    The squares of its leading singular values lie about (sqrt m + sqrt n)^2 - a_k c, c the width of its edge and a_k
    the zeros of Airy's function (Johnstone 2001); s_0 is not one of them.
    """
    top = np.sqrt(m) + np.sqrt(n)
    width = top * (m**-0.5 + n**-0.5) ** (1 / 3)
    return float((top**2 - _THIRD * width) / max(top**2 - _LAST * width, width) - 1)


def mask_structure(s: Floats, shape: tuple[int, int]) -> float:
    """How clearly the singular values of the degree-normalised mask stand out of their bulk, from 0 to 1 in quarters.

    s_0 is popularity times activity and s_1 may be what is left of it, since nobody meets an item twice; so s_2 is
    compared with the last one, which is the edge of the bulk. `shape` counts users and items that have ratings. Too
    small a mask shows nothing.
    """
    if len(s) < RANK + 1 or s[-1] <= 0:
        return 0.0
    nothing = max(_LEAST, _by_chance(*shape) + _MORE)
    excess = ((s[2] / s[-1]) ** 2 - 1 - nothing) / _CLEAR
    return float(np.clip(np.rint(4 * excess) / 4, 0.0, 1.0))  # a division must not follow the last bits of a sum


def structure_of(census: Census | Mask, affinity: Affinity) -> float:
    """`mask_structure`, read off an affinity: the lengths of its users' columns, as normalised, are singular values."""
    scaled = affinity.users * degree_scales(census.user_counts)[:, None]
    shape = int(np.count_nonzero(census.user_counts)), int(np.count_nonzero(census.item_counts))
    return mask_structure(np.sqrt((scaled**2).sum(axis=0)), shape)


def shown_components(mask: Mask) -> Components:
    """Typical shares of variance, of whose tastes this mask shows as much as its structure says."""
    return Components().with_structure(mask_embeddings(MemoryTable(mask), RANK).structure)


def released_components(census: Census | Mask, affinity: Affinity | None) -> Components:
    """The same, read off what a release holds of its mask; as if all tastes showed where it holds nothing."""
    return Components() if affinity is None else Components().with_structure(structure_of(census, affinity))


def _leading_items(gram: Gram, rated: npt.NDArray[np.bool_], rank: int) -> tuple[Floats, Floats]:
    """Singular values and item vectors; an item nobody rated has no part in them and is left out of the work."""
    s, V = leading_pairs(restricted(gram, rated), int(rated.sum()), rank, width=_WIDTH, products=_PRODUCTS)
    return s, scattered(V, rated)


_WINSOR = 3.0


def public_features(table: Table, embeddings: Embeddings, places: int) -> tuple[Floats, Floats]:
    """x_u = [1, counts, embedding] for users, and z_j = [1, places, activity of users, counts, embedding] for items."""
    n_u, c_j = table.census.user_counts.astype(np.float64), table.census.item_counts.astype(np.float64)
    users, items = embeddings.shown
    x, z = _side(n_u, users), _side(c_j, items)
    active = _cold_as_rarest(standardise(mean_activity(table)[:, None], c_j), c_j)
    return x, np.column_stack([z[:, :1], standardise(item_places(c_j, places), c_j), active, z[:, 1:]])


def mean_activity(table: Table) -> Floats:
    """How active the users of every item are: their mean log count above that of all ratings, shrunk by as many more as
    an item has on average."""
    n_u, c_j = table.census.user_counts.astype(np.float64), table.census.item_counts.astype(np.float64)
    total = Incidence(table).both(np.log1p(n_u), np.zeros(len(c_j)))[0]
    typical = total.sum() / max(c_j.sum(), 1.0)
    return np.asarray((total - typical * c_j) / (c_j + c_j.sum() / max(np.count_nonzero(c_j), 1)))


def item_places(counts: Floats, number: int) -> Floats:
    """cos(pi k q) of every item, k = 1, 2, ...: q is its place in the order of ids, by ratings.

    >>> item_places(np.array([1.0, 2.0, 1.0]), 1).round(3).ravel().tolist()
    [0.924, 0.0, -0.924]
    """
    q = (np.cumsum(counts) - counts / 2) / max(counts.sum(), 1.0)
    return np.asarray(np.cos(np.pi * np.outer(q, np.arange(1, number + 1))))


def standardise(columns: Floats, weight: Floats) -> Floats:
    """Columns centred and scaled to unit weighted mean square, winsorised; constant columns become zero."""
    total = max(weight.sum(), 1.0)
    for _ in range(2):  # once more after the outliers are cut
        columns = columns - weight @ columns / total
        size = np.sqrt(weight @ columns**2 / total)
        columns = np.clip(columns / np.where(size > 1e-9, size, np.inf), -_WINSOR, _WINSOR)
    return columns


def _side(counts: Floats, embedding: Floats) -> Floats:
    """[1, log count, its square, embedding]."""
    log_count = standardise(np.log1p(counts)[:, None], counts)[:, 0]
    plain = standardise(np.column_stack([log_count, np.clip(log_count**2, 0, 6)]), counts)
    features = np.column_stack([np.ones(len(counts)), plain, standardise(embedding, counts)])
    return _cold_as_rarest(features, counts)


def _cold_as_rarest(features: Floats, counts: Floats) -> Floats:
    """A row without ratings takes the mean features of those with fewest, the nearest thing known about it."""
    cold = counts == 0
    if cold.any() and not cold.all():
        features[cold] = features[counts == counts[~cold].min()].mean(axis=0)
    return features


def with_one_more(features: Floats, counts: Floats, *, at: int = 1) -> Floats:
    """The features of rows that have one rating more; the columns of their own count are `at` and the next one.

    What counts tell is learned from ratings that are counted themselves; one that is to be predicted is not yet.
    Columns of counts are read off between rows that have as many, the others stay; a row without ratings has the
    features of those with fewest as it is.
    """
    rated, more = counts > 0, features.copy()
    known, first = np.unique(counts[rated], return_index=True)
    for column in (at, at + 1):
        more[rated, column] = np.interp(counts[rated] + 1, known, features[rated, column][first])
    return more


RANK = 8
"""Columns of the mask embeddings. More cost time with the square and gained nothing on any set tried."""

PLACES = 2
"""Columns of an item's place in the order of ids: with one less is gained, with four hardly more (decision 74)."""


@dataclass(frozen=True, eq=False)
class Design:
    """Everything that is computed from the mask alone.

    `x` (users) and `z` (items) have the constant first and the mask embedding in their last `embedding` columns; behind
    the constant `z` has some that `x` has not, `places` and one more.
    `smooth` are the items' vectors that a finer taste is smooth over, `structure` says whether tastes show in the mask
    (`mask_structure`).
    """

    table: Table
    x: Floats
    z: Floats
    embedding: int
    affinity: Affinity
    smooth: Floats
    structure: float = 1.0
    places: int = PLACES

    @classmethod
    def of(
        cls,
        table: Table | Mask,
        *,
        rank: int = RANK,
        places: int = PLACES,
        scales: Callable[[Ints], Floats] = degree_scales,
    ) -> Design:
        """Features of a table's mask; another `rank`, `places` and other `scales` of degrees are for ablations."""
        table = MemoryTable(table) if isinstance(table, Mask) else table
        found = mask_embeddings(table, rank, scales)
        places = places if found.structure > 0 else 0
        x, z = public_features(table, found, places)
        return cls(table, x, z, found.shown[1].shape[1], found.affinity, found.smooth, found.structure, places)

    @property
    def census(self) -> Census:
        return self.table.census

    @cached_property
    def user_counts(self) -> Floats:
        return self.census.user_counts.astype(np.float64)

    @cached_property
    def item_counts(self) -> Floats:
        return self.census.item_counts.astype(np.float64)

    @cached_property
    def contrasts(self) -> Contrasts:
        """The feature by which a row differs most from the average, and to which side, of those that both have."""
        return Contrasts.of(self.x[:, 1:], self.z[:, 1 - self.x.shape[1] :])

    @cached_property
    def item_products(self) -> Quadratic:
        """What any two features of an item tell together."""
        return Quadratic.of(self.z[:, 1:], self.item_counts)

    @property
    def with_one_more(self) -> tuple[Floats, Floats]:
        """`x` and `z` of rows that have one rating more."""
        own = self.z.shape[1] - self.x.shape[1]
        return with_one_more(self.x, self.user_counts), with_one_more(self.z, self.item_counts, at=1 + own)

    @cached_property
    def weight_groups(self) -> npt.NDArray[np.int64]:
        """Entries of W in z' W x that share a ridge.

        0 the constant; 1 and 2 an item's plain features and its embedding; 3 and 4 a user's; 5 products of both; 6
        those of an item's places; 7 those of its count, since who likes what is popular is a taste of its own; 8 those
        of one embedding on either side, since people like what people like them meet (decision 86).
        """
        q, d = self.z.shape[1], self.x.shape[1]
        groups = np.full((q, d), 5)
        groups[1 : 1 + self.places] = 6
        count, plain = 1 + q - d, d - self.embedding
        groups[count, 1:] = groups[count + 1, 1:plain] = 7
        own = np.arange(self.embedding)
        groups[q - self.embedding + own, plain + own] = 8
        groups[0, 0] = 0
        groups[1 : q - self.embedding, 0], groups[q - self.embedding :, 0] = 1, 2
        groups[0, 1 : d - self.embedding], groups[0, d - self.embedding :] = 3, 4
        return groups
