from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
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

from millstream.calculus.functions import Now, Range
from millstream.calculus.types import INT64_MAX, INT64_MIN, NUMBER, TEXT, QueueType, Row, Schema
from millstream.kernels.kernel import Round
from millstream.kernels.windows import RangeKernel

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
