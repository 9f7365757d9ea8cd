"""Clients that dawdle, shout or come in crowds: a clear 4xx or a closed door, and the next one is served."""

import asyncio
import json
import socket
import threading
from contextlib import contextmanager
from time import monotonic

import pytest
from live_server import ask, running

from dpsr.web import connection
from dpsr.web.guard import Guard, allowed_hosts

released = threading.Event()


async def echo(scope, receive, send):
    if scope["path"] == "/slow":
        await asyncio.to_thread(released.wait, 30)
    if scope["path"] == "/broken":
        raise RuntimeError("the secret is Rosebud")  # a number might be the minute, in a log with the time of day
    body = b"x" * 30_000_000 if scope["path"] == "/large" else json.dumps(len(scope["dpsr.body"])).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def guarded(**changed):
    rules = {"routes": ["/"], "headers": {"x-mark": "1"}, "largest": 1_000, "patience": 60.0, "crowd": 2, **changed}
    with running(lambda port: Guard(echo, hosts=allowed_hosts("127.0.0.1", port), **rules)) as found:
        yield found
        released.set()


@pytest.fixture
def port(monkeypatch):
    """Waits a minute for anybody, for a busy machine is slow too; a test of haste sets the limit that it is about."""
    monkeypatch.setattr(connection, "HEADER_SECONDS", 60.0)
    with guarded() as found:
        yield found


def raw(port, *pieces):
    """Send pieces by hand; everything that comes back until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as opened:
        for piece in pieces:
            opened.sendall(piece.replace(b"PORT", str(port).encode()))
        found = b""
        while chunk := opened.recv(65_536):
            found += chunk
    return found


HEAD = b"POST / HTTP/1.1\r\nhost: 127.0.0.1:PORT\r\n"


def test_a_head_that_does_not_end_is_408(port, monkeypatch):
    monkeypatch.setattr(connection, "HEADER_SECONDS", 0.3)
    assert raw(port, HEAD).startswith(b"HTTP/1.1 408")
    assert raw(port).startswith(b"HTTP/1.1 408")


def test_a_body_that_does_not_come_is_408():
    with guarded(patience=0.3) as port:
        found = raw(port, HEAD + b"content-length: 10\r\n\r\n", b"abc")
    assert found.startswith(b"HTTP/1.1 408")
    assert b"within 0.3 seconds" in found


def test_a_body_that_is_too_large_is_413_whether_it_says_so_or_not(port):
    assert raw(port, HEAD + b"content-length: 1001\r\n\r\n").startswith(b"HTTP/1.1 413")
    chunks = (
        b"transfer-encoding: chunked\r\n\r\n" + b"200\r\n" + b"x" * 512 + b"\r\n" + b"200\r\n" + b"x" * 512 + b"\r\n"
    )
    assert raw(port, HEAD + chunks).startswith(b"HTTP/1.1 413")
    assert ask(port, "POST", "/", b"x" * 1_000)[:2] == (200, b"1000")


def test_a_head_that_is_too_large_or_no_http_is_400(port):
    assert raw(port, HEAD + b"x: " + b"y" * 70_000).startswith(b"HTTP/1.1 400")
    assert raw(port, b"\x16\x03\x01 hello\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert raw(port, HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n").startswith(b"HTTP/1.1 400")


def test_a_client_that_does_not_read_is_let_go(port, monkeypatch):
    let_go, lost = threading.Event(), connection.BoundedConnection.connection_lost
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.3)
    monkeypatch.setattr(
        connection.BoundedConnection, "connection_lost", lambda self, why: (lost(self, why), let_go.set())[0]
    )
    with socket.create_connection(("127.0.0.1", port), timeout=120) as opened:
        opened.sendall(f"GET /large HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert let_go.wait(60)
        with pytest.raises(OSError):  # noqa: PT012 (what was in flight comes first)
            taken = 0
            while chunk := opened.recv(1 << 20):
                taken += len(chunk)
            if taken < 30_000_000:
                raise ConnectionResetError
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 60.0)
    assert ask(port, "POST", "/", b"x")[0] == 200


def test_a_crowd_is_429_and_the_next_one_is_served(port):
    released.clear()
    waiting = [threading.Thread(target=ask, args=(port, "GET", "/slow")) for _ in range(2)]
    for thread in waiting:
        thread.start()
    status, until = 200, monotonic() + 60
    while status == 200 and monotonic() < until:  # both may take their time to come
        status, _, headers = ask(port, "GET", "/")
    assert (status, headers["retry-after"]) == (429, "1")
    released.set()
    for thread in waiting:
        thread.join()
    assert ask(port, "GET", "/")[0] == 200


def test_what_nobody_expected_is_a_500_without_its_words(port, caplog):
    status, body, headers = ask(port, "GET", "/broken")
    assert (status, headers["x-mark"]) == (500, "1")
    assert b"Rosebud" not in body
    assert "Rosebud" not in caplog.text
    assert "RuntimeError" in caplog.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1"])
def test_a_name_of_somebody_elses_is_421(port, host):
    assert ask(port, "GET", "/", host=host)[0] == 421


def test_names_of_this_machine_are_let_in(port):
    for name in ("127.0.0.1", "localhost", "[::1]", "LOCALHOST"):
        assert ask(port, "GET", "/", host=f"{name}:{port}")[0] == 200
