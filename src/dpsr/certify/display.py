"""A certificate as it is looked at in a notebook: its questions as a frame, the whole of it as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

from dpsr.certify.amounts import epsilon_text
from dpsr.certify.parts import Part, Price
from dpsr.errors import ParameterError


def rows_of(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """What was asked, its noise, and what it cost."""
    return [{"question": part.name, "noise": part.noise, **part.stated} for part in parts]


def frame_of(library: str, rows: Sequence[Mapping[str, Any]]) -> Any:
    """The rows as a frame of `library`, pandas or polars: nothing else here needs either."""
    try:
        return import_module(library).DataFrame(rows)
    except ModuleNotFoundError as error:
        raise ParameterError(
            f"to_{library} needs {library}, which is not installed. Install 'dpsr[frames]', or use to_record."
        ) from error


def html_of(headline: str, parts: Sequence[Part], protection: Mapping[str, Price | None]) -> str:
    """The headline, the price of everything that may be hidden, and every question.

    All of it is text, nothing of it markup.
    """
    units = [(hidden, _price(price)) for hidden, price in protection.items()]
    asked = [(part.name, part.noise, _costs(part)) for part in parts]
    return (
        f"<p><strong>{escape(headline)}</strong></p>"
        + _table(("to be hidden", "epsilon at most"), units)
        + _table(("question", "noise", "cost"), asked)
    )


def _price(price: Price | None) -> str:
    if price is None:
        return "not protected"
    return epsilon_text(price.epsilon) + (f" at delta = {epsilon_text(price.delta)}" if price.delta else "")


def _costs(part: Part) -> str:
    return ", ".join(f"{name} = {epsilon_text(cost)}" for name, cost in part.stated.items() if cost)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    heads = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
