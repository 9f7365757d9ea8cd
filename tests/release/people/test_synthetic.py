"""`synthetic.parquet`: in every release of people, and nobody is in it whom the item side does not give."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folders import copied, resealed

from dpsr import DPSR, load_release
from dpsr.data import realistic
from dpsr.errors import ParameterError
from dpsr.pipeline.made_up import more_made_up
from dpsr.pipeline.publish import publish
from dpsr.release import verify
from dpsr.release.folder.synthetic_table import PEOPLE_A_BYTE, drawn_as_in
from dpsr.release.folder.write import write_table, writer
from dpsr.synthesis import Synthesis
from dpsr.types.item_side import hashed_cells

DELTA = 1e-5


@pytest.fixture(scope="module")
def ratings():
    return realistic(0, n_users=150, n_items=60, n_ratings=2_500)


@pytest.fixture(scope="module")
def folder(ratings, tmp_path_factory):
    """Items not declared: some named, the others known by their cells."""
    return publish(ratings, DPSR(30.0, unit="user", delta=DELTA), tmp_path_factory.mktemp("made") / "r").folder


@pytest.fixture(scope="module")
def release(folder):
    return load_release(folder)


def test_the_usual_number_follows_from_noisy_answers_alone(release):
    assert release.synthetic.people == round(release.crowd.people)


def test_the_table_has_people_items_and_ratings_on_the_scale(release, folder):
    table = pq.read_table(folder / "synthetic.parquet").to_pandas()
    assert list(table.columns) == ["user", "item", "rating"]
    assert table.user.nunique() == table.user.max() == release.synthetic.people
    assert set(table.rating) <= set(release.scale.values)
    assert not table.duplicated(["user", "item"]).any()
    named = set(release.index.named.to_pylist())
    assert all(item in named or item.startswith("cell:") for item in table["item"])


def test_items_are_called_as_in_the_table_whether_they_may_be_named_or_not(release):
    named, ids = set(release.index.named.to_pylist()), pa.array([str(i) for i in range(1, 61)])
    called = release.synthetic_items(ids).to_pylist()
    for name, call, cell in zip(ids.to_pylist(), called, hashed_cells(ids), strict=True):
        assert call == (name if name in named else f"cell:{cell}")
    assert 0 < len(named) < 60


def test_a_loaded_release_makes_more_people_and_always_the_same(release):
    one, two = release.synthesise(40, seed=3), release.synthesise(40, seed=3)
    assert one.equals(two)
    assert not one.equals(release.synthesise(40, seed=4))
    assert one["user"].to_numpy().max() == 40


def test_verify_draws_them_again(folder):
    assert any("people who do not exist" in words for words in verify(folder).holds)


def with_table(folder, target, change, record=None):
    forged = copied(folder, target)
    table = change(pq.read_table(forged / "synthetic.parquet"))
    with writer(forged / "synthetic.parquet", table.schema) as file:
        file.write_table(table)
    facts = json.loads((forged / "model.json").read_text())
    facts["synthetic"] |= {"ratings": len(table), **(record or {})}
    (forged / "model.json").write_text(json.dumps(facts))
    return resealed(forged)


def with_a_real_person(ratings):
    """The planted error: one made-up person's rows are a real person's."""
    mask = ratings.mask
    place = slice(*mask.indptr[7:9])
    items = [str(mask.item_ids[j].as_py()) for j in mask.items[place].tolist()]

    def change(table):
        keep = table.filter(pa.array(table["user"].to_numpy() != 5))
        rows = {"user": np.full(len(items), 5), "item": items, "rating": ratings.values[place]}
        return pa.concat_tables([keep, pa.table(rows, schema=table.schema)])

    return change


def test_a_real_person_put_among_them_is_found(folder, ratings, tmp_path):
    found = with_table(folder, tmp_path / "f", with_a_real_person(ratings))
    assert any("who is in it, nobody knows" in words for words in found.fails)


def test_saying_that_another_version_made_it_does_not_help(folder, ratings, tmp_path):
    """Once only the form of such a table was looked at, and a folder says itself which version made it."""
    older = copied(folder, tmp_path / "older")
    certificate = json.loads((older / "certificate.json").read_text())
    (older / "certificate.json").write_text(json.dumps(certificate | {"software": "dpsr 0.0.9"}))
    found = with_table(older, tmp_path / "f", with_a_real_person(ratings))
    assert any("nobody knows; another version says it made it" in words for words in found.fails), found.fails


@pytest.mark.parametrize(
    ("change", "record", "says"),
    [
        (lambda t: t.set_column(2, "rating", pa.array(t["rating"].to_numpy() + 0.1)), {}, "not on the scale"),
        (lambda t: t, {"seed": 1}, "who is in it"),
        (lambda t: t, {"people": 90_000_000}, "so many people"),
        (lambda t: t.append_column("note", t["rating"]), {}, "columns"),
    ],
)
def test_other_tables_are_refused(folder, tmp_path, change, record, says):
    found = with_table(folder, tmp_path / "f", change, record)
    assert any("synthetic.parquet" in words and says in words for words in found.fails), found.fails


def repeated(rows):
    """One row, so often: a few bytes in a file."""
    return lambda table: pa.table({name: pa.array([table[name][0].as_py()] * rows) for name in table.column_names})


@pytest.mark.parametrize("people", [150, 100_000], ids=["too few for the rows", "too many for the bytes"])
def test_a_few_bytes_that_stand_for_many_rows_are_refused_before_they_are_unpacked(folder, tmp_path, people):
    found = with_table(folder, tmp_path / "f", repeated(1_000_000), {"people": people})
    assert (tmp_path / "f" / "synthetic.parquet").stat().st_size < 33_000
    assert any("so many people would not have so many ratings" in words for words in found.fails), found.fails


def test_numbers_of_people_take_more_bytes_than_verify_asks_for(tmp_path):
    """As small as a file can be: everybody has one row, and it says the same."""
    people = 200_000
    table = pa.table({"user": np.arange(1, people + 1), "item": np.zeros(people, dtype=np.int64)})
    write_table(tmp_path / "one.parquet", table)
    assert (tmp_path / "one.parquet").stat().st_size > 2 * people / PEOPLE_A_BYTE


@pytest.mark.parametrize("wrong", [None, 0, 1], ids=["as it follows", "first group", "second group"])
def test_a_table_is_read_up_to_the_group_of_rows_in_which_it_differs(release, wrong, monkeypatch):
    monkeypatch.setattr("dpsr.synthesis._AT_ONCE", 1 << 17)
    asked, groups = Synthesis(20_000), []
    rows = release.rows_drawn(asked, lambda people, cells: groups.append(len(people)))
    assert len(groups) > 2
    users, end = rows["user"].to_numpy().copy(), len(rows)
    if wrong is not None:
        first, end = sum(groups[:wrong]), sum(groups[: wrong + 1])
        users[first] += 1
    read = []

    def batches():
        for batch in rows.set_column(0, "user", pa.array(users)).to_batches(max_chunksize=1 << 12):
            read.append(len(batch))
            yield batch

    assert (drawn_as_in(release, asked, batches()) is None) == (wrong is not None)
    assert end <= sum(read) < end + (1 << 12)


def test_a_table_that_is_missing_is_missed(folder, tmp_path):
    forged = copied(folder, tmp_path / "f")
    (forged / "synthetic.parquet").unlink()
    assert any("synthetic.parquet is missing" in words for words in resealed(forged).fails)


def test_none_and_as_many_as_asked(ratings, tmp_path):
    model = DPSR(5.0, unit="rating", delta=DELTA, random_state=0, items=range(1, 61)).fit(ratings)
    model.save(tmp_path / "none", people=0)
    assert not (tmp_path / "none" / "synthetic.parquet").exists()
    assert verify(tmp_path / "none").intact
    assert "None were asked for" in (tmp_path / "none" / "card.html").read_text()
    model.save(tmp_path / "some", people=25)
    table = pq.read_table(tmp_path / "some" / "synthetic.parquet")
    assert table["user"].to_numpy().max() == 25
    assert pa.types.is_integer(table["item"].type), "declared items keep their own ids"


@pytest.mark.parametrize("seed", [None, 0])
def test_a_file_of_more_people_says_not_private_if_the_release_does(ratings, tmp_path, seed):
    model = DPSR(5.0, unit="rating", delta=DELTA, random_state=seed, items=range(1, 61)).fit(ratings)
    more_made_up(model.release, 5, tmp_path / "more.parquet")
    says = pq.read_schema(tmp_path / "more.parquet").metadata[b"dpsr"].decode()
    assert says.startswith("NOT PRIVATE" if seed is not None else "people who do not exist")
    assert ("subtract" in says) == (seed is not None)


def test_where_values_are_protected_nobody_is_made_up(ratings, tmp_path):
    with pytest.raises(ParameterError, match="row for every rating"):
        DPSR(1.0, random_state=0).fit(ratings).save(tmp_path / "r", people=10)
    assert not (tmp_path / "r").exists()


def test_the_card_shows_released_and_made_up_figures_beside_each_other(folder, release):
    page = (folder / "card.html").read_text("utf-8")
    section = page.split('<section id="people">')[1].split("</section>")[0]
    for words in ("mean rating", "not asked", "Not kept", "met together", "mean released"):
        assert words in section
    assert f"{release.synthetic.people:,} made-up people" in section
