"""Requests that nobody would send, generated: forms nearly right, JSON of any kind, bytes, headers, broken HTTP."""

from __future__ import annotations

import json
import socket
from collections import Counter

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st

ROUTES = (
    "/v1/recommend",
    "/v1/predict",
    "/v1/fold-in",
    "/v1/release",
    "/v1/health",
    "/v1/metrics",
    "/docs",
    "/openapi.json",
)
_text = st.text(st.characters(codec=None), max_size=12)
_ids = st.one_of(st.integers(-5, 120), st.integers(), _text, st.sampled_from([True, None, 1.5, "7", "007", "\ud800"]))
_ratings = st.one_of(st.sampled_from([1, 2, 3, 4, 5, 5.0]), st.floats(), st.integers(), st.none(), _text)
_own = st.fixed_dictionaries({}, optional={"item": _ids, "rating": _ratings})
_n = st.one_of(st.integers(1, 20), st.integers(), st.floats(), st.none())
_person = st.fixed_dictionaries(
    {"ratings": st.lists(_own, max_size=6)}, optional={"items": st.lists(_ids, max_size=4), "n": _n, "more": _ids}
)
_any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner, max_size=4),
    max_leaves=12,
)
_good = st.builds(
    lambda k, items, n: {"people": [{"ratings": [{"item": i, "rating": 3} for i in sorted(items)]}] * k, "n": n},
    st.integers(1, 3), st.sets(st.integers(0, 99), max_size=8), st.integers(1, 30),
)  # fmt: skip
RECORDS = st.one_of(
    _good,
    st.fixed_dictionaries({"people": st.lists(_person, max_size=4)}, optional={"n": _n}),
    st.fixed_dictionaries({"users": st.lists(_ids, max_size=4)}, optional={"n": _n, "unknown": _text}),
    st.fixed_dictionaries({"items": st.lists(_ids, max_size=4)}, optional={"users": st.lists(_ids, max_size=4)}),
    _any_json,
)
BODIES = st.one_of(
    RECORDS.map(lambda record: json.dumps(record).encode("utf-8", "surrogatepass")),
    st.binary(max_size=64),
    st.integers(1, 30_000).map(lambda depth: b"[" * depth),
    st.just(b'{"people": [{"ratings": [{"item": 1, "rating": 1e400}]}]}'),
    st.just(b'{"users": [' + b"9" * 5_000 + b"]}"),
)
PATHS = st.one_of(
    st.sampled_from(ROUTES),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20).map(lambda text: "/" + text),
)
METHODS = st.sampled_from(["POST", "POST", "POST", "POST", "GET", "PUT", "HEAD", "OPTIONS", "DELETE", "BREW"])
KINDS = st.sampled_from(["application/json", "application/json", "application/json; charset=utf-8", "text/plain", ""])
STRANGE_HEADERS = st.sampled_from(
    [b"", b"", b"", b"", b"x-y: z\r\n", b"host: evil\r\n", b"expect: 100-continue\r\n",
     b"upgrade: websocket\r\nconnection: upgrade\r\n",
     b"content-length: 7\r\n", b"transfer-encoding: chunked\r\n",
     b"bad header\r\n", b"x: \xff\xfe\r\n", b"connection: close\r\n"]
)  # fmt: skip
_json = st.just("application/json")
_encoded = lambda records: records.map(lambda record: json.dumps(record).encode("utf-8", "surrogatepass"))  # noqa: E731
_forms = {
    "/v1/fold-in": st.one_of(
        _good, st.fixed_dictionaries({"people": st.lists(_person, max_size=4)}, optional={"n": _n})
    ),
    "/v1/recommend": st.fixed_dictionaries({"users": st.lists(st.one_of(st.integers(0, 50), _ids), max_size=3)}),
    "/v1/predict": st.fixed_dictionaries({"items": st.lists(st.one_of(st.integers(0, 50), _ids), max_size=3)}),
}
REQUESTS = st.one_of(
    *(st.tuples(st.just("POST"), st.just(path), _json, st.just(b""), _encoded(form)) for path, form in _forms.items()),
    st.tuples(st.just("GET"), st.sampled_from(ROUTES[3:]), _json, STRANGE_HEADERS, st.just(b"")),
    st.tuples(METHODS, st.sampled_from(ROUTES), KINDS, STRANGE_HEADERS, BODIES),
    st.tuples(METHODS, PATHS, KINDS, STRANGE_HEADERS, BODIES),
)
"""Method, path, content type, one more header, body: nearly right ones, and anything at all."""


def batter(port: int, count: int) -> Counter[int]:
    """Send `count` generated requests, each over a connection of its own; how often each status came back.

    Fails on an answer that is neither 2xx nor a 4xx with words, and on none at all.
    """
    tally: Counter[int] = Counter()

    @settings(
        max_examples=count, deadline=None, database=None, phases=[Phase.generate], verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck), derandomize=True,
    )  # fmt: skip
    @given(REQUESTS)
    def one(request: tuple[str, str, str, bytes, bytes]) -> None:
        method, path, kind, more, body = request
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: {kind}\r\n".encode()
        length = b"" if b"content-length" in more or b"transfer" in more else b"content-length: %d\r\n" % len(body)
        status, text = exchange(port, head + more + length + b"connection: close\r\n\r\n" + body)
        tally[status] += 1
        assert 200 <= status < 300 or 400 <= status < 500, (status, text)
        assert b"Traceback" not in text
        if status >= 400 and method != "HEAD":
            assert len(text) > 10, (status, text)

    one()
    return tally


def exchange(port: int, request: bytes) -> tuple[int, bytes]:
    """What comes back until the other side closes: the last status, and the body."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as opened:
        found = b""
        try:
            opened.sendall(request)
            opened.shutdown(socket.SHUT_WR)
            while chunk := opened.recv(1 << 16):
                found += chunk
        except (ConnectionResetError, BrokenPipeError):
            pass  # it was refused before all of it was sent
    while found.startswith(b"HTTP/1.1 100"):
        found = found.partition(b"\r\n\r\n")[2]
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 "), (request[:200], found[:200])
    return int(head.split(b" ")[1]), body
