"""Broken rating files, generated from a seed: families of what goes wrong between somebody's database and our command.

A family is a function of a random generator that gives a file name, its bytes, and perhaps options. Some files come out
right by luck; that is part of the test.
"""

import bz2
import gzip
import io
import sqlite3
import zipfile
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

NAMES = ["r.csv", "r.csv", "r.csv", "r.tsv", "u.data", "ratings.dat", "r.txt", "r", "R.CSV", "r.parquet"]
_NUMBERS = (
    "nan NaN inf -inf Infinity 1e999 -1e999 1e-400 0x3 0b1 1_0 1,5 3.0000001 2.5 -3 +3 3. .3 3e0 ３ ٣ III three 3/1 "
    "--3 3- 1e e1 null NULL None N/A - ? true 6 0 5.0000000001 1e18 4\x00 \x1b[31m3"
)
NUMBERS = [*_NUMBERS.split(" "), "", " ", " 3 ", "9" * 400]
ODD = [
    "\x00",
    "\x1f",
    "\x1b[2J",
    "\u2028",
    "\x85",
    "\u202e",
    "\ufeff",
    '"',
    '""',
    "'",
    "\\",
    "\r",
    "\t",
    ";",
    "|",
    "::",
]
_CODINGS = "utf-16 utf-16-le utf-16-be utf-32 latin-1 cp1252 cp037 utf-8-sig utf-7 shift_jis utf-8"
CODINGS = _CODINGS.split()
_SCALES = (
    "1:5 1:5:0.3 5:1:1 0:4:1 2:4:1 1:1000000:1 1 a:b:c 1:5:0 1:5:-1 nan:5:1 1:inf:1 1:5:1:1 0:100:1 1e308:2e308:1e307 "
    "1:5:1e-300 -5:5:1"
)
SCALES = [*_SCALES.split(), ""]


def rows(rng, n=None):
    """A small table that is right: distinct pairs, levels 1 to 5."""
    n = n or rng.randrange(4, 25)
    cells = rng.sample(range(48), n)
    return [[f"u{c // 8}", f"i{c % 8}", str(rng.randrange(1, 6))] for c in cells]


def text(table, header="user,item,rating", mark=",", end="\n"):
    lines = ([header] if header else []) + [mark.join(row) for row in table]
    return end.join(lines) + end


def parquet(columns, **options):
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def encodings(rng):
    table = rows(rng)
    for row in rng.sample(table, 2):
        row[rng.randrange(2)] = rng.choice(["Zoë", "ß", "Ωmega", "日本", "naïve", "😀", "\u0301"])
    coding = rng.choice(CODINGS)
    content = text(table).encode(coding, errors="replace")
    return rng.choice(NAMES[:8]), content + rng.choice([b"", b"", b"\xff\xfe", b"\xc3"])


def delimiters(rng):
    table = rows(rng)
    mark = rng.choice([",", ";", "|", "\t", "::", ":", " ", "  ", ", ", "^", "~", "\x1f", "::::", "a", "0"])
    content = text(table, header=rng.choice(["user,item,rating", f"user{mark}item{mark}rating", ""]), mark=mark)
    options = (
        {"delimiter": rng.choice([",", ";", "\t", "::", "|", "ab", "", "\n", "é", '"'])} if rng.random() < 0.3 else {}
    )
    return rng.choice(NAMES), content.encode(), options


def ragged(rng):
    table = rows(rng)
    for row in rng.sample(table, rng.randrange(1, 4)):
        place = rng.randrange(len(row) + 1)
        rng.choice([lambda r=row, p=place: r.insert(p, rng.choice(["", "x", "3"])), row.pop, row.clear])()
    return rng.choice(NAMES), text(table, end=rng.choice(["\n", "\r\n", "\r", "\n\n"])).encode()


def mutated(content, rng, n):
    """Bytes changed, removed, inserted, repeated; or the end cut off."""
    content = bytearray(content)
    for _ in range(n):
        place = rng.randrange(max(len(content), 1))
        change = rng.randrange(6)
        if change == 0 and content:
            content[place] ^= 1 << rng.randrange(8)
        elif change == 1:
            del content[place : place + rng.randrange(1, 9)]
        elif change == 2:
            content[place:place] = rng.choice(ODD).encode()
        elif change == 3:
            content[place:place] = content[place : place + 30]
        elif change == 4:
            del content[place:]
        elif content:
            content[place] = rng.randrange(256)
    return bytes(content)


def flipped_text(rng):
    content = text(rows(rng), header=rng.choice(["user,item,rating", "movieId,userId,rating", ""]))
    return rng.choice(NAMES[:8]), mutated(content.encode(), rng, rng.randrange(1, 6))


def flipped_parquet(rng):
    users, items, values = zip(*rows(rng), strict=True)
    kind = rng.choice([int, float, str])
    compression = rng.choice(["none", "snappy", "gzip", "zstd"])
    columns = {"user": users, "item": items, "rating": [kind(value) for value in values]}
    content = parquet(columns, compression=compression, use_dictionary=rng.random() < 0.5)
    return rng.choice(["r.parquet", "r.parquet", "r.pq", "r.csv"]), mutated(content, rng, rng.randrange(1, 5))


def odd_numbers(rng):
    table = rows(rng)
    for row in rng.sample(table, rng.randrange(1, 4)):
        row[2] = rng.choice(NUMBERS)
    return rng.choice(NAMES[:8]), text(table, header=rng.choice(["user,item,rating", ""])).encode()


def repeated_pairs(rng):
    table = rows(rng)
    table += [[*rng.choice(table)[:2], str(rng.randrange(1, 6))] for _ in range(rng.randrange(1, 4))]
    rng.shuffle(table)
    return "r.csv", text(table).encode()


def odd_fields(rng):
    table = rows(rng)
    for row in rng.sample(table, rng.randrange(1, 4)):
        place = rng.randrange(3)
        extra = rng.choice([*ODD, "x" * 1001, "y" * 5000, "9" * 30, "-0", "007", ""])
        row[place] = rng.choice([extra, row[place] + extra, extra + row[place]])
    return rng.choice(NAMES[:8]), text(table).encode()


def odd_headers(rng):
    names = [
        "user",
        "item",
        "rating",
        "timestamp",
        "User ID",
        "userId",
        "movie",
        "stars",
        "score",
        "",
        '"',
        "user",
        "1",
        "é",
    ]
    header = ",".join(rng.choice(names) for _ in range(rng.randrange(0, 6)))
    start = rng.choice(["", "", "# comment\n", "\n\n\n", "sep=,\n", "\ufeff", "Ratings of 2024\n"])
    options = {rng.choice(["user", "item", "rating", "timestamp"]): rng.choice(names)} if rng.random() < 0.3 else {}
    return rng.choice(NAMES[:8]), (start + text(rows(rng), header=header)).encode(), options


def odd_scales(rng):
    scale = rng.choice(SCALES)
    return "r.csv", text(rows(rng)).encode(), {"scale": scale, "snap": rng.random() < 0.3}


def packed(rng):
    content = text(rows(rng)).encode()
    whole = {"gz": gzip.compress(content), "bz2": bz2.compress(content)}
    kind = rng.choice([*whole])
    body = rng.choice(
        [whole[kind], content, mutated(whole[kind], rng, 2), whole[kind][: rng.randrange(len(whole[kind]))]]
    )
    return f"r.csv.{rng.choice(['gz', 'bz2', 'zst', 'lz4', kind, kind])}", body


def typed_parquet(rng):
    n = 6
    pools = [
        ["a", "b", "c", "d", "e", "f"], [1, 2, 3, 4, 5, 5], [1.0, 2.0, 3.0, 4.0, 5.0, 5.0], [None] * n,
        [True, False] * 3,
        [b"\xff", b"a", b"b", b"c", b"d", b"e"], [Decimal(k) for k in range(1, 7)],
        [datetime(2024, 1, k) for k in range(1, 7)],
        [[1], [2], [], [3], None, [4]], [{"x": k} for k in range(n)], [float("nan"), 1.0, 2.0, 3.0, 4.0, 5.0],
        [2**62, -(2**63), 0, 1, 2, 3], ["1", "2", "3", "4", "5", "x"], [None, 1, 2, 3, 4, 5],
    ]  # fmt: skip
    columns = {name: rng.choice(pools) for name in rng.sample(["user", "item", "rating", "timestamp", "x"], 4)}
    if rng.random() < 0.1:
        columns = {name: values[:0] for name, values in columns.items()}
    return "r.parquet", parquet(columns)


def odd_times(rng):
    table = rows(rng)
    times = [
        "0",
        "-1",
        "1e9",
        "1.5",
        "2024-05-03",
        "99999999999999999999",
        "nan",
        "",
        "now",
        "12:30",
        "1e300",
        "978300760",
    ]
    for row in table:
        row.append(rng.choice(times) if rng.random() < 0.3 else "978300760")
    return "r.csv", text(table, header="user,item,rating,timestamp").encode()


def not_ratings(rng):
    archive, database = io.BytesIO(), sqlite3.connect(":memory:")
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("r.csv", text(rows(rng)))
    database.execute("create table r (user, item, rating)")
    kinds = [b"", b"\n" * 50, b"\x00" * 300, rng.randbytes(200), archive.getvalue(), database.serialize(), b"PAR1"]
    kinds += [b"PAR1PAR1", b'[{"user": 1, "item": 2, "rating": 3}]', b"<html><body>login</body></html>", b"%PDF-1.4\n"]
    kinds += [b"user,item,rating", b",,\n,,\n", b"a,b,3\n", b"a,x,1\na,y,2\n", b"a,x,1\nb,x,2\n", b"x" * 70_000]
    database.close()
    return rng.choice(NAMES), rng.choice(kinds) + rng.choice([b"", b"", b"\n", rng.randbytes(3)])


FAMILIES = [
    encodings, delimiters, ragged, flipped_text, flipped_parquet, odd_numbers, repeated_pairs, odd_fields, odd_headers,
    odd_scales, packed, typed_parquet, odd_times, not_ratings,
]  # fmt: skip
