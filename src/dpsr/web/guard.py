"""What every request passes before anything looks at it, and what every answer carries.

    Host            the name under which the server listens; else 421, so that no page of the web reaches it by a name
                    of its own that leads here (DNS rebinding)
    body            at most `largest` bytes (413), whole within `patience` seconds (408)
    crowd           at most `crowd` requests at a time; else 429
    surprises       an exception nobody expected is a 500 without its words: they could quote what was sent

Nothing of a request is logged but its method, the name of its route, the status and how long it took.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from time import perf_counter
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Observe = Callable[[str, int, float], None]
"""Hears the route's name, the status and the seconds of every answer."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_log = logging.getLogger("dpsr.web")


class Refusal(Exception):  # noqa: N818 (an answer, not an error of ours)
    """An answer of 400 or more: what must hold, what was found, what to do next."""

    def __init__(self, status: int, words: str, **headers: str) -> None:
        super().__init__(words)
        self.status, self.words, self.headers = status, words, headers


Show = Callable[[Refusal], tuple[str, bytes]]
"""A refusal as the edge answers it: content type and body."""


def as_json(refusal: Refusal) -> tuple[str, bytes]:
    """The one form of an error of a JSON interface."""
    return "application/json", json.dumps({"error": refusal.words}).encode()


def allowed_hosts(host: str, port: int) -> frozenset[str] | None:
    """The Host headers that name this server; None (any) where it listens for other machines, which have names."""
    if host not in ("127.0.0.1", "localhost", "::1"):
        return None
    return frozenset(f"{name}:{port}" for name in LOOPBACK) | (frozenset(LOOPBACK) if port == 80 else frozenset())


class Guard:
    """An application behind the rules above."""

    def __init__(
        self,
        inner: Application,
        *,
        hosts: frozenset[str] | None,
        routes: Iterable[str],
        headers: Mapping[str, str],
        show: Show = as_json,
        observe: Observe = lambda route, status, seconds: None,
        largest: int = 1 << 20,
        patience: float = 10.0,
        crowd: int = 64,
    ) -> None:
        self.inner, self.hosts, self.show, self.observe = inner, hosts, show, observe
        self.routes = frozenset(routes)
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self.largest, self.patience, self.crowd = largest, patience, crowd
        self.present = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        began, answered = perf_counter(), _Answer(send, self.headers)
        self.present += 1
        try:
            self._check_crowd()
            self._check_host(scope)
            scope["dpsr.body"] = await self._body(scope, receive)
            await self.inner(scope, _nothing_more, answered)
        except Refusal as refusal:
            await self._refuse(refusal, answered)
        except Exception as error:
            _log.error("an unexpected %s; the request was answered with 500", type(error).__name__)
            await self._refuse(Refusal(500, "Something unexpected happened. It was not your fault."), answered)
        finally:
            self.present -= 1
            route = scope["path"] if scope["path"] in self.routes else "other"
            seconds = perf_counter() - began
            self.observe(route, answered.status, seconds)
            _log.info("%s %s %d %.1f ms", _method(scope), route, answered.status, 1e3 * seconds)

    def _check_crowd(self) -> None:
        if self.present > self.crowd:
            words = f"At most {self.crowd} requests are answered at a time. Try again in a second."
            raise Refusal(429, words, **{"retry-after": "1"})

    def _check_host(self, scope: Scope) -> None:
        names = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
        if self.hosts is not None and (len(names) != 1 or names[0] not in self.hosts):
            raise Refusal(421, f"This server answers as {sorted(self.hosts)[0]} only. Use the address it printed.")

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        stated = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        too_large = Refusal(413, f"A request has at most {self.largest:,} bytes. Send fewer at a time.")
        if not stated.isdigit() or len(stated) > 12 or int(stated) > self.largest:
            raise too_large
        try:
            async with asyncio.timeout(self.patience):
                whole = bytearray()
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "The request ended before it was whole. Send it again.")
                    whole += message.get("body", b"")
                    if len(whole) > self.largest:
                        raise too_large
                    if not message.get("more_body", False):
                        return bytes(whole)
        except TimeoutError:
            words = f"A request must arrive within {self.patience:g} seconds. Send less, or send it faster."
            raise Refusal(408, words) from None

    async def _refuse(self, refusal: Refusal, answer: _Answer) -> None:
        if answer.begun:  # half an answer is out: all that is left is to end it
            return
        kind, body = self.show(refusal)
        extra = [(name.encode(), value.encode()) for name, value in refusal.headers.items()]
        closing = [(b"connection", b"close")] if refusal.status in (408, 413, 400) else []
        head = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode()), *extra, *closing]
        await answer({"type": "http.response.start", "status": refusal.status, "headers": head})
        await answer({"type": "http.response.body", "body": body})


class _Answer:
    """What goes out, with the headers every answer carries; remembers the status."""

    def __init__(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self.send, self.headers, self.status, self.begun = send, headers, 499, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            own = {name for name, _ in message.get("headers", ())}
            extra = [(name, value) for name, value in self.headers if name not in own]
            message = {**message, "headers": [*message.get("headers", ()), *extra]}
        await self.send(message)


async def _nothing_more() -> Message:
    """The body was read; whoever asks again is told that the client is gone."""
    return {"type": "http.disconnect"}


_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def _method(scope: Scope) -> str:
    """A method by name, if it is one: a stranger's word does not reach a log."""
    return scope["method"] if scope["method"] in _METHODS else "OTHER"
