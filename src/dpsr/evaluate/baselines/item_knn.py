"""Item-based nearest neighbours on what the biases leave over (Koren 2010, "Factor in the neighbors").

With e = r - (mean + b_u + c_j) from `Bias`, zero where nothing was rated, and n_jk the number of common raters,

    s_jk = n_jk / (n_jk + shrink) * sum_u e_uj e_uk / sqrt( sum_u e_uj^2 sum_u e_uk^2 ),      sums over common raters,
    prediction(u, j) = bias(u, j) + sum_{k in N_j, rated by u} s_jk e_uk / (damp + sum |s_jk|),

N_j the K items with the largest s_jk. `shrink` and `damp` are those that predict held-back training ratings best.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Ints
from dpsr.evaluate.baselines.base import by_items, hold_out
from dpsr.evaluate.baselines.bias import Bias
from dpsr.evaluate.metrics.ranking import Predict
from dpsr.linalg.compiled import kernel
from dpsr.types import Mask, Scale

Neighbours = tuple[npt.NDArray[np.int32], Floats]

NEIGHBOURS = 80
SHRINK = (10.0, 50.0)
DAMP = (0.1, 0.5, 2.0)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A base model, and for each item its neighbours with weights; residuals of users are kept as compressed rows."""

    base: Predict
    mask: Mask
    residual: Floats
    items: npt.NDArray[np.int32]
    weights: Floats
    damp: float

    def predict(self, users: Ints, items: Ints) -> Floats:
        """Unclipped ratings for coded users and items; -1 is a stranger."""
        u, j = (np.ascontiguousarray(codes, dtype=np.int64) for codes in np.broadcast_arrays(users, items))
        moved = _neighbour_terms(
            self.mask.indptr, self.mask.items, self.residual, self.items, self.weights, self.damp, u, j
        )
        return self.base(u, j) + moved

    def scores(self, user: int) -> Floats:
        """One unclipped rating per item."""
        items = np.arange(self.mask.n_items)
        return self.predict(np.full(len(items), user), items)


@dataclass
class ItemKNN:
    """Not private. `fit` gives a `Neighbourhood`."""

    random_state: int = 0

    def fit(self, mask: Mask, values: Floats, scale: Scale) -> Neighbourhood:
        """Similarities, shrinkage and damping from the training ratings."""
        held = hold_out(mask, 0.1, self.random_state)
        chosen = self._choose(mask, values, scale, held) if held.any() else (SHRINK[-1], DAMP[-1])
        shrink, damp = self.chosen_ = chosen
        return self._build(mask, values, scale, shrink, damp)

    def _choose(self, mask: Mask, values: Floats, scale: Scale, held: npt.NDArray[np.bool_]) -> tuple[float, float]:
        rest = mask.select(~held)
        u, j = (codes[held].astype(np.int64) for codes in (mask.users, mask.items))
        losses = {}
        for shrink in SHRINK:
            model = self._build(rest, values[~held], scale, shrink, DAMP[0])
            for damp in DAMP:
                predicted = scale.clip(replace(model, damp=damp).predict(u, j))
                losses[shrink, damp] = float(np.mean((values[held] - predicted) ** 2))
        return min(losses, key=lambda setting: losses[setting])

    def _build(self, mask: Mask, values: Floats, scale: Scale, shrink: float, damp: float) -> Neighbourhood:
        base = Bias(random_state=self.random_state).fit(mask, values, scale).fitted_
        residual = values - base.predict(mask.users, mask.items)
        return Neighbourhood(base.predict, mask, residual, *similar_items(mask, residual, shrink), damp)


def similar_items(mask: Mask, residual: Floats, shrink: float, k: int = NEIGHBOURS) -> Neighbours:
    """The k items with the largest positive similarity; missing ones have weight zero."""
    by_item = by_items(mask)
    return _similar(mask.indptr, mask.items, residual, by_item.ptr, by_item.users,
                    residual[by_item.places], shrink, min(k, mask.n_items))  # fmt: skip


@kernel
def _similar(
    indptr: Ints,
    items: npt.NDArray[np.int32],
    residual: Floats,
    column_indptr: Ints,
    raters: npt.NDArray[np.int32],
    column_residual: Floats,
    shrink: float,
    k: int,
) -> tuple[npt.NDArray[np.int32], Floats]:
    n = len(column_indptr) - 1
    found, weights = np.zeros((n, k), np.int32), np.zeros((n, k))
    dot, own, other, common = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    for j in range(n):
        dot[:], own[:], other[:], common[:] = 0.0, 0.0, 0.0, 0.0
        for t in range(column_indptr[j], column_indptr[j + 1]):
            e = column_residual[t]
            for s in range(indptr[raters[t]], indptr[raters[t] + 1]):
                i = items[s]
                dot[i] += e * residual[s]
                own[i] += e * e
                other[i] += residual[s] * residual[s]
                common[i] += 1.0
        dot[j] = 0.0
        likely = np.nonzero(dot > 0.0)[0]
        similarity = common[likely] / (common[likely] + shrink) * dot[likely] / np.sqrt(own[likely] * other[likely])
        if len(likely) > k:  # sort only what may be among the best
            enough = np.partition(similarity, len(similarity) - k)[len(similarity) - k]
            likely, similarity = likely[similarity >= enough], similarity[similarity >= enough]
        best = np.argsort(-similarity, kind="mergesort")[:k]
        found[j, : len(best)] = likely[best]
        weights[j, : len(best)] = similarity[best]
    return found, weights


@kernel
def _neighbour_terms(
    indptr: Ints,
    items: npt.NDArray[np.int32],
    residual: Floats,
    neighbours: npt.NDArray[np.int32],
    weights: Floats,
    damp: float,
    u: Ints,
    j: Ints,
) -> Floats:
    """The neighbour term of each pair. A user's ratings are spread over the catalogue once per run of equal users."""
    out = np.zeros(len(u))
    spread, rated = np.zeros(len(neighbours)), np.zeros(len(neighbours), np.bool_)
    last = -1
    for t in range(len(u)):
        if u[t] < 0 or j[t] < 0:
            continue
        if u[t] != last:
            if last >= 0:
                for s in range(indptr[last], indptr[last + 1]):
                    rated[items[s]] = False
            last = u[t]
            for s in range(indptr[last], indptr[last + 1]):
                spread[items[s]] = residual[s]
                rated[items[s]] = True
        top, bottom = 0.0, damp
        for p in range(neighbours.shape[1]):
            i = neighbours[j[t], p]
            if rated[i]:
                top += weights[j[t], p] * spread[i]
                bottom += abs(weights[j[t], p])
        out[t] = top / bottom
    return out
