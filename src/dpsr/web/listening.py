"""A socket of one's own, and the server that answers on it until it is told to stop."""

from __future__ import annotations

import gc
import logging
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

from dpsr.errors import ParameterError
from dpsr.web.connection import HEAD_BYTES, BoundedConnection

_BACKLOG = 128
_CONNECTIONS = 256
"""Connections open at a time; beyond, 503 and closed."""

_TURN = 5e-4
"""Seconds a thread may keep the interpreter while another waits: with Python's 5 ms every answer would wait as long."""

_OBJECTS = 700
"""New objects after which garbage is looked for, Python's own number: what people sent does not lie about for long."""


def bound(host: str, port: int) -> socket.socket:
    """A socket bound to the address; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio asks, and then sends at once
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
    except (OSError, OverflowError) as error:
        opened.close()
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ParameterError(
            f"an address that is free is needed, and {host} port {port} cannot be listened on: {reason}. Choose "
            "another port with --port, or --port 0 for any that is free."
        ) from error
    opened.listen(_BACKLOG)
    return opened


def address_of(opened: socket.socket) -> str:
    """Where it listens, as one types it into a browser."""
    host, port = opened.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def answer_until_stopped(application: Any, opened: socket.socket, started: Callable[[], None]) -> None:
    """Answer on the socket until SIGINT or SIGTERM; `started` is called once requests are taken."""
    sys.setswitchinterval(_TURN)
    gc.set_threshold(_OBJECTS)
    with suppress(KeyboardInterrupt):  # being stopped is how this ends
        server_for(application, started).run(sockets=[opened])


def server_for(application: Any, started: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """A server that logs nothing by itself and bounds every connection."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # it would print what strangers send, and tracebacks
    config = uvicorn.Config(
        application,
        http=BoundedConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=HEAD_BYTES,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=3,
    )
    return _Announced(config, started)


class _Announced(uvicorn.Server):
    """A server that says when it has begun."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._said = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin, then say so."""
        await super().startup(sockets=sockets)
        self._said()
