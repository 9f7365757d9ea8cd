"""What the cards of all releases share: a self-contained HTML page, the promise as odds, text by strangers.

Same release, same bytes: no clock, no randomness. Nothing on the page can reach the network. Its policy is

    default-src 'none';  script and style by their SHA-256;  images from data: only

and the script is one fixed file: text by strangers reaches the page through the template's escaping as text or
attributes, never as code. What escaping cannot help is done here: characters that are not printable (direction
overrides, line separators, control characters) are spelled out, so that no id can disguise itself or its neighbours,
and long ids are cut, with more of them in the tooltip.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from math import ceil, isinf
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpsr.certify import Certificate
from dpsr.certify.amounts import (
    PRIORS,
    belief_at_least,
    belief_at_most,
    epsilon_text,
    factor_text,
    left_text,
    percent_down,
    percent_up,
)
from dpsr.release.folder.budget_page import Budget

MAX_SHOWN, MAX_TITLE = 40, 400
_JOINER = "\u200d"
"""Joins emoji into one; invisible alone, harmless, and without it a family falls apart."""


class Name(NamedTuple):
    """An id as it is shown, and what its tooltip says (empty if all of it is shown)."""

    text: str
    title: str

    def __html__(self) -> str:
        """As a template shows it: whatever direction the id is written in, its neighbours keep theirs."""
        title = Markup(' title="{}"').format(self.title) if self.title else ""
        return Markup('<bdi class="id"{}>{}</bdi>').format(title, self.text)


def display_name(identifier: object) -> Name:
    """An id fit for a page.

    >>> display_name("abc"), display_name("a\\u202eb").text, len(display_name("x" * 10_000).text)
    (Name(text='abc', title=''), 'a⟨U+202E⟩b', 40)
    """
    full = str(identifier)
    spelled = _spelled(full[:MAX_TITLE])
    if len(spelled) <= MAX_SHOWN and len(full) <= MAX_TITLE:
        return Name(spelled or "(empty)", "")
    more = f"… ({len(full):,} characters)" if len(full) > MAX_TITLE else ""
    return Name(spelled[: MAX_SHOWN - 1] + "…", spelled + more)


def _spelled(text: str) -> str:
    return "".join(c if c.isprintable() or c == _JOINER else f"⟨U+{ord(c):04X}⟩" for c in text)


class Limit(NamedTuple):
    """One limit: how bad it can get, its name, and one sentence."""

    severity: str
    name: str
    words: str


def render(
    template: str, certificate: Certificate, *, budget: Budget | None = None, signer: str | None = None, **own: Any
) -> str:
    """A page about a release: its promise, its budget and its signer, and what is its `own`.

    `budget` is what a ledger said, if one was used, and `signer` the fingerprint of the key that signs, if one does.
    """
    style, script = source("card.css"), source("card.js")
    return (
        environment()
        .get_template(template)
        .render(
            style=Markup(style),
            script=Markup(script),
            policy=page_policy(style, script),
            **_promise(certificate),
            budget=budget and _budget(budget),
            signer=signer,
            **own,
        )
    )


def _promise(certificate: Certificate) -> dict[str, Any]:
    epsilon = certificate.epsilon
    bounds = {p: (belief_at_least(p, epsilon), belief_at_most(p, epsilon)) for p in PRIORS}
    low, high = bounds[0.5]
    return {
        "certificate": certificate,
        "private": certificate.private,
        "bounded": not isinf(epsilon),
        "epsilon": epsilon_text(epsilon),
        "delta": epsilon_text(certificate.delta),
        "asked": "nothing" if certificate.nominal is None else epsilon_text(float(certificate.nominal)),
        "exact_epsilon": repr(epsilon),
        "factor": factor_text(epsilon),
        "half": [percent_down(low), percent_up(high)],
        "half_bounds": (low, high),
        "right": ceil(100 * min(high + certificate.delta, 1.0)),
        "guesses": [(f"{100 * p:.0f} %", percent_down(a), percent_up(b)) for p, (a, b) in bounds.items()],
    }


def _budget(budget: Budget) -> dict[str, Any]:
    """What a ledger said, as the page shows it."""
    used = min(max(budget.spent / budget.budget, 0.0), 1.0) if budget.budget > 0 else 1.0
    return {
        "dataset": display_name(budget.dataset),
        "total": f"{budget.budget:g}",
        "spent": epsilon_text(budget.spent),
        "left": left_text(budget.left),
        "used": 100 * used,
    }


def page_policy(style: str, script: str) -> str:
    """What the page may load: its own style and script, and nothing from anywhere."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def source(name: str) -> str:
    """A file of the package as it is, newline first: what lies between the tags is what the policy hashes."""
    loader = environment().loader
    assert loader is not None
    return "\n" + loader.get_source(environment(), name)[0]


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Templates that escape what strangers wrote."""
    return Environment(
        loader=PackageLoader("dpsr.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
