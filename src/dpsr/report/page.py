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
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpsr.release.contents import Contents
from dpsr.report import odds
from dpsr.report.budget import Budget
from dpsr.report.costs import costs
from dpsr.report.frontier import Expectation, this_release
from dpsr.report.glance import Glance, glance
from dpsr.report.limits import LIMITS
from dpsr.report.names import Name, shown
from dpsr.report.plots import BASE, HEIGHT, MARGIN, bar_plot, doubling_labels, frontier_plot, scale_labels
from dpsr.report.samples import sample_users, samples
from dpsr.report.shape import Bin, doubling_bins
from dpsr.types import Census


def card(contents: Contents, *, forecasts: Sequence[Expectation], budget: Budget | None = None) -> str:
    """The page. `forecasts` are empty where none fits the method; `budget` is what a ledger said, if one was used."""
    style, script = _source("card.css"), _source("card.js")
    chosen = sample_users(contents.table.census)
    seen = glance(contents, list(chosen))
    return (
        _environment()
        .get_template("card.html.jinja")
        .render(
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
            **_promise(contents),
            **_data(contents, seen),
            **_accuracy(contents, forecasts),
            budget=budget and _budget(budget),
            costs=costs(contents.certificate, contents.method),
            samples=samples(contents, chosen, seen.rated),
            limits=LIMITS,
            settings={name: value for name, value in contents.settings.items() if value is not None},
        )
    )


def _promise(contents: Contents) -> dict[str, Any]:
    certificate = contents.certificate
    epsilon = certificate.epsilon
    bounds = {p: odds.posterior_bounds(p, epsilon) for p in odds.PRIORS}
    return {
        "certificate": certificate,
        "private": certificate.private,
        "method": contents.method,
        "bounded": not isinf(epsilon),
        "epsilon": odds.price(epsilon),
        "asked": None if certificate.nominal is None else odds.price(float(certificate.nominal)),
        "exact_epsilon": repr(epsilon),
        "factor": odds.factor(epsilon),
        "half": [odds.at_least(bounds[0.5][0]), odds.at_most(bounds[0.5][1])],
        "half_bounds": bounds[0.5],
        "right": ceil(100 * bounds[0.5][1]),
        "guesses": [(f"{100 * p:.0f} %", odds.at_least(low), odds.at_most(high)) for p, (low, high) in bounds.items()],
        "people": odds.people(certificate, contents.table.census),
        "until": odds.ratings_until(0.95, epsilon),
    }


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
        "rows": [_row(census, *row) for row in seen.rows],
        "MARGIN": MARGIN,
        "BASE": BASE,
        "HEIGHT": HEIGHT,
    }


def _row(census: Census, user: int, item: int, rating: float) -> tuple[Name, Name, str]:
    return shown(census.user_ids[user].as_py()), shown(census.item_ids[item].as_py()), f"{rating:.3f}"


def _shape_plot(counts: Any, things: str) -> dict[str, Any]:
    bins = doubling_bins(counts)
    reads = [f"{_range(b)}: {b.count:,} {things}" for b in bins]
    return {
        "plot": bar_plot(bins, reads, doubling_labels(bins)),
        "median": f"{float(np.median(counts)):g}",
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
        (odds.price(f.epsilon), f"{100 * f.share:.1f} %", *(f"{x:.3f}" for x in f[1:]), f is here) for f in forecasts
    ]
    return {
        "frontier": frontier_plot(forecasts, here),
        "here": here and f"{100 * here.share:.1f} %",
        "without_noise": f"{100 * forecasts[0].without_noise:.1f} %",
        "forecasts": rows,
    }


def _budget(budget: Budget) -> dict[str, Any]:
    used = min(max(budget.spent / budget.budget, 0.0), 1.0) if budget.budget > 0 else 1.0
    return {
        "dataset": shown(budget.dataset),
        "total": f"{budget.budget:g}",
        "spent": odds.price(budget.spent),
        "left": odds.remaining(budget.left),
        "used": 100 * used,
    }


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _source(name: str) -> str:
    """A file of the package as it is, newline first: what lies between the tags is what the policy hashes."""
    loader = _environment().loader
    assert loader is not None
    return "\n" + loader.get_source(_environment(), name)[0]


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("dpsr.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
