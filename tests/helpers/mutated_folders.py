"""Release folders changed at random, and everything that reads one: run as a process of its own, which must not die.

    python mutated_folders.py WORK CASE ...

tries the cases, which are numbers, and prints the number of each before it begins, so that whoever started the
process knows which one killed it. Case n is the same in every run. A case is a sound folder, one to three changes (JSON
by its structure, tables by their columns, bytes, kinds of files), mostly resealed as a careful forger would, and then:
verify and load must agree, and what loads must survive the card, everybody's lists, predictions and a comparison.
"""

import json
import os
import random
import shutil
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.certify.folder import Entry, Manifest, sha256_of
from dpsr.errors import DpsrError, ReleaseError
from dpsr.pipeline.account import Account
from dpsr.pipeline.cards import check_card
from dpsr.pipeline.compare import compare
from dpsr.pipeline.explain import explain_release
from dpsr.pipeline.publish import publish
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.release.folder.examination import examine
from dpsr.release.keys import new_key, read_key
from dpsr.release.lists.batch import all_lists
from dpsr.release.verify import verification
from dpsr.report import card

JSON_FILES = ("manifest.json", "certificate.json", "model.json", "budget.json", "signature.json")
TABLES = ("ratings.parquet", "users.parquet", "items.parquet")

VALUES = (
    None, True, False, 0, -1, 1, 2, 5, 2**31, 2**53, 2**63, 2**64, 10**399, -(10**399), 0.0, -0.0, 0.5, 1e-320, 1e75,
    1e308, -1e308, float("nan"), float("inf"), "", "inf", "0", "1/0", "9" * 40, "x" * 5000, "\x1b[2J", "[red]x[/red]\\",
    "\u202e", "\ud800", "\x00", "value", "user", "system", [], {}, [[]], [None], {"a": 1}, [0] * 50, "1:5:1",
)  # fmt: skip
NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 1e75, 5e-324, -1.0, 3.0, 1e15, 1e200)
WHOLE = (0, -1, 1, 2, 7, 30, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
KINDS = (pa.float32(), pa.float64(), pa.int32(), pa.int64(), pa.string(), pa.large_string(), pa.binary(), pa.bool_())


def bases(work):
    """Sound folders of three sorts: whole numbers and times, charged; names, signed; the paper's, with its column."""
    rng, root = np.random.default_rng(0), Path(work) / "bases"
    users, items = np.divmod(rng.choice(12 * 8, 60, replace=False), 8)
    stars, times = rng.integers(1, 6, 60), rng.integers(0, 10**9, 60)
    numbers = Ratings.from_arrays(users, items, stars, timestamps=times, scale=Scale(1, 5))
    names = Ratings.from_arrays([f"u{u}" for u in users], [f"ünï {i}" for i in items], stars, scale=Scale(1, 5))
    root.mkdir(parents=True)
    new_key(root / "key", None)
    Ledger.create(str(root / "l.db"), "films", "9")
    account = Account.open(str(root / "l.db"), None, 4.0)
    publish(numbers, DPSR(4.0), root / "charged", account=account)
    publish(names, DPSR(0.5), root / "signed", signer=read_key(root / "key"))
    publish(names, DPSR.paper(1.0, rank=3, n_iter=13, period=5, random_state=0), root / "paper")
    return {name: {f.name: f.read_bytes() for f in (root / name).iterdir()} for name in ("charged", "signed", "paper")}


def places(value, here=()):
    yield here
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from places(one, (*here, key))


def mutate_json(text, rnd):
    """One place of a record replaced, removed, doubled, renamed, or nudged; or a key nobody knows."""
    record = json.loads(text)
    where = rnd.choice(list(places(record)))
    if not where:
        return json.dumps(rnd.choice(VALUES)).encode("utf-8", "surrogatepass")
    inside = record
    for key in where[:-1]:
        inside = inside[key]
    key, how = where[-1], rnd.randrange(6)
    if how == 0:
        inside[key] = rnd.choice(VALUES)
    elif how == 1:
        del inside[key]
    elif how == 2 and isinstance(inside, list):
        inside.insert(key, inside[key])
    elif how == 2:
        inside[rnd.choice(["extra", "\x1b[2J", "", str(key) * 2])] = inside[key]
    elif how == 3 and isinstance(inside[key], int | float):
        inside[key] = inside[key] * rnd.choice([0.5, 2, -1, 1 + 1e-12, 1 - 1e-12]) + rnd.choice([0, 1, -1])
    elif how == 4 and isinstance(inside[key], list):
        rnd.shuffle(inside[key])
    else:
        inside[key] = [inside[key]] if how == 5 else str(inside[key])
    return json.dumps(record, separators=(",", ":"), ensure_ascii=rnd.random() < 0.5).encode("utf-8", "surrogatepass")


def mutate_bytes(data, rnd):
    """Flipped, cut, doubled or shuffled bytes; often near the end, where footers are."""
    data = bytearray(data)
    for _ in range(rnd.choice([1, 1, 1, 2, 5, 30])):
        if not data:
            break
        at = rnd.randrange(len(data)) if rnd.random() < 0.5 else max(len(data) - 1 - rnd.randrange(1, 900), 0)
        how = rnd.randrange(5)
        if how <= 1:
            data[at] ^= 1 << rnd.randrange(8)
        elif how == 2:
            data[at] = rnd.choice([0, 1, 127, 128, 255])
        elif how == 3:
            del data[at : at + rnd.choice([1, 2, 8, 100])]
        else:
            data[at:at] = data[at : at + rnd.choice([1, 4, 50])]
    return bytes(data)


def mutate_table(data, rnd):
    """A table whose values, types, columns or rows are others, written in some way."""
    table = pq.read_table(pa.BufferReader(data))
    for _ in range(rnd.choice([1, 1, 2])):
        place = rnd.randrange(table.num_columns)
        name, column = table.column_names[place], table.column(place).combine_chunks()
        how = rnd.randrange(9)
        if how <= 3:
            table = table.set_column(place, name, _other_values(column, rnd))
        elif how == 4:
            table = table.remove_column(place)
        elif how == 5:
            table = table.append_column(rnd.choice(["extra", name, "timestamp", "predicted", "\x1b[2J"]), column)
        elif how == 6:
            table = table.slice(rnd.randrange(3), rnd.choice([0, 1, 5, 10**6]))
        elif how == 7:
            order = list(range(len(table)))
            rnd.shuffle(order)
            table = table.take(pa.array([*order, *order[: rnd.randrange(3)]], pa.int64()))
        else:
            table = table.select(rnd.sample(table.column_names, table.num_columns))
    if rnd.random() < 0.1:
        table = table.replace_schema_metadata({"note": "\x1b[2J" * rnd.randrange(3)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **_way_of_writing(rnd))
    return sink.getvalue().to_pybytes()


def _way_of_writing(rnd):
    if rnd.random() < 0.7:
        return {}
    return rnd.choice(
        [
            {"compression": rnd.choice(["none", "gzip", "zstd", "lz4", "brotli"])},
            {"data_page_version": "2.0"},
            {"use_dictionary": False},
            {"row_group_size": rnd.choice([1, 3, 7])},
            {"write_page_index": True},
            {"store_schema": False},
            {"data_page_size": 16},
            {"write_page_checksum": True},
        ]
    )


def _other_values(column, rnd):
    if pa.types.is_fixed_size_list(column.type):
        numbers = column.flatten().to_numpy().copy()
        if rnd.random() < 0.4:
            width = rnd.choice([w for w in range(1, 40) if len(numbers) % w == 0 and len(numbers) // w == len(column)])
            return pa.FixedSizeListArray.from_arrays(pa.array(_spoiled(numbers, rnd)), width)
        how = rnd.randrange(3)
        if how == 0:
            return pa.array(column.to_pylist(), pa.list_(pa.float64()))
        if how == 1:
            return pa.array([None, *column.to_pylist()[1:]], column.type)
        return pa.FixedSizeListArray.from_arrays(pa.array(_spoiled(numbers, rnd)), column.type.list_size)
    values = column.to_pylist()
    how = rnd.randrange(4)
    if how == 0:
        try:
            return column.cast(rnd.choice(KINDS))
        except pa.ArrowException:
            return column
    if how == 1:
        values[rnd.randrange(len(values))] = None
        return pa.array(values, column.type)
    if pa.types.is_string(column.type):
        values[rnd.randrange(len(values))] = rnd.choice(["", "\x00", "x" * 10_000, values[0], "\u202e", "zz"])
        return pa.array(values, column.type)
    return pa.array(_spoiled(np.array(values), rnd))


def _spoiled(numbers, rnd):
    """Some numbers replaced, swapped or sorted."""
    how = rnd.randrange(4)
    if how == 0:
        rnd.shuffle(numbers)
    elif how == 1:
        numbers = np.sort(numbers)
    else:
        for _ in range(rnd.choice([1, 1, 3])):
            pool = NUMBERS if numbers.dtype.kind == "f" else WHOLE
            with np.errstate(over="ignore"):  # single precision makes the largest infinite
                numbers[rnd.randrange(len(numbers))] = rnd.choice(pool)
    return numbers


def mutate_kind(folder, name, rnd, sizes):
    """Another kind of file in its place, or none, or one too many."""
    path, how = folder / name, rnd.randrange(8)
    if how == 7:
        (folder / rnd.choice(["raw.csv", ".hidden", "\x1b[2J", "x" * 200])).write_bytes(b"1,2,5\n")
        return
    path.unlink(missing_ok=True)
    if how == 0:
        os.mkfifo(path)
    elif how == 1:
        path.symlink_to(rnd.choice(["/dev/zero", "/dev/null", "nowhere", name, "certificate.json"]))
    elif how == 2:
        path.mkdir()
    elif how == 3:
        path.write_bytes(b"")
    elif how == 4:
        with path.open("wb") as file:
            file.truncate(rnd.choice(sizes))
    elif how == 5:
        path.write_bytes(rnd.randbytes(200))


def changed(files, folder, rnd):
    """Write a folder with one to three changes; nearly always resealed, so that readers look beyond the hashes."""
    files, late, broken = dict(files), {}, set()
    for _ in range(rnd.choice([1, 1, 1, 2, 3])):
        how = rnd.random()
        name = rnd.choice(TABLES if how < 0.5 else [one for one in JSON_FILES if one in files])
        if name in broken:
            continue
        if how < 0.4:
            mutate = mutate_table
        elif how < 0.5 or 0.9 < how < 0.93:
            mutate = mutate_bytes
            broken.add(name)
        else:
            mutate = mutate_json
        try:
            if name in ("manifest.json", "signature.json"):
                late[name] = mutate
            else:
                files[name] = mutate(files[name], rnd)
        except (ValueError, IndexError, KeyError, TypeError, pa.ArrowException):
            continue  # a second change may meet what the first one left
    for name, content in files.items():
        (folder / name).write_bytes(content)
    if rnd.random() < 0.03:
        mutate_kind(folder, rnd.choice(list(files)), rnd, sizes=(1, 1 << 20))
    if rnd.random() < 0.9:
        reseal(folder, rnd)
    if rnd.random() < 0.03:
        mutate_kind(folder, rnd.choice(list(files)), rnd, sizes=(1, 1 << 40))
    for name, mutate in late.items():
        file = folder / name
        if file.is_file() and not file.is_symlink() and file.stat().st_size < 1 << 20:
            with suppress(ValueError):  # another kind of file may be there by now
                file.write_bytes(mutate(file.read_bytes(), rnd))


def reseal(folder, rnd):
    """A manifest that fits the folder, whatever kinds of files are in it; old signatures are mostly thrown away."""
    files = {}
    for file in folder.iterdir():
        if file.name not in ("manifest.json", "signature.json"):
            plain = file.is_file() and not file.is_symlink()
            content = file.read_bytes() if plain else b""
            files[file.name] = Entry(len(content), sha256_of(content))
    if rnd.random() < 0.9 and not (folder / "signature.json").is_dir():
        (folder / "signature.json").unlink(missing_ok=True)
    manifest = folder / "manifest.json"
    if manifest.is_file() and not manifest.is_symlink():
        manifest.write_bytes(Manifest(files, None if rnd.random() < 0.97 else "ab" * 32).to_bytes())


def survives(folder, sound):
    """Everything that reads a folder. Whether it loads: then it must serve."""
    found = examine(folder)
    told = verification(found)
    for words in (*told.holds, *told.fails, *told.notes):
        assert words.isprintable(), repr(words)
    json.dumps(told.to_dict(), allow_nan=False)
    try:
        release, refused = load_release(folder), ""
    except ReleaseError as error:
        release, refused = None, str(error)
    assert refused.isprintable(), repr(refused)
    if release is None:
        assert not told.intact, "verify holds what cannot be loaded"
        return False
    assert told.intact, "what verify refuses was loaded"
    card(release.contents)
    check_card(found)
    for lists in all_lists(release.model, 3, threads=1):
        assert np.isfinite(lists.scores).all()
    assert np.isfinite(release.predict(release.mask.user_ids, release.mask.item_ids[0:1])).all()
    release.fold_in(release.mask.item_ids[:2], [release.scale.low, release.scale.high], 3)
    explain_release(release).to_dict()
    compare([release, sound], ["a", "b"]).to_dict()
    return True


def main(work, *cases):
    warnings.simplefilter("error")
    originals = bases(work)
    sound = load_release(Path(work) / "bases" / "charged")
    loaded = 0
    for case in cases:
        print(case, flush=True)  # noqa: T201
        rnd = random.Random(case)
        folder = Path(work) / "case"
        folder.mkdir()
        changed(originals[rnd.choice(list(originals))], folder, rnd)
        try:
            loaded += survives(folder, sound)
        except DpsrError as error:
            raise AssertionError(
                f"case {case}: {type(error).__name__} from something that was loaded: {error}"
            ) from error
        shutil.rmtree(folder)
    print("loaded", loaded, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
