"""One HTTP connection with limits of its own: a client that dawdles is let go, and a broken request ends in a 4xx.

    headers     must be whole within HEADER_SECONDS                         else 408, closed
    request     must be answered and taken within REQUEST_SECONDS           else closed, whoever is slow
    size        a head larger than HEAD_BYTES, or one that is not HTTP      400, closed

How long a body may take and how large it may be is for the application to say (`guard`).
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
REQUEST_SECONDS = 60.0
HEAD_BYTES = 1 << 16

_TOO_SLOW = "The head of a request must arrive within 10 seconds. Send it in one piece."


def _last_words(status: str, words: str) -> bytes:
    """A whole answer by hand, for a connection that ends with it."""
    body = f"{words}\n".encode()
    lines = [f"HTTP/1.1 {status}", "content-type: text/plain; charset=utf-8", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode() + body


class BoundedConnection(H11Protocol):
    """uvicorn's connection, and a timer that knows what it is waiting for."""

    _timer: asyncio.TimerHandle | None = None
    _waiting_for_head = False
    _served: Any = None

    def __init__(self, *settings: Any, **named: Any) -> None:
        super().__init__(*settings, **named)
        self.access_log = False  # uvicorn's own holds addresses and queries, as strangers wrote them

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm(HEADER_SECONDS, head=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        if not self.transport.get_write_buffer_size():  # else the client has yet to take it
            self._disarm()
        super().on_response_complete()
        if self._busy:  # the next request was there already
            self._watch()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The client has said all it will: what is whole is answered, what is not is refused."""
        if self._busy and not self.cycle.more_body:
            return True
        if self._busy or self._waits_for_more:
            self.send_400_response("The request ended before it was whole. Send it again.")
        return None

    def send_400_response(self, msg: str) -> None:
        """One sentence and the end, unless an answer is on its way already: then just the end."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_last_words("400 Bad Request", msg))
        self.transport.close()

    @property
    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _watch(self) -> None:
        if self._busy and self._served is not self.cycle:
            self._served = self.cycle
            self._arm(REQUEST_SECONDS, head=False)
        elif not self._busy and self._served is not self.cycle and not self.transport.is_closing():
            self._served = self.cycle
        elif not self._busy and self._waits_for_more and not (self._timer and self._waiting_for_head):
            self._arm(HEADER_SECONDS, head=True)

    @property
    def _waits_for_more(self) -> bool:
        """Whether the beginning of a head is there, and not all of it."""
        return bool(self.conn.trailing_data[0]) and not self.transport.is_closing()

    def _arm(self, seconds: float, *, head: bool) -> None:
        self._disarm()
        self._waiting_for_head = head
        self._timer = self.loop.call_later(seconds, self._expired)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        self._timer = None
        if self._busy or self.transport.get_write_buffer_size():
            self.transport.abort()
        elif self._waiting_for_head and not self.transport.is_closing():
            self.transport.write(_last_words("408 Request Timeout", _TOO_SLOW))
            self.transport.close()
