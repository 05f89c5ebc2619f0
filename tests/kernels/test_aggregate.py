from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.calculus.functions import AGGREGATIONS, Aggregate, Aggregation
from millstream.calculus.terms import NAN, Call, Column, canonical
from millstream.calculus.types import (
    DURATION,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    Kind,
    QueueType,
    Row,
    Schema,
    Value,
)
from millstream.errors import PlanError
from millstream.kernels.relational.aggregate import AggregateKernel
from tests.kernels.relational_cases import (
    History,
    bag_of,
    bags,
    cuts,
    marks,
    order,
    quick,
    relations,
    run,
)

SCHEMA = Schema.of(k=TEXT, x=NUMBER, n=INTEGER, d=DURATION, t=TIME)
RELATION = QueueType(SCHEMA, is_relation=True)
END = 45


def every(column: str) -> list[Aggregation]:
    type_ = SCHEMA[column]
    return [
        Aggregation(f"{function}_{column}", function, Column(column, type_))
        for function, kinds in AGGREGATIONS.items()
        # Variances of any floats are right to nearly all digits only: see test_variance.
        if type_.kind in kinds and not function.startswith("var")
    ]


ALL = (Aggregation("rows", "count"), *(a for c in SCHEMA.names for a in every(c)))


def exact(values: list[Any]) -> Any:
    strange = {v for v in values if isinstance(v, float) and not math.isfinite(v)}
    return sum(strange) if strange else sum(map(Fraction, values))


def rounded(total: Any) -> float:
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def aggregated(one: Aggregation, rows: list[Row]) -> Value:
    """What an aggregation means, from all rows of a group."""
    if one.term is None:
        return len(rows)
    assert isinstance(one.term, Column)
    column = SCHEMA.index(one.term.name)
    values = [row[column] for row in rows if row[column] is not None]
    if one.function == "count":
        return len(values)
    if not values:
        return None
    if one.function in ("min", "max"):
        chosen = min if one.function == "min" else max
        return chosen(((v,) for v in values), key=order)[0]
    total = exact(values)
    if one.function == "avg":
        return canonical(rounded(total) / len(values))
    if one.term.type.kind is Kind.NUMBER:
        return canonical(rounded(total))
    return int(total) if INT64_MIN <= total <= INT64_MAX else None


def expected(function: Aggregate, history: History, time: int) -> Counter[Row]:
    groups: dict[Row, list[Row]] = {}
    if not function.by and any(t <= time for t, _, _ in history):
        groups[()] = []
    for row in bag_of(history, time).elements():
        key = tuple(row[SCHEMA.index(name)] for name in function.by)
        groups.setdefault(key, []).append(row)
    return Counter(
        key + tuple(aggregated(a, rows) for a in function.aggregations)
        for key, rows in groups.items()
    )


def kernel(function: Aggregate) -> AggregateKernel:
    return AggregateKernel(function, (RELATION,), 1)


@pytest.mark.parametrize("by", [("k",), (), ("n", "k")])
@given(history=relations(SCHEMA), ends=cuts)
@quick
def test_aggregates_are_those_of_the_rows_present(
    by: tuple[str, ...], history: History, ends: list[int]
) -> None:
    function = Aggregate(by, ALL)
    instants = range(-1, END + 1)
    wanted = [expected(function, history, t) for t in instants]
    for remake in (None, lambda: kernel(function)):
        (out,) = run(kernel(function), [RELATION], [history], marks(ends, END), remake=remake)
        assert wanted == bags(out, instants)


@given(relations(SCHEMA, small=True))
@quick
def test_only_what_changes_is_told(history: History) -> None:
    function = Aggregate(("k",), (Aggregation("rows", "count"), *every("x")))
    (out,) = run(kernel(function), [RELATION], [history], [END])
    told = Counter((t, row) for t, row, _ in out)
    assert all(count == 1 for count in told.values())


finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
difficult = st.sampled_from(
    [1e16, -1e16, 1.0, 0.1, 1e300, -1e300, 1.7e308, -1.7e308, 5e-324, 2.2e-308, 2.0**53, 1e-30]
)


@given(st.lists(st.tuples(finite | difficult, st.booleans(), st.integers(0, 9)), max_size=40))
@quick
def test_sums_are_exact_whatever_comes_and_goes(steps: list[tuple[float, bool, int]]) -> None:
    function = Aggregate((), (*every("x")[:1], *every("x")[2:3]))
    present: list[float] = []
    history: History = []
    wanted: list[Row] = []
    for time, (value, leaves, which) in enumerate(steps):
        weight = -1 if leaves and present else 1
        value = present.pop(which % len(present)) if weight < 0 else value  # noqa: PLW2901
        if weight > 0:
            present.append(value)
        history.append((time, ("a", value, None, None, None), weight))
        total = canonical(rounded(sum(map(Fraction, present)))) if present else None
        mean = None if total is None else canonical(float(total) / len(present))
        wanted.append((total, mean))
    (out,) = run(kernel(function), [RELATION], [history], [END])
    assert [Counter([row]) for row in wanted] == bags(out, range(len(wanted)))


def test_a_wide_sum_is_given_back_when_its_group_goes() -> None:
    function = Aggregate(("k",), tuple(every("x")[:1]))
    history: History = []
    for time in range(0, 300, 3):
        for step, value in enumerate((1e300, 1.0, 1e-300)):
            history.append((time + step, (f"k{time}", value, None, None, None), 1))
    gone = [(time + 300, row, -1) for time, row, _ in history]
    k = kernel(function)
    run(k, [RELATION], [sorted(history + gone)], range(0, 700, 7))
    limbs, free, counters = k.accumulators.wides
    assert counters[0] - 1 == counters[1] == len(set(free[: counters[1]].tolist()))
    assert 100 <= len(limbs) < 500
    assert 0 == k.keys.size
    assert not k.accumulators.cells.any()


def test_memory_of_groups_and_values_that_are_gone_is_used_again() -> None:
    function = Aggregate(("k",), (*every("k")[1:], *every("x")))
    history: History = []
    for time in range(0, 4000, 2):
        row: Row = (f"a rather long key of number {time}", float(time), None, None, None)
        history += [(time, row, 1), (time + 1, row, -1)]
    k = kernel(function)
    run(k, [RELATION], [history], range(9, 4010, 10))
    assert (0, 0) == (k.keys.size, k.extremes.table.size)
    assert k.keys.bound < 20
    assert k.extremes.table.bound < 100
    assert len(k.extremes.pool) < 2000


def test_an_overflow_is_null_and_counted_once_for_each_row_told() -> None:
    function = Aggregate(("k",), (*every("n")[:1], Aggregation("rows", "count")))
    big, small = ("a", None, INT64_MAX, None, None), ("a", None, 1, None, None)
    history: History = [(0, big, 1), (1, small, 1), (2, big, 1), (3, big, -2), (3, small, -1)]
    k = kernel(function)
    (out,) = run(k, [RELATION], [history], [1, 5])
    wanted: list[list[Row]] = [[("a", INT64_MAX, 1)], [("a", None, 2)], [("a", None, 3)], []]
    assert [Counter(rows) for rows in wanted] == bags(out, range(4))
    assert {"integer overflow in sum_n": 2} == k.faults()


def test_infinities_and_nan_leave_no_trace() -> None:
    function = Aggregate((), tuple(every("x")[:1]))
    values = [1.5, math.inf, -math.inf, NAN]
    history: History = [(t, ("a", v, None, None, None), 1) for t, v in enumerate(values)]
    history += [(4 + t, ("a", v, None, None, None), -1) for t, v in enumerate(values[::-1])]
    (out,) = run(kernel(function), [RELATION], [history], [9])
    sums = [1.5, math.inf, NAN, NAN, NAN, math.inf, 1.5, None]
    assert [Counter([(s,)]) for s in sums] == bags(out, range(8))


def test_a_computed_term_is_refused() -> None:
    term = Call("+", (Column("x", NUMBER), Column("x", NUMBER)), NUMBER)
    with pytest.raises(PlanError, match='"twice" is over a computed term'):
        kernel(Aggregate((), (Aggregation("twice", "sum", term),)))


def test_many_values_come_and_go_in_large_batches() -> None:
    rng = np.random.default_rng(4)
    function = Aggregate(("k",), (*every("x"), *every("k")[1:]))
    rows: list[Row] = [
        (f"k{k}", float(x), None, None, None)
        for k, x in zip(rng.integers(0, 3, 1500), rng.integers(0, 400, 1500), strict=True)
    ]
    history = [(t, r, 1) for t, r in enumerate(rows)]
    history += [(t + 300, r, -1) for t, r in enumerate(rows)]
    (out,) = run(kernel(function), [RELATION], [sorted(history, key=lambda c: c[0])], [900, 2000])
    instants = range(0, 1900, 97)
    assert [expected(function, history, t) for t in instants] == bags(out, instants)


def test_many_sums_become_wide_at_one_instant() -> None:
    function = Aggregate(("k",), (*every("x")[:1], *every("x")[2:3]))
    history: History = [
        (0, (f"k{i}", value, None, None, None), 1)
        for value in (1e300, 1.0, 1e-300)
        for i in range(50)
    ]
    (out,) = run(kernel(function), [RELATION], [history], [0])
    assert expected(function, history, 0) == bag_of(out, 0)
