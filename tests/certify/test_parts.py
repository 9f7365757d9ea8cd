"""A part's price follows from its description; the oracles are plain loops over fractions and over neighbours."""

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import inf, nextafter

import numpy as np
import pytest

from dpsr.certify.certificate import PARTS, Certificate
from dpsr.certify.check import _against
from dpsr.certify.parts import (
    ChannelPart,
    DividedSumsPart,
    HistogramPart,
    SumsPart,
    price_together,
)
from dpsr.certify.unproved import DeclaredPart, PublishedPart, published_price
from dpsr.errors import PrivacyError
from dpsr.privacy.channels.published import data_set_loss, worst_data_set
from dpsr.types import Scale

TWO = ((1, 7), (5, 3))
THREE = ((2, 6), (6, 2))


def channel(*tables, bits=3, at_epsilon=None):
    return ChannelPart("ratings", "m", bits, tables, at_epsilon)


def sums(steps, weights, scale="1"):
    families = (("items", 3), ("users", 4))[: len(weights)]
    return SumsPart("window sums", scale, steps, weights, families, 0.5)


def divided(steps, weights, light, scale="1", *more):
    """Sums seen through one window, or through `more` of them."""
    rows = (steps, *more)
    return DividedSumsPart("window sums", scale, rows, weights, light, (("items", 3), ("users", 4)), (0.5,) * len(rows))


def log(ratio):
    with localcontext() as context:
        context.prec = 80
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


def test_tables_cost_the_worst_ratio_of_the_dearest_rounded_up():
    price = channel(THREE, TWO).price
    assert price.delta == 0
    assert Decimal(price.epsilon) >= log(Fraction(5))
    assert Decimal(nextafter(price.epsilon, 0)) < log(Fraction(5))


def test_a_part_with_a_delta_costs_the_hockey_stick_at_its_epsilon():
    """Rows (5, 3) and (1, 7) at e^epsilon = 2: 5 - 2 = 3 of 8 in excess; the other way 7 - 6 = 1 of 8."""
    price = channel(TWO, at_epsilon=float(log(Fraction(2)))).price
    assert price.delta == pytest.approx(3 / 8)


@pytest.mark.parametrize("tables", [(TWO, THREE), (THREE, TWO)])
def test_of_several_tables_with_a_delta_the_dearest_counts(tables):
    at = float(log(Fraction(2)))
    assert channel(*tables, at_epsilon=at).delta == max(channel(one, at_epsilon=at).delta for one in tables)
    assert channel(TWO, at_epsilon=at).delta != channel(THREE, at_epsilon=at).delta


def test_sums_are_as_sensitive_as_their_heaviest_weights_light_ones_included():
    assert divided((-1, 1), ((1, 1),), ((16, 0),)).sensitivity == 2 * 16
    assert divided((-1, 1), ((9, 9),), ((16, 0),)).sensitivity == 2 * 18


@pytest.mark.parametrize("bins", [(0, 1, 2), (0, 0, 1), (1, 0, 1, 0)])
def test_the_sensitivity_of_a_histogram_is_the_largest_move_between_any_two_levels(bins):
    counts = np.eye(max(bins) + 1, dtype=int)[list(bins)]
    worst = max(np.abs(a - b).sum() for a, b in product(counts, counts))
    assert HistogramPart("level histogram", "1", bins).sensitivity == worst


@pytest.mark.parametrize(("steps", "weights"), [((-2, 0, 2), (1,)), ((-5, -1, 0, 7), (9, 7)), ((3, 4), (0, 16))])
def test_the_sensitivity_of_sums_is_the_largest_move_between_any_two_levels(steps, weights):
    """A rating is in one sum of each family: all of them move together."""
    worst = max(sum(abs(w * (a - b)) for w in weights) for a, b in product(steps, steps))
    assert sums(steps, weights).sensitivity == worst


def test_divided_sums_cost_the_heaviest_rating_and_light_ones_less():
    """Oracle: every pair of levels, every pair of weights."""
    heavy, light, steps = ((16, 0), (9, 8)), ((1, 2), (4, 0)), (-5, -1, 7)
    part = divided(steps, heavy, light, "100")
    for weights, price in ((heavy + light, part.epsilon), (light, part.light_epsilon)):
        worst = max(p * abs(a - b) + q * abs(a - b) for (p, q) in weights for a, b in product(steps, steps))
        assert Fraction(price) >= Fraction(worst, 100) > Fraction(nextafter(price, 0))


@pytest.mark.parametrize("at", [0, 1, 2])
def test_of_several_windows_the_widest_counts_wherever_it_stands(at):
    """Oracle: every pair of levels in the same window; no rating is seen through two by one sum."""
    windows = [(-1, 0, 1), (-2, -2, 1), (5, 6, 6)]
    windows.insert(at, (-4, 0, 3))
    part = divided(windows[0], ((16, 0), (9, 8)), ((1, 2),), "100", *windows[1:])
    worst = max(abs(a - b) for steps in windows for a, b in product(steps, steps))
    assert (part.widest, part.sensitivity) == (worst, 17 * worst) == (7, 119)
    assert Fraction(part.light_epsilon) >= Fraction(3 * worst, 100) > Fraction(nextafter(part.light_epsilon, 0))


def test_of_a_division_what_the_dearest_rating_pays_counts():
    part, tables = divided((0, 1), ((8, 8),), ((1, 1),), "16"), channel(TWO)
    bins = HistogramPart("level histogram", "8", (0, 1))
    one_by_one = Fraction(bins.epsilon) + Fraction(part.light_epsilon) + Fraction(tables.epsilon)
    assert price_together([bins, part]) == Fraction(1, 4) + 1
    assert price_together([bins, part, tables]) == one_by_one > Fraction(5, 4)
    assert price_together([bins, part, tables]) < Fraction(5, 4) + Fraction(tables.epsilon), "not all of it"
    assert price_together([part, part, tables]) == 2 + Fraction(tables.epsilon), "two divisions: everything adds up"
    assert price_together([tables, bins, part]) == Fraction(5, 4) + Fraction(tables.epsilon), (
        "everybody was asked before"
    )
    assert price_together([bins, tables]) == Fraction(1, 4) + Fraction(tables.epsilon)


@pytest.mark.parametrize("scale", ["3", "7", "10", "30", "1000/7", "123457/3"])
def test_noise_costs_its_sensitivity_over_its_scale_rounded_up(scale):
    """Some of these quotients lie above the float that is nearest to them."""
    both, one = divided((-2, 2), ((16, 0),), ((1, 2),), scale), sums((-2, 0, 2), (1,), scale)
    moves = {both.epsilon: 64, both.light_epsilon: 12, one.epsilon: 4, HistogramPart("h", scale, (0, 1)).epsilon: 2}
    for stated, moved in moves.items():
        assert Fraction(nextafter(stated, 0)) < moved / Fraction(scale) <= Fraction(stated)


def test_the_published_stage_costs_its_supremum_which_data_sets_approach():
    price = PublishedPart("ratings", 0.1, 0.3).epsilon
    assert price == published_price(0.1, 0.3)
    scale = Scale(1, 5)
    near = data_set_loss(scale, 0.1, 0.3, *worst_data_set(scale, 0.1, 0.3, 10_000))
    assert near < price < near + 1e-3


def test_nothing_drawn_costs_infinity():
    assert DeclaredPart("ratings").epsilon == inf


@pytest.mark.parametrize(
    "part",
    [
        channel(),
        channel(((1, 6), (5, 3))),
        channel(((-1, 9), (5, 3))),
        channel(((1, 7), (8,))),
        channel(((8,),)),
        channel(TWO, bits=0),
        channel(TWO, bits=500),
        channel(tuple((1 << 50, *(0,) * 5000, (1 << 62) - (1 << 50)) for _ in range(100)), bits=62, at_epsilon=1.0),
        HistogramPart("level histogram", "0", (0, 1)),
        HistogramPart("level histogram", "1/00", (0, 1)),
        HistogramPart("level histogram", "1", (0, 0)),
        sums((2, 2), (1,)),
        sums((0, 1), (0,)),
        sums((0, 1), (-1, 2)),
        SumsPart("window sums", "1", (0, 1), (1, 2), (("items", 3),), 0.5),
        divided((0, 1), (), ()),
        replace(divided((0, 1), ((3, 1),), ()), step=(0.5, 0.5)),
        replace(divided((0, 1), ((3, 1),), ()), steps=(), step=()),
        divided((0, 1), ((3, -1),), ()),
        divided((1, 1), ((3, 1),), ()),
    ],
    ids=repr,
)
def test_what_shows_no_price_is_refused(part):
    with pytest.raises(PrivacyError):
        part.price  # noqa: B018


@pytest.mark.parametrize(
    "part",
    [
        ChannelPart("ratings", "m", 3, (TWO, THREE), None, {"nominal": 1.0}, (1.0, 5.0)),
        HistogramPart("level histogram", "5/2", (0, 1, 1)),
        sums((-2, 0, 2), (9, 7), "7/3"),
        divided((-2, 0, 2), ((9, 7),), ((1, 2), (3, 0)), "7/3"),
        PublishedPart("ratings", 1.0, 0.3),
        DeclaredPart("ratings"),
    ],
    ids=lambda part: part.kind,
)
def test_a_part_comes_back_from_its_record_and_a_price_written_into_it_is_not_read(part):
    record = part.to_record()
    again = PARTS[record["kind"]].from_record({**record, "epsilon": 0.001, "delta": 0.0})
    assert again == part
    assert again.stated == part.stated


def test_a_price_a_thousandth_above_what_was_asked_for_speaks_against_a_certificate():
    """Of epsilon and of delta; what was asked for exactly does not."""
    pure, mixed = HistogramPart("level histogram", "2", (0, 1)), channel(TWO, at_epsilon=float(log(Fraction(2))))
    said = {"public": {}, "randomness": "system", "private": True, "id": "0" * 32}
    assert not list(_against(Certificate(nominal=1.0, parts=(pure,), **said)))
    assert list(_against(Certificate(nominal=0.999, parts=(pure,), **said))) == [
        "its epsilon 1.0 exceeds the 0.999 asked for"
    ]
    asked = [Certificate(1.0, (mixed,), nominal_delta=delta, **said) for delta in (0.374, mixed.delta)]
    dear, paid = (" ".join(_against(one)) for one in asked)
    assert "exceeds the 0.374 asked for" in dear
    assert "exceeds" not in paid
