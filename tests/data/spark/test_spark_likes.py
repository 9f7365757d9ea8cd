"""Interactions on Spark: the same pairs, weights and release as in memory, and the same refusals."""

import numpy as np
import pyarrow as pa
import pytest
from spark_cases import column, needs_spark

from dpsr import DPSR, Interactions
from dpsr.data.spark.likes import spark_interactions, spark_interactions_of_file
from dpsr.engine.raw import WEIGHT
from dpsr.errors import DataError

pytestmark = needs_spark


@pytest.fixture
def session(lasting_spark):
    return lasting_spark


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Plays with a count each, some pairs in several rows, ids that look like numbers and are none."""
    rng = np.random.default_rng(0)
    p = 1 / (2 + np.arange(40))
    rows = [
        (f"u{u:03}", f"{j:02}", int(rng.integers(1, 4))) for u in range(120) for j in rng.choice(40, 9, p=p / p.sum())
    ]
    path = tmp_path_factory.mktemp("log") / "plays.csv"
    path.write_text("user,item,count\n" + "".join(f"{u},{j},{n}\n" for u, j, n in rows))
    return path


def test_pairs_weights_notes_and_the_release_are_those_of_memory(session, log):
    inside, there = Interactions.read(log), spark_interactions_of_file(session, log)
    assert there.table.census.user_ids.to_pylist() == inside.user_ids.to_pylist()
    assert there.table.census.item_ids.to_pylist() == inside.item_ids.to_pylist()
    np.testing.assert_array_equal(there.table.census.user_counts, inside.mask.census.user_counts)
    np.testing.assert_array_equal(np.concatenate([block.items for block in there.table.scan()]), inside.mask.items)
    np.testing.assert_array_equal(column(there.table, WEIGHT), inside.weights)
    assert there.notes == inside.notes
    assert "weights were added up" in there.notes[0]
    model = DPSR(20.0, unit="user", delta=1e-3, items=inside.item_ids, random_state=0)
    one, other = model.fit(inside).release.side, model.fit_table(there).side
    assert one.method == other.method != "popularity"
    np.testing.assert_array_equal(one.popularity, other.popularity)
    np.testing.assert_array_equal(one.entry, other.entry)


def test_names_of_a_list_that_was_not_declared_are_those_of_memory(session, log):
    model = DPSR(20.0, unit="user", delta=1e-3, random_state=0)
    one = model.fit(Interactions.read(log)).release
    other = model.fit_table(spark_interactions_of_file(session, log))
    assert one.index.named.to_pylist() == other.index.named.to_pylist() != []
    assert one.certificate.parts == other.certificate.parts


def test_a_frame_without_weights_weighs_every_row_one(session):
    rows = pa.table({"who": ["ann", "ann", "bob", "ann"], "what": [1, 2, 1, 1]})
    found = spark_interactions(session, session.createDataFrame(rows), user="who", item="what")
    np.testing.assert_array_equal(column(found.table, WEIGHT), [2.0, 1.0, 1.0])


@pytest.mark.parametrize("weight", ["-2", "inf", "much", "0"])
def test_weights_that_are_none_are_refused_before_anything_is_added_up(session, tmp_path, weight):
    """-2 beside 3 would pass if sums were looked at."""
    file = tmp_path / "log.csv"
    file.write_text(f"user,item,weight\nann,heat,1\nbob,heat,3\nbob,heat,{weight}\nbob,alien,1\n")
    with pytest.raises(DataError, match="weight"):
        spark_interactions_of_file(session, file)
