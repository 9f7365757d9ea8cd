"""The pages of the studio: who is it, what was chosen, which command answers, which template shows it.

Pages that only show are GET and change nothing. What writes is POST, behind the session's checks: a ledger, a release.
The try-out is POST, too, so that somebody's ratings stand in no address; it writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from dpsr.studio import pages
from dpsr.studio.commands import Choices
from dpsr.studio.processes import Answers
from dpsr.studio.runs import Runs
from dpsr.studio.session import Sessions
from dpsr.web.guard import Guard, Refusal, allowed_hosts
from dpsr.web.pages import environment, style, text

PACKAGE = "dpsr.studio"
_LARGEST = 1 << 16

_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'",
}


@dataclass(frozen=True)
class Studio:
    """What the pages share."""

    sessions: Sessions
    runs: Runs
    answers: Answers


@dataclass(frozen=True)
class Visit:
    """One request of somebody who may ask: the session's secret for forms, what was chosen, what a form holds."""

    studio: Studio
    secret: str
    chosen: Choices
    query: dict[str, str]
    form: dict[str, str]

    def render(self, template: str, **facts: Any) -> Response:
        """A page of the studio."""
        shown = {"c": self.chosen, "form_secret": self.secret, "running": self.studio.runs.current, **facts}
        return HTMLResponse(environment(PACKAGE).get_template(template).render(**shown))


Page = Callable[[Visit], Response]


def application(sessions: Sessions, runs: Runs) -> Guard:
    """The whole studio behind its guard."""
    studio = Studio(sessions, runs, Answers())
    port = int(sessions.cookie.rpartition("_")[2])
    routes = [
        Route("/", _welcome(studio)),
        Route("/studio.css", lambda request: Response(style(PACKAGE, "studio.css"), media_type="text/css")),
        Route("/studio.js", lambda request: Response(text(PACKAGE, "studio.js"), media_type="text/javascript")),
        *(Route(path, _page(studio, page), methods=["GET"]) for path, page in pages.SHOWN.items()),
        *(Route(path, _page(studio, page), methods=["POST"]) for path, page in pages.DONE.items()),
    ]
    refusing = {HTTPException: _not_here, Refusal: _refusing, Exception: _unexpected}
    inner = Starlette(routes=routes, exception_handlers=refusing)
    paths = [route.path for route in routes]
    hosts = allowed_hosts("127.0.0.1", port)
    return Guard(inner, hosts=hosts, routes=paths, headers=_HEADERS, show=_shown, largest=_LARGEST)


def _welcome(studio: Studio) -> Callable[[Request], Awaitable[Response]]:
    """The start page; with a token, the beginning of a session."""

    async def endpoint(request: Request) -> Response:
        token = request.query_params.get("token")
        if token is not None:
            cookie = studio.sessions.redeem(token)
            chosen = Choices.of({"source": request.query_params.get("source", "")})
            onward = f"/columns?{chosen.query()}" if chosen.source else "/"
            page = environment(PACKAGE).get_template("welcome.html.jinja").render(onward=onward)
            return HTMLResponse(page, headers={"set-cookie": cookie})
        return await _page(studio, pages.start)(request)

    return endpoint


def _page(studio: Studio, page: Page) -> Callable[[Request], Awaitable[Response]]:
    """A page for whoever has a session; a form besides must be the studio's own."""

    async def endpoint(request: Request) -> Response:
        secret = studio.sessions.secret_of(request.cookies, request.headers)
        query, form = dict(request.query_params), {}
        if request.method == "POST":
            form = dict(parse_qsl(request.scope["dpsr.body"].decode("utf-8", "replace"), max_num_fields=400))
            studio.sessions.check_form(secret, form, request.headers)
        visit = Visit(studio, secret, Choices.of(form or query), query, form)
        return await asyncio.to_thread(page, visit)

    return endpoint


def _shown(refusal: Refusal) -> tuple[str, bytes]:
    page = environment(PACKAGE).get_template("refusal.html.jinja").render(words=refusal.words, status=refusal.status)
    return "text/html; charset=utf-8", page.encode()


async def _refusing(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    kind, body = _shown(error)
    return Response(body, error.status, error.headers, kind)


async def _not_here(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code in (301, 302, 303, 307, 308):
        return RedirectResponse("/", 303)
    return await _refusing(request, Refusal(error.status_code, "There is no such page here. Begin at the first one."))


async def _unexpected(request: Request, error: Exception) -> Response:
    words = "Something unexpected happened. Run the command of the page before in a terminal to see what."
    return await _refusing(request, Refusal(500, words))
