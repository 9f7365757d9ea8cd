"""The card: one self-contained HTML page about a release, made from the release and public facts alone.

Same release, same bytes: no clock, no randomness. Nothing on the page can reach the network. Its policy is

    default-src 'none';  script and style by their SHA-256;  images from data: only

and the script is one fixed file: text by strangers reaches the page through the template's escaping as text or
attributes, never as code.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from math import ceil, isinf
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpsr.certify import Certificate, odds
from dpsr.release.folder.budget_page import Budget
from dpsr.release.release import Contents
from dpsr.report.facts import (
    Bin,
    Glance,
    Name,
    costs,
    display_name,
    doubling_bins,
    glance,
    item_name,
    middle_count,
    sample_users,
    samples,
)
from dpsr.report.plots import (
    BASE,
    HEIGHT,
    MARGIN,
    Expectation,
    bar_plot,
    doubling_labels,
    frontier_plot,
    scale_labels,
    this_release,
)
from dpsr.types import Census


class Limit(NamedTuple):
    """One limit: how bad it can get, its name, and one sentence."""

    severity: str
    name: str
    words: str


LIMITS = (
    Limit(
        "high",
        "Who rated what is public",
        "That a person rated an item, and how often, is not hidden, nor when, if times are in it. If that alone is a "
        "secret, do not publish.",
    ),
    Limit(
        "high",
        "Releases add up",
        "Every further release of the same ratings adds its epsilon. Keep a ledger, and release once.",
    ),
    Limit(
        "medium",
        "A person is weaker than a rating",
        "Someone with k ratings is protected at k times epsilon as a whole; for heavy users that is no protection.",
    ),
    Limit(
        "medium",
        "Taste can be inferred",
        "What other ratings say about a person can still be concluded; epsilon bounds what their own value adds.",
    ),
    Limit(
        "medium",
        "Accuracy is a forecast",
        "Expected accuracy assumes typical shares of variance and was not measured on these ratings.",
    ),
    Limit(
        "low",
        "Released ratings are estimates",
        "They lie closer together than the ratings people gave, and a single one may be far off.",
    ),
    Limit(
        "low",
        "Timing is not protected",
        "How long the release took was not hidden from somebody who watched the machine.",
    ),
)


def card(
    contents: Contents,
    *,
    forecasts: Sequence[Expectation],
    budget: Budget | None = None,
    signer: str | None = None,
) -> str:
    """The page. `forecasts` are empty where none fits the method; `budget` is what a ledger said, if one was used.

    `signer` is the fingerprint of the key that signs the release, if one does.
    """
    style, script = source("card.css"), source("card.js")
    chosen = sample_users(contents.table.census)
    seen = glance(contents, list(chosen))
    return (
        environment()
        .get_template("card.html.jinja")
        .render(
            style=Markup(style),
            script=Markup(script),
            policy=page_policy(style, script),
            **_promise(contents),
            **_data(contents, seen),
            **_accuracy(contents, forecasts),
            budget=budget and budget_facts(budget),
            signer=signer,
            costs=costs(contents.certificate, contents.method),
            samples=samples(contents, chosen, seen.rated),
            limits=LIMITS,
            settings={name: value for name, value in contents.settings.items() if value is not None},
        )
    )


def _promise(contents: Contents) -> dict[str, Any]:
    certificate = contents.certificate
    epsilon = certificate.epsilon
    bounds = {p: (odds.belief_at_least(p, epsilon), odds.belief_at_most(p, epsilon)) for p in odds.PRIORS}
    return {
        "certificate": certificate,
        "private": certificate.private,
        "method": contents.method,
        "bounded": not isinf(epsilon),
        "epsilon": odds.epsilon_text(epsilon),
        "delta": odds.epsilon_text(certificate.delta),
        "asked": None if certificate.nominal is None else odds.epsilon_text(float(certificate.nominal)),
        "exact_epsilon": repr(epsilon),
        "factor": odds.factor_text(epsilon),
        "half": [odds.percent_down(bounds[0.5][0]), odds.percent_up(bounds[0.5][1])],
        "half_bounds": bounds[0.5],
        "right": ceil(100 * bounds[0.5][1]),
        "guesses": [
            (f"{100 * p:.0f} %", odds.percent_down(low), odds.percent_up(high)) for p, (low, high) in bounds.items()
        ],
        "people": _people(certificate, contents.table.census),
        "until": odds.ratings_until(0.95, epsilon),
    }


def _people(certificate: Certificate, census: Census) -> list[odds.PersonOdds]:
    """One rating, the median user and the heaviest one; users without ratings have nothing to protect."""
    counts = census.user_counts
    rows = [("One rating", 1)]
    if counts.max(initial=0):
        rows += [("The median user", middle_count(counts)), ("The heaviest user", int(counts.max()))]
    return [odds.odds_of_person(certificate.epsilon_for_user(k), who, k) for who, k in rows]


def _data(contents: Contents, seen: Glance) -> dict[str, Any]:
    census, scale = contents.table.census, contents.model.scale
    reads = [f"{b.low:g} to {b.high:g}: {b.count:,} released ratings" for b in seen.bins]
    return {
        "census": census,
        "scale": scale,
        "density": f"{100 * census.n_ratings / (census.n_users * census.n_items):.3g} %",
        "per_user": _shape_plot(census.user_counts, "users"),
        "per_item": _shape_plot(census.item_counts, "items"),
        "spread": bar_plot(seen.bins, reads, scale_labels(seen.bins, scale.n_levels)),
        "rating_mean": f"{seen.mean:.2f}",
        "rating_deviation": f"{seen.deviation:.2f}",
        "rows": [_row(contents, *row) for row in seen.rows],
        "MARGIN": MARGIN,
        "BASE": BASE,
        "HEIGHT": HEIGHT,
    }


def _row(contents: Contents, user: int, item: int, rating: float) -> tuple[Name, Name, str]:
    name = display_name(contents.table.census.user_ids[user].as_py())
    return name, item_name(contents, item), f"{rating:.3f}"


def _shape_plot(counts: Any, things: str) -> dict[str, Any]:
    bins = doubling_bins(counts)
    reads = [f"{_range(b)}: {b.count:,} {things}" for b in bins]
    return {
        "plot": bar_plot(bins, reads, doubling_labels(bins)),
        "median": f"{middle_count(counts):,}",
        "most": f"{int(counts.max()):,}",
    }


def _range(b: Bin) -> str:
    if b.high <= 1:
        return "no rating" if b.high == 0 else "1 rating"
    return f"{b.low:,} to {b.high:,} ratings"


def _accuracy(contents: Contents, forecasts: Sequence[Expectation]) -> dict[str, Any]:
    if not forecasts:
        return {"frontier": None, "here": None, "forecasts": []}
    here = this_release(forecasts, contents.certificate)
    rows = [
        (odds.epsilon_text(f.epsilon), f"{100 * f.share:.1f} %", *(f"{x:.3f}" for x in f[1:]), f is here)
        for f in forecasts
    ]
    return {
        "frontier": frontier_plot(forecasts, here),
        "here": here and f"{100 * here.share:.1f} %",
        "without_noise": f"{100 * forecasts[0].without_noise:.1f} %",
        "forecasts": rows,
    }


def budget_facts(budget: Budget) -> dict[str, Any]:
    """What a ledger said, as the page shows it."""
    used = min(max(budget.spent / budget.budget, 0.0), 1.0) if budget.budget > 0 else 1.0
    return {
        "dataset": display_name(budget.dataset),
        "total": f"{budget.budget:g}",
        "spent": odds.epsilon_text(budget.spent),
        "left": odds.left_text(budget.left),
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
