"""Distributions far out and for large arguments, where naive sums lose all digits."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from tests.languages.sheets.books import value

#: What Excel gives.
CASES = [
    ("=FINV(0.00001,1,1)", 4052847345.0268455),
    ("=FINV(1E-12,1,1)", 4.052847345693518e23),
    ("=FINV(1E-100,1,1)", 4.052847345693398e199),
    ("=CHIINV(1E-12,1)", 50.844127911818155),
    ("=CHIINV(1E-12,5)", 65.23863621336784),
    ("=POISSON(10000000,10000000,TRUE)", 0.500084104416326),
    ("=POISSON(1000000000,1000000000,TRUE)", 0.5000084104417389),
]

#: By hand: of some arguments the tails are elementary functions.
ELEMENTARY = [
    ("=CHIDIST(100,2)", math.exp(-50)),
    ("=CHIDIST(1400,2)", math.exp(-700)),
    ("=CHISQ.DIST(1E-20,2,TRUE)", 5e-21),
    ("=FDIST(1E6,2,8)", (1 + 1e6 / 4) ** -4.0),
    ("=TDIST(1E8,1,2)", 2 * math.atan(1e-8) / math.pi),
    ("=T.DIST.RT(1E8,2)", 0.5 / (1e8**2 + 2) / (0.5 + 0.5 * 1e8 / math.sqrt(1e16 + 2))),
    ("=T.DIST(-1E8,1,TRUE)", math.atan(1e-8) / math.pi),
    ("=TINV(1E-12,1)", 1 / math.tan(math.pi * 0.5e-12)),
    ("=T.INV(0.5,7)", 0.0),
    ("=EXPONDIST(1E-20,3,TRUE)", 3e-20),
    ("=WEIBULL(1E-20,1,1,TRUE)", 1e-20),
    ("=BINOMDIST(0,2000,0.001,TRUE)", 0.999**2000),
    ("=BINOMDIST(1999,2000,0.999,TRUE)", -math.expm1(2000 * math.log1p(-0.001))),
    ("=BINOMDIST(2000,2000,0.4,TRUE)", 1.0),
    ("=BINOMDIST(1000000000,2000000000,0.5,TRUE)", 0.5 + 0.5 / math.sqrt(math.pi * 1e9)),
    ("=NEGBINOMDIST(0,3000,0.999)", 0.999**3000),
    ("=CRITBINOM(2000000000,0.5,0.5)", 1e9),
    ("=ZTEST({1,2,3},-98,1)", math.erfc(100 * math.sqrt(3) / math.sqrt(2)) / 2),
]


@pytest.mark.parametrize(("formula", "wanted"), [*CASES, *ELEMENTARY])
def test_a_distribution_keeps_its_digits(formula: str, wanted: float) -> None:
    assert value(formula) == pytest.approx(wanted, rel=1e-11, abs=0)


@pytest.mark.parametrize("drawn", [3, 40, 55, 100])
@pytest.mark.parametrize("is_total", [False, True])
def test_a_large_hypergeometric_distribution_is_the_sum_of_its_parts(
    drawn: int, is_total: bool
) -> None:
    sample, marked, size = 400, 500, 4000
    exact = sum(
        Fraction(math.comb(marked, k) * math.comb(size - marked, sample - k))
        for k in range(0 if is_total else drawn, drawn + 1)
    ) / math.comb(size, sample)
    found = value(f"=HYPGEOM.DIST({drawn},{sample},{marked},{size},{str(is_total).upper()})")
    assert found == pytest.approx(float(exact), rel=1e-11)


def test_counting_distributions_of_millions_do_not_take_for_ever() -> None:
    assert value("=HYPGEOM.DIST(500000,1E6,1E9,2E9,TRUE)") == pytest.approx(0.5, abs=1e-3)
    assert value("=NEGBINOMDIST(1E9,1E9,0.5)") == pytest.approx(0.5 / math.sqrt(math.pi * 1e9))
