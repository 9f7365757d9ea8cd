"""The paper's pipeline as passes over a table: the in-memory fit under one seed, wherever the table is kept."""

import numpy as np
import pyarrow as pa
import pytest
from spark_cases import needs_spark

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.data import realistic
from dpsr.data.spark import spark_table
from dpsr.engine.disk import ITEMS, DiskTable
from dpsr.engine.raw import LEVEL, RawTable
from dpsr.errors import ParameterError, PrivacyError
from dpsr.pipeline.out_of_core import block_size, bytes_left
from dpsr.privacy.channels import calibrated_laplace, laplace
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import Vault, privatise
from dpsr.privacy.vault.journal import Journal
from dpsr.release import verify, write_release
from dpsr.types import Census, Mask
from dpsr.value.sweep import SYMBOL


def on_disk(ratings, folder, size=300, room=8 * 400):
    """Blocks of some users, and several panels."""
    folder.mkdir(exist_ok=True)
    table = DiskTable(folder, ratings.mask.census, block_ratings=size)
    table.sum_bytes = room
    for number in range(table.n_blocks):
        table.write(ITEMS, number, ratings.mask.items[table.ratings_of(number)])
        table.write(LEVEL, number, ratings.levels[table.ratings_of(number)])
    return RawTable(table, ratings.scale)


def column(table, name):
    return np.concatenate([block.columns[name] for block in table.scan([name])])


@pytest.fixture(scope="module")
def ratings():
    return realistic(0, n_users=80, n_items=50, n_ratings=2_500)


def lopsided():
    """One user with two fifths of all ratings, users without any, and items nobody rated."""
    rng = np.random.default_rng(1)
    dense = rng.random((70, 300)) < 0.025
    dense[17] = True
    dense[4], dense[60:], dense[:, ::7] = False, False, False
    mask = Mask.of_cells(np.flatnonzero(dense.ravel()), pa.array(range(70)), pa.array(range(300)))
    return Ratings(mask=mask, levels=rng.integers(0, 5, mask.n_ratings).astype(np.uint16), scale=Scale(1, 5))


def assert_same(contents, expected):
    """Predictions to 1e-6 of the scale's width, everything that follows from them, and one receipt."""
    width, release = expected.release_.scale.width, expected.release_
    np.testing.assert_allclose(column(contents.table, contents.ratings), release.ratings, atol=1e-6 * width, rtol=0)
    model, other = contents.model, release.model
    everything = model.scale.clip(model.user_factors @ model.item_factors.T)
    same = other.scale.clip(other.user_factors @ other.item_factors.T)
    np.testing.assert_allclose(everything, same, atol=1e-6 * width, rtol=0)
    assert (contents.observed is None) == (other.observed is None)
    if contents.observed:
        np.testing.assert_allclose(column(contents.table, contents.observed), other.observed, atol=1e-6 * width)
    for name in ("user_means", "item_means", "overall", "residual_variance"):
        np.testing.assert_allclose(getattr(model, name), getattr(other, name), atol=1e-6 * width)
    assert contents.certificate == expected.certificate
    assert (contents.method, contents.settings) == (release.method, release.settings)


@pytest.mark.parametrize(
    "settings", [{}, {"n_iter": 23, "rank": 3, "beta": 0.3, "n_neighbors": 4}, {"lam": 1.0}], ids=str
)
def test_on_disk_the_predictions_are_those_in_memory(ratings, tmp_path, settings):
    expected = DPSR.paper(2.0, random_state=5, **settings).fit(ratings)
    contents = DPSR.paper(2.0, random_state=5, **settings).fit_table(on_disk(ratings, tmp_path))
    assert contents.table.n_blocks >= 5
    assert_same(contents, expected)


def test_lopsided_tables_are_ordinary(tmp_path):
    ratings = lopsided()
    assert 0.35 < ratings.mask.user_counts[17] / len(ratings) < 0.45
    raw = on_disk(ratings, tmp_path, size=100, room=8 * 9_000)
    assert_same(DPSR.paper(5.0, random_state=5).fit_table(raw), DPSR.paper(5.0, random_state=5).fit(ratings))


@needs_spark[0]
@needs_spark[1]
@needs_spark[2]
def test_on_spark_the_predictions_are_those_in_memory(lasting_spark, ratings, tmp_path):
    frame = lasting_spark.createDataFrame(ratings.to_arrow())
    raw = spark_table(lasting_spark, frame, scale=ratings.scale, partitions=2, block_ratings=300)
    assert raw.table.sum_bytes == (1 << 28) // 2, "every task sends its own sums to the driver"
    raw.table.sum_bytes = 8 * 900
    write_release(DPSR.paper(2.0, random_state=5, n_iter=12).fit_table(raw), tmp_path / "r")
    raw.table.close()
    assert not verify(tmp_path / "r").fails
    release = load_release(tmp_path / "r")
    assert_same(release.contents, DPSR.paper(2.0, random_state=5, n_iter=12).fit(ratings))


@pytest.mark.parametrize("seed", range(3))
def test_the_vault_draws_the_symbols_and_writes_the_receipt_of_the_in_memory_way(ratings, tmp_path, seed):
    channel = calibrated_laplace(ratings.scale, 1.0)
    private = privatise(ratings, channel, noise=NoiseSource.seeded(seed))
    for raw in (RawTable.of(ratings), on_disk(ratings, tmp_path)):
        vault = Vault(raw, 1.0, noise=NoiseSource.seeded(seed))
        vault.noisy_ratings(channel, symbol=SYMBOL)
        np.testing.assert_array_equal(channel.outputs[column(vault.table, SYMBOL)], private.values)
        assert vault.certificate() == private.certificate


def test_a_channel_dearer_than_what_is_left_is_refused_and_nothing_is_drawn(ratings):
    vault = Vault(ratings, 1.0, noise=NoiseSource.system())
    with pytest.raises(PrivacyError, match="Nothing was drawn"):
        vault.noisy_ratings(laplace(ratings.scale, 1.01), symbol=SYMBOL)
    assert vault.spent == 0
    with pytest.raises(KeyError):
        column(vault.table, SYMBOL)


@pytest.mark.parametrize("settings", [{}, {"n_iter": 23}], ids=str)
def test_a_folder_from_disk_verifies_and_predicts_as_the_fit(ratings, tmp_path, settings):
    contents = DPSR.paper(1.0, random_state=2, **settings).fit_table(on_disk(ratings, tmp_path / "work"))
    write_release(contents, tmp_path / "r")
    assert not verify(tmp_path / "r").fails
    users, items = ratings.mask.user_ids.to_pylist()[:20], ratings.mask.item_ids.to_pylist()[:20]
    expected = DPSR.paper(1.0, random_state=2, **settings).fit(ratings).predict(users, items)
    np.testing.assert_allclose(load_release(tmp_path / "r").predict(users, items), expected, atol=1e-6)


def test_without_a_seed_a_table_is_private_at_the_epsilon_asked_for(ratings, tmp_path):
    certificate = DPSR.paper(1.0).fit_table(on_disk(ratings, tmp_path)).certificate
    assert certificate.private
    assert certificate.epsilon == pytest.approx(1.0, rel=1e-6)
    assert certificate.epsilon <= 1.0


def test_a_killed_run_keeps_the_symbols_it_had_drawn(ratings, tmp_path):
    """Under two different keys: what the first drew is what the second releases."""
    first = DPSR.paper(1.0).fit_table(on_disk(ratings, tmp_path), Journal(tmp_path, {"run": 1}))
    drawn, released = column(first.table, SYMBOL), column(first.table, first.ratings)
    lost = tmp_path / f"{SYMBOL}-00002.block.parquet"
    lost.unlink()
    again = DPSR.paper(1.0).fit_table(on_disk(ratings, tmp_path), Journal(tmp_path, {"run": 1}))
    kept = np.ones(len(drawn), bool)
    kept[first.table.ratings_of(2)] = False
    found = column(again.table, SYMBOL)
    np.testing.assert_array_equal(found[kept], drawn[kept])
    assert (found[~kept] != drawn[~kept]).any()
    third = DPSR.paper(1.0).fit_table(on_disk(ratings, tmp_path), Journal(tmp_path, {"run": 1}))
    np.testing.assert_array_equal(column(third.table, third.ratings), column(again.table, again.ratings))
    assert (released != column(again.table, again.ratings)).any()


@pytest.mark.parametrize("shape", [(50, 40), (6_040, 3_706), (200_000, 84_000)], ids=str)
def test_the_room_for_similarities_is_what_an_allowance_leaves(shape):
    """Blocks and room together take no more than was allowed beside users and items; more memory is more room."""
    census = Census(*(pa.array(range(size)) for size in shape), *(np.full(size, 9) for size in shape))
    fixed, rooms = (350 << 20) + (shape[0] << 10) + 5 * (shape[1] << 10), []
    for memory in (fixed + (10 << 20), 1 << 31, 1 << 33):
        rooms.append(bytes_left(census, memory))
        assert fixed + 200 * block_size(census, memory) + rooms[-1] <= memory
        assert rooms[-1] >= 8 * shape[1], "at least one row"
    assert rooms[0] < rooms[1] < rooms[2]
    with pytest.raises(ParameterError, match="need at least"):
        bytes_left(census, fixed)


@pytest.mark.parametrize(
    ("settings", "advice"),
    [({"as_published": True}, "never private, so it runs in memory alone"), ({"tune": True}, "Use --engine memory")],
)
def test_what_needs_the_ratings_in_memory_is_refused_before_anything_is_drawn(ratings, tmp_path, settings, advice):
    with pytest.raises(ParameterError, match=advice):
        DPSR.paper(1.0, **settings).fit_table(on_disk(ratings, tmp_path))
    assert not list(tmp_path.glob(f"{SYMBOL}-*"))
