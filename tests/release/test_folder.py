"""The release folder: complete, readable by anyone, and whole or not at all."""

import hashlib
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.data import paper_matrix, realistic
from dpsr.errors import ReleaseError
from dpsr.release.folder import write as folder_module
from dpsr.release.folder.write import seal, writer

NEEDED = {"certificate.json", "items.parquet", "model.json", "ratings.parquet", "users.parquet"}
FILES = NEEDED | {"card.html", "manifest.json"}


@pytest.fixture(scope="module")
def ratings():
    return realistic(0, n_users=80, n_items=50, n_ratings=1_500)


@pytest.fixture(scope="module")
def model(ratings):
    return DPSR.paper(epsilon=1.0).fit(ratings)


def test_the_folder_holds_exactly_the_named_files(model, tmp_path):
    assert {file.name for file in model.save(tmp_path / "r").iterdir()} == FILES


def test_a_loaded_release_predicts_and_recommends_as_the_model_did(model, ratings, tmp_path):
    loaded = load_release(model.save(tmp_path / "r"))
    users = ratings.mask.user_ids.take(ratings.mask.users).to_pylist()
    items = ratings.mask.item_ids.take(ratings.mask.items).to_pylist()
    users, items = [*users, -5], [*items, -7]
    np.testing.assert_array_equal(loaded.predict(users, items), model.predict(users, items))
    assert loaded.recommend(users[0]).items == model.recommend(users[0]).items
    assert loaded.certificate == model.certificate


def test_iterations_after_the_last_projection_survive_the_folder(tmp_path):
    ratings = paper_matrix(1, n_users=30, n_items=20, density=0.4)
    model = DPSR.paper(epsilon=1.0, n_iter=13, period=5).fit(ratings)
    assert model.model_.observed is not None
    loaded = load_release(model.save(tmp_path / "r"))
    users, items = np.meshgrid(np.arange(30), np.arange(20))
    np.testing.assert_array_equal(
        loaded.predict(users.ravel(), items.ravel()), model.predict(users.ravel(), items.ravel())
    )


def test_the_table_has_one_private_rating_on_the_scale_per_raw_rating(model, ratings, tmp_path):
    table = pq.read_table(model.save(tmp_path / "r") / "ratings.parquet")
    assert table.column_names[:3] == ["user", "item", "rating"]
    assert len(table) == len(ratings)
    values = table["rating"].to_numpy()
    assert values.min() >= 1
    assert values.max() <= 5
    assert table["user"].to_pylist() == ratings.mask.user_ids.take(ratings.mask.users).to_pylist()


def test_the_manifest_names_every_file_with_its_hash(model, tmp_path):
    out = model.save(tmp_path / "r")
    manifest = json.loads((out / "manifest.json").read_text())["files"]
    assert set(manifest) == FILES - {"manifest.json"}
    for name, entry in manifest.items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == entry["sha256"]


def test_a_seeded_model_is_marked_wherever_one_looks(ratings, tmp_path):
    out = DPSR.paper(random_state=12345).fit(ratings).save(tmp_path / "r")
    assert "NOT PRIVATE" in (out / "NOT_PRIVATE.txt").read_text()
    assert json.loads((out / "certificate.json").read_text())["private"] is False
    for file in out.iterdir():
        assert b"12345" not in file.read_bytes() or file.suffix == ".parquet"


def test_an_existing_folder_is_kept_unless_overwriting_is_allowed(model, tmp_path):
    out = model.save(tmp_path / "r")
    before = (out / "ratings.parquet").read_bytes()
    with pytest.raises(ReleaseError, match=r"exists already.*--force"):
        model.save(out)
    assert (out / "ratings.parquet").read_bytes() == before
    model.save(out, overwrite=True)
    assert {p.name for p in tmp_path.iterdir()} == {"r"}


def test_a_folder_that_is_no_release_is_never_replaced(model, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "draft.tex").write_text("years of work")
    with pytest.raises(ReleaseError, match="not a release"):
        model.save(tmp_path / "thesis", overwrite=True)


def test_a_file_in_the_way_is_refused(model, tmp_path):
    (tmp_path / "r").write_text("")
    with pytest.raises(ReleaseError, match="is a file"):
        model.save(tmp_path / "r")


@pytest.mark.parametrize(
    "step", ["folder.write._write_values", "folder.write.write_manifest", "atomic.sync", "atomic._swap_in"]
)
def test_a_full_disk_leaves_nothing_behind(model, tmp_path, monkeypatch, step):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"dpsr.release.{step}", full)
    with pytest.raises(ReleaseError, match=r"No space left.*Nothing was left behind"):
        model.save(tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_overwriting_keeps_the_old_release_if_the_new_one_fails(model, tmp_path, monkeypatch):
    out = model.save(tmp_path / "r")
    before = (out / "manifest.json").read_bytes()
    monkeypatch.setattr(folder_module, "write_manifest", lambda *_, **__: (x for x in ()).throw(OSError(28, "full")))
    with pytest.raises(ReleaseError):
        model.save(out, overwrite=True)
    assert (out / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_a_folder_with_a_missing_file_is_refused_with_advice(model, tmp_path, name):
    out = model.save(tmp_path / "r")
    os.remove(out / name)
    with pytest.raises(ReleaseError, match="with all its files"):
        load_release(out)


def test_something_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(ReleaseError, match="not a readable release"):
        load_release(tmp_path / "nowhere")


@pytest.mark.parametrize("titles", [pa.array([1, 2]), pa.array(["Heat", None])], ids=["numbers", "missing"])
def test_titles_that_are_not_text_are_refused(tmp_path, titles):
    ratings = Ratings.from_arrays(["a", "a", "b"], [1, 2, 1], [1, 5, 3], scale=Scale(1, 5))
    folder = DPSR(1.0).fit(ratings).save(tmp_path / "r")
    table = pq.read_table(folder / "items.parquet").replace_schema_metadata(None).append_column("title", titles)
    with writer(folder / "items.parquet", table.schema) as file:
        file.write_table(table)
    seal(folder)
    with pytest.raises(ReleaseError, match="titles are text"):
        load_release(folder)
