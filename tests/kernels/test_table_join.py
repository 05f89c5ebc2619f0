"""Joins of tables give what joins of relations give, whatever comes at one instant."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millstream.calculus.functions import Join, Latest, Rows
from millstream.calculus.types import BOOLEAN, INTEGER, TEXT, QueueType, Row, Schema
from millstream.kernels.relational.join import JoinKernel
from millstream.kernels.relational.latest import LatestKernel
from millstream.kernels.relational.table_join import TableJoinKernel
from millstream.kernels.relational.window_rows import RowsKernel
from millstream.kernels.runtime.consolidate import consolidate
from millstream.kernels.runtime.kernel import Round
from millstream.plan.batch import Batch, batch_of, concat_batches

LEFT = QueueType(Schema.of(k=INTEGER, f=TEXT, x=INTEGER))
RIGHT = QueueType(Schema.of(r=TEXT, y=TEXT))

Event = tuple[int, int, Row]  # a time, a side, a row

REFERENCES = st.sampled_from(["a", "b", "c", None])
LEFT_ROWS = st.tuples(st.sampled_from([1, 2, 3, None]), REFERENCES, st.integers(0, 2))
RIGHT_ROWS = st.tuples(REFERENCES, st.sampled_from(["one", "two", None]))
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 2), st.just(0), LEFT_ROWS),
        st.tuples(st.integers(0, 2), st.just(1), RIGHT_ROWS),
    ),
    max_size=30,
)


def rounds(events: list[Event], cuts: list[int]) -> list[tuple[int, Batch, Batch]]:
    """The events at growing times, in rounds that end where an instant does."""
    time, timed = 0, []
    for step, side, row in events:
        time += step
        timed.append((time, side, row))
    marks = sorted({*cuts, time})
    found, before = [], -1
    for mark in marks:
        some = [e for e in timed if before < e[0] <= mark]
        sides = [[e for e in some if e[1] == n] for n in (0, 1)]
        batches = [
            batch_of(type_, [e[0] for e in side], [e[2] for e in side])
            for type_, side in zip((LEFT, RIGHT), sides, strict=True)
        ]
        found.append((mark, batches[0], batches[1]))
        before = mark
    return found


def told(batches: list[Batch], type_: QueueType) -> list[tuple[int, int, Row]]:
    batch = consolidate(concat_batches(batches, type_))
    assert batch.weight is not None
    return list(zip(batch.time.tolist(), batch.weight.tolist(), batch.rows(), strict=True))


class Chain:
    """Two tables and their join."""

    def __init__(self, join: Join, *, is_table: bool) -> None:
        left, right = (QueueType(t.schema, is_relation=True) for t in (LEFT, RIGHT))
        self.join: Any
        self.tables: tuple[Any, Any]
        if is_table:
            self.tables = (
                LatestKernel(Latest(("k",)), (LEFT,), 1),
                LatestKernel(Latest(("r",)), (RIGHT,), 1),
            )
            self.join = TableJoinKernel(join, (left, right), ("k",))
        else:
            self.tables = (
                RowsKernel(Rows(1, ("k",)), (LEFT,), 1),
                RowsKernel(Rows(1, ("r",)), (RIGHT,), 1),
            )
            self.join = JoinKernel(join, (left, right), 1)

    def process(self, mark: int, left: Batch, right: Batch) -> Batch:
        round_ = Round(mark, np.zeros(0, np.int64))
        (one,) = self.tables[0].process((left,), round_)
        (other,) = self.tables[1].process((right,), round_)
        (out,) = self.join.process((one, other), round_)
        assert isinstance(out, Batch)
        return out


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.lists(st.integers(0, 30), max_size=3), st.booleans(), st.booleans())
# Restored with nothing in it.
@example([(0, 0, (1, None, 0)), (1, 1, ("a", "one"))], [0], False, True)
def test_a_join_of_tables_is_a_join(
    events: list[Event], cuts: list[int], nulls_match: bool, is_restored: bool
) -> None:
    join = Join((("f", "r"),), nulls_match=nulls_match)
    plain, ours = Chain(join, is_table=False), Chain(join, is_table=True)
    expected, actual = [], []
    for mark, left, right in rounds(events, cuts):
        expected.append(plain.process(mark, left, right))
        actual.append(ours.process(mark, left, right))
        if is_restored:
            fresh = Chain(join, is_table=True)
            fresh.join.restore(ours.join.snapshot())
            for new, old in zip(fresh.tables, ours.tables, strict=True):
                new.restore(old.snapshot())
            ours = fresh
    assert told(expected, plain.join.type) == told(actual, ours.join.type)


def test_what_nothing_needs_is_forgotten() -> None:
    """Rows come and go under ever new keys; the tables stay small."""
    join = Join((("f", "r"),))
    types = (QueueType(LEFT.schema, is_relation=True), QueueType(RIGHT.schema, is_relation=True))
    kernel = TableJoinKernel(join, types, ("k",))
    round_ = Round(0, np.zeros(0, np.int64))
    for n in range(50):
        name = f"key {n}"
        left = batch_of(types[0], [2 * n, 2 * n + 1], [(n, name, 1)] * 2, [1, -1])
        right = batch_of(types[1], [2 * n, 2 * n + 1], [(name, name)] * 2, [1, -1])
        (out,) = kernel.process((left, right), round_)
        assert [1, -1] == out.weight.tolist()  # type: ignore[union-attr]
    assert (0, 0) == (kernel.left.keys.size, kernel.right.keys.size)


def test_many_rows_may_refer_to_one() -> None:
    """More pairs at once than there is room for at first."""
    join = Join((("f", "r"),))
    types = (QueueType(LEFT.schema, is_relation=True), QueueType(RIGHT.schema, is_relation=True))
    kernel = TableJoinKernel(join, types, ("k",))
    count = 1_000
    left = batch_of(types[0], [1] * count, [(n, "a", n) for n in range(count)], [1] * count)
    right = batch_of(types[1], [2, 3, 3], [("a", "x"), ("a", "x"), ("a", "y")], [1, -1, 1])
    (out,) = kernel.process((left, right), Round(3, np.zeros(0, np.int64)))
    assert 3 * count == len(out)
    assert count == sum(out.weight)  # type: ignore[arg-type]
    assert {"y"} == {row[3 + 1] for row, t, w in zip(out.rows(), out.time, out.weight, strict=True)  # type: ignore[arg-type]
                     if t == 3 and w == 1}  # fmt: skip


def test_keys_that_are_gone_are_forgotten() -> None:
    type_ = QueueType(Schema.of(k=INTEGER, x=TEXT, gone=BOOLEAN))
    kernel = LatestKernel(Latest(("k",), "gone"), (type_,), 1)
    rows: list[Row] = [(1, "a", False), (1, "a", True), (2, "b", None), (3, "c", False),
                       (3, "c", True), (3, "d", False), (4, "e", True)]  # fmt: skip
    times = [1, 2, 2, 3, 3, 3, 4]
    (out,) = kernel.process((batch_of(type_, times, rows),), Round(4, np.zeros(0, np.int64)))
    expected = [(1, 1, (1, "a", False)), (2, -1, (1, "a", False)), (2, 1, (2, "b", None)),
                (3, 1, (3, "d", False))]  # fmt: skip
    assert expected == told([out], out.type)
    assert 2 == kernel.rows.keys.size
