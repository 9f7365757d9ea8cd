"""The paper's stages on private ratings in memory: what the tests call, over the passes the pipeline runs."""

from dataclasses import replace

from dpsr.engine import MemoryTable
from dpsr.paper.blend import blend_with_neighbours
from dpsr.paper.completion import Completion, complete_by_projections
from dpsr.paper.neighbours import Neighbours, item_neighbours
from dpsr.types import Model, PrivateRatings

NOISY, SMOOTHED = "noisy", "smoothed"


def table_of(private: PrivateRatings) -> MemoryTable:
    return MemoryTable(private.mask, {NOISY: private.values})


def neighbours(private: PrivateRatings, *, k: int) -> Neighbours:
    return item_neighbours(table_of(private), NOISY, private.scale, k=k)


def blended(private: PrivateRatings, similar: Neighbours, *, beta: float) -> PrivateRatings:
    table = table_of(private)
    blend_with_neighbours(table, NOISY, similar, private.scale, beta=beta, blended=SMOOTHED)
    return private.with_values(table[SMOOTHED])


def completed(private: PrivateRatings, *, rank: int, lam: float, n_iter: int, period: int) -> Model:
    table, ends = table_of(private), Completion("released", "observed")
    model = complete_by_projections(table, NOISY, private.scale, ends, rank=rank, lam=lam, n_iter=n_iter, period=period)
    return replace(model, observed=table[ends.observed]) if n_iter % period else model


def released(private: PrivateRatings, **settings: float) -> object:
    """The column of predictions that a completion ends with."""
    table, ends = table_of(private), Completion("released", "observed")
    complete_by_projections(table, NOISY, private.scale, ends, **settings)
    return table[ends.released]
