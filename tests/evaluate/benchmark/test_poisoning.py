"""No method sees test data: with every test rating turned upside down, or taken out, predictions are the same."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpsr.data import Ratings, realistic
from dpsr.evaluate.benchmark.details import Details
from dpsr.evaluate.benchmark.jobs import Job
from dpsr.evaluate.benchmark.methods import build
from dpsr.evaluate.benchmark.sets import Source
from dpsr.evaluate.benchmark.work import run_method
from dpsr.evaluate.frontier_methods import noise_seed
from dpsr.evaluate.frontier_sets import TEST_SHARE
from dpsr.evaluate.peers.registry import is_private, peer_names
from dpsr.types import Scale

SEED, SCALE = 0, Scale(1, 5)


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """One set twice: as it is, and with the test ratings of the split poisoned. Also its training part alone."""
    folder = tmp_path_factory.mktemp("sets")
    ratings = realistic(1, n_users=40, n_items=25, n_ratings=500, skew=0.3)
    held = np.zeros(len(ratings), dtype=bool)
    held[np.random.default_rng(SEED).permutation(len(ratings))[len(ratings) - round(TEST_SHARE * len(ratings)) :]] = (
        True
    )
    poisoned = Ratings(ratings.mask, np.where(held, 4 - ratings.levels, ratings.levels).astype(np.uint16), SCALE)
    sources = []
    for name, table in (("clean", ratings), ("poisoned", poisoned)):
        (folder / name).mkdir()
        pq.write_table(table.to_arrow(), folder / name / "set.parquet")
        sources.append(Source("set", str(folder / name / "set.parquet"), "1:5:1"))
    train, _ = ratings.split(TEST_SHARE, seed=SEED)
    pq.write_table(train.to_arrow(), folder / "train.parquet")
    alone = Ratings.read(folder / "train.parquet", scale=SCALE)
    return sources, alone


def test_the_poison_is_in_the_test_part_and_nowhere_else(sets):
    (clean, poisoned), alone = sets
    (train, test), (same, other) = clean.split(SEED), poisoned.split(SEED)
    assert np.array_equal(train.levels, same.levels)
    assert np.array_equal(train.mask.items, same.mask.items)
    assert np.array_equal(other.values, 6 - test.values)
    assert (other.values != test.values).mean() > 0.5
    assert alone.mask.shape == train.mask.shape
    assert np.array_equal(alone.levels, train.levels)


@pytest.mark.parametrize("method", peer_names())
def test_predictions_do_not_depend_on_test_ratings(sets, method, tmp_path):
    sources, alone = sets
    epsilon = 1.0 if is_private(method) else None
    predicted, errors = [], []
    for source in sources:
        job = Job("method", source, method, epsilon, SEED)
        errors.append(run_method(job, tmp_path)[0]["rmse"])
        predicted.append(Details.load(tmp_path / f"{job.name}.npz").predicted)
    assert np.array_equal(predicted[0], predicted[1])
    assert errors[0] != errors[1], "the score does read the test ratings"
    own = noise_seed("set", method, epsilon, SEED)
    _, test = sources[0].split(SEED)
    cells = test.mask.users.astype(np.int64), test.mask.items.astype(np.int64)
    without = build(method, epsilon, 1e-5, own).fit(alone).predict(*cells)
    assert np.array_equal(without.astype(np.float32), predicted[0]), "nor on where they are"


def test_a_method_that_peeks_is_caught(sets):
    """The comparison above would pass for methods that ignore everything; this one reads the whole file."""
    sources, _ = sets
    means = [source.read(0).values.mean() for source in sources]
    assert means[0] != means[1]
