"""How methods are tested: parts and samples are the same for everyone, and no method sees test data.

With every test rating turned upside down, or taken out, predictions are the same.
"""

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpsr.data import Ratings, realistic
from dpsr.evaluate import score
from dpsr.evaluate.measure import METHOD
from dpsr.evaluate.measure.method import measure_method
from dpsr.evaluate.protocol import ALL_RANKED, ERRORS_ONLY, PROTOCOLS, HeldOutRatings, Predictions, listed_users
from dpsr.evaluate.registry import METHODS, build, compared_methods
from dpsr.evaluate.runner.jobs import Job, noise_seed
from dpsr.evaluate.runner.store import load_arrays
from dpsr.evaluate.sets import RatingSet
from dpsr.types import Scale

SEED, SCALE, PROTOCOL = 0, Scale(1, 5), PROTOCOLS[ALL_RANKED]


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """One set twice: as it is, and with the test ratings of the split poisoned. Also its training part alone."""
    folder = tmp_path_factory.mktemp("sets")
    ratings = realistic(1, n_users=40, n_items=25, n_ratings=500, skew=0.3)
    order, n_test = np.random.default_rng(SEED).permutation(len(ratings)), round(PROTOCOL.test_share * len(ratings))
    held = np.zeros(len(ratings), dtype=bool)
    held[order[len(ratings) - n_test :]] = True
    poisoned = Ratings(ratings.mask, np.where(held, 4 - ratings.levels, ratings.levels).astype(np.uint16), SCALE)
    sources = []
    for name, table in (("clean", ratings), ("poisoned", poisoned)):
        (folder / name).mkdir()
        pq.write_table(table.to_arrow(), folder / name / "set.parquet")
        sources.append(RatingSet("set", str(folder / name / "set.parquet"), "1:5:1"))
    train, _ = ratings.split(PROTOCOL.test_share, seed=SEED)
    pq.write_table(train.to_arrow(), folder / "train.parquet")
    alone = Ratings.read(folder / "train.parquet", scale=SCALE)
    return sources, alone


def test_the_poison_is_in_the_test_part_and_nowhere_else(sets):
    (clean, poisoned), alone = sets
    (train, test), (same, other) = (PROTOCOL.split(one, SEED) for one in (clean, poisoned))
    assert np.array_equal(train.levels, same.levels)
    assert np.array_equal(train.mask.items, same.mask.items)
    assert np.array_equal(other.values, 6 - test.values)
    assert (other.values != test.values).mean() > 0.5
    assert alone.mask.shape == train.mask.shape
    assert np.array_equal(alone.levels, train.levels)


@pytest.mark.parametrize("method", compared_methods())
def test_predictions_do_not_depend_on_test_ratings(sets, method, tmp_path):
    sources, alone = sets
    epsilon = 1.0 if METHODS[method].budgeted else None
    own = noise_seed("set", method, epsilon, SEED)
    predicted, errors = [], []
    for source in sources:
        job = Job(METHOD, source, method, epsilon, SEED, own, own, ERRORS_ONLY)
        errors.append(measure_method(job, tmp_path / "arrays.npz")[0]["rmse"])
        predicted.append(load_arrays(tmp_path / "arrays.npz")["predicted"])
    assert np.array_equal(predicted[0], predicted[1])
    assert errors[0] != errors[1], "the score does read the test ratings"
    cells = PROTOCOL.split(sources[0], SEED).test_cells
    without = build(method, epsilon, 1e-5, own).fit(alone).predict(*cells)
    assert np.array_equal(without.astype(np.float32), predicted[0]), "nor on where they are"


def test_a_method_that_peeks_is_caught(sets):
    """The comparison above would pass for methods that ignore everything; this one reads the whole file."""
    sources, _ = sets
    means = [source.read(0).values.mean() for source in sources]
    assert means[0] != means[1]


class ByCode:
    """Rates everything three, and ranks by item code."""

    def __init__(self, n_items):
        self.n_items = n_items

    def scores(self, user):
        return np.arange(self.n_items, dtype=float)

    def predict(self, users, items):
        return np.full(len(users), 3.0)


def test_scores_are_those_of_the_library_and_errors_never_leave_anyone_out(sets):
    split = PROTOCOL.split(sets[0][0], SEED)
    model = ByCode(split.train.mask.n_items)
    found, whole = PROTOCOL.score(model, split, SEED), score(model, split.train, split.test)
    assert set(found) == set(PROTOCOL.metrics)
    assert (found["rmse"], found["mae"]) == (whole.rmse, whole.mae)
    assert (found["precision_at_10"], found["ndcg_at_10"]) == (whole.precision, whole.ndcg)
    constant = np.sqrt(np.mean((split.test.values - split.train.values.mean()) ** 2))
    assert found["share_of_constant"] == pytest.approx(whole.rmse / constant)
    few = HeldOutRatings(ranked_users=5)
    sampled = few.score(model, split, SEED)
    assert sampled["rmse"] == found["rmse"]
    assert sampled["ndcg_at_10"] != found["ndcg_at_10"]
    assert few.score(model, split, SEED) == sampled, "the same sample for every method"
    assert set(PROTOCOLS[ERRORS_ONLY].score(model, split, SEED)) == set(PROTOCOL.errors)


def test_lists_leave_out_what_was_rated_and_are_best_first(sets):
    split = PROTOCOL.split(sets[0][0], SEED)
    mask = split.train.mask
    found = Predictions.of(ByCode(mask.n_items), split, SEED)
    assert found.predicted.shape == (len(split.test),)
    for user, row in zip(listed_users(mask, SEED), found.lists, strict=True):
        rated = set(mask.items[mask.indptr[user] : mask.indptr[user + 1]].tolist())
        best = [j for j in range(mask.n_items - 1, -1, -1) if j not in rated][:10]
        assert row.tolist() == best + [-1] * (10 - len(best))
