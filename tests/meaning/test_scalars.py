"""What scalar functions compute, on the values people get wrong."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from millstream.calculus.check import Scope, check
from millstream.calculus.expressions import parse_expression
from millstream.calculus.types import Schema, Value
from millstream.meaning.scalars import evaluate
from millstream.source import Source


def value_of(text: str) -> tuple[Value, int]:
    faults: Counter[str] = Counter()
    term = check(parse_expression(Source("test", text)), Scope(Schema()))
    return evaluate(term, {}, None, faults), faults.total()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + null", None), ("null(boolean) and false", False), ("null(boolean) or true", True),
        ("null(boolean) and true", None), ("if(null, 1, 2)", 2), ("is_null(null(text))", True),
        ("nan == nan", True), ("nan > inf", True), ("nan < 1.0", False), ("-0.0 == 0.0", True),
        ("least(3, null, 2)", 2), ("greatest(nan, 1.0) == nan", True), ("7 % -3", 1),
        ("-7 % 3", -1), ("div(-7, 2)", -3), ("round(2.5)", 3.0), ("round(-2.5)", -3.0),
        ("round(0.49999999999999994)", 0.0), ("integer(-1.9)", -1), ("1 / 4", 0.25),
        ('substring("hello", 2, 3)', "ell"), ('substring("hello", -1, 3)', "h"),
        ('like("a%b\\n", "a%_")', True), ('upper("ß")', "SS"), ('length("é")', 1),
        ('trim("  x ")', "x"), ('replace("aaa", "", "b")', "aaa"), ('number(" 1e3 ")', 1000.0),
        ('boolean("TRUE")', True), ("text(1.0)", "1.0"), ("text(true)", "true"),
        ('text(time("2026-01-31"))', "2026-01-31T00:00:00.000000Z"),
        ('year(time("1969-12-31T23:59:59Z"))', 1969), ('weekday(time("2026-11-15"))', 7),
        ("year(time(-9223372036854775808))", -290308), ("seconds(1500 ms)", 1.5),
        ("floor_time(time(-1), 1 s) == time(-1000000)", True), ("5 min / 2 == 150 s", True),
        ("exp(1000.0)", math.inf), ("power(-2.0, 3.0)", -8.0), ("sqrt(4)", 2.0),
    ],
)  # fmt: skip
def test_values(text: str, expected: Value) -> None:
    assert (expected, 0) == value_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "9223372036854775807 + 1", "-9223372036854775807 - 2", "4611686018427387904 * 2",
        "1 / 0", "1.0 / 0.0", "7 % 0", "div(1, 0)", "sqrt(-1.0)", "ln(0.0)", 'number("1_0")',
        'integer("1.5")', "integer(1e19)", "integer(nan)", 'boolean("yes")',
        'integer("99999999999999999999")',
        "power(-1.0, 0.5)", 'substring("x", 1, -1)', "floor_time(time(0), 0 s)",
        "abs(-9223372036854775808)",
        "(1 d) * 1e300",
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_null_and_counted(text: str) -> None:
    assert (None, 1) == value_of(text)


def test_a_guard_keeps_a_fault_from_happening() -> None:
    assert (0.0, 0) == value_of("if(0 == 0, 0.0, 1 / 0)")
    assert (False, 0) == value_of("false and 1 / 0 > 1.0")
    assert (1.0, 0) == value_of("coalesce(1.0, 1 / 0)")
