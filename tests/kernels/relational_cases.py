"""What the tests of the kernels of time and order share: rows, rounds, bags."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from millstream.calculus.terms import NAN, canonical
from millstream.calculus.types import Kind, QueueType, Row, Schema, Type, Value
from millstream.kernels.runtime.kernel import Kernel, Round, State
from millstream.plan.batch import Batch, batch_of

Change = tuple[int, Row, int]
History = list[Change]

VALUES: dict[Kind, list[Value]] = {
    Kind.NUMBER: [0.0, -0.0, 1.5, -2.25, 0.1, 1e16, 1e300, 5e-324, math.inf, -math.inf, NAN],
    Kind.INTEGER: [0, 1, -1, 7, 2**62, -(2**62), 2**63 - 1, -(2**63)],
    Kind.TEXT: ["", "a", "b", "ab", "a longer text than a word", "é", "😀", "\uffff", "z\0"],
    Kind.BOOLEAN: [False, True],
    Kind.TIME: [0, 5, -5],
    Kind.DURATION: [0, 5, -5],
}


def values(type_: Type, *, small: bool = False) -> st.SearchStrategy[Value]:
    some = VALUES[type_.kind][:3] if small else VALUES[type_.kind]
    return st.sampled_from([None, *some])


def rows(schema: Schema, *, small: bool = False) -> st.SearchStrategy[Row]:
    return st.tuples(*(values(f.type, small=small) for f in schema))


@st.composite
def streams(draw: Any, schema: Schema, *, small: bool = False, size: int = 25) -> History:
    """Items of a stream, several of them at one instant; the weight is always one."""
    steps = draw(st.lists(st.tuples(st.integers(0, 3), rows(schema, small=small)), max_size=size))
    time, items = draw(st.integers(-3, 3)), []
    for step, row in steps:
        time += max(0, step - 1)
        items.append((time, row, 1))
    return items


@st.composite
def relations(draw: Any, schema: Schema, *, small: bool = False, size: int = 25) -> History:
    """Changes of a bag, not consolidated, with weights, in any order within an instant."""
    count = draw(st.integers(0, size))
    time, bag, history = 0, Counter[Row](), []
    instant: History = []
    for _ in range(count):
        step = draw(st.integers(0, 3))
        if step > 1:
            history += draw(st.permutations(instant))
            instant, time = [], time + step - 1
        present = sorted((r for r, n in bag.items() if n > 0), key=order)
        if present and draw(st.booleans()):
            row = draw(st.sampled_from(present))
            weight = -draw(st.integers(1, bag[row]))
        else:
            row = tuple(canonical(v) for v in draw(rows(schema, small=small)))
            weight = draw(st.sampled_from([1, 1, 1, 2]))
        bag[row] += weight
        instant.append((time, row, weight))
    return history + list(draw(st.permutations(instant)))


def order(row: Row) -> tuple[Any, ...]:
    """The canonical order of rows, as plainly as can be said."""

    def one(value: Value) -> tuple[Any, ...]:
        if value is None:
            return (0,)
        if isinstance(value, float):
            return (2,) if math.isnan(value) else (1, value)
        return (1, value.encode()) if isinstance(value, str) else (1, value)

    return tuple(one(v) for v in row)


def same(row: Row) -> Row:
    return tuple(canonical(v) for v in row)


def bag_of(history: History, time: int) -> Counter[Row]:
    """The relation as it is at an instant."""
    bag = Counter[Row]()
    for at, row, weight in history:
        if at <= time:
            bag[same(row)] += weight
    assert all(n >= 0 for n in bag.values())
    return +bag


def bags(history: History, times: Sequence[int]) -> list[Counter[Row]]:
    return [bag_of(history, t) for t in times]


def marks(draw_list: Sequence[int], end: int) -> list[int]:
    return sorted({m for m in draw_list if m < end} | {end})


cuts = st.lists(st.integers(-5, 40), max_size=6)


def batch(type_: QueueType, history: History) -> Batch:
    return batch_of(
        type_,
        [t for t, _, _ in history],
        [r for _, r, _ in history],
        [w for _, _, w in history] if type_.is_relation else None,
    )


def run(
    kernel: Kernel,
    types: Sequence[QueueType],
    inputs: Sequence[History],
    ends: Sequence[int],
    *,
    ticks: Sequence[int] = (),
    remake: Any = None,
) -> list[History]:
    """Feed a kernel in rounds that end at `ends`; the outputs, one list per queue.

    With `remake` the kernel is replaced after every round by a new one that gets its
    snapshot; the old one goes on beside it, and both must always have the same state.
    """
    beside = None if remake is None else remake()
    outputs: list[History] = []
    before = -(10**9)
    for end in ends:
        batches = tuple(
            batch(t, [c for c in h if before < c[0] <= end])
            for t, h in zip(types, inputs, strict=True)
        )
        seen = np.array([t for t in ticks if before < t <= end], np.int64)
        given = kernel.process(batches, Round(end, seen))
        outputs = outputs or [[] for _ in given]
        for output, b in zip(outputs, given, strict=True):
            output.extend(changes(b, before, end))
        if beside is not None:
            beside.process(batches, Round(end, seen))
            state = kernel.snapshot()
            assert_same(beside.snapshot(), state)
            kernel = remake()
            kernel.restore(state)
            assert_same(state, kernel.snapshot())
        before = end
    return outputs


def assert_same(one: State, other: State) -> None:
    """States are plain arrays and numbers, equal to the last bit."""
    assert list(one) == list(other)
    for name, value in one.items():
        assert isinstance(value, np.ndarray | int)
        a, b = np.asarray(value), np.asarray(other[name])
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), name


def changes(b: Batch, before: int, end: int) -> History:
    """The items of a batch, which must be of the round and in order of time."""
    times = b.time.tolist()
    assert times == sorted(times)
    assert all(before < t <= end for t in times)
    assert (b.weight is not None) == b.type.is_relation
    assert [f.type for f in b.schema] == [c.type for c in b.columns]
    assert all(len(c) == len(times) for c in b.columns)
    weights = [1] * len(times) if b.weight is None else b.weight.tolist()
    assert 0 not in weights
    return list(zip(times, b.rows(), weights, strict=True))


#: The first example compiles, so there is no deadline.
quick = settings(max_examples=int(os.environ.get("MILLSTREAM_EXAMPLES", "40")), deadline=None)
