"""Securities, with the examples of Excel's manual."""

from __future__ import annotations

from calendar import isleap
from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest

from tests.languages.sheets.books import value

CASES = [
    ("=ACCRINT(DATE(2008,3,1),DATE(2008,8,31),DATE(2008,5,1),0.1,1000,2,0)", "16.666667"),
    ("=ACCRINT(DATE(2008,3,5),DATE(2008,8,31),DATE(2008,5,1),0.1,1000,2,0,FALSE)", "15.555556"),
    ("=ACCRINT(DATE(2008,4,5),DATE(2008,8,31),DATE(2008,5,1),0.1,1000,2,0,TRUE)", "7.2222222"),
    ("=ACCRINTM(39539,39614,0.1,1000,3)", "20.54794521"),
    ("=AMORDEGRC(2400,39679,39813,300,1,0.15,1)", "776"),
    ("=AMORLINC(2400,39679,39813,300,1,0.15,1)", "360"),
    ("=COUPDAYBS(DATE(2011,1,25),DATE(2011,11,15),2,1)", "71"),
    ("=COUPDAYS(DATE(2011,1,25),DATE(2011,11,15),2,1)", "181"),
    ("=COUPDAYSNC(DATE(2011,1,25),DATE(2011,11,15),2,1)", "110"),
    ("=COUPNCD(DATE(2011,1,25),DATE(2011,11,15),2,1)", "40678"),
    ("=COUPNUM(DATE(2007,1,25),DATE(2008,11,15),2,1)", "4"),
    ("=COUPPCD(DATE(2011,1,25),DATE(2011,11,15),2,1)", "40497"),
    ("=COUPPCD(DATE(2023,3,15),DATE(2025,8,31),2)", "44985"),
    ("=DISC(DATE(2018,7,1),DATE(2048,1,1),97.975,100,1)", "0.000686384"),
    ("=DURATION(DATE(2018,7,1),DATE(2048,1,1),0.08,0.09,2,1)", "10.9191453"),
    ("=INTRATE(DATE(2008,2,15),DATE(2008,5,15),1000000,1014420,2)", "0.05768"),
    ("=MDURATION(DATE(2008,1,1),DATE(2016,1,1),0.08,0.09,2,1)", "5.73567"),
    ("=PRICE(DATE(2008,2,15),DATE(2017,11,15),0.0575,0.065,100,2,0)", "94.63436162"),
    ("=PRICEDISC(DATE(2008,2,16),DATE(2008,3,1),0.0525,100,2)", "99.79583"),
    ("=PRICEMAT(DATE(2008,2,15),DATE(2008,4,13),DATE(2007,11,11),0.061,0.061,0)", "99.98449888"),
    ("=RECEIVED(DATE(2008,2,15),DATE(2008,5,15),1000000,0.0575,2)", "1014584.65"),
    ("=TBILLEQ(DATE(2008,3,31),DATE(2008,6,1),0.0914)", "0.09415149"),
    ("=TBILLPRICE(DATE(2008,3,31),DATE(2008,6,1),0.09)", "98.45"),
    ("=TBILLYIELD(DATE(2008,3,31),DATE(2008,6,1),98.45)", "0.09141696"),
    ("=YIELD(DATE(2008,2,15),DATE(2016,11,15),0.0575,95.04287,100,2,0)", "0.065"),
    ("=YIELDDISC(DATE(2008,2,16),DATE(2008,3,1),99.795,100,2)", "0.052823"),
    ("=YIELDMAT(DATE(2008,3,15),DATE(2008,11,3),DATE(2007,11,8),0.0625,100.0123,0)", "0.060954"),
]


@pytest.mark.parametrize(("formula", "expected"), CASES)
def test_the_examples_of_the_manual_to_every_digit_it_gives(formula: str, expected: str) -> None:
    exponent = Decimal(expected).as_tuple().exponent
    assert isinstance(exponent, int)
    # Half a unit of the last digit; the manual computes a yield from a price it has rounded.
    half = 10.0**exponent / 2
    assert value(formula) == pytest.approx(float(expected), abs=half)


def test_a_discount_is_exact() -> None:
    """By hand: the part of the price that is missing, over the years, of average length."""
    years = range(2018, 2049)
    length = Fraction(sum(365 + isleap(y) for y in years), len(years))
    days = (date(2048, 1, 1) - date(2018, 7, 1)).days
    exact = (1 - Fraction("0.97975")) / (days / length)
    found = value("=DISC(DATE(2018,7,1),DATE(2048,1,1),97.975,100,1)")
    assert found == pytest.approx(float(exact), rel=1e-14)


def test_days_to_the_next_coupon_are_those_that_are_left_of_the_period() -> None:
    """Of actual days in a year of 360 there are 181 days in half of it, but half counts as 180."""
    found = value("=MDURATION(DATE(1999,1,1),DATE(2007,1,1),0.18,0.09,2,2)")
    assert found == pytest.approx(4.94749398222136, rel=1e-14)
    found = value("=PRICE(DATE(1980,2,15),DATE(2000,2,28),0.07,0.1,100,2,2)")
    assert found == pytest.approx(74.24690216615, rel=1e-12)
    found = value("=PRICE(DATE(1980,2,15),DATE(2000,2,28),0.07,0.1,100,4,3)")
    assert found == pytest.approx(74.14484747935, rel=1e-12)


@pytest.mark.parametrize(
    "formula",
    [
        "=PRICE(DATE(2020,1,1),DATE(2019,1,1),0.05,0.05,100,2)",
        "=PRICE(DATE(2020,1,1),DATE(2029,1,1),0.05,0.05,100,3)",
        "=COUPNUM(DATE(2020,1,1),DATE(2029,1,1),2,5)",
        "=TBILLPRICE(DATE(2020,1,1),DATE(2021,6,1),0.05)",
        "=DISC(DATE(2020,1,1),DATE(2021,1,1),0,100)",
    ],
)
def test_what_cannot_be_is_no_number(formula: str) -> None:
    assert value(formula) == "#NUM!"


def test_price_and_yield_undo_each_other() -> None:
    paid = value("=PRICE(DATE(2020,3,10),DATE(2031,8,31),0.04,0.0317,100,4,1)")
    back = value(f"=YIELD(DATE(2020,3,10),DATE(2031,8,31),0.04,{paid!r},100,4,1)")
    assert back == pytest.approx(0.0317, rel=1e-12)
