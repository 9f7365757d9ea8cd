"""A part's price follows from what it shows; the oracle is a plain loop over fractions."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import inf, nextafter

import pytest

from dpsr.certify import Part
from dpsr.certify.prices import price_of, published_price
from dpsr.errors import PrivacyError
from dpsr.privacy.channels.published import data_set_loss, worst_data_set
from dpsr.types import Scale

TWO = ((1, 7), (5, 3))
THREE = ((2, 6), (6, 2))


def part(**fields):
    return Part(**{"name": "ratings", "mechanism": "m", "epsilon": 1.0, **fields})


def log(ratio):
    with localcontext() as context:
        context.prec = 80
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


def test_tables_cost_the_worst_ratio_of_the_dearest_rounded_up():
    price = price_of(part(bits=3, tables=(THREE, TWO)))
    assert price.delta == 0
    assert Decimal(price.epsilon) >= log(Fraction(5))
    assert Decimal(nextafter(price.epsilon, 0)) < log(Fraction(5))


def test_a_part_with_a_delta_costs_the_hockey_stick_at_its_epsilon():
    """Rows (5, 3) and (1, 7) at e^epsilon = 2: 5 - 2 = 3 of 8 in excess; the other way 7 - 6 = 1 of 8."""
    price = price_of(part(bits=3, tables=(TWO,), delta=0.1, epsilon=float(log(Fraction(2)))))
    assert price.delta == pytest.approx(3 / 8)


def test_noise_costs_its_sensitivity_over_its_scale_rounded_up():
    price = price_of(part(sensitivity=2, noise_scale="30/7"))
    assert Fraction(price.epsilon) >= Fraction(14, 30)
    assert Fraction(nextafter(price.epsilon, 0)) < Fraction(14, 30)


def test_the_published_stage_costs_its_supremum_which_data_sets_approach():
    price = published_price(0.1, 0.3)
    scale = Scale(1, 5)
    near = data_set_loss(scale, 0.1, 0.3, *worst_data_set(scale, 0.1, 0.3, 10_000))
    assert near < price < near + 1e-3


def test_nothing_drawn_costs_infinity():
    assert price_of(part(epsilon=inf)).epsilon == inf


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"bits": 3, "tables": (((1, 6), (5, 3)),)},
        {"bits": 3, "tables": (((-1, 9), (5, 3)),)},
        {"bits": 3, "tables": (((1, 7), (8,)),)},
        {"bits": 3, "tables": (((8,),),)},
        {"bits": None, "tables": (TWO,)},
        {"bits": 500, "tables": (TWO,)},
        {"sensitivity": 2, "noise_scale": "0"},
        {"sensitivity": 2, "noise_scale": "1/00"},
        {"sensitivity": 0, "noise_scale": "1"},
        {"sensitivity": -1, "noise_scale": "1"},
        {"sensitivity": 10**400, "noise_scale": "1"},
        {"mechanism": "calibrated laplace, as published, clipped", "details": {"alpha": 0.3}},
    ],
)
def test_what_shows_no_price_is_refused(fields):
    with pytest.raises(PrivacyError):
        price_of(part(**fields))
