"""Blocks on disk: the in-memory fit bit for bit, odd tables, and a disk that lets us down."""

import os
import subprocess
import sys

import forked
import numpy as np
import pyarrow as pa
import pytest
from odd_ratings import odd_ratings

from dpsr import DPSR, Scale
from dpsr.data import realistic
from dpsr.data.ratings import Ratings
from dpsr.engine import BlockResult
from dpsr.engine.disk import ITEMS, DiskTable
from dpsr.engine.raw import LEVEL, RawTable
from dpsr.engine.table import TIMESTAMP, block_edges
from dpsr.engine.work_folder import clear
from dpsr.errors import DataError
from dpsr.pipeline.value import RELEASED
from dpsr.types import Mask
from dpsr.value.allocation import allocate

SIZE = 500


@pytest.fixture
def cut(monkeypatch):
    """In memory the blocks are cut as they are on disk, so that sums are added in the same order."""
    monkeypatch.setattr("dpsr.engine.table.block_edges", lambda counts, *_: block_edges(counts, SIZE))


def on_disk(ratings, folder, size=SIZE):
    folder.mkdir(exist_ok=True)
    mask = ratings.mask
    columns = {ITEMS: mask.items, LEVEL: ratings.levels}
    if mask.timestamps is not None:
        columns[TIMESTAMP] = mask.timestamps
    table = DiskTable(folder, mask.census, block_ratings=size)
    for number in range(table.n_blocks):
        for name, column in columns.items():
            table.write(name, number, column[table.ratings_of(number)])
    return RawTable(table, ratings.scale)


def released(contents):
    return np.concatenate([block.columns[RELEASED] for block in contents.table.scan([RELEASED])])


def check_equal(ratings, folder, epsilon):
    expected = DPSR(epsilon, random_state=0).fit(ratings)
    raw = on_disk(ratings, folder)
    found = DPSR(epsilon, random_state=0).fit_table(raw)
    np.testing.assert_array_equal(released(found), expected.release_.ratings)
    np.testing.assert_array_equal(found.model.user_factors, expected.model_.user_factors)
    np.testing.assert_array_equal(found.model.item_factors, expected.model_.item_factors)
    assert found.certificate.parts == expected.release_.certificate.parts
    return raw.table


def test_sums_over_all_ratings_are_the_same_on_disk(cut, tmp_path, monkeypatch):
    """They are bought on larger sets than this; here because nothing else may be chosen."""
    ratings = realistic(0, n_users=80, n_items=50, n_ratings=2_500)
    monkeypatch.setattr("dpsr.value.allocation._POOLED", (1 / 16,))
    check_equal(ratings, tmp_path, 0.5)
    part = DPSR(0.5).fit(ratings).certificate.parts[1]
    assert part.families[2] == ("contrasts", 100)
    assert {weights[2] for weights in part.weights} == {16}


@pytest.mark.parametrize("epsilon", [1.5, 2.0])
def test_sums_that_are_asked_in_two_turns_are_the_same_on_disk(cut, tmp_path, epsilon):
    """At the larger epsilon some ratings are asked one by one after that, by the column that chose their windows."""
    ratings = realistic(0, n_users=80, n_items=50, n_ratings=2_500)
    check_equal(ratings, tmp_path, epsilon)
    model = DPSR(epsilon, random_state=0).fit(ratings)
    assert len(model.certificate.parts[1].steps) > 1
    assert model.allocation_.asks_ratings == (epsilon == 2)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 5.0])
def test_the_fit_is_the_one_in_memory_bit_for_bit(tmp_path, cut, epsilon):
    ratings = realistic(0, n_users=80, n_items=50, n_ratings=2_500, timestamps=True)
    assert check_equal(ratings, tmp_path, epsilon).n_blocks >= 5


def test_a_fit_whose_ratings_are_asked_in_turns_is_the_one_in_memory_bit_for_bit(tmp_path, cut, monkeypatch):
    """Turns are for larger sets than this; here because so many are many."""
    monkeypatch.setattr("dpsr.value.allocation._ENOUGH", 1_000)
    ratings = realistic(0, n_users=80, n_items=50, n_ratings=2_500)
    assert allocate(ratings.mask, ratings.scale, 3.0).turns.number == 3
    check_equal(ratings, tmp_path, 3.0)


@pytest.mark.parametrize("size", [130, 500])
def test_how_a_table_is_cut_moves_the_numbers_by_rounding_alone(tmp_path, size):
    """In memory one block, on disk many: sums in single precision are added up in another order, and nothing else."""
    ratings = realistic(0, n_users=60, n_items=40, n_ratings=1_200)
    expected = DPSR(5.0, random_state=0).fit(ratings)
    found = DPSR(5.0, random_state=0).fit_table(on_disk(ratings, tmp_path, size=size))
    assert found.table.n_blocks > 2
    np.testing.assert_allclose(released(found), expected.release_.ratings, atol=1e-3)


def test_one_user_with_two_fifths_of_all_ratings_has_a_block_alone(tmp_path, cut):
    rng = np.random.default_rng(1)
    dense = rng.random((60, 1_200)) < 0.025
    dense[17] = True
    table = check_equal(odd_ratings(60, 1_200, dense), tmp_path, 1.0)
    share = table.census.user_counts[17] / table.census.n_ratings
    assert 0.39 < share < 0.45
    assert [block.users for block in table.scan() if len(block.items) > SIZE] == [slice(17, 18)]


def test_items_nobody_rated_and_users_without_ratings_are_ordinary(tmp_path, cut):
    rng = np.random.default_rng(2)
    dense = rng.random((90, 70)) < 0.3
    dense[:, ::3], dense[4], dense[80:] = False, False, False
    dense[79, 1] = True
    table = check_equal(odd_ratings(90, 70, dense), tmp_path, 1.0)
    assert sum(block.n_users for block in table.scan()) == 90


def test_a_whole_block_of_users_without_ratings_is_ordinary(tmp_path):
    dense = np.zeros((8, 6), dtype=bool)
    dense[:4] = True
    raw = on_disk(odd_ratings(8, 6, dense), tmp_path, size=6)
    answer = raw.table.run(lambda block, n: n.__iadd__(len(block.items)) is None or None, [np.zeros(1)])
    assert answer.sums[0] == 24
    assert np.isfinite(released(DPSR(1.0).fit_table(raw))).all()


def test_two_hundred_thousand_items_of_which_hardly_any_was_rated_are_ordinary(tmp_path):
    """A catalogue far wider than what was rated, in memory and in blocks on disk: a square of it would not fit."""
    rng, n = np.random.default_rng(3), 200_000
    cells = np.sort(np.concatenate([u * n + rng.choice(n, 40, replace=False) for u in range(50)]))
    ratings = Ratings(
        mask=Mask.of_cells(cells, pa.array(range(50)), pa.array(range(n))),
        levels=rng.integers(0, 5, len(cells)).astype(np.uint16),
        scale=Scale(1, 5),
    )
    expected = DPSR(1.0, random_state=0).fit(ratings)
    found = DPSR(1.0, random_state=0).fit_table(on_disk(ratings, tmp_path))
    np.testing.assert_allclose(released(found), expected.release_.ratings, atol=1e-9)
    unrated = np.flatnonzero(ratings.mask.item_counts == 0)[:3]
    said = found.model.predict(np.zeros(3, dtype=np.int64), unrated)
    assert np.isfinite(said).all()
    assert ((said >= 1) & (said <= 5)).all()


def test_nothing_that_a_pass_reads_may_be_written_to(tmp_path):
    """A pass may run again; and arrays that may be written to are another type, for which kernels are compiled anew."""
    ratings = realistic(0, n_users=40, n_items=20, n_ratings=400)
    written = BlockResult({"mark": np.zeros(400)})
    for raw in (RawTable.of(ratings), on_disk(ratings, tmp_path, size=1000)):
        raw.table.run(lambda block: written, writes=["mark"])
        for block in raw.table.scan([LEVEL, "mark"]):
            assert not any(one.flags.writeable for one in (block.items, *block.columns.values()))


def test_columns_are_kept_hidden_and_dropped(tmp_path):
    raw = on_disk(realistic(1, n_users=40, n_items=30, n_ratings=600), tmp_path, size=90)
    public = raw.public
    public.run(lambda block: BlockResult({"mark": np.arange(len(block.items)) + block.start}), writes=["mark"])
    marks = np.concatenate([block.columns["mark"] for block in raw.table.scan(["mark"])])
    np.testing.assert_array_equal(marks, np.arange(raw.table.census.n_ratings))
    with pytest.raises(KeyError, match="level is hidden"):
        public.run(lambda block: None, reads=[LEVEL])
    with pytest.raises(KeyError, match="level is hidden"):
        next(public.scan([LEVEL]))
    public.drop("mark")
    assert not list(tmp_path.glob("mark-*"))
    with pytest.raises(DataError, match=r"mark-00000\.block\.parquet .* is missing"):
        next(raw.table.scan(["mark"]))


@pytest.mark.parametrize("name", ["by chance", "", "by/chance", "Level", "level-1"])
def test_a_column_that_nobody_would_delete_is_not_written(tmp_path, name):
    table = on_disk(realistic(0, n_users=40, n_items=30, n_ratings=500), tmp_path / "blocks").table
    with pytest.raises(ValueError, match="small letters"):
        table.write(name, 0, np.zeros(500))
    clear(tmp_path / "blocks")
    assert not list((tmp_path / "blocks").iterdir())


def test_kept_columns_are_not_made_again(tmp_path):
    table = on_disk(realistic(1, n_users=40, n_items=30, n_ratings=600), tmp_path, size=90).table
    drawn = []

    def draw(block):
        drawn.append(block.first)
        return BlockResult({"mark": np.full(len(block.items), len(drawn))})

    table.run(draw, writes=["mark"], keep=True)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("mark-*")}
    (tmp_path / "mark-00002.block.parquet").unlink()
    n = len(drawn)
    table.run(draw, writes=["mark"], keep=True)
    assert len(drawn) == n + 1
    after = {path.name: path.read_bytes() for path in tmp_path.glob("mark-*")}
    assert {name for name in before if before[name] != after[name]} == {"mark-00002.block.parquet"}


@pytest.mark.parametrize("harm", ["vanish", "truncate", "shorten", "rubbish"])
@pytest.mark.parametrize("column", [ITEMS, LEVEL])
def test_a_block_file_that_goes_bad_is_one_sentence(tmp_path, harm, column):
    raw = on_disk(realistic(1, n_users=40, n_items=30, n_ratings=600), tmp_path, size=90)
    path = tmp_path / f"{column}-00003.block.parquet"
    if harm == "vanish":
        path.unlink()
    elif harm == "truncate":
        os.truncate(path, path.stat().st_size // 2)
    elif harm == "shorten":
        raw.table.write(column, 3, raw.table.read(column, 3)[:-1])
    else:
        path.write_bytes(b"PAR1 this is not a table PAR1")
    with pytest.raises(DataError, match=rf"block file {path.name} .*missing or damaged.*Nothing was released"):
        DPSR(1.0).fit_table(raw)


def test_a_full_disk_is_one_sentence_and_no_half_block(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system; a limit on file sizes is tested in its place")
    try:
        raw = on_disk(realistic(1, n_users=40, n_items=30, n_ratings=600), disk, size=90)
        with pytest.raises(DataError, match=r"could not be written: .*No space left.*Nothing was released.*--work"):
            raw.table.run(lambda block: BlockResult({"wide": np.random.default_rng(0).random(20_000)}), writes=["wide"])
        assert not list(disk.glob("wide-*"))
        assert all(block.columns[LEVEL].max() < 5 for block in raw.table.scan([LEVEL]))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


LIMITED = """
import resource, sys
from pathlib import Path
from dpsr import DPSR
from dpsr.engine.disk import DiskTable
from dpsr.errors import DataError
from dpsr.pipeline.publish import publish
from dpsr.pipeline.out_of_core import table_on_disk
from dpsr.types import Scale

folder = Path(sys.argv[1])
(folder / "work").mkdir()
raw = table_on_disk(folder / "r.csv", folder / "work", scale=Scale(1, 5), memory=1 << 30)
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, resource.RLIM_INFINITY))
try:
    publish(raw, DPSR(1.0), folder / "release")
except DataError as error:
    sys.exit(str(error))
"""


def test_a_write_that_is_cut_short_releases_nothing(tmp_path):
    table = realistic(1, n_users=60, n_items=40, n_ratings=2_000).to_arrow().to_pydict()
    values = zip(table["user"], table["item"], (round(r) for r in table["rating"]), strict=True)
    rows = [f"{u},{i},{min(max(r, 1), 5)}" for u, i, r in values]
    (tmp_path / "r.csv").write_text("\n".join(["user,item,rating", *rows]) + "\n")
    run = forked.run([sys.executable, "-c", LIMITED, tmp_path])
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1, run.stderr
    assert "the working folder could not be written" in run.stderr
    assert "Nothing was released" in run.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["r.csv", "work"]
    assert not list((tmp_path / "work").glob("*.partial"))


def test_rows_of_all_blocks_come_together_in_order_whatever_their_shape(tmp_path):
    table = on_disk(realistic(0, n_users=60, n_items=40, n_ratings=1_000), tmp_path, 300).table
    assert table.n_blocks > 2

    def make(block):
        wide = np.arange(block.first, block.first + block.n_users)[:, None] * np.array([1.0, -1.0])
        return BlockResult(rows=(wide, np.array([block.first], dtype=np.int32), block.items[:0].astype(np.float32)))

    wide, firsts, none = table.run(make).rows
    np.testing.assert_array_equal(wide, np.arange(table.census.n_users)[:, None] * np.array([1.0, -1.0]))
    assert len(firsts) == table.n_blocks
    assert firsts.dtype == np.int32
    assert none.shape == (0,)


def test_a_sample_of_a_block_keeps_nothing_else_in_memory(tmp_path):
    block = next(on_disk(realistic(0, n_users=60, n_items=40, n_ratings=1_000), tmp_path, 300).table.scan())
    sample = block.every(7, np.arange(len(block.items)))
    np.testing.assert_array_equal(sample, np.arange(0, len(block.items), 7))
    assert sample.base is None
