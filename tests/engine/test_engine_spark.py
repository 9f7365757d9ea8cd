"""Blocks on Spark: the numbers of memory, noise exactly once, and a guest's manners in somebody else's session."""

import random
import threading
from base64 import b64encode
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from odd_ratings import odd_ratings
from spark_cases import (
    SIZE,
    column,
    draw,
    kill_worker,
    needs_spark,
    on_spark,
    once,
    session_of,
    small,
    strike,
    symbols,
    symbols_in_memory,
)

from dpsr import DPSR
from dpsr.certify.parts import DividedSumsPart
from dpsr.data.spark.frame import spark_table
from dpsr.data.spark.session import running_session, spark_session
from dpsr.engine import BlockResult
from dpsr.engine.raw import LEVEL, RawTable
from dpsr.engine.spark.table import ITEMS, SparkTable
from dpsr.engine.spark.task import add_sums
from dpsr.engine.table import block_edges
from dpsr.errors import DataError
from dpsr.pipeline.value import RELEASED
from dpsr.privacy.noise import NoiseSource
from dpsr.value.sweep import SYMBOL

pytestmark = needs_spark


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    """Where the session writes what it did, plans included, as clusters do for their history."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def session(events):
    small = {"spark.broadcast.UDFCompressionThreshold": "100k", "spark.sql.globalTempDatabase": "elsewhere"}
    small["spark.io.encryption.enabled"] = "true"
    history = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
    with session_of("local[2,4]", **small, **history, **{"spark.eventLog.dir": events.as_uri()}) as session:
        yield session


@pytest.fixture
def cut(monkeypatch):
    """In memory the blocks are cut as they are on Spark: a sweep looks at some ratings of each block."""
    monkeypatch.setattr("dpsr.engine.table.block_edges", lambda counts, *_: block_edges(counts, SIZE))
    monkeypatch.setattr("dpsr.value.schedule.SMALL", 0)  # bold sweeps are many more of the same passes


def blocks_of(session, ratings, size=SIZE):
    """A table as it stands, users and items without ratings included: no reader would know of them."""
    mask, edges = ratings.mask, block_edges(ratings.mask.user_counts, size)
    ends = mask.indptr[edges]
    columns = {ITEMS: mask.items.astype(np.int32), LEVEL: ratings.levels}
    cut = {name: [whole[a:b].tobytes() for a, b in pairwise(ends)] for name, whole in columns.items()}
    dtypes = {name: str(whole.dtype) for name, whole in columns.items()}
    numbers = pa.array(range(len(edges) - 1), pa.int32())
    blocks = session.createDataFrame(pa.table({"number": numbers, **cut})).coalesce(2)
    return RawTable(SparkTable(session, blocks, mask.census, dtypes, partitions=2, block_ratings=size), ratings.scale)


def check_equal(ratings, raw, epsilon, *, drawn=True):
    """Under one seed: the same symbol at every rating, predictions and released ratings equal to rounding."""
    inside, there = (DPSR(epsilon, random_state=0).fit_table(table) for table in (RawTable.of(ratings), raw))
    blocks = list(there.table.scan([RELEASED, SYMBOL] if drawn else [RELEASED]))  # at once: a scan takes several jobs
    found = {name: np.concatenate([block.columns[name] for block in blocks]) for name in blocks[0].columns}
    if drawn:
        np.testing.assert_array_equal(found[SYMBOL], column(inside.table, SYMBOL))
    np.testing.assert_allclose(found[RELEASED], column(inside.table, RELEASED), rtol=0, atol=1e-6)
    expected, found = (one.model.user_factors @ one.model.item_factors.T for one in (inside, there))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    assert to_rounding(there) == to_rounding(inside)
    assert there.certificate.public == inside.certificate.public


def to_rounding(made):
    """The questions. How wide a second turn's windows are follows from sums that Spark adds up in another order."""
    return [
        replace(part, step=tuple(float(f"{step:.12g}") for step in part.step))
        if isinstance(part, DividedSumsPart)
        else part
        for part in made.certificate.parts
    ]


def test_sums_over_all_ratings_are_those_of_memory(session, cut, monkeypatch):
    """They are bought on larger sets than this; here because nothing else may be chosen."""
    monkeypatch.setattr("dpsr.value.allocation._POOLED", (1 / 16,))
    ratings = small()
    raw = blocks_of(session, ratings)
    check_equal(ratings, raw, 0.5, drawn=False)
    raw.table.close()


def test_sums_that_are_asked_in_two_turns_are_those_of_memory(session, cut):
    ratings = small()
    raw = blocks_of(session, ratings)
    check_equal(ratings, raw, 1.5, drawn=False)
    _, part = DPSR(1.5, random_state=0).fit(ratings).certificate.parts
    assert len(part.to_record()["steps"]) > 1
    raw.table.close()


def test_symbols_are_those_of_memory_and_predictions_agree_to_a_millionth(session, cut):
    ratings = small(timestamps=True)
    raw = on_spark(session, ratings)
    assert sum(1 for _ in raw.table.scan()) >= 8
    check_equal(ratings, raw, 5.0)


def test_ratings_that_are_asked_in_turns_have_the_symbols_of_memory(session, cut, monkeypatch):
    """Turns are for larger sets than this; here because so many are many."""
    monkeypatch.setattr("dpsr.value.allocation._ENOUGH", 500)
    ratings = small()
    raw = blocks_of(session, ratings)
    check_equal(ratings, raw, 3.0)
    raw.table.close()


def test_where_epsilon_buys_the_mean_alone_spark_agrees_too(session, cut):
    ratings = small()
    check_equal(ratings, blocks_of(session, ratings), 0.01, drawn=False)


def test_one_user_with_two_fifths_of_all_ratings_and_items_nobody_rated(session, cut):
    rng = np.random.default_rng(1)
    dense = rng.random((40, 900)) < 0.04
    dense[:, ::3] = False
    dense[17, 1::3] = dense[17, 2::3] = True
    dense[5] = False
    ratings = odd_ratings(40, 900, dense)
    assert ratings.mask.user_counts[17] > 0.39 * ratings.mask.n_ratings
    assert (ratings.mask.census.item_counts == 0).sum() == 300
    raw = blocks_of(session, ratings)
    assert [block.users for block in raw.table.scan() if len(block.items) > SIZE] == [slice(17, 18)]
    check_equal(ratings, raw, 3.0)


def test_columns_are_kept_hidden_and_dropped(session):
    raw = blocks_of(session, small())
    public = raw.public
    public.run(lambda block: BlockResult({"mark": np.arange(len(block.items)) + block.start}), writes=["mark"])
    np.testing.assert_array_equal(column(raw.table, "mark"), np.arange(raw.table.census.n_ratings))

    def writeable(block):
        may = [one.flags.writeable for one in (block.items, *block.columns.values())]
        return BlockResult(rows=(np.full(block.n_users, any(may)),))

    assert not raw.table.run(writeable, reads=[LEVEL, "mark"]).rows[0].any(), "or kernels are compiled anew"
    with pytest.raises(KeyError, match=r"level.* hidden"):
        public.run(lambda block: None, reads=[LEVEL])
    with pytest.raises(KeyError, match=r"level.* hidden"):
        next(public.scan([LEVEL]))
    public.drop("mark")
    with pytest.raises(KeyError, match="mark"):
        next(raw.table.scan(["mark"]))


@pytest.mark.parametrize(("partitions", "parts"), [(8, 8), (12, 3)])
def test_many_partitions_have_their_sums_added_up_on_their_way(session, monkeypatch, partitions, parts):
    raw, sent = on_spark(session, small(), size=100, partitions=partitions), []
    monkeypatch.setattr("dpsr.engine.spark.table.add_sums", lambda sums: (sent.append(len(sums) - 1), add_sums(sums)))
    census = raw.table.census

    def count(block, total):
        total += np.bincount(block.items, minlength=block.n_items)
        return BlockResult(rows=(block.counts,))

    answer = raw.table.run(count, [np.zeros(census.n_items)])
    np.testing.assert_array_equal(answer.sums[0], census.item_counts)
    np.testing.assert_array_equal(answer.rows[0], census.user_counts)
    assert sent == [parts]


# --- noise exactly once ---


@pytest.mark.parametrize("partitions", [1, 3, 9])
def test_another_number_of_partitions_gives_the_same_symbols(session, partitions):
    ratings = small()
    raw = on_spark(session, ratings, partitions=partitions)
    assert raw.table._state.blocks.rdd.getNumPartitions() == partitions
    np.testing.assert_array_equal(symbols(raw), symbols_in_memory(ratings))


def test_another_key_gives_other_symbols(session):
    """So that the tests of equality can fail."""
    raw = blocks_of(session, small())
    first, second = symbols(raw, NoiseSource.seeded(1)), symbols(raw, NoiseSource.seeded(2))
    assert 0.1 < np.mean(first != second) < 0.9


def test_a_worker_that_is_killed_is_replaced_and_draws_the_same(session, tmp_path, monkeypatch):
    ratings, marker = small(), str(tmp_path / "killed")
    strike(monkeypatch, once(marker, kill_worker()))
    np.testing.assert_array_equal(symbols(blocks_of(session, ratings)), symbols_in_memory(ratings))
    assert (tmp_path / "killed").exists()


def test_a_lost_column_comes_back_as_it_was_under_a_key_nobody_knows(session):
    raw = on_spark(session, small())
    table = draw(raw, NoiseSource.system())
    before = column(table, SYMBOL)
    table._state.blocks.unpersist(blocking=True)
    np.testing.assert_array_equal(column(table, SYMBOL), before)
    assert np.any(symbols(blocks_of(session, small()), NoiseSource.system()) != before)


# --- somebody else's session ---


def settings(session):
    return dict(session.conf.getAll), dict(session.sparkContext.getConf().getAll())


def stored(session):
    """What is kept in the session's memory. Spark itself clears what earlier tests left to its garbage collector."""
    return set(session.sparkContext._jsc.getPersistentRDDs())


def test_a_session_that_runs_is_used_left_running_and_left_as_it_was(session):
    before, kept = settings(session), stored(session)
    with spark_session() as used:
        assert used is session
        raw = on_spark(used, small())
        symbols(raw)
        assert stored(session) - kept
        raw.table.close()
    assert settings(session) == before
    assert not stored(session) - kept
    assert not session.catalog.listTables("elsewhere")
    assert session.range(3).count() == 3


def test_a_session_of_another_thread_is_found_and_not_changed(session):
    before, found = settings(session), []

    def look():
        with spark_session() as used:
            found.append(used.sparkContext is session.sparkContext)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [True]
    assert settings(session) == before
    assert running_session() is session


def test_a_large_function_without_a_key_may_go_through_a_file_which_does_not_stay(session):
    raw, ballast = blocks_of(session, small()), np.random.default_rng(0).random(1 << 14)
    folder = Path(session.sparkContext._temp_dir)
    before = sorted(folder.rglob("*"))

    def add(block, total):
        total += ballast[: len(block.items)].sum()

    found = raw.table.run(add, [np.zeros(1)]).sums[0]
    np.testing.assert_allclose(found, sum(ballast[: len(block.items)].sum() for block in raw.table.scan()))
    assert sorted(folder.rglob("*")) == before


def test_a_key_is_not_in_the_history_of_the_session(session, events):
    """Plans are written there, and a plan knows the function that carries the key."""
    noise = NoiseSource.system()
    symbols(blocks_of(session, small()), noise)
    written = b"".join(path.read_bytes() for path in events.rglob("*") if path.is_file())
    assert b"MapInArrow" in written
    signed = [byte - 256 if byte > 127 else byte for byte in noise._key]
    spelt = [noise._key.hex(), b64encode(noise._key).decode(), *(", ".join(map(str, k)) for k in (signed, noise._key))]
    assert not [one for one in (noise._key, *(text.encode() for text in spelt)) if one in written]


def test_an_error_inside_a_task_never_quotes_what_the_task_read(session):
    raw = blocks_of(session, small())

    def blurt(block):
        raise RuntimeError(f"the first level is {block.columns[LEVEL][0]} and that is secret")

    with pytest.raises(DataError, match=r"Spark gave up: RuntimeError\. Nothing was released") as refused:
        raw.table.run(blurt, reads=[LEVEL])
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_ratings_that_change_while_they_are_read_are_refused(session):
    raw = blocks_of(session, small())
    raw.table._indptr = raw.table._indptr + np.r_[0, np.ones(raw.table.census.n_users, dtype=np.int64)]
    with pytest.raises(DataError, match=r"changed while Spark was reading.*Nothing was released"):
        raw.table.run(lambda block: None)


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_a_frame_that_chooses_other_rows_each_time_is_refused_before_anything_is_asked(session):
    from pyspark.sql.functions import udf

    ratings = small()
    some = udf(lambda user: random.random() < 0.5, "boolean").asNondeterministic()
    frame = session.createDataFrame(ratings.to_arrow()).where(some("user"))
    with pytest.raises(DataError, match="changed while Spark was reading"):
        spark_table(session, frame, scale=ratings.scale, block_ratings=SIZE)
