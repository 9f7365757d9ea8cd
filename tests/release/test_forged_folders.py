"""Folders by a careful forger, resealed: what contradicts itself, its tables or what this version knows is refused.

Every forgery passes through `verify` and through `load_release`, which all other commands use: both must refuse it, and
both in a sentence.
"""

import json
from math import inf, nan

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folders import change_column, change_table, charged, copied, resealed, restated, rewrite, without

from dpsr import DPSR, Ratings, load_release
from dpsr.certify.check import check_certificate
from dpsr.certify.folder import MalformedError
from dpsr.certify.table_price import epsilon_of
from dpsr.data import realistic
from dpsr.errors import ReleaseError
from dpsr.release import verify
from dpsr.release.folder.parquet import checked_table
from dpsr.release.folder.parquet_pages import ColumnChunk, read_footer


@pytest.fixture(scope="module")
def ratings():
    return realistic(3, n_users=40, n_items=30, n_ratings=500, timestamps=True)


@pytest.fixture(scope="module")
def sound(ratings, tmp_path_factory):
    """A charged release with every kind of part: histogram, window sums and ratings."""
    return charged(tmp_path_factory.mktemp("sound"), ratings, epsilon=4.0)


@pytest.fixture
def release(sound, tmp_path):
    return copied(sound, tmp_path / "r")


def refused(folder, found, *words):
    """Not intact, with these words; not because of the seal; and nothing else reads it either."""
    assert not found.intact
    assert not any("SHA-256" in line for line in found.fails), "the seal was renewed"
    for word in words:
        assert any(word in line for line in found.fails), found.fails
    with pytest.raises(ReleaseError, match="not a readable release folder") as error:
        load_release(folder)
    for text in (*found.fails, str(error.value)):
        assert text.isprintable()
        assert "Traceback" not in text


# -- certificates


HISTOGRAM, SUMS, CHANNEL = range(3)


def part(place, **fields):
    return lambda record: record["parts"][place].update(**fields)


def identity(record):
    """An identity channel: the rating itself, sold as a chance of one."""
    table = [[(1 << 62) * (x == y) for y in range(5)] for x in range(5)]
    record["parts"][CHANNEL].update(tables=[table], at_epsilon=1.0, epsilon=1.0, delta=1.0)
    record.update(delta=1.0, nominal_delta=1.0, epsilon=2.0)
    record["protection"]["value"] = {"epsilon": 2.0, "delta": 1.0}


def cheaper_window(record):
    """Sums of a wide window, charged as those of a narrow one."""
    sums = record["parts"][SUMS]
    sums["steps"] = [[4 * step for step in row] for row in sums["steps"]]


def nearly_the_truth(nominal):
    """The rating itself but for one chance in 2**60, honestly priced."""

    def forge(record):
        table = [[(1 << 62) - 4 if x == y else 1 for y in range(5)] for x in range(5)]
        price = epsilon_of(table)
        record["parts"] = [{**record["parts"][CHANNEL], "tables": [table], "epsilon": price}]
        record.update(epsilon=price, nominal=nominal)
        record["protection"]["value"] = {"epsilon": price, "delta": 0.0}

    return forge


def all_full(record):
    """As if ratings that are asked one by one had no weight in the sums, which would be cheaper for them."""
    sums = record["parts"][SUMS]
    sums.update(weights=sums["weights"] + sums["light"], light=[])


CERTIFICATES = {
    "a table and a sensitivity": (part(CHANNEL, sensitivity=1), "nobody knows"),
    "a table in a histogram": (part(HISTOGRAM, tables=[[[1, 3], [3, 1]]]), "nobody knows"),
    "a histogram of sensitivity one": (part(HISTOGRAM, sensitivity=1), "nobody knows"),
    "window sums of a wide window": (cheaper_window, "window sums: epsilon ="),
    "an identity channel with a delta of one": (identity, "no small chance"),
    "an epsilon of 43": (nearly_the_truth(50.0), "no promise worth the name"),
    "an epsilon of a million": (nearly_the_truth(1e6), "must be at most 100"),
    "a cell moved": (lambda r: r["parts"][CHANNEL]["tables"][0][0].__setitem__(0, 7), "no distribution"),
    "a negative cell": (lambda r: r["parts"][CHANNEL]["tables"][0].__setitem__(0, [-1, 2**62 + 1]), "at least 0"),
    "a row too few": (lambda r: r["parts"][CHANNEL]["tables"][0].pop(), "as many levels"),
    "a level too many": (lambda r: r["parts"][HISTOGRAM]["bins"].append(0), "as many levels"),
    "no tables": (part(CHANNEL, tables=[]), "elements"),
    "rows of two lengths": (lambda r: r["parts"][CHANNEL]["tables"][0][0].append(0), "one length"),
    "no noise": (part(SUMS, noise_scale="0"), "cannot be priced"),
    "division by zero": (part(SUMS, noise_scale="1/0"), "cannot be priced"),
    "a noise scale of a thousand digits": (part(SUMS, noise_scale="9" * 1000), "form"),
    "wider noise": (lambda r: r["parts"][SUMS].update(noise_scale=r["parts"][SUMS]["noise_scale"] + "0"), "it states"),
    "fewer sums than users": (part(SUMS, families=[["items", 30], ["users", 4]]), "as many sums"),
    "one family of sums": (part(SUMS, families=[["items", 30]]), "one weight, not negative, for each"),
    "sums without weights": (part(SUMS, weights=[], light=[]), "positive sensitivity"),
    "an output for no symbol": (part(CHANNEL, outputs=[1.0, 2.0]), "as many sums and symbols"),
    "a setting nobody knows": (part(CHANNEL, settings={"trust": 1.0}), "nobody knows"),
    "a mechanism in colours": (part(CHANNEL, mechanism="\x1b[2J"), "must be one of"),
    "a mechanism that is a sentence": (
        part(CHANNEL, mechanism="approved by the authority at epsilon = 0.01"),
        "must be one of",
    ),
    "a mechanism that was asked for less": (part(CHANNEL, settings={"nominal": 0.01}), "not what the certificate"),
    "a part of a kind nobody knows": (part(HISTOGRAM, kind="rumour"), "no kind this version knows"),
    "a part that is no part": (lambda r: r["parts"].__setitem__(0, 7), "no kind this version knows"),
    "a part dropped": (lambda r: r["parts"].pop(), "add up to"),
    "noisy readings that nothing asked for": (without("ratings"), "a column that its method does not make"),
    "no histogram": (without("level histogram"), "no release of values asks for window sums, ratings"),
    "light weights sold as full ones": (restated(all_full), "add up to all of it"),
    "light weights of nothing": (restated(part(SUMS, light=[[0, 0]], weights=[[256, 0]])), "add up to all of it"),
    "no sums": (without("window sums"), "no release of values asks for level histogram, ratings"),
    "no parts": (lambda r: r.update(parts=[], epsilon=0), "elements"),
    "a hundred parts": (lambda r: r.update(parts=r["parts"] * 40), "elements"),
    "two parts with a delta": (
        lambda r: r.update(parts=[{**r["parts"][CHANNEL], "at_epsilon": 1.0}] * 2),
        "has a delta",
    ),
    "another unit": (lambda r: r.update(unit="user"), "public is none of what it may be"),
    "another promise": (lambda r: r.update(promise="All ratings of one person."), "promise"),
    "a person protected": (lambda r: r["protection"].update(user={"epsilon": 1.0, "delta": 0.0}), "for each unit"),
    "another composition": (lambda r: r.update(composition="the dearest part"), "composition"),
    "the composition of another certificate": (
        lambda r: r.update(composition="basic: the parts concern the same ratings, so their prices add up"),
        "how the prices of its parts add up",
    ),
    "a sentence for a version": (lambda r: r.update(software="dpsr 0.1.0, epsilon = 0.01 per person"), "form"),
    "seeded but private": (lambda r: r.update(randomness="seeded"), "although its randomness"),
    "randomness nobody knows": (lambda r: r.update(randomness="dice"), "randomness"),
    "reasons but private": (lambda r: r.update(reasons=["a seed"]), "lists reasons"),
    "reasons in colours": (lambda r: r.update(reasons=["\x1b[31mred"]), "form"),
    "not private without reasons": (lambda r: r.update(private=False), "gives no reason"),
    "dearer than asked": (lambda r: r.update(nominal=1.0), "exceeds"),
    "nothing asked": (lambda r: r.update(nominal=None), "no epsilon was asked for"),
    "asked for in 400 digits": (lambda r: r.update(nominal=10**399), "larger than 104 bits"),
    "an infinite epsilon with a delta": (lambda r: r.update(epsilon="inf", delta=0.5), "add up to"),
    "an epsilon of 400 digits": (lambda r: r.update(epsilon=10**399), "larger than 104 bits"),
    "a negative delta": (lambda r: r.update(delta=-0.5), "at least 0"),
    "a delta above one": (part(CHANNEL, delta=2.0), "at most 1"),
    "no nominal epsilon": (lambda r: r.pop("nominal") and None, "lacks 'nominal'"),
    "a field nobody knows": (lambda r: r.update(note="trust me"), "nobody knows"),
    "another format": (lambda r: r.update(format="dpsr-certificate-9"), "newer version"),
    "no format": (lambda r: r.update(format="mine"), "format"),
    "epsilon as text": (lambda r: r.update(epsilon="1"), "epsilon"),
    "an id that is none": (lambda r: r.update(id="X" * 32), "id"),
    "a charge that is none": (lambda r: r.update(charge={"id": "1"}), "charge"),
    "a list": (lambda r: [r], "type object"),
    "other facts": (lambda r: r["public"].update(facts="nothing"), "public"),
    "fewer ratings": (lambda r: r["public"].update(n_ratings=499), "rows"),
    "more users": (lambda r: r["public"].update(n_users=41), "rows"),
    "no items": (lambda r: r["public"].update(n_items=0), "n_items = 0"),
    "more ratings than a table has": (lambda r: r["public"].update(n_ratings=2**40), "can be read"),
    "another scale": (lambda r: r["public"].update(scale="1:10:1"), "scale is 1:5:1 in the tables"),
    "another number of levels": (lambda r: r["public"].update(levels=6), "levels"),
    "timestamps denied": (lambda r: r["public"].update(has_timestamps=False), "has_timestamps"),
    "a lighter heaviest user": (lambda r: r["public"].update(max_ratings_per_user=1), "max_ratings_per_user"),
    "another median": (lambda r: r["public"].update(median_ratings_per_user=3), "median_ratings_per_user"),
    "a fact nobody knows": (lambda r: r["public"].update(names="all"), "public"),
}


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_certificate_that_contradicts_itself_or_its_tables_is_refused(release, name):
    change, word = CERTIFICATES[name]
    refused(release, rewrite(release, "certificate.json", change), word)


def test_every_field_of_a_certificate_is_needed(release):
    record = json.loads((release / "certificate.json").read_text())
    for place in (record, *record["parts"], record["public"], record["charge"], record["protection"]):
        for field in list(place):
            value = place.pop(field)
            checks, certificate = check_certificate(json.dumps(record).encode())
            assert certificate is None, field
            assert not checks[0].holds
            place[field] = value


def test_a_table_that_would_take_hours_to_price_is_refused_at_once(release):
    """Pairs of rows are compared where a delta is stated: a hundred tables of this size would take hours."""
    row = [1 << 50] * 3 + [0] * 400 + [(1 << 62) - 3 * (1 << 50)]

    def many(record):
        record["parts"][CHANNEL].update(tables=[[row] * 200], at_epsilon=1.0)
        record["public"]["levels"] = 200

    refused(release, rewrite(release, "certificate.json", many), "too large to compare")

    def more(record):
        record["parts"][CHANNEL].update(tables=[[[0] * 2_001] * 1_000] * 2)

    refused(release, rewrite(release, "certificate.json", more), "more than 4,000,000 cells")


# -- the model


def covariance(change):
    def forge(record):
        table = np.array(record["user_covariance"])
        record["user_covariance"] = np.asarray(change(table)).tolist()

    return forge


MODELS = {
    "overall is not a number": (lambda r: r.update(overall=nan), "not a number"),
    "an infinite variance": (lambda r: r.update(residual_variance=inf), "not a number"),
    "a negative variance": (lambda r: r.update(residual_variance=-1.0), "at least 0"),
    "a number whose square is none": (lambda r: r.update(overall=1e200), "at most"),
    "overall as text": (lambda r: r.update(overall="3"), "type number"),
    "overall of 400 digits": (lambda r: r.update(overall=10**399), "64 bits"),
    "another format": (lambda r: r.update(format="dpsr-model-3"), "newer version"),
    "another unit": (lambda r: r.update(unit="user"), "unit"),
    "a method nobody knows": (lambda r: r.update(method="[red]mine\x1b[2J"), "method"),
    "a field nobody knows": (lambda r: r.update(raw=[1, 2, 3]), "nobody knows"),
    "a setting nobody knows": (lambda r: r["settings"].update(seed=7), "nobody knows"),
    "a setting of another type": (lambda r: r["settings"].update(epsilon="1"), "epsilon"),
    "no scale": (lambda r: r.pop("scale") and None, "lacks 'scale'"),
    "a scale upside down": (lambda r: r["scale"].update(low=9), "has no scale"),
    "a scale without a step": (lambda r: r["scale"].update(step=0), "has no scale"),
    "a scale of a million levels": (lambda r: r["scale"].update(step=1e-6), "has no scale"),
    "a scale of a million levels in one step": (lambda r: r["scale"].update(high=1e6), "levels"),
    "another scale": (lambda r: r["scale"].update(high=6), "1:6:1 in the tables"),
    "a scale that snaps by number": (lambda r: r["scale"].update(snap=1), "snap"),
    "a rank of none": (lambda r: r.update(rank=0), "at least 1"),
    "another rank": (lambda r: r.update(rank=7), "of rank 7"),
    "a rank of a million": (lambda r: r.update(rank=10**6), "at most"),
    "a rank by truth": (lambda r: r.update(rank=True), "integer"),
    "a mean too short": (lambda r: r["user_mean"].pop(), "not of rank"),
    "a covariance too small": (lambda r: r["user_covariance"].pop(), "not of rank"),
    "a ragged covariance": (lambda r: r["user_covariance"][0].pop(), "not of rank"),
    "a covariance that is not symmetric": (covariance(lambda t: t + np.triu(np.ones_like(t), 1)), "is none"),
    "a covariance that is not positive": (covariance(lambda t: t - np.eye(len(t))), "is none"),
    "a covariance of text": (lambda r: r.update(user_covariance="none"), "type array"),
    "nothing": (lambda r: r.clear(), "lacks"),
    "a list": (lambda r: [r], "type object"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_none_is_refused(release, name):
    change, word = MODELS[name]
    refused(release, rewrite(release, "model.json", change), word)


@pytest.mark.parametrize("text", ["[]", "null", "7", '{"format":"dpsr-model-2"}', "[" * 100_000, '{"a":1,"a":1}', ""])
@pytest.mark.parametrize("name", ["model.json", "certificate.json", "budget.json"])
def test_a_file_that_is_nonsense_is_refused(release, name, text):
    (release / name).write_text(text)
    refused(release, resealed(release), name)


# -- tables


def first(value):
    def change(values):
        changed = values.to_numpy(zero_copy_only=False).copy()
        changed[0] = value
        return changed

    return change


def flat(value):
    """The first number of a column of vectors."""

    def change(values):
        numbers = values.flatten().to_numpy().copy()
        numbers[0] = value
        return pa.FixedSizeListArray.from_arrays(pa.array(numbers), values.type.list_size)

    return change


def narrower(values):
    rows = values.flatten().to_numpy().reshape(len(values), -1)[:, 1:]
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])


def wider(vectors):
    """Vectors of one number more."""
    rows = [[*row, 1.0] for row in vectors.to_pylist()]
    return pa.array(rows, type=pa.list_(vectors.type.value_type, vectors.type.list_size + 1))


def of_type(kind):
    return lambda values: values.cast(kind)


def with_null(values):
    return pa.array([None, *values.to_pylist()[1:]], type=values.type)


def null_inside(values):
    numbers = [None, *values.flatten().to_pylist()[1:]]
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers, pa.float64()), values.type.list_size)


COLUMNS = {
    "a rating above the scale": ("ratings", "rating", first(5.01), "scale's range"),
    "a rating below the scale": ("ratings", "rating", first(0.99), "scale's range"),
    "a rating that is none": ("ratings", "rating", first(nan), "not a number"),
    "a rating that is missing": ("ratings", "rating", with_null, "missing values"),
    "ratings in single precision": ("ratings", "rating", of_type(pa.float32()), "type float"),
    "users in reverse": ("ratings", "user", lambda v: v.to_numpy()[::-1].copy(), "same users"),
    "a user nobody knows": ("ratings", "user", first(10**6), "the other tables do not"),
    "users as text": ("ratings", "user", of_type(pa.string()), "not of the ids"),
    "users as floats": ("ratings", "user", of_type(pa.float64()), "type double"),
    "a user that is missing": ("ratings", "user", with_null, "not of the ids"),
    "items in reverse": ("ratings", "item", lambda v: v.to_numpy()[::-1].copy(), "ascend"),
    "an item nobody knows": ("ratings", "item", first(10**6), "the other tables do not"),
    "times as floats": ("ratings", "timestamp", of_type(pa.float64()), "type double"),
    "a time that is missing": ("ratings", "timestamp", with_null, "missing values"),
    "more ratings of a user": ("users", "n_ratings", first(10**6), "add up"),
    "more ratings than there is memory": ("users", "n_ratings", first(2**62), "add up"),
    "a negative number of ratings": ("users", "n_ratings", first(-1), "add up"),
    "counts that add up elsewhere": ("users", "n_ratings", lambda v: v.to_numpy()[::-1].copy(), "same users"),
    "counts as floats": ("users", "n_ratings", of_type(pa.float64()), "type double"),
    "more ratings of an item": ("items", "n_ratings", first(10**6), "items.parquet: the numbers of ratings do not"),
    "ratings of another item": (
        "items",
        "n_ratings",
        lambda v: v.to_numpy()[::-1].copy(),
        "not those of ratings.parquet",
    ),
    "users that do not ascend": ("users", "user", lambda v: v.to_numpy()[::-1].copy(), "ascend"),
    "items that do not ascend": ("items", "item", lambda v: v.to_numpy()[::-1].copy(), "ascend"),
    "a user twice": ("users", "user", lambda v: np.r_[v.to_numpy()[:1], v.to_numpy()[:-1]], "ascend"),
    "a user without an id": ("users", "user", with_null, "has an id"),
    "an infinite mean": ("users", "mean", first(inf), "not a number"),
    "a mean that is none": ("items", "mean", first(nan), "not a number"),
    "an infinite factor": ("users", "factors", flat(inf), "not a number"),
    "a factor that is none": ("items", "factors", flat(nan), "not a number"),
    "a factor whose square is none": ("items", "factors", flat(1e200), "not a number"),
    "a factor that is missing": ("items", "factors", null_inside, "missing values"),
    "a factor too few": ("items", "factors", narrower, "type fixed_size_list"),
    "factors of any length": ("users", "factors", lambda v: pa.array(v.to_pylist()), "type list"),
    "an affinity of another length": ("users", "affinity", wider, "different lengths"),
    "an affinity that is none": ("users", "affinity", flat(nan), "not a number"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_that_no_release_has_is_refused(release, name):
    table, column, change, word = COLUMNS[name]
    refused(release, change_column(release, f"{table}.parquet", column, change), word)


def repeated(table):
    """The first user's first item twice, in the place of the second."""
    items = table["item"].to_numpy().copy()
    items[1] = items[0]
    return table.set_column(1, "item", pa.array(items))


def annotated(column):
    """A note on one column."""

    def change(table):
        place = table.column_names.index(column)
        field = table.schema.field(place).with_metadata({"raw": "1,2,3"})
        return table.set_column(place, field, table[column])

    return change


def annotated_inside(table):
    """A note on the members of the factors."""
    place = table.column_names.index("factors")
    member = pa.field("element", pa.float64(), metadata={"raw": "1,2,3"})
    kind = pa.list_(member, table.schema.field(place).type.list_size)
    return table.set_column(place, pa.field("factors", kind), table["factors"].cast(kind))


TABLES = {
    "raw ratings beside": ("ratings", lambda t: t.append_column("raw", t["rating"]), "its columns are"),
    "raw ratings beside users": ("users", lambda t: t.append_column("raw", t["mean"]), "its columns are"),
    "columns in another order": ("ratings", lambda t: t.select(["item", "user", "rating", "timestamp"]), "columns"),
    "a column twice": ("ratings", lambda t: t.append_column("rating", t["rating"]), "its columns are"),
    "a column that looks like another": (
        "items",
        lambda t: t.rename_columns([name.replace("mean", "m\u0435an") for name in t.column_names]),
        r"'m\u0435an'",
    ),
    "a column in colours": ("items", lambda t: t.append_column("\x1b[2J", t["mean"]), "its columns are"),
    "a cell twice": ("ratings", repeated, "ascend"),
    "a row too few": ("ratings", lambda t: t.slice(1), "499 rows"),
    "a row too many": ("users", lambda t: pa.concat_tables([t, t.slice(0, 1)]), "41 rows"),
    "no rows": ("ratings", lambda t: t.slice(0, 0), "0 rows"),
    "notes in the footer": ("ratings", lambda t: t.replace_schema_metadata({"raw": "1,2,3"}), "notes nobody knows"),
    "notes on a column": ("ratings", annotated("rating"), "notes nobody knows"),
    "notes on the members of a list": ("users", annotated_inside, "notes nobody knows"),
    "one affinity": ("users", lambda t: t.drop_columns(["affinity"]), "the other has none"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_no_release_has_is_refused(release, name):
    table, change, word = TABLES[name]
    refused(release, change_table(release, f"{table}.parquet", change), word)


def test_a_few_bytes_that_stand_for_many_ratings_are_refused_before_they_are_unpacked(release, monkeypatch):
    """Counts of users and items are read first, and say how many there are."""
    opened = []

    def noted(data, name, *rest):
        opened.append(name)
        return checked_table(data, name, *rest)

    monkeypatch.setattr("dpsr.release.folder.value_tables.checked_table", noted)
    rows = 1_000_000
    change_table(release, "ratings.parquet", lambda table: table.take([0] * rows))
    found = rewrite(release, "certificate.json", lambda record: record["public"].update(n_ratings=rows))
    refused(release, found, "users.parquet: the numbers of ratings do not add up to the 1,000,000 rows")
    opened.clear()
    verify(release)
    assert opened == ["users.parquet", "items.parquet"]


def test_notes_on_one_column_of_one_row_group_are_refused():
    """Arrow cannot write them and would show them: a footer by hand, one group of one column without values."""

    def footer(*fields):
        about = bytes([0x45, 0, 0x16, 0, 0x16, 0, 0x16, 0, *fields, 0])
        text = bytes([0x49, 0x1C, 0x19, 0x1C, 0x3C, *about, 0, 0, 0])
        return b"PAR1" + text + len(text).to_bytes(4, "little") + b"PAR1"

    assert read_footer(footer(0x26, 8), most_bytes=100)[1] == [[ColumnChunk(4, 0, 0, 0)]]
    with pytest.raises(MalformedError, match="notes nobody knows"):
        read_footer(footer(0x19, 0x0C, 0x16, 8), most_bytes=100)


@pytest.mark.parametrize(("table", "column"), [("ratings", "user"), ("ratings", "item"), ("users", "user")])
def test_a_text_that_no_row_has_is_refused(ratings, tmp_path, table, column):
    """Text is written as numbers into a list of texts, and the list could hold anything besides."""
    rows = ratings.to_arrow()
    named = [rows[name].cast(pa.string()).to_pylist() for name in ("user", "item")]
    release = DPSR(1.0).fit(Ratings.from_arrays(*named, rows["rating"], scale=ratings.scale)).save(tmp_path / "r")

    def with_one_more(ids):
        coded = ids.dictionary_encode()
        return pa.DictionaryArray.from_arrays(coded.indices, pa.concat_arrays([coded.dictionary, pa.array(["raw"])]))

    refused(release, change_column(release, f"{table}.parquet", column, with_one_more), "texts that no row has")


@pytest.mark.parametrize("table", ["ratings", "users", "items"])
def test_a_table_that_lost_a_column_is_refused(release, table):
    whole = pq.read_table(release / f"{table}.parquet")
    for lost in whole.column_names:
        found = change_table(release, f"{table}.parquet", lambda _, lost=lost: whole.drop_columns([lost]))
        refused(release, found)


SETTINGS = "the model was made with another epsilon, delta or unit than the certificate says was asked for"


def test_settings_of_another_method_are_refused(release):
    """The card shows them, as if the release had been made with them."""
    found = rewrite(release, "model.json", lambda record: record["settings"].update(alpha=0.3, n_neighbors=7))
    refused(release, found, "the model's settings are not those of its method")


@pytest.mark.parametrize("settings", [{"epsilon": 0.01}, {"delta": 1e-6}, {"unit": "user"}], ids=str)
def test_settings_that_the_certificate_does_not_bear_out_are_refused(release, settings):
    """The card shows them."""
    refused(release, rewrite(release, "model.json", lambda record: record["settings"].update(settings)), SETTINGS)


# -- files


@pytest.mark.parametrize(
    "name", ["raw.csv", "ratings2.parquet", ".notes", "more.json", "LIESMICH", "manifest.json.bak"]
)
def test_a_file_that_no_release_has_is_refused_also_if_the_manifest_names_it(release, name):
    (release / name).write_text("user,item,rating\n1,1,5\n")
    refused(release, resealed(release), f"{name} is no file that a release has")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\u0441ertificate.json", r"'\u0441ertificate.json'"),
        ("model.json ", "'model.json '"),
        ("card\u200b.html", r"'card\u200b.html'"),
        ("\uff4dodel.json", r"'\uff4dodel.json'"),
    ],
    ids=["cyrillic", "a space", "no width", "full width"],
)
def test_a_name_that_looks_like_another_is_spelt_out(release, name, shown):
    (release / name).write_text("{}")
    assert f"{shown} is not named in manifest.json: it was added later" in verify(release).fails
    refused(release, resealed(release), f"{shown} is no file that a release has")


def test_a_warning_on_a_private_release_is_refused(release):
    (release / "NOT_PRIVATE.txt").write_text("NOT PRIVATE. Do not share this folder.\n")
    refused(release, resealed(release), "NOT_PRIVATE.txt")


BUDGETS = {
    "a format nobody knows": lambda r: r.update(format="dpsr-budget-9"),
    "a field nobody knows": lambda r: r.update(note="x"),
    "a name in colours": lambda r: r.update(dataset="\x1b[2J"),
    "a long name": lambda r: r.update(dataset="x" * 1000),
    "infinitely much": lambda r: r.update(budget=inf),
    "nothing spent": lambda r: r.update(spent=0, left=9),
    "another sum": lambda r: r.update(left=8.5),
    "as text": lambda r: r.update(left="5"),
    "less than nothing left": lambda r: r.update(left=-1),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_what_no_ledger_can_have_said_is_refused(release, name):
    refused(release, rewrite(release, "budget.json", BUDGETS[name]))


def test_a_budget_without_a_charge_is_refused(release):
    found = rewrite(release, "certificate.json", lambda record: record.update(charge=None))
    refused(release, found, "names no charge")


def test_the_paper_pipelines_own_column_is_allowed_and_checked(ratings, tmp_path):
    folder = DPSR.paper(1.0, n_iter=13, period=5).fit(ratings).save(tmp_path / "r")
    assert verify(folder).intact
    refused(folder, change_column(folder, "ratings.parquet", "predicted", first(nan)), "not a number")


@pytest.mark.parametrize("scale", ["1000001:1000005:1", "0.5:5:0.5", "-10:10:0.25", "0:1e-9:1e-9", "0:1e12:1e11"])
def test_a_scale_is_written_with_every_digit_so_that_its_release_verifies(scale, tmp_path):
    """`1000001:1000005:1` was once written as 1e+06:1e+06:1, in the certificate too."""
    from dpsr import Ratings, Scale

    values = Scale.parse(scale).values
    users, items = np.divmod(np.arange(60), 6)
    ratings = Ratings.from_arrays(users, items, values[np.arange(60) % len(values)], scale=Scale.parse(scale))
    folder = DPSR(1.0).fit(ratings).save(tmp_path / "r")
    assert verify(folder).fails == ()
    assert load_release(folder).scale == Scale.parse(scale)
    if scale.startswith("1000001"):
        assert json.loads((folder / "certificate.json").read_text())["public"]["scale"] == scale
