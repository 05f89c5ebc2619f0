"""Whatever a function is given, it answers soon: with a value, or an error of Excel's or ours."""

from __future__ import annotations

import random

import pytest

from millstream.errors import MillstreamError
from millstream.values.excel.table import FUNCTIONS, SPECIAL
from millstream.values.excel.values import Scalar
from tests.languages.sheets.books import value

DATA = {
    "A1": 1, "A2": -2.5, "A3": "x", "A4": True, "A5": "12", "A7": 1e308, "A8": 5e-324,
    "A9": "=1/0", "B1": 3, "B2": 4, "B3": 0, "B4": 1e15, "B5": -1e15,
}  # fmt: skip

ARGUMENTS = (
    "0", "1", "-1", "2", "0.5", "1E308", "-1E308", "1E-300", "1E15", "3E9", "12345678", "40000",
    "A1:A9", "A1:B5", "B1:B5", "A3", "A6", "A7", "A8", "A9", "B4", '""', '"abc"', '"1/2/2020"',
    "TRUE", "{1,2;3,4}", '{1;-2;"x"}', "", "10", "255", '"0.00"', '"<>1"',
)  # fmt: skip

#: Formulas that once took for ever, or broke down.
ONCE_BAD = [
    ("=PERMUT(1E15,1E15)", "#NUM!"),
    ("=COMBINA(1E15,1E15)", "#NUM!"),
    ("=MULTINOMIAL(0,1E15,0)", 1.0),
    ("=MULTINOMIAL(2,3,4)", 1260.0),
    ("=WORKDAY(1,1E308)", "#NUM!"),
    ("=NEGBINOMDIST(12345678,1E308,1)", 0.0),
    ("=POISSON(1E308,5,TRUE)", 1.0),
    ("=TINV(1E-300,1E308)", "#NUM!"),
    ("=VDB(40000,255,1E15,255,1E15)", "#NUM!"),
    ("=INDEX(WRAPROWS(TRUE,3E9),1)", "#NUM!"),
    ("=FIXED(0.5,1E15)", "#VALUE!"),
    ("=VAR(1E308,-1E308)", "#NUM!"),
    ("=ZTEST(B1:B5,255,0)", "#DIV/0!"),
    ("=ARABIC(A6)", 0.0),
    ("=ADDRESS(,2)", "#VALUE!"),
    ('=TEXTBEFORE(,"x")', "#N/A"),
    ("=IMSUB(A6,3)", "-3"),
    ("=RRI(3,10,-10)", "#NUM!"),
    ('{=SUM(--TEXTSPLIT({"1,2";"3,4"},","))}', 4.0),
    ("{=SUM(INDEX(B1:B5,{1,2}))}", 7.0),
    ("{=LAMBDA(x,x)}", "#CALC!"),
    ("=GAMMADIST(255,3,A8,TRUE)", 1.0),
]


def calls(name: str) -> list[str]:
    """Some calls of a function, the same each time."""
    chance = random.Random(name)
    spec = FUNCTIONS.get(name)
    counts = [n for n in range(8) if spec is None or spec.accepts(n)]
    found = []
    for _ in range(4):
        given = [chance.choice(ARGUMENTS) for _ in range(chance.choice(counts))]
        found += [f"={name}({','.join(given)})", f"{{={name}({','.join(given)})}}"]
    return found


@pytest.mark.parametrize("name", sorted({*FUNCTIONS, *SPECIAL}))
def test_a_function_answers(name: str) -> None:
    for formula in calls(name):
        try:
            found = value(formula, DATA)
        except MillstreamError:
            continue
        assert found is None or isinstance(found, (float, str, bool)), formula
        assert type(found) is not float or found - found == 0, formula


@pytest.mark.parametrize(("formula", "wanted"), ONCE_BAD)
def test_what_once_was_bad(formula: str, wanted: Scalar) -> None:
    assert value(formula, DATA) == wanted
