"""What the parts of one folder say about each other, beyond their form: a release that was computed fits together.

sums       steps are the levels of the scale on a grid, clipped to a window: neighbouring levels that lie inside it
           are as many steps apart as their values are, and no level lies farther from another than its value does.
           A total has no window. Steps that were halved would buy half the noise.
ratings    every released rating is what the model predicts of it. So ratings that were put into the table from
           elsewhere, raw ones above all, are seen without a ledger and without a signature.
columns    a method asks its own questions, and its table has the columns that follow from them: `noisy` where single
           ratings were bought, `predicted` where the paper's last iterations were not followed by a projection. Both
           are taken as they are, so nobody else's table may have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpsr.arrays import Floats
from dpsr.certify import Certificate
from dpsr.certify.check import Check
from dpsr.certify.parts import DIVIDED_GRID, VALUE_GRID, WEIGHT_GRID, DividedSumsPart, SumsPart
from dpsr.types import Mask, Model, Scale

_PIECE = 1 << 18
"""Ratings whose predictions are held at a time."""

_ROUNDING = 1e-6
"""Shares of the scale's width by which a prediction may differ: other machines add in another order."""


_OF_DEFAULT = {"epsilon", "delta", "unit"}
"""What the default method is told; everything else follows."""


def check_settings(settings: Mapping[str, Any], certificate: Certificate) -> Check:
    """Whether the model's settings, which the card shows, are what the certificate says was asked for."""
    asked, unit = certificate.nominal, settings.get("unit", certificate.unit)
    epsilon, delta = settings.get("epsilon", asked), settings.get("delta")
    fit = unit == certificate.unit and asked in (None, epsilon) and delta in (None, certificate.nominal_delta)
    held = "the epsilon, delta and unit that" if fit else "another epsilon, delta or unit than"
    return Check(fit, f"the model was made with {held} the certificate says was asked for")


def check_method(
    method: str, settings: Mapping[str, Any], columns: Mapping[str, Any], certificate: Certificate
) -> Iterator[Check]:
    """Whether the certificate's parts are this method's, and so are the columns of its table."""
    single = [part.name == "ratings" for part in certificate.parts]
    paper = method != "default"
    own = all(single) == paper
    yield Check(own, f"the certificate's parts are {'' if own else 'not '}what the method asks")
    moved = paper and settings.get("n_iter", 0) % max(settings.get("period", 1), 1) > 0
    fit = (moved or "predicted" not in columns) and ((any(single) and not paper) or "noisy" not in columns)
    held = "no column but those that its method makes" if fit else "a column that its method does not make"
    yield Check(fit, f"the table of ratings has {held}")
    known = paper or settings.keys() <= _OF_DEFAULT
    yield Check(known, f"the model's settings are {'' if known else 'not '}those of its method")


def check_consistency(model: Model, mask: Mask, ratings: Floats, certificate: Certificate) -> Iterator[Check]:
    """Whether the parts describe this scale, and the table is this model's."""
    for part in certificate.parts:
        if isinstance(part, SumsPart | DividedSumsPart):
            yield Check(steps_fit(part, model.scale), f"{part.name}: its steps are the levels of the scale")
    ends = "its column predicted says, with which the method ends"
    says = "the model predicts of it" if model.observed is None else ends
    fit = _is_predicted(model, mask, ratings)
    yield Check(fit, f"{'' if fit else 'not '}every released rating is what {says}")


def steps_fit(part: SumsPart | DividedSumsPart, scale: Scale) -> bool:
    """Whether some window onto the scale has these steps; one step of rounding is allowed at either level.

    Of sums in turns every row of steps is looked at, on the grid that belongs to it; the first one's is given.
    """
    grid = scale.width / 2 / VALUE_GRID
    if isinstance(part, SumsPart):
        weights = 1 if part.name == "total" else WEIGHT_GRID
        given = _is_step(part.step, grid / weights)
        return given and _window_fits(part.steps, scale, grid, clipped=part.name != "total")
    if len(part.steps) != len(part.step) or not _is_step(part.step[0], grid / DIVIDED_GRID):
        return False
    rows = zip(part.steps, part.step, strict=True)
    return all(step > 0 and _window_fits(row, scale, step * DIVIDED_GRID) for row, step in rows)


def _is_step(step: float, wanted: float) -> bool:
    return abs(step - wanted) <= _ROUNDING * wanted


def _window_fits(row: tuple[int, ...], scale: Scale, grid: float, *, clipped: bool = True) -> bool:
    """Whether levels lie as far apart as on the scale, in steps of `grid`, or less far at the window's edges."""
    if len(row) != scale.n_levels:
        return False
    steps, values = np.array(row, dtype=np.float64), scale.values / grid
    moved, wanted = np.diff(steps), np.diff(values)
    inside = (steps[:-1] > steps.min()) & (steps[1:] < steps.max()) | (not clipped)
    right = np.abs(moved - wanted) <= 1 + _ROUNDING * wanted
    cut = (moved >= 0) & (moved <= wanted * (1 + _ROUNDING) + 1)
    return bool(np.where(inside, right, cut).all())


def _is_predicted(model: Model, mask: Mask, ratings: Floats) -> bool:
    most = _ROUNDING * model.scale.width
    users = mask.users
    for start in range(0, len(ratings), _PIECE):
        piece = slice(start, start + _PIECE)
        if not (np.abs(model.predict(users[piece], mask.items[piece]) - ratings[piece]) <= most).all():
            return False
    return True
