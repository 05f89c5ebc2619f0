"""Tables that estimate: exact while small, within bounds beyond, and never by order or cut."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.values.tables.cuts import gathered, in_any_cut

from millstream.values.records.keys import keys_of
from millstream.values.records.types import (
    BYTES,
    FLOAT,
    INT,
    STRING,
    ArrayOf,
    RecordType,
)
from millstream.values.tables.kind import Declared, Result, Table
from millstream.values.tables.quantiles import Quantiles, _scale
from millstream.values.tables.table import TABLES
from millstream.values.tables.top import Top

NUMBERS = st.lists(st.integers(-20, 20), max_size=30)


def table(name: str, value: RecordType, parameter: int, weight: RecordType | None = None) -> Table:
    declared = Declared(parameter, value, weight, seed=5)
    assert TABLES[name].complaint(declared) is None
    return TABLES[name].table(declared)


def emits(values: list[Any]) -> list[tuple[Any, Any]]:
    return [(value, None) for value in values]


def cut_differently(table_: Table, given_: list[tuple[Any, Any]]) -> list[Result]:
    """A large input, shuffled and cut; the results must be those of one part."""
    rows = gathered(table_, given_)
    shuffled = random.Random(3).sample(given_, len(given_))
    accs = []
    for part in (shuffled[: len(given_) // 5], shuffled[len(given_) // 5 :]):
        acc = table_.empty()
        for value, weight in part:
            acc = table_.add(acc, value, weight)
        accs.append(table_.decode(table_.encode(acc)))
    assert rows == table_.results(table_.merge(accs[1], accs[0]))
    return rows


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 5))), st.data())
def test_top_is_exact_while_few(given_: list[tuple[str, int]], data: st.DataObject) -> None:
    rows = in_any_cut(table("top", STRING, 3, INT), given_, data)
    sums: Counter[str] = Counter()
    for value, weight in given_:
        sums[value] += weight
    expected = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    assert [(v, w, 0) for v, w in expected] == rows


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 1e9))), st.data())
def test_weights_of_top_are_added_exactly(
    given_: list[tuple[str, float]], data: st.DataObject
) -> None:
    rows = in_any_cut(table("top", STRING, 3, FLOAT), given_, data)
    for row in rows:
        assert row.weight == math.fsum(w for v, w in given_ if v == row.value)


def test_top_finds_what_is_large_among_many() -> None:
    random_ = random.Random(1)
    values = [f"large{n}" for n in range(5) for _ in range(900 - 100 * n)]
    values += [f"small{random_.randrange(3000)}" for _ in range(6000)]
    top = Top(4, keys_of(STRING), None, exact_up_to=200, named=50)
    rows = cut_differently(top, emits(values))
    counts = Counter(values)
    assert [v for v, _ in counts.most_common(4)] == [row.value for row in rows]
    for row in rows:
        assert counts[row.value] <= row.weight <= counts[row.value] + row.error


def test_top_does_not_show_what_may_depend_on_the_order() -> None:
    top = Top(5, keys_of(INT), None, exact_up_to=100, named=50)
    assert cut_differently(top, emits(list(range(3000)))) == []


@given(NUMBERS, st.integers(2, 9), st.data())
def test_quantiles_are_exact_while_few(numbers: list[int], count: int, data: st.DataObject) -> None:
    rows = in_any_cut(table("quantile", INT, count), emits(numbers), data)
    ordered = sorted(numbers)
    places = [n * (len(numbers) - 1) // (count - 1) for n in range(count)] if numbers else []
    assert [ordered[place] for place in places] == [row.value for row in rows]


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-99, 99)), st.data())
def test_coarse_quantiles_do_not_depend_on_the_cut(numbers: list[int], data: st.DataObject) -> None:
    coarse = Quantiles(5, _scale(INT), most=4)
    rows = in_any_cut(coarse, emits(numbers), data)
    if numbers:
        assert (min(numbers), max(numbers)) == (rows[0].value, rows[-1].value)
        assert {row.value for row in rows} <= set(numbers)


@given(st.lists(st.text(st.sampled_from("ab"), max_size=5)), st.data())
def test_coarse_quantiles_of_texts(texts: list[str], data: st.DataObject) -> None:
    in_any_cut(Quantiles(3, _scale(STRING), most=3), emits(texts), data)


@given(st.lists(st.floats()), st.data())
def test_quantiles_of_floats(floats: list[float], data: st.DataObject) -> None:
    rows = in_any_cut(Quantiles(2, _scale(FLOAT), most=4), emits(floats), data)
    known = [f for f in floats if f == f]
    if len(known) == len(floats) and known:
        assert (min(known), max(known)) == (rows[0].value, rows[1].value)


def test_coarse_quantiles_are_near() -> None:
    random_ = random.Random(2)
    numbers = [random_.randrange(10**6) for _ in range(20_000)]
    rows = gathered(Quantiles(11, _scale(INT), most=1000), emits(numbers))
    for n, row in enumerate(rows):
        assert abs(row.value - sorted(numbers)[n * 19_999 // 10]) < 10**6 / 500


@given(NUMBERS, st.data())
def test_unique_is_exact_while_few(numbers: list[int], data: st.DataObject) -> None:
    rows = in_any_cut(table("unique", INT, 50), emits(numbers), data)
    assert ([len(set(numbers))] if numbers else []) == [row.value for row in rows]


def test_unique_is_near_beyond() -> None:
    rows = cut_differently(table("unique", INT, 500), emits(list(range(20_000))))
    assert abs(rows[0].value - 20_000) < 4 * 20_000 / math.sqrt(498)


@given(NUMBERS, st.data())
def test_samples_of_distinct_values_have_exact_weights(
    numbers: list[int], data: st.DataObject
) -> None:
    rows = in_any_cut(table("distinctsample", INT, 4), emits(numbers), data)
    counts = Counter(numbers)
    assert min(4, len(counts)) == len(rows)
    assert all(counts[row.value] == row.weight for row in rows)


@given(st.lists(st.integers(0, 6)), st.data())
def test_inverse_histograms(numbers: list[int], data: st.DataObject) -> None:
    rows = in_any_cut(table("inversehistogram", INT, 10), emits(numbers), data)
    expected = sorted(Counter(Counter(numbers).values()).items())
    assert expected == [(row.value, row.weight) for row in rows]
    in_any_cut(table("inversehistogram", INT, 3), emits(numbers), data)


@given(NUMBERS, st.data())
def test_samples_are_of_the_emits(numbers: list[int], data: st.DataObject) -> None:
    keys = [n // 2 for n in range(len(numbers))]
    rows = in_any_cut(table("sample", INT, 5), emits(numbers), data, keys)
    drawn = Counter(row.value for row in rows)
    assert min(5, len(numbers)) == len(rows)
    assert drawn <= Counter(numbers)


def test_samples_are_fair() -> None:
    taken: Counter[int] = Counter()
    for seed in range(400):
        sample = TABLES["sample"].table(Declared(5, INT, seed=seed))
        rows = gathered(sample, emits(list(range(20))), list(range(20)))
        taken.update(row.value for row in rows)
    assert all(60 < taken[n] < 140 for n in range(20))


def test_heavy_emits_are_drawn_more_often() -> None:
    taken: Counter[str] = Counter()
    given_ = [("a", 9.0), ("b", 1.0), ("c", 0.0)]
    for seed in range(500):
        sample = TABLES["weightedsample"].table(Declared(1, STRING, FLOAT, seed=seed))
        taken.update(row.value for row in gathered(sample, given_, [1, 2, 3]))
    assert taken["c"] == 0 and 420 < taken["a"] < 480


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([0.0, 0.5, 3.0]))), st.data())
def test_samples_by_weight_do_not_depend_on_the_cut(
    given_: list[tuple[str, float]], data: st.DataObject
) -> None:
    keys = list(range(len(given_)))
    rows = in_any_cut(table("weightedsample", STRING, 2, FLOAT), given_, data, keys)
    assert min(2, sum(weight > 0 for _, weight in given_)) == len(rows)


@given(st.lists(st.tuples(st.integers(-9, 9), st.sampled_from("abc"))), st.data())
def test_resampled_sums(given_: list[tuple[int, str]], data: st.DataObject) -> None:
    rows = in_any_cut(table("bootstrapsum", INT, 4, STRING), given_, data)
    assert ([sum(v for v, _ in given_)] if given_ else []) == [row.value for row in rows[:1]]
    assert len(rows) == (5 if given_ else 0)


def test_resampled_sums_scatter_around_the_sum() -> None:
    given_ = [(1, f"user{n}") for n in range(400)]
    sums = [row.value for row in gathered(table("bootstrapsum", INT, 200, STRING), given_)]
    assert sums[0] == 400
    assert 395 < sum(sums[1:]) / 200 < 405
    assert 15 < math.sqrt(sum((s - 400) ** 2 for s in sums[1:]) / 200) < 25


@pytest.mark.parametrize(
    ("name", "declared", "expected"),
    [
        ("top", Declared(None, STRING, INT), "needs a number"),
        ("top", Declared(3, STRING, STRING), "a weight of top is int, uint or float"),
        ("quantile", Declared(1, INT), "at least 2"),
        ("quantile", Declared(3, ArrayOf(INT)), "must have an order"),
        ("unique", Declared(3, INT, INT), "takes no weight"),
        ("weightedsample", Declared(3, INT, BYTES), "a weight is int, uint or float"),
        ("bootstrapsum", Declared(3, INT), "needs a weight"),
        ("bootstrapsum", Declared(3, STRING, STRING), "bootstrapsum adds numbers"),
    ],
)
def test_declarations_are_checked(name: str, declared: Declared, expected: str) -> None:
    assert expected in (TABLES[name].complaint(declared) or "")
