"""Rating files that are refused: name, content, and what the message must say."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq

HEAD = b"userId,movieId,rating\n1,10,5\n"


def parquet(**columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"user": [1, 2], "item": [1, 2], "rating": [1.0, 2.0]} | columns), sink)
    return sink.getvalue().to_pybytes()


BAD_FILES = {
    "empty": ("r.csv", b"", r"^r\.csv is empty\. Give a file"),
    "empty lines only": ("r.csv", b"\n\r\n\n", r"^r\.csv is empty"),
    "header only": ("r.csv", b"userId,movieId,rating\n", r"^r\.csv holds a header but no ratings.*below it"),
    "missing column": (
        "r.csv",
        b"userId,title,rating\n1,x,5\n",
        r"no column looks like the item; the columns are 'userId', 'title', 'rating'\. "
        r".*item=\"\.\.\.\" \(or --item COLUMN\)",
    ),
    "ambiguous column": (
        "r.csv",
        b"userId,movieId,rating,score\n1,1,5,4\n",
        r"more than one column could be the rating: 'rating', 'score'; .*--rating COLUMN",
    ),
    "ambiguous time": (
        "r.csv",
        b"userId,movieId,rating,time,ts\n1,1,5,4,4\n",
        r"could be the timestamp: 'time', 'ts'.*timestamp=\"\" \(or --timestamp \"\"\) to leave",
    ),
    "repeated column": ("r.csv", b"userId,userId,movieId,rating\n1,1,1,5\n", r"more than one column could be the user"),
    "five numbers": (
        "r.csv",
        b"0,1,2,5,99\n",
        r"no column looks like the user, the item or the rating; its 5 columns have numbers for names\. "
        r"If the file has no header, add one",
    ),
    "CSV without header, ratings in words": (
        "r.csv",
        b"ann,heat,4321 stars\nbob,heat,3 stars\n",
        r"no column looks like the user, the item or the rating; its 3 columns have numbers for names\. "
        r"If the file has no header, add one",
    ),
    "two columns": (
        "r.csv",
        b"user,item\n1,2\n",
        r"needs a user, an item and a value, the first row has only 2 of them",
    ),
    "a database": (
        "shop.db",
        b"SQLite format 3\0...",
        r"^shop\.db is an SQLite database\. .*sqlite:///.*--query 'select",
    ),
    "a workbook": ("r.xlsx", b"PK\x03\x04...", r"^r\.xlsx is an Excel workbook or an archive.* Save its sheet as CSV"),
    "an old workbook": ("r.xls", b"\xd0\xcf\x11\xe0...", r"^r\.xls is an Excel workbook"),
    "compressed in secret": ("r.csv", gzip.compress(HEAD), r"^r\.csv is compressed, .*Let it end in \.gz"),
    "colons": ("r.csv", b"userId:movieId:rating\n1:2:3\n", r"seem to be separated by ':' and not by ','"),
    "spaces": ("r.txt", b"1 2 3\n1 2 3\n", r"separated by spaces"),
    "non-numeric rating": (
        "r.csv",
        HEAD + b"2,20,good\n",
        r"^r\.csv, row 3: the rating is not a number\. Correct it",
    ),
    "a thousand or one": (
        "r.csv",
        HEAD + b'2,20,"3,500"\n',
        r"row 3: the rating is not a number\. Write it without a comma",
    ),
    "empty rating": ("r.csv", HEAD + b"2,20,\n", r"row 3: the rating is missing.*remove the row"),
    "blank rating": ("r.csv", HEAD + b"2,20,  \n", r"row 3: the rating is missing"),
    "NaN rating": ("r.csv", HEAD + b"2,20,NaN\n", r"row 3: the rating is not a finite number"),
    "infinite rating": ("r.csv", HEAD + b"2,20,-inf\n", r"row 3: the rating is not a finite number"),
    "overflowing rating": ("r.csv", HEAD + b"2,20,1e999\n", r"row 3: the rating is not a finite number"),
    "huge rating": ("r.csv", HEAD + b"2,20,1e308\n", r"row 3: the rating is not on the scale"),
    "off scale": ("r.csv", HEAD + b"2,20,6\n", r"row 3: the rating is not on the scale 1:5:1\. Declare the scale"),
    "off grid": (
        "r.csv",
        HEAD + b"2,20,3.5\n",
        r"row 3: the rating is not on the scale 1:5:1.*Scale\(\.\.\., snap=True\), or --snap",
    ),
    "row after empty lines": ("r.csv", b"\n" + HEAD + b"\n\n2,20,6\n", r"row 6: the rating is not on"),
    "row after quoted line break": (
        "r.csv",
        b'user,item,rating,note\n1,1,5,"a\nb"\n2,2,6,\n',
        r"row 4: the rating is",
    ),
    "row without header": ("u.data", b"1\t1\t5\n2\t2\t6\n", r"^u\.data, row 2: the rating is not on"),
    "row between double colons": (
        "ratings.dat",
        b"1::1::5\n2::2::x\n",
        r"^ratings\.dat, row 2: the rating is",
    ),
    "duplicate": (
        "r.csv",
        HEAD + b"2,20,3\n2,10,3\n2,20,3\n1,10,5\n",
        r"row 5: user '2' rates item '20' again, as before at row 3\. "
        r"Keep one .*duplicates=\"first\" or \"last\" \(or --duplicates first\)",
    ),
    "not UTF-8": (
        "r.csv",
        HEAD + b"caf\xe9,20,3\n",
        r"^r\.csv, row 3: the bytes at offset 32 are not UTF-8\. Save the file as UTF-8 .*iconv",
    ),
    "cut in a character": (
        "r.csv",
        HEAD + b"2,20,3\n3,caf\xc3",
        r"row 4: (the bytes at offset .* are not UTF-8|found 2 fields)",
    ),
    "UTF-16": ("r.csv", "userId,movieId,rating".encode("utf-16"), r"row 1: the file is UTF-16.*Save it as UTF-8"),
    "too few fields": ("r.csv", HEAD + b"\n2,20\n", r"^r\.csv, row 4: found 2 fields, expected 3 .*taken to be ','"),
    "too many fields": ("r.csv", b"\n1,10,5\n2,20,3,4,5\n", r"row 3: found 5 fields, expected 3"),
    "empty user": ("r.csv", HEAD + b",20,5\n", r"row 3: the user is missing"),
    "empty item": ("r.csv", HEAD + b"2,,5\n", r"row 3: the item is missing"),
    "long id": (
        "r.csv",
        HEAD + b"x" * 1001 + b",20,5\n",
        r"row 3: the user id 'x{57}…' has 1,001 characters, at most 1,000 are taken\. Check that user=",
    ),
    "million-character id": (
        "r.csv",
        HEAD + b"2," + b"x" * 1_000_000 + b",5\n",
        r"row 3: the item id 'x{57}…' has 1,000,000 characters",
    ),
    "endless row": ("r.csv", HEAD + b"x" * 20_000_000, r"row 3: (found 1 fields|the row has 20,000,000 characters)"),
    "endless first row": ("r.csv", b"x," * 1_000_000, r"row 1: the first row has more than a million characters"),
    "text timestamp": (
        "r.csv",
        b"user,item,rating,time\n1,1,5,77\n2,2,5,2020-01-01\n",
        r"row 3: timestamp '2020-01-01' is not a number\. Give times as Unix seconds.*timestamp=\"\"",
    ),
    "empty timestamp": ("r.csv", b"user,item,rating,time\n1,1,5,77\n2,2,5,\n", r"row 3: the timestamp is missing"),
    "huge timestamp": (
        "r.csv",
        b"user,item,rating,time\n1,1,5,77\n2,2,5,1e300\n",
        r"row 3: timestamp '1e\+300' is not a time in Unix seconds",
    ),
    "truncated gzip": (
        "r.csv.gz",
        gzip.compress(HEAD * 2000)[:-20],
        r"^r\.csv\.gz cannot be read .*copy or export it again",
    ),
    "fake gzip": ("r.csv.gz", HEAD, r"^r\.csv\.gz cannot be read"),
    "fake Parquet": (
        "r.parquet",
        HEAD,
        r"^r\.parquet is not a complete Parquet file\. Copy or export it again, or rename it if it is text",
    ),
    "truncated Parquet": ("r.parquet", parquet()[:-50], r"not a complete Parquet file"),
    "Parquet without rows": (
        "r.parquet",
        parquet(user=pa.array([], pa.int64()), item=pa.array([], pa.int64()), rating=pa.array([], pa.float64())),
        r"r\.parquet: there are no ratings",
    ),
    "Parquet null user": ("r.parquet", parquet(user=["a", None]), r"^r\.parquet, row 2: the user is missing"),
    "Parquet null item": ("r.parquet", parquet(item=pa.array([None, None], pa.null())), r"row 1: the item is missing"),
    "Parquet null rating": ("r.parquet", parquet(rating=[5, None]), r"row 2: the rating is missing"),
    "Parquet NaN rating": (
        "r.parquet",
        parquet(rating=[5, float("nan")]),
        r"row 2: the rating is not a finite number",
    ),
    "Parquet off scale": ("r.parquet", parquet(rating=[5, 7]), r"row 2: the rating is not on the scale"),
    "Parquet nested id": ("r.parquet", parquet(user=[[1], [2]]), r"r\.parquet"),
    "Parquet id of wrong type": (
        "r.parquet",
        parquet(user=[True, False]),
        r"user ids are integers or strings, found a column of type 'bool'.*Convert it to strings",
    ),
    "Parquet fractional id": ("r.parquet", parquet(user=[1.0, 2.5]), r"row 2: the user id 2\.5 is not a whole number"),
    "Parquet id of two numbers": ("r.parquet", parquet(user=[1.0, 2.0**53]), r"row 2: the user id .* holds exactly"),
    "Parquet inexact id": ("r.parquet", parquet(user=[1.0, 2.0**60]), r"row 2: the user id .* holds exactly"),
    "Parquet NaN id": ("r.parquet", parquet(user=[1.0, float("nan")]), r"row 2: the user is missing"),
    "Parquet text of wrong bytes": (
        "r.parquet",
        parquet(user=pa.array([b"\xff", b"a"])),
        r"user column of type 'binary'.*UTF-8",
    ),
    "Parquet dates as ratings": (
        "r.parquet",
        parquet(rating=pa.array([1, 2], pa.timestamp("s"))),
        r"rating column has type 'timestamp\[ms\]', numbers are needed",
    ),
}
