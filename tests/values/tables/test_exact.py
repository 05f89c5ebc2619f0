"""Tables do not care how emits are cut and ordered; dictionaries are the oracle."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.values.tables.cuts import gathered, in_any_cut

from millstream.values.records.types import (
    BYTES,
    FLOAT,
    INT,
    STRING,
    UINT,
    ArrayOf,
    Field,
    FunctionOf,
    MapOf,
    RecordType,
    TupleOf,
)
from millstream.values.tables.kind import Declared, Result, Table
from millstream.values.tables.table import TABLES

PAIR = TupleOf((Field("a", INT), Field("b", FLOAT)))
WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "ü"]), max_size=12)


def table(
    name: str, value: RecordType, parameter: int | None = None, weight: RecordType | None = None
) -> Table:
    declared = Declared(parameter, value, weight)
    assert TABLES[name].complaint(declared) is None
    return TABLES[name].table(declared)


def values(rows: list[Result]) -> list[Any]:
    return [row.value for row in rows]


@given(WORDS, st.data())
def test_a_collection_has_every_emit(words: list[str], data: st.DataObject) -> None:
    rows = in_any_cut(table("collection", STRING), [(w, None) for w in words], data)
    assert sorted(words) == values(rows)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8), st.data())
def test_integers_wrap(numbers: list[int], data: st.DataObject) -> None:
    rows = in_any_cut(table("sum", INT), [(n, None) for n in numbers], data)
    assert [(sum(numbers) + 2**63) % 2**64 - 2**63] == values(rows)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.data())
def test_floats_are_added_exactly(numbers: list[float], data: st.DataObject) -> None:
    rows = in_any_cut(table("sum", FLOAT), [(n, None) for n in numbers], data)
    exact = sum(map(Fraction, numbers), Fraction(0))
    try:
        expected = float(exact)
    except OverflowError:
        expected = math.inf if exact > 0 else -math.inf
    assert [expected] == values(rows)


def test_infinities_meet() -> None:
    floats = table("sum", FLOAT)
    assert values(gathered(floats, [(math.inf, None), (1.0, None)])) == [math.inf]
    (both,) = values(gathered(floats, [(math.inf, None), (-math.inf, None)]))
    assert math.isnan(both)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9).map(float))), st.data())
def test_tuples_are_added_element_by_element(
    pairs: list[tuple[int, float]], data: st.DataObject
) -> None:
    rows = in_any_cut(table("sum", PAIR), [(p, None) for p in pairs], data)
    expected = [(sum(p[0] for p in pairs), sum(p[1] for p in pairs))] if pairs else []
    assert expected == values(rows)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(-9, 9)), min_size=1), st.data())
def test_maps_are_added_element_by_element(maps: list[dict[str, int]], data: st.DataObject) -> None:
    rows = in_any_cut(table("sum", MapOf(STRING, INT)), [(m, None) for m in maps], data)
    expected: dict[str, int] = {}
    for each in maps:
        for key, value in each.items():
            expected[key] = expected.get(key, 0) + value
    assert [expected] == values(rows)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3))), st.booleans(), st.data())
def test_extremes_are_single_emits(
    emits: list[tuple[str, int]], largest: bool, data: st.DataObject
) -> None:
    kind = "maximum" if largest else "minimum"
    rows = in_any_cut(table(kind, STRING, 3, INT), emits, data)
    sign = -1 if largest else 1
    expected = sorted(emits, key=lambda e: (sign * e[1], e[0]))[:3]
    assert expected == [(row.value, row.weight) for row in rows]


@given(WORDS, st.data())
def test_a_set_with_more_is_dropped(words: list[str], data: st.DataObject) -> None:
    rows = in_any_cut(table("set", STRING, 3), [(w, None) for w in words], data)
    assert (sorted(set(words)) if len(set(words)) <= 3 else []) == values(rows)


@given(st.lists(st.dictionaries(st.sampled_from("ab"), st.lists(st.floats()).map(tuple)),
                max_size=4), st.data())  # fmt: skip
def test_compound_values_are_kept(maps: list[dict[str, Any]], data: st.DataObject) -> None:
    rows = in_any_cut(
        table("collection", MapOf(STRING, ArrayOf(FLOAT))), [(m, None) for m in maps], data
    )
    assert Counter(len(m) for m in maps) == Counter(len(row.value) for row in rows)


@pytest.mark.parametrize(
    ("name", "declared", "expected"),
    [
        ("sum", Declared(None, STRING), "sum adds int"),
        ("sum", Declared(None, ArrayOf(INT)), "sum adds int"),
        ("sum", Declared(3, INT), "takes no number"),
        ("maximum", Declared(None, STRING, INT), "needs a number"),
        ("maximum", Declared(3, STRING), "needs a weight"),
        ("maximum", Declared(3, STRING, ArrayOf(INT)), "a weight must have an order"),
        ("set", Declared(0, STRING), "at least 1"),
        ("collection", Declared(None, STRING, INT), "takes no weight"),
        ("collection", Declared(None, ArrayOf(FunctionOf((), INT))), "a function cannot be"),
        ("text", Declared(None, UINT), "text takes string or bytes"),
        ("mrcounter", Declared(None, BYTES), "mrcounter counts int"),
    ],
)
def test_declarations_are_checked(name: str, declared: Declared, expected: str) -> None:
    assert expected in (TABLES[name].complaint(declared) or "")
