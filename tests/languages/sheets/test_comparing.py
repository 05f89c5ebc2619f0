"""Numbers are compared by their fifteen digits, where Excel does so."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Context, Decimal

import pytest

from millstream.values.excel import rounding
from millstream.values.excel.values import general
from tests.languages.sheets.books import value
from tests.languages.sheets.laws import agree
from tests.languages.sheets.long_windows import COMPARING, Row, events, neighbours, sheet
from tests.languages.sheets.test_laws import by_python
from tests.seeds import in_turn

_DIGITS = Context(prec=15, rounding=ROUND_HALF_UP, Emin=-999, Emax=999)

#: What people have seen Excel say.
SEEN = [
    ("=10-10.7142857142856+100.714285714286>100", False),
    ("=10-10.7142857142856+100.714285714286=100", True),
    ("=99.9999999999999=100", False),
    ("=0.1+0.2=0.3", True),
    ("=(0.06-0.01)=0.05", True),
    ("=(1+1+0.85)/3<=0.95", True),
    ("=10.1-10=0.1", False),
    ("=1.24=66.64-65.4", False),
    ("=1.24=56.64-55.4", True),
    ("=1.2675-1.2664=1.2664-1.2653", False),
    # Twenty times a third of a day, added up and multiplied.
    ("=SUM(A1:A20)>20*A1", False),
    ("=SUM(A1:A20)=20*A1", True),
    # Lookups look at all digits.
    ("=(1001/1E6)*1E6=1001", True),
    ("=MATCH((1001/1E6)*1E6,{1001},0)", "#N/A"),
    ("=MATCH((1001/1E6)*1E6,{1001},1)", "#N/A"),
    ("=XMATCH((1001/1E6)*1E6,{1001})", "#N/A"),
    ("=VLOOKUP((1001/1E6)*1E6,{1000,1;1001,2},2)", 1.0),
    ("=RANK(C1,C1:C2,1)", 1.0),
    ("=RANK(C2,C1:C2,1)", 2.0),
    # Criteria do not.
    ("=COUNTIF(C1:C2,1001)", 2.0),
    ('=COUNTIF(C1:C2,"<1001")', 0.0),
    ("=SUMPRODUCT(--(C1:C2=1001))", 2.0),
    # INT does not either.
    ("=INT(123456789-0.0000004)", 123456789.0),
    ("=INT(123456789-0.0000005)", 123456788.0),
    ("=INT(123456789-33*2^-26)", 123456789.0),
    ("=INT(123456789-34*2^-26)", 123456788.0),
    ("=INT(880000000*0.00849/3)", 2490400.0),
    # A difference that comes last is zero when next to nothing is left of it.
    ("=1.333+1.225-1.333-1.225", 0.0),
    ("=(1.333+1.225-1.333-1.225)", -2.220446049250313e-16),
    ("=1*(0.5-0.4-0.1)", -2.7755575615628914e-17),
    ("=(43.1-43.2)+1", 0.8999999999999986),
    # What is half-way is shown as the greater one, and compared as that.
    ('=(2^50+0.25)&""', "1125899906842620"),
    ('=100000000000000.5&""', "100000000000001"),
    ("=100000000000000.5=100000000000001", True),
]  # fmt: skip
CELLS = {f"A{n}": "=7.75/24" for n in range(1, 21)} | {"C1": "=(1001/1E6)*1E6", "C2": 1001}


@pytest.mark.parametrize(("formula", "expected"), SEEN)
def test_comparing_gives_what_excel_gives(formula: str, expected: object) -> None:
    assert expected == value(formula, CELLS)


def numbers_of_all_sizes() -> Iterator[float]:
    generator = random.Random(9)
    for _ in range(2_000):
        yield generator.uniform(1, 10) * 10.0 ** generator.randrange(-307, 307)
        yield generator.randrange(1, 10**6) / 10.0 ** generator.randrange(9)
        # Half-way between two numbers of fifteen digits.
        yield (generator.randrange(10**14, 10**15) + 0.5) / 2.0 ** generator.randrange(4)
        yield 10.0 * generator.randrange(10**14, 9 * 10**14) + 5.0
        yield math.nextafter(10.0 ** generator.randrange(-307, 308), generator.choice([0.0, 1e308]))
    yield from (1e15, 1e15 + 0.5, 999999999999999.9, 1e22, 1e23, 0.1 + 0.2, 2.3e-308, 1.6e308)


def test_fifteen_digits_are_those_of_the_exact_number() -> None:
    for x in numbers_of_all_sizes():
        exact = _DIGITS.plus(Decimal(x))
        digits, tens = rounding.fifteen_digits(x)
        assert exact == Decimal(int(digits)).scaleb(-tens, Context(prec=15, Emin=-999)), x
        assert float(exact) == rounding.shown_number(x)
        assert -float(exact) == rounding.shown_number(-x)
        assert exact == Decimal(general(x))


def test_numbers_are_the_same_if_their_digits_are() -> None:
    for x in numbers_of_all_sizes():
        for n in (1, 3, 20, 60):
            other = x * (1 + n * 2.0**-52)
            expected = _DIGITS.plus(Decimal(x)) == _DIGITS.plus(Decimal(other))
            assert expected == rounding.same_number(x, other)
            assert expected == rounding.same_number(-other, -x)
            assert not rounding.same_number(x, -other)


def test_the_last_number_with_the_same_digits_is_the_last() -> None:
    for x in numbers_of_all_sizes():
        for signed in (x, -x):
            for way in (-1.0, 1.0):
                last = rounding.last_same(signed, way)
                assert rounding.same_number(last, signed)
                assert not rounding.same_number(math.nextafter(last, way * math.inf), signed)


def test_loops_compare_alike_what_is_next_to_each_other() -> None:
    by_python(1, 1, "comparing")


@pytest.mark.slow
@pytest.mark.parametrize("window", in_turn(["WINDOW({},0.1)", "WINDOWROWS({},7)"]))
def test_the_engines_compare_alike_what_is_next_to_each_other(window: str) -> None:
    agree(sheet(COMPARING, window), events(neighbours()), [40, 100])


def test_a_search_by_halving_goes_on_to_the_last_equal_number_in_a_window_too() -> None:
    """As it does among constants, whatever the order of the numbers, and whatever is between."""
    generator = random.Random(4)
    values = [float(generator.choice((1, 2, 2, 2, 3, 2))) for _ in range(200)]
    rows: list[Row] = [(v if generator.random() < 0.8 else None, 2.0, None) for v in values]
    program = sheet(["=MATCH(2,X,1)", "=MATCH(B1,X)"], "WINDOWROWS({},9)")
    agree(program, events(rows), [50])
    assert 5.0 == value("=MATCH(2,{2,1,2,2,2,1,2},1)")
