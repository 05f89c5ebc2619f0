"""Row kernels: what scalar functions compute on numbers, integers, booleans and times."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from millstream.calculus.functions import Assign, Map
from millstream.calculus.graph import Operator
from millstream.calculus.terms import NAN, Call, Column, Literal, Term
from millstream.calculus.types import (
    BOOLEAN,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    NUMBER,
    QueueType,
    Schema,
    Value,
)
from millstream.kernels.loop.rows import RowKernel
from tests.kernels.test_rows import kernel_of, rows_of

INF = math.inf
COLUMNS = "x number, y number, i integer, j integer, p boolean, q boolean, t time, d duration"
DAY = 86_400_000_000
DEFAULTS: dict[str, Value] = {
    "x": 1.5, "y": 0.0, "i": 7, "j": -2, "p": True, "q": False, "t": 0, "d": 1_500_000,
}  # fmt: skip

Case = tuple[str, dict[str, Value], Value]

#: A value of None with a fault is written as the word.
FAULT = "fault"

CASES: list[Case] = [
    ("x / y", {}, FAULT),
    ("x / y", {"y": -0.5}, -3.0),
    ("x / y", {"y": None}, None),
    ("x % y", {"x": -7.5, "y": 2.0}, -1.5),
    ("x % y", {}, FAULT),
    ("x % y", {"x": INF, "y": 2.0}, NAN),
    ("i + j", {"i": INT64_MAX, "j": 1}, FAULT),
    ("i + j", {"i": INT64_MIN, "j": INT64_MIN}, FAULT),
    ("i + j", {"i": INT64_MAX, "j": INT64_MIN}, -1),
    ("i + j", {"i": INT64_MAX, "j": None}, None),
    ("i - j", {"i": 0, "j": INT64_MIN}, FAULT),
    ("i - j", {"i": -1, "j": INT64_MIN}, INT64_MAX),
    ("i * j", {"i": 2**32, "j": 2**31}, FAULT),
    ("i * j", {"i": -(2**32), "j": 2**31}, INT64_MIN),
    ("div(i, j)", {}, -3),
    ("div(i, j)", {"i": INT64_MIN, "j": -1}, FAULT),
    ("div(i, j)", {"j": 0}, FAULT),
    ("i % j", {"i": -7, "j": 2}, -1),
    ("i % j", {"i": INT64_MIN, "j": -1}, 0),
    ("i % j", {"j": 0}, FAULT),
    ("div(i, -3)", {}, -2),
    ("div(i, 3)", {"i": INT64_MIN}, -3074457345618258602),
    ("div(i, 3)", {"i": None}, None),
    ("div(i, -1)", {"i": INT64_MIN}, FAULT),
    ("div(i, 0)", {}, FAULT),
    ("i % 5", {"i": -7}, -2),
    ("i % -5", {}, 2),
    ("i % -5", {"i": INT64_MIN}, -3),
    ("i % -1", {"i": INT64_MIN}, 0),
    ("i % 0", {}, FAULT),
    ("x / 0.5", {"x": None}, None),
    ("x / -1.0", {}, -1.5),
    ("x / 0.0", {}, FAULT),
    ("x % 0.5", {"x": -1.75}, -0.25),
    ("x % 0.0", {}, FAULT),
    ("-i", {"i": INT64_MIN}, FAULT),
    ("abs(i)", {"i": INT64_MIN}, FAULT),
    ("abs(i)", {"i": INT64_MIN + 1}, INT64_MAX),
    ("-x", {"x": 0.0}, 0.0),
    ("round(x)", {"x": 0.49999999999999994}, 0.0),
    ("round(x)", {"x": 2.5}, 3.0),
    ("round(x)", {"x": -2.5}, -3.0),
    ("round(x)", {"x": 4503599627370497.5}, 4503599627370498.0),
    ("round(x)", {"x": NAN}, NAN),
    ("floor(x)", {"x": -0.5}, -1.0),
    ("ceil(x)", {"x": -0.5}, 0.0),
    ("floor(x)", {"x": INF}, INF),
    ("sqrt(x)", {"x": -1.0}, FAULT),
    ("sqrt(x)", {"x": 2.25}, 1.5),
    ("exp(x)", {"x": 1000.0}, INF),
    ("ln(x)", {"x": 0.0}, FAULT),
    ("power(x, y)", {"x": -8.0, "y": 0.5}, FAULT),
    ("power(x, y)", {"x": 0.0, "y": -1.0}, FAULT),
    ("power(x, y)", {"x": -10.0, "y": 309.0}, -INF),
    ("power(x, y)", {"x": NAN, "y": 0.0}, 1.0),
    ("x == y", {"x": NAN, "y": NAN}, True),
    ("x < y", {"x": INF, "y": NAN}, True),
    ("x < y", {"x": NAN, "y": NAN}, False),
    ("x <= y", {"x": NAN, "y": NAN}, True),
    ("x > y", {"x": NAN, "y": INF}, True),
    ("x >= y", {"x": NAN, "y": 1.0}, True),
    ("x != y", {"x": NAN, "y": 1.0}, True),
    ("x == y", {"x": None}, None),
    ("p > q", {}, True),
    ("p <= q", {"p": None}, None),
    ("least(x, y)", {"x": None, "y": 2.0}, 2.0),
    ("least(x, y)", {"x": NAN, "y": 2.0}, 2.0),
    ("greatest(x, y)", {"x": NAN, "y": 2.0}, NAN),
    ("greatest(i, j, 3)", {"i": None, "j": None}, 3),
    ("least(i, j)", {"i": None, "j": None}, None),
    ("greatest(p, q)", {}, True),
    ("p and q", {"p": None, "q": False}, False),
    ("p and q", {"p": None, "q": True}, None),
    ("p or q", {"p": None, "q": True}, True),
    ("p or q", {"p": None, "q": False}, None),
    ("not p", {"p": None}, None),
    ("is_null(p)", {"p": None}, True),
    ("is_null(x / y)", {}, True),
    ("coalesce(x, y, 9.0)", {"x": None, "y": None}, 9.0),
    ("if(p, x, y)", {"p": None, "y": 4.0}, 4.0),
    ("integer(x)", {"x": -2.9}, -2),
    ("integer(x)", {"x": NAN}, FAULT),
    ("integer(x)", {"x": 9223372036854775808.0}, FAULT),
    ("integer(x)", {"x": -9223372036854775808.0}, INT64_MIN),
    ("integer(p)", {}, 1),
    ("number(p)", {"p": False}, 0.0),
    ("number(i)", {"i": 2**53 + 1}, 9007199254740992.0),
    ("boolean(i)", {"i": -3}, True),
    ("boolean(i)", {"i": 0}, False),
    ("integer(t)", {"t": -5}, -5),
    ("integer(d)", {}, 1_500_000),
    ("seconds(d)", {}, 1.5),
    ("seconds(d)", {"d": INT64_MIN + 1}, (INT64_MIN + 1) / 1_000_000),
    ("integer(d * x)", {"d": -3, "x": 0.5}, -1),
    ("integer(x * d)", {"x": INF}, FAULT),
    ("integer(d * i)", {"i": 2**62}, FAULT),
    ("integer(d / x)", {"d": -7, "x": 2.0}, -3),
    ("integer(d / y)", {}, FAULT),
    ("d / d", {"d": 0}, FAULT),
    ("integer(t + d)", {"t": INT64_MAX}, FAULT),
    ("integer(t - t)", {"t": 5}, 0),
    ("integer(floor_time(t, d))", {"t": -1, "d": 10}, -10),
    ("integer(floor_time(t, d))", {"t": 5, "d": 0}, FAULT),
    ("integer(floor_time(t, d))", {"t": INT64_MIN, "d": 3}, FAULT),
    ("year(t)", {"t": -1}, 1969),
    ("month(t)", {"t": 951782400_000_000}, 2),
    ("day(t)", {"t": 951782400_000_000}, 29),
    ("weekday(t)", {}, 4),
    ("weekday(t)", {"t": -4 * DAY}, 7),
    ("hour(t)", {"t": -1}, 23),
    ("second(t)", {"t": -1}, 59),
    ("year(t)", {"t": INT64_MIN}, -290308),
    ("year(t)", {"t": INT64_MAX}, 294247),
]


def kernel_for_terms(terms: Sequence[str]) -> RowKernel:
    columns = ", ".join(f"c{n} = {term}" for n, term in enumerate(terms))
    return kernel_of(f"output out; input a({COLUMNS}); (out) <- Map[{columns}](a);")


@pytest.fixture(scope="module")
def all_terms() -> RowKernel:
    """One kernel with a column per term: compiling one is quicker than compiling many."""
    return kernel_for_terms(list(dict.fromkeys(term for term, _, _ in CASES)))


@pytest.mark.parametrize("is_masked", [False, True])
def test_scalars_compute_what_they_should(all_terms: RowKernel, is_masked: bool) -> None:
    """Also beside a row of nulls, which makes the kernel run its other version."""
    terms = list(dict.fromkeys(term for term, _, _ in CASES))
    for term, values, expected in CASES:
        row = tuple((DEFAULTS | values).values())
        rows = [row, (None,) * len(row)] if is_masked else [row]
        before = sum(all_terms.faults().values())
        found = rows_of(all_terms, *rows)[0][terms.index(term)]
        assert (None if expected == FAULT else expected) == found or found is expected, term
        if expected == FAULT:
            assert before < sum(all_terms.faults().values()), term


def test_a_division_by_a_constant_asks_for_nothing() -> None:
    """So folds, which cannot do a batch again, need no boxes for it either."""
    safe = kernel_for_terms(["i % 7", "div(i, 3)", "x / 4.0", "x % 2.5"])
    assert safe.functions.hopeful is None
    assert "valid" not in safe.source
    for term in ("i % 0", "div(i, -1)", "x / 0.0", "i % j"):
        assert kernel_for_terms([term]).functions.hopeful is not None, term


def test_minus_zero_leaves_as_zero() -> None:
    kernel = kernel_for_terms(["x * -1.0"])
    ((found,),) = rows_of(kernel, tuple((DEFAULTS | {"x": 0.0}).values()))
    assert isinstance(found, float)
    assert 1.0 == math.copysign(1.0, found)


def test_guarded_faults_are_not_counted() -> None:
    kernel = kernel_for_terms(
        [
            "if(y == 0.0, 0.0, x / y)",
            "coalesce(x, x / y)",
            "y != 0.0 and x / y > 1.0",
            "y == 0.0 or x / y > 1.0",
            "if(j > 0, sqrt(number(j)), ln(number(i)))",
        ]
    )
    row = tuple(DEFAULTS.values())
    assert [(0.0, 1.5, False, True, math.log(7))] == rows_of(kernel, row)
    assert {} == kernel.faults()


def test_each_fault_is_counted_where_it_arose() -> None:
    kernel = kernel_for_terms(["x / y + sqrt(-x)", "x / y", "if(is_null(x / y), 1, i + j)"])
    rows_of(kernel, tuple(DEFAULTS.values()), tuple((DEFAULTS | {"y": 1.0}).values()))
    assert {"division by zero in x / y": 3,
            "square root of a negative number in sqrt((-x))": 2} == kernel.faults()  # fmt: skip


def test_faults_of_rows_that_a_filter_drops_are_not_counted() -> None:
    kernel = kernel_of(
        "output out; input a(s text, x number);"
        "(b) <- Filter[x > 0.0](a); (out) <- Map[n = number(s), y = 1.0 / (x - 1.0)](b);"
    )
    rows = [("1", 2.0), ("bad", 0.0), ("bad", 1.0), ("bad", 3.0)]
    assert [(1.0, 1.0), (None, None), (None, 0.5)] == rows_of(kernel, *rows)
    assert {"not a number in number(s)": 2,
            "division by zero in 1.0 / (x - 1.0)": 1} == kernel.faults()  # fmt: skip


def test_faults_of_a_column_that_is_dropped_are_counted_once() -> None:
    kernel = kernel_of(
        "output out; input a(x number);"
        "(b) <- Map[x, y = 1.0 / x](a); (c) <- Map[x, z = y + y, w = text(y)](b);"
        "(out) <- Map[x](c);"
    )
    assert [(0.0,)] == rows_of(kernel, (0.0,))
    assert {"division by zero in 1.0 / x": 1} == kernel.faults()


# --- large terms ------------------------------------------------------------------------


def kernel_for_term(term: Term) -> RowKernel:
    schema = Schema.of(x=NUMBER, i=INTEGER)
    op = Operator(Map((Assign("o", term),)), ("a",), ("out",))
    return RowKernel((op,), (("a", QueueType(schema)),), ("out",), ())


def test_a_sum_of_a_thousand_terms_compiles() -> None:
    x = Column("x", NUMBER)
    total: Term = x
    for _ in range(1000):
        total = Call("+", (total, x), NUMBER)
    assert [(2002.0,)] == rows_of(kernel_for_term(total), (2.0, 1))


def test_a_term_of_two_hundred_levels_compiles() -> None:
    """Also with more places for faults than there are bits for."""
    i = Column("i", INTEGER)
    nested: Term = i
    for level in range(200):
        condition = Call("==", (i, Literal(level, INTEGER)), BOOLEAN)
        quotient = Call("div", (Literal(100, INTEGER), Literal(level - 5, INTEGER)), INTEGER)
        nested = Call("if", (condition, quotient, nested), INTEGER)
    kernel = kernel_for_term(nested)
    found = rows_of(kernel, (0.0, -1), (0.0, 6), (0.0, 5), (0.0, 199))
    assert [(-1,), (100,), (None,), (0,)] == found
    assert 1 == sum(kernel.faults().values())
