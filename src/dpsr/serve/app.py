"""The routes of `dpsr serve`: read the form, answer in one other thread, write JSON.

Answers are computed one at a time in a thread of their own, so that health and metrics answer while a batch is worked
on and the kernels are never entered twice at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from dpsr.serve import answers, forms
from dpsr.serve.loaded import SAME, Served
from dpsr.serve.metrics import Metrics
from dpsr.serve.openapi import description, docs_page, page_style
from dpsr.web.guard import Guard, Refusal, as_json

Answerer = Callable[[answers.AnyRelease, dict[str, Any]], dict[str, Any]]

ASKED: dict[str, tuple[Answerer, forms.Form]] = {
    "/v1/recommend": (answers.recommend, forms.RECOMMEND),
    "/v1/predict": (answers.predict, forms.PREDICT),
    "/v1/fold-in": (answers.fold_in, forms.FOLD_IN),
}

_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
}


def application(served: Served, metrics: Metrics, hosts: frozenset[str] | None) -> Guard:
    """Everything that can be asked of one release, behind its guard."""
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="answers")
    worker.submit(_warm_up, served)
    routes = [
        *(Route(path, _posting(served, worker, *asked), methods=["POST"]) for path, asked in ASKED.items()),
        Route("/v1/release", lambda request: _json(served.facts())),
        Route("/v1/health", _health(served)),
        Route("/v1/metrics", lambda request: PlainTextResponse(_measured(served, metrics))),
        Route("/openapi.json", lambda request: _json(description(served.release))),
        Route("/docs", lambda request: HTMLResponse(docs_page(served))),
        Route("/docs.css", lambda request: Response(page_style(), media_type="text/css")),
    ]
    inner = Starlette(routes=routes, exception_handlers={HTTPException: _not_here, Refusal: _refusing})
    paths = [route.path for route in routes]
    return Guard(
        inner, hosts=hosts, routes=paths, headers=_HEADERS, observe=metrics.observe, largest=forms.LARGEST_BODY
    )


def _posting(served: Served, worker: ThreadPoolExecutor, answer: Answerer, form: forms.Form) -> Any:
    async def endpoint(request: Request) -> Response:
        kind = request.headers.get("content-type", "").encode("latin-1")
        asked = forms.read_form(request.scope["dpsr.body"], kind, form)
        release = served.release
        found = await asyncio.get_running_loop().run_in_executor(worker, answer, release, asked)
        return _json(found)

    return endpoint


def _health(served: Served) -> Any:
    async def endpoint(request: Request) -> Response:
        state = await asyncio.to_thread(served.state)
        words = "" if state == SAME else "The release that was loaded is still served. SIGHUP loads what is there now."
        return _json(
            {"status": "ok", "folder": state, "manifest_sha256": served.manifest_sha256}
            | ({"note": words} if words else {})
        )

    return endpoint


def _measured(served: Served, metrics: Metrics) -> str:
    certificate = served.release.certificate
    return metrics.text(release_epsilon=certificate.epsilon, release_delta=certificate.delta)


def _json(record: Any) -> Response:
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text, media_type="application/json")


def _warm_up(served: Served) -> None:
    """The first list compiles or loads kernels; better now than in somebody's request."""
    served.release.fold_in([], [], 1)


async def _not_here(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {
        404: "There is no such page here. GET /docs says what there is.",
        405: "This page takes another method. GET /docs says which.",
    }
    headers = {name: value for name, value in (error.headers or {}).items() if name.lower() == "allow"}
    return _refused(Refusal(error.status_code, words.get(error.status_code, "It cannot be answered."), **headers))


async def _refusing(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _refused(error)


def _refused(refusal: Refusal) -> Response:
    kind, body = as_json(refusal)
    return Response(body, refusal.status, refusal.headers, kind)
