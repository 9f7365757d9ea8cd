"""The OpenAPI description as a page for people: no script, nothing from elsewhere."""

from __future__ import annotations

import json

from dpsr.serve.loaded import Served
from dpsr.serve.openapi import REFUSALS, description
from dpsr.web.pages import environment, style


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
