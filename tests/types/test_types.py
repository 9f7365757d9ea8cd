"""Small leaves: scales, masks and models."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpsr import Scale
from dpsr.errors import ScaleError
from dpsr.types import Mask, Model
from dpsr.types.coordinates import codes_of

NUMBERS, NAMES = pa.array([3, 7, 42], pa.int64()), pa.array(["42", "ann", "bob"])


@pytest.mark.parametrize(
    ("text", "n_levels"),
    [("1:5:1", 5), ("0.5:5:0.5", 10), ("0:10", 11), ("-10:10:0.1", 201), ("0:1:1", 2), ("0:100:1", 101)],
)
def test_scales_count_their_levels_exactly(text, n_levels):
    scale = Scale.parse(text)
    assert scale.n_levels == len(scale.values) == n_levels
    assert scale.values[-1] == scale.high
    assert all(abs(Fraction(v) - Fraction(str(v))) < Fraction(1, 10**12) for v in scale.values)


@pytest.mark.parametrize(
    "text", ["5:1:1", "1:5:0", "1:5:-1", "1:5:0.3", "1:1:1", "nan:5:1", "1:inf:1", "a:b:c", "1", "0:10000:1"]
)
def test_ill_formed_scales_are_refused_with_advice(text):
    with pytest.raises(ScaleError, match=r"LOW:HIGH:STEP|snap"):
        Scale.parse(text)


def test_values_are_put_on_the_grid_only_when_asked():
    assert Scale(-10, 10, 0.5, snap=True).encode([-10, 0.2, 0.3, 9.9]).tolist() == [0, 20, 21, 40]
    with pytest.raises(ScaleError, match=r"position 1: the rating is not on the scale"):
        Scale(-10, 10, 0.5).encode([-10, 0.2])
    with pytest.raises(ScaleError, match="position 0"):
        Scale(-10, 10, 0.5, snap=True).encode([10.2])


def test_floats_a_hair_off_the_grid_count_as_on_it():
    assert Scale(0, 1, 0.1).encode([0.1 + 0.2, 0.7]).tolist() == [3, 7]


KINDS = {
    "list": [42, 5, 3],
    "numpy": np.array([42, 5, 3]),
    "whole floats": np.array([42.0, 5.0, 3.0]),
    "pandas": pd.Series([42, 5, 3]),
    "polars": pl.Series([42, 5, 3]),
    "arrow": pa.array([42, 5, 3]),
    "text": ["42", "x", "3"],
    "mixed": [42, None, "3"],
    "nan": [42.0, float("nan"), 3],
    "infinite": [42, float("inf"), 3],
    "too large": [42, 10**30, 3],
    "fraction": [42, 2.5, 3],
}


@pytest.mark.parametrize("ids", KINDS.values(), ids=KINDS.keys())
def test_ids_of_any_kind_find_their_code_and_strangers_are_minus_one(ids):
    assert codes_of(ids, NUMBERS).tolist() == [2, -1, 0]


@pytest.mark.parametrize("ids", [["ann", 42, "zoe"], np.array(["ann", "42", "zoe"]), ["ann", 42.0, None]], ids=repr)
def test_names_are_found_however_they_are_written(ids):
    assert codes_of(ids, NAMES).tolist() == [1, 0, -1]


def test_a_mask_selects_ratings_and_keeps_everybody():
    mask = Mask(NUMBERS, NAMES, np.array([0, 2, 2, 3]), np.array([0, 2, 1], dtype=np.int32), np.array([5, 6, 7]))
    part = mask.select(np.array([False, True, True]))
    assert part.shape == mask.shape
    assert part.users.tolist() == [0, 2]
    assert part.items.tolist() == [2, 1]
    assert part.timestamps.tolist() == [6, 7]
    assert mask.item_counts.tolist() == [1, 1, 1]


def test_a_model_takes_observed_cells_from_where_they_were_moved_to():
    mask = Mask(NUMBERS, NAMES, np.array([0, 1, 1, 2]), np.array([1, 2], dtype=np.int32))
    model = Model(
        mask,
        Scale(1, 5),
        user_factors=np.array([[1.0], [2.0], [3.0]]),
        item_factors=np.array([[1.0], [1.5], [9.0]]),
        user_means=np.full(3, 2.0),
        item_means=np.full(3, 4.0),
        overall=3.0,
        residual_variance=1.0,
        user_mean=np.array([2.0]),
        user_covariance=np.array([[1.0]]),
        observed=np.array([4.5, 0.0]),
    )
    predicted = model.predict(np.array([0, 0, 2, 2, -1, 1, -1]), np.array([1, 0, 2, 0, 1, -1, -1]))
    assert predicted.tolist() == [4.5, 1.0, 1.0, 3.0, 4.0, 2.0, 3.0]
