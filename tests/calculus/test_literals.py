"""What Python takes for equal and a language does not: true, 1 and 1.0, errors and texts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from millstream.calculus.sheets import Previous, Sheet
from millstream.calculus.terms import Literal, fitted
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INT64_MAX,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    Type,
    Value,
)
from millstream.formulas import syntax
from millstream.formulas.values import NA

A1 = ("S", 1, 1)


@pytest.mark.parametrize(
    "pair",
    list(combinations([(True, BOOLEAN), (1, INTEGER), (1.0, NUMBER), (1, TIME), (1, DURATION)], 2)),
)
def test_literals_of_different_types_are_different(pair: Any) -> None:
    one, other = (Literal(*given) for given in pair)
    assert one != other
    assert len({one, other}) == 2


@pytest.mark.parametrize(
    ("type_", "given", "expected"),
    [
        (NUMBER, 1, 1.0),
        (NUMBER, -0.0, 0.0),
        (NUMBER, float("-nan"), math.nan),
        (NUMBER, math.inf, math.inf),
        (INTEGER, INT64_MAX, INT64_MAX),
        (BOOLEAN, True, True),
        (TEXT, "1", "1"),
        (TEXT, None, None),
    ],
)
def test_a_type_holds_a_value_in_one_way_only(type_: Type, given: Value, expected: Value) -> None:
    value = Literal(given, type_).value
    assert repr(expected) == repr(value)
    assert Literal(given, type_) == Literal(expected, type_)
    assert hash(Literal(given, type_)) == hash(Literal(expected, type_))


@pytest.mark.parametrize(
    ("type_", "given"),
    [
        (NUMBER, True), (NUMBER, "1"), (NUMBER, 10**400), (INTEGER, True), (INTEGER, 1.0),
        (INTEGER, INT64_MAX + 1), (TIME, 0.5), (BOOLEAN, 1), (BOOLEAN, 0.0), (TEXT, 1),
        (TEXT, "\ud800"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_does_not_fit(type_: Type, given: Value) -> None:
    with pytest.raises(TypeError, match=f"expected a {type_}, got "):
        fitted(given, type_)


#: Whatever holds a value of a sheet.
HOLDERS: list[Callable[[Any], object]] = [
    syntax.Literal,
    lambda v: syntax.Constants(((0.0, v),)),
    lambda v: syntax.Binary("&", syntax.Literal(v), syntax.Literal("x")),
    lambda v: Previous(A1, A1, v),
    lambda v: Sheet((), ((A1, v),), (), ()),
]


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("pair", [(True, 1.0), (False, 0.0), (NA, "#N/A"), (1, 1.0), (None, 0.0)])
def test_values_of_sheets_are_told_apart_by_their_types(
    holder: Callable[[Any], object], pair: tuple[Any, Any]
) -> None:
    one, other = map(holder, pair)
    assert one != other
    assert len({one, other}) == 2
    assert [holder(v) for v in pair] == [one, other]


def test_a_changed_copy_is_told_apart_too() -> None:
    one = syntax.Literal(1.0)
    assert one != replace(one, value=True)
    assert one == replace(replace(one, value=True), value=1.0)
