"""The OpenAPI description of the server, for either kind of release, with a request of each kind that is right; and the
same as a page for people: no script, nothing from elsewhere.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

from dpsr.release.likes import LikesRelease
from dpsr.release.release import Release
from dpsr.serve.answers import AnyRelease
from dpsr.serve.forms import FOLD_IN, LARGEST_BODY, PREDICT, RECOMMEND, Form
from dpsr.serve.loaded import Served
from dpsr.web.pages import environment, style

_ROW: Form = {
    "type": "object",
    "properties": {"item": {"type": ["string", "integer"]}, "score": {"type": "number"}, "title": {"type": "string"}},
}
_LIST: Form = {"type": "array", "items": _ROW}
_ERROR: Form = {"type": "object", "properties": {"error": {"type": "string"}}}
_PREDICTIONS: Form = {"type": "array", "items": {"type": "number"}}

REFUSALS = {
    "400": "not strict JSON, or not HTTP",
    "403": "this release knows nobody",
    "404": "no such user, or no such page",
    "405": "another method",
    "408": "the request came too slowly",
    "413": f"more than {LARGEST_BODY:,} bytes",
    "415": "not JSON",
    "421": "another name for this server",
    "422": "JSON, but not of the form, or not on the scale",
    "429": "too many at a time",
}


def _answer(**properties: Form) -> Form:
    return {"type": "object", "properties": properties}


def _post(summary: str, about: str, form: Form, example: Any, answer: Form) -> dict[str, Any]:
    refused = {"description": "Refused, in words", "content": {"application/json": {"schema": _ERROR}}}
    return {
        "post": {
            "summary": summary,
            "description": about,
            "requestBody": {"required": True, "content": {"application/json": {"schema": form, "example": example}}},
            "responses": {
                "200": {"description": "Answered", "content": {"application/json": {"schema": answer}}},
                "4XX": refused,
            },
        }
    }


def _get(summary: str, about: str, kind: str = "application/json") -> dict[str, Any]:
    return {
        "get": {
            "summary": summary,
            "description": about,
            "responses": {"200": {"description": "Answered", "content": {kind: {"schema": {}}}}},
        }
    }


def description(release: AnyRelease) -> dict[str, Any]:
    """The whole document; operations that this release does not allow are left out."""
    people, likes = not isinstance(release, Release), isinstance(release, LikesRelease)
    item, other, user = _examples(release)
    best, worst = (2, 1) if likes else (release.scale.high, release.scale.low)
    paths = {
        "/v1/recommend": _post(
            "Lists of released users",
            "The items a user has not rated and is most likely to meet and like, best first. With unknown: average, a "
            "user the release does not know gets what the average user would.",
            RECOMMEND,
            {"users": [user], "n": 5},
            _answer(lists={"type": "array", "items": _answer(user={"type": ["string", "integer"]}, list=_LIST)}),
        ),
        "/v1/fold-in": _post(
            "Lists from people's own ratings",
            "Each person's list from the ratings in the request and the released item side. Ratings are used for the "
            "answer and forgotten: not logged, not cached, not in the metrics. With items, predictions for these too.",
            FOLD_IN,
            {
                "people": [
                    {
                        "ratings": [{"item": item, "rating": best}, {"item": other, "rating": worst}],
                        **({} if likes else {"items": [other]}),
                    }
                ],
                "n": 5,
            },
            _answer(people={"type": "array", "items": _answer(list=_LIST, predictions=_PREDICTIONS)}),
        ),
        "/v1/predict": _post(
            "Predicted ratings",
            "How popular these items are."
            if likes
            else "What a stranger is expected to give these items."
            if people
            else "One prediction for each pair of a user and an item; one user may stand for all. Without users, what "
            "the average user would give.",
            PREDICT,
            {"items": [item, other]} if people else {"users": [user], "items": [item, other]},
            _answer(predictions=_PREDICTIONS),
        ),
        "/v1/release": _get("What is served", "The promise, the scale, and what may be asked."),
        "/v1/health": _get("Is it well", "And whether the folder still is what was loaded."),
        "/v1/metrics": _get("Counts and times", "By route and status, in Prometheus' text format.", "text/plain"),
    }
    if people:
        del paths["/v1/recommend"]
    about = f"{release.certificate}. Nothing here says more than the release does."
    return {
        "openapi": "3.1.0",
        "info": {"title": "dpsr serve", "version": version("dpsr"), "description": about},
        "paths": paths,
    }


def _examples(release: AnyRelease) -> tuple[Any, Any, Any]:
    """Two items and a user that the release itself names."""
    if not isinstance(release, Release):
        names = release.index.named[:2].to_pylist()
        return (*[*names, "an item", "another item"][:2], "nobody")
    items = release.mask.item_ids[:2].to_pylist()
    return items[0], items[-1], release.mask.user_ids[0].as_py()


def docs_page(served: Served) -> str:
    """Every operation with its form, a request that is right, and what may be refused."""
    document = description(served.release)
    operations = [
        {
            "method": method.upper(),
            "path": path,
            "summary": found["summary"],
            "about": found["description"],
            "example": _example(found),
            "form": _form(found),
        }
        for path, methods in document["paths"].items()
        for method, found in methods.items()
    ]
    return (
        environment("dpsr.serve")
        .get_template("docs.html.jinja")
        .render(document=document, operations=operations, refusals=REFUSALS, facts=served.facts())
    )


def page_style() -> str:
    """The style of the page: the card's colours, and its own rules."""
    return style("dpsr.serve", "docs.css")


def _body(found: dict[str, object]) -> dict[str, object] | None:
    body = found.get("requestBody")
    return body["content"]["application/json"] if isinstance(body, dict) else None


def _example(found: dict[str, object]) -> str | None:
    body = _body(found)
    return None if body is None else json.dumps(body["example"], ensure_ascii=False)


def _form(found: dict[str, object]) -> str | None:
    body = _body(found)
    return None if body is None else json.dumps(body["schema"], indent=2)
