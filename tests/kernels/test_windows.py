from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.calculus.functions import Latest, Now, Range, Rows
from millstream.calculus.types import INT64_MAX, INT64_MIN, NUMBER, TEXT, QueueType, Row, Schema
from millstream.kernels.relational.window_rows import RowsKernel
from millstream.kernels.relational.window_time import RangeKernel
from millstream.kernels.runtime.kernel import Round
from tests.kernels.relational_cases import (
    History,
    bag_of,
    bags,
    batch,
    cuts,
    marks,
    quick,
    run,
    same,
    streams,
)

SCHEMA = Schema.of(a=TEXT, b=NUMBER)
STREAM = QueueType(SCHEMA)
END = 60


def window(history: History, time: int, length: int | None) -> Counter[Row]:
    return Counter(
        same(r) for t, r, _ in history if t <= time and (length is None or t >= time - length)
    )


@given(streams(SCHEMA), st.sampled_from([0, 1, 2, 5, 30, None]), cuts)
@quick
def test_range_is_what_came_in_the_last_while(
    history: History, length: int | None, ends: list[int]
) -> None:
    def make() -> RangeKernel:
        return RangeKernel(Range(length), (STREAM,), 1)

    for remake in (None, make):
        (out,) = run(make(), [STREAM], [history], marks(ends, END), remake=remake)
        instants = range(-5, END + 1)
        assert [window(history, t, length) for t in instants] == bags(out, instants)


def test_now_is_a_range_of_no_length() -> None:
    kernel = RangeKernel(Now(), (STREAM,), 1)
    history: History = [(1, ("a", 1.0), 1), (1, ("b", 1.0), 1), (2, ("c", 1.0), 1)]
    (out,) = run(kernel, [STREAM], [history], [1, 9])
    expected = [
        (1, ("a", 1.0), 1), (1, ("b", 1.0), 1),
        (2, ("a", 1.0), -1), (2, ("b", 1.0), -1), (2, ("c", 1.0), 1), (3, ("c", 1.0), -1),
    ]  # fmt: skip
    assert expected == out


@pytest.mark.parametrize("length", [INT64_MAX, INT64_MAX - 1, 2**64, 5])
def test_rows_that_would_leave_after_the_end_of_time_never_do(length: int) -> None:
    times = [INT64_MIN, INT64_MIN + 7, -1, 0, INT64_MAX - 6, INT64_MAX - 5]
    history: History = [(t, ("a", float(i)), 1) for i, t in enumerate(times)]
    kernel = RangeKernel(Range(length), (STREAM,), 1)
    ticks: Any = np.zeros(0, np.int64)
    (given_,) = kernel.process((batch(STREAM, history),), Round(INT64_MAX, ticks))
    assert given_.weight is not None
    left = [t for t, w in zip(given_.time.tolist(), given_.weight.tolist(), strict=True) if w < 0]
    ends = [t + length + 1 for t in times]
    assert [e for e in ends if e <= INT64_MAX] == left


def test_a_window_fed_row_by_row_is_kept_in_few_batches() -> None:
    kernel = RangeKernel(Range(5000), (STREAM,), 1)
    history: History = [(t, (f"s{t % 3}", float(t)), 1) for t in range(3000)]
    (out,) = run(kernel, [STREAM], [history], range(3000))
    assert 3000 == len(out) == len(kernel.present)
    assert len(kernel.present._batches) < 20
    assert bag_of(out, 3000) == window(history, 3000, 5000)
    run(kernel, [STREAM], [[]], [9000])
    assert 0 == len(kernel.present) == len(kernel.present._batches)


def last_rows(history: History, time: int, count: int, by: tuple[str, ...]) -> Counter[Row]:
    partitions: dict[Row, list[Row]] = {}
    for t, row, _ in history:
        if t <= time:
            key = same(tuple(row[SCHEMA.index(n)] for n in by))
            partitions.setdefault(key, []).append(same(row))
    return Counter(row for rows in partitions.values() for row in rows[-count:])


functions = st.sampled_from(
    [Rows(1), Rows(3), Rows(2, ("a",)), Rows(1, ("a", "b")), Rows(50, ("b",)), Latest(("a",))]
)


@given(streams(SCHEMA, small=True, size=40), functions, cuts)
@quick
def test_rows_are_the_last_of_each_partition(
    history: History, function: Rows | Latest, ends: list[int]
) -> None:
    def make() -> RowsKernel:
        return RowsKernel(function, (STREAM,), 1)

    count = 1 if isinstance(function, Latest) else function.count
    instants = range(-5, END + 1)
    wanted = [last_rows(history, t, count, function.by) for t in instants]
    for remake in (None, make):
        (out,) = run(make(), [STREAM], [history], marks(ends, END), remake=remake)
        assert wanted == bags(out, instants)


def test_what_comes_and_goes_within_an_instant_is_never_seen() -> None:
    kernel = RowsKernel(Rows(2), (STREAM,), 1)
    history: History = [(0, ("z", 0.0), 1), *((1, ("a", float(i)), 1) for i in range(5))]
    (out,) = run(kernel, [STREAM], [history], [1])
    expected = [(0, ("z", 0.0), 1), (1, ("a", 3.0), 1), (1, ("a", 4.0), 1), (1, ("z", 0.0), -1)]
    assert expected == sorted(out, key=lambda c: (c[0], -c[2]))


def test_rows_that_are_pushed_out_are_forgotten() -> None:
    kernel = RowsKernel(Rows(3, ("b",)), (STREAM,), 1)
    history: History = [
        (t, (f"a rather long text of number {t}", float(t % 4)), 1) for t in range(5000)
    ]
    (out,) = run(kernel, [STREAM], [history], range(9, 5010, 10))
    assert 5000 + 5000 - 12 == len(out)
    assert kernel.store.counters[0] < 30
    assert len(kernel.codec.pool) < 2500
