"""The same four ratings in every layout of a text file."""

import gzip
from datetime import UTC, datetime

ROWS = [(196, 242, 3, 881250949), (186, 302, 3, 891717742), (22, 377, 1, 878887116), (186, 242, 5, 880606923)]
CANONICAL = {
    "user": [22, 186, 186, 196],
    "item": [377, 242, 302, 242],
    "rating": [1.0, 5.0, 3.0, 3.0],
    "timestamp": [878887116, 880606923, 891717742, 881250949],
}


def text(delimiter, header="", end="\n"):
    lines = [header] * bool(header) + [delimiter.join(map(str, row)) for row in ROWS]
    return (end.join(lines) + end).encode()


LAYOUTS = {
    "u.data": text("\t"),
    "ratings.dat": text("::"),
    "ratings.csv": text(",", "userId,movieId,rating,timestamp"),
    "ratings.tsv": text("\t", "user_id\titem_id\trating\ttimestamp"),
    "no_header.csv": text(","),
    "tabs.csv": text("\t"),
    "windows.csv": text(",", "userId,movieId,rating,timestamp", end="\r\n"),
    "old_mac.csv": text(",", "userId,movieId,rating,timestamp", end="\r"),
    "byte_order_mark.csv": b"\xef\xbb\xbf" + text(",", "userId,movieId,rating,timestamp"),
    "empty_lines.csv": b"\n\n" + text(",", "userId,movieId,rating,timestamp").replace(b"\n", b"\n\n") + b"\n",
    "no_last_newline.csv": text(",").rstrip(),
    "ratings.csv.gz": gzip.compress(text(",", "userId,movieId,rating,timestamp")),
    "ratings.dat.gz": gzip.compress(text("::")),
    "RATINGS.CSV": text(",", "USERID,MOVIEID,RATING,TIMESTAMP"),
    "unknown.txt": text("::"),
    "semicolons.csv": text(";", "userId;movieId;rating;timestamp"),
    "semicolons_without_header.csv": text(";"),
    "bars.txt": text("|", "userId|movieId|rating|timestamp"),
    "ratings.jsonl": "".join(
        f'{{"userId": {u}, "movieId": {i}, "rating": {r}, "timestamp": {t}}}\n' for u, i, r, t in ROWS
    ).encode(),
    "ratings.ndjson.gz": gzip.compress(
        "".join(f'{{"user": {u}, "item": {i}, "rating": {r}, "ts": {t}}}\n' for u, i, r, t in ROWS).encode()
    ),
    "iso.csv": "\n".join(
        ["userId,movieId,rating,timestamp"]
        + [f"{u},{i},{r},{datetime.fromtimestamp(t, UTC):%Y-%m-%dT%H:%M:%SZ}" for u, i, r, t in ROWS]
    ).encode(),
    "iso_without_zone.csv": "\n".join(
        ["userId;movieId;rating;datetime"]
        + [f"{u};{i};{r},0;{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M:%S}" for u, i, r, t in ROWS]
    ).encode(),
    "other_columns.csv": text(",", "User-ID,ISBN,Book-Rating,ts"),
}
