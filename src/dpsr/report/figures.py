"""The card's plots as pictures, each beside the numbers it shows: SVG, PNG and CSV.

Matplotlib's own canvases are used directly: no display, no global state, and no clock in the files.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from io import BytesIO, StringIO
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpsr.certify import Certificate
from dpsr.release.release import Contents
from dpsr.report.plots import Bin, doubling_bins, expected_accuracy, summarise_ratings, this_release
from dpsr.value.allocation import Forecast

ACCENT, BAR, SOFT, ALARM = "#0b6b57", "#3d8e7b", "#56605b", "#b3261e"
_STYLE: Any = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "svg.hashsalt": "dpsr", "svg.fonttype": "path",
    "axes.edgecolor": SOFT, "axes.titlesize": 11, "axes.titlelocation": "left", "axes.labelcolor": SOFT,
    "xtick.color": SOFT, "ytick.color": SOFT, "axes.spines.top": False, "axes.spines.right": False,
}  # fmt: skip


def figures(contents: Contents) -> dict[str, bytes]:
    """File name to content; the frontier is there only where the method has a forecast."""
    forecasts = expected_accuracy(contents)
    files = {**_distribution(contents), **_shape(contents)}
    return {**files, **_frontier(contents, forecasts)} if forecasts else files


def _distribution(contents: Contents) -> dict[str, bytes]:
    bins = summarise_ratings(contents).bins

    def draw(axes: Any) -> None:
        width = bins[0].high - bins[0].low
        axes.bar([b.low for b in bins], [b.count for b in bins], 0.86 * width, align="edge", color=BAR)
        axes.set(title="Released ratings by value", xlabel="private rating", ylabel="ratings")

    return _files(
        "distribution", _draw([draw], contents.certificate), ("low", "high", "released ratings"), map(astuple, bins)
    )


def _shape(contents: Contents) -> dict[str, bytes]:
    sides = {
        "users": doubling_bins(contents.table.census.user_counts),
        "items": doubling_bins(contents.table.census.item_counts),
    }
    rows = [(side, *astuple(b)) for side, bins in sides.items() for b in bins]
    drawn = _draw([_shape_axes(side, bins) for side, bins in sides.items()], contents.certificate)
    return _files("shape", drawn, ("side", "fewest ratings", "most ratings", "count"), rows)


def _shape_axes(side: str, bins: list[Bin]) -> Any:
    def draw(axes: Any) -> None:
        axes.bar(range(len(bins)), [b.count for b in bins], 0.86, color=BAR)
        axes.set_xticks(range(len(bins)), [f"{b.low:g}" for b in bins], fontsize=8)
        axes.set(title=f"{side.capitalize()} by number of ratings", xlabel="ratings, from", ylabel=side)

    return draw


def _frontier(contents: Contents, forecasts: Sequence[Forecast]) -> dict[str, bytes]:
    here = this_release(forecasts, contents.certificate)
    budgets, shares = [f.epsilon for f in forecasts], [100 * f.share for f in forecasts]

    def draw(axes: Any) -> None:
        axes.plot(budgets, shares, "o-", color=ACCENT, markerfacecolor="white", linewidth=2)
        axes.axhline(100 * forecasts[0].without_noise, color=SOFT, linestyle="--", linewidth=1)
        if here is not None:
            axes.plot([here.epsilon], [100 * here.share], "o", color=ACCENT, markersize=10)
            axes.annotate("this release", (here.epsilon, 100 * here.share), (8, 9), textcoords="offset points",
                          color=ACCENT, weight="bold")  # fmt: skip
        axes.set_xscale("log")
        axes.set_xticks(budgets, [f"{e:g}" for e in budgets])
        axes.minorticks_off()
        axes.set(title="Expected RMSE, per cent of a constant's (dashed: without noise)", xlabel="ε per rating")

    rows = [(*f, f.share, int(f is here)) for f in forecasts]
    head = ("epsilon", "unknowable", "too few ratings", "privacy", "rmse share", "this release")
    return _files("frontier", _draw([draw], contents.certificate), head, rows)


def _draw(panels: Sequence[Any], certificate: Certificate) -> Figure:
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(5.2 * len(panels) + 1.8, 3.8), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            panel(axes)
        if not certificate.private:
            figure.suptitle("NOT PRIVATE", color=ALARM, weight="bold")
    return figure


def _files(name: str, figure: Figure, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, bytes]:
    table = StringIO()
    csv.writer(table, lineterminator="\n").writerows([head, *rows])
    files = {f"{name}.csv": table.getvalue().encode()}
    with matplotlib.rc_context(_STYLE):
        for kind, facts in (("svg", {"Date": None}), ("png", {"Software": None})):
            picture = BytesIO()
            figure.savefig(picture, format=kind, dpi=160, metadata=facts)
            files[f"{name}.{kind}"] = picture.getvalue()
    return files
