"""A window and what reads it as one kernel say what both say one after the other."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from millstream.calculus.functions import Aggregate, Aggregation, Join, Range
from millstream.calculus.terms import Column
from millstream.calculus.types import (
    INT64_MAX,
    INTEGER,
    NUMBER,
    TEXT,
    Field,
    QueueType,
    Row,
    Schema,
)
from millstream.kernels.relational.aggregate import AggregateKernel
from millstream.kernels.relational.join import JoinKernel
from millstream.kernels.relational.now_join import NowJoinKernel
from millstream.kernels.relational.window_aggregate import WindowAggregateKernel
from millstream.kernels.relational.window_time import RangeKernel
from millstream.kernels.rounds import NO_TICKS
from millstream.kernels.runtime.kernel import Kernel, Round
from millstream.plan.batch import Batch, batch_of

SCHEMA = Schema((Field("k", TEXT), Field("v", INTEGER), Field("x", NUMBER)))
STREAM = QueueType(SCHEMA, False)
V, X, K = Column("v", INTEGER), Column("x", NUMBER), Column("k", TEXT)
AGGREGATIONS = (
    Aggregation("n", "count"),
    Aggregation("sum", "sum", V),
    Aggregation("mean", "avg", X),
    Aggregation("least", "min", X),
    Aggregation("last", "max", K),
)

Changes = Counter[tuple[int, Row]]


def rounds(seed: int, count: int = 12) -> list[tuple[Batch, int]]:
    """Batches of rows, some of them empty, and the mark up to which each reaches."""
    generator = random.Random(seed)
    found: list[tuple[Batch, int]] = []
    mark = 0
    for _ in range(count):
        start, mark = mark + 1, mark + generator.choice([1, 3, 10])
        size = generator.choice([0, 1, 5, 9])
        times = sorted(generator.randint(start, mark) for _ in range(size))
        rows: list[Row] = [
            (
                generator.choice(["a", "b", "c", None]),
                generator.choice([1, 2, None]),
                generator.choice([0.5, -1.5, None]),
            )
            for _ in times
        ]
        found.append((batch_of(STREAM, times, rows, None), mark))
    return found


def changes_of(batch: Batch) -> Changes:
    found: Changes = Counter()
    weights = [1] * len(batch) if batch.weight is None else batch.weight.tolist()
    for time, weight, row in zip(batch.time.tolist(), weights, batch.rows(), strict=True):
        found[time, row] += weight
    return Counter({change: n for change, n in found.items() if n})


def one_by_one(kernels: list[Kernel], batch: Batch, round_: Round) -> Batch:
    for kernel in kernels:
        (batch,) = kernel.process((batch,), round_)
    return batch


def restarted(make: Any, kernel: Kernel) -> Kernel:
    fresh: Kernel = make()
    fresh.restore(kernel.snapshot())
    return fresh


@pytest.mark.parametrize("aggregations", [AGGREGATIONS, AGGREGATIONS[:1]], ids=["all", "count"])
@pytest.mark.parametrize("by", [("k",), ()])
@pytest.mark.parametrize("length", [0, 4, INT64_MAX - 20])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_aggregate_over_a_window(
    aggregations: tuple[Aggregation, ...], by: tuple[str, ...], length: int, seed: int
) -> None:
    window, function = Range(length), Aggregate(by, aggregations)
    relation = QueueType(SCHEMA, True)

    def make() -> WindowAggregateKernel:
        return WindowAggregateKernel(window, function, STREAM)

    apart: list[Kernel] = [
        RangeKernel(window, (STREAM,), 1),
        AggregateKernel(function, (relation,), 1),
    ]
    kernel: Kernel = make()
    news = make()
    news.tell_only_news()
    for number, (batch, mark) in enumerate(rounds(seed)):
        round_ = Round(mark, NO_TICKS)
        expected = changes_of(one_by_one(apart, batch, round_))
        assert expected == changes_of(kernel.process((batch,), round_)[0])
        assert +expected == changes_of(news.process((batch,), round_)[0])
        if number % 3 == 2:
            kernel = restarted(make, kernel)


def test_a_window_that_is_empty_again_keeps_nothing() -> None:
    kernel = WindowAggregateKernel(Range(2), Aggregate(("k",), AGGREGATIONS), STREAM)
    empty = kernel.snapshot()
    kernel.process((batch_of(STREAM, [1, 2], [("a", 1, 1.0), ("b", None, None)], None),),
                   Round(2, NO_TICKS))  # fmt: skip
    assert kernel.keys.size == 2
    kernel.process((batch_of(STREAM, [], [], None),), Round(9, NO_TICKS))
    assert kernel.keys.size == 0
    assert len(empty["waiting.time"]) == len(kernel.snapshot()["waiting.time"]) == 0


# --- joins with the rows of an instant ----------------------------------------------------

TABLE = QueueType(Schema((Field("k", TEXT), Field("w", INTEGER))), is_relation=True)


def relation_rounds(seed: int, marks: list[int]) -> list[Batch]:
    """Changes of a relation that has some rows twice, in the same rounds."""
    generator = random.Random(seed + 100)
    present: list[Row] = []
    found: list[Batch] = []
    start = 1
    for mark in marks:
        size = generator.choice([0, 0, 2, 6])
        times = sorted(generator.randint(start, mark) for _ in range(size))
        rows: list[Row] = []
        weights: list[int] = []
        for _ in times:
            if present and generator.random() < 0.4:
                rows.append(present.pop(generator.randrange(len(present))))
                weights.append(-1)
            else:
                row = (generator.choice(["a", "b", None]), generator.choice([1, 2]))
                present.append(row)
                rows.append(row)
                weights.append(1)
        found.append(batch_of(TABLE, times, rows, weights))
        start = mark + 1
    return found


def news_of(expected: Changes, told: Changes) -> Changes:
    """What is told, at the instants at which something comes: the rest need not be told."""
    instants = {time for (time, _), n in expected.items() if n > 0}
    return Counter({c: n for c, n in told.items() if c[0] in instants})


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("nulls_match", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_join_with_the_rows_of_an_instant(side: int, nulls_match: bool, seed: int) -> None:
    window, function = Range(0), Join((("k", "k"),), None, nulls_match)
    present = QueueType(SCHEMA, is_relation=True)
    types = (present, TABLE) if side == 0 else (TABLE, present)

    def make() -> NowJoinKernel:
        return NowJoinKernel(function, STREAM, TABLE, side)

    before, apart = RangeKernel(window, (STREAM,), 1), JoinKernel(function, types, 1)
    kernel: Kernel = make()
    news = make()
    news.tell_only_news()
    given = rounds(seed)
    changes = relation_rounds(seed, [mark for _, mark in given])
    for number, ((batch, mark), other) in enumerate(zip(given, changes, strict=True)):
        round_ = Round(mark, NO_TICKS)
        (windowed,) = before.process((batch,), round_)
        both = (windowed, other) if side == 0 else (other, windowed)
        expected = changes_of(apart.process(both, round_)[0])
        assert expected == changes_of(kernel.process((batch, other), round_)[0])
        told = changes_of(news.process((batch, other), round_)[0])
        assert news_of(expected, expected) == news_of(expected, told)
        if number % 3 == 2:
            kernel = restarted(make, kernel)


def test_a_join_with_an_instant_forgets_keys_that_have_no_rows() -> None:
    kernel = NowJoinKernel(Join((("k", "k"),), None), STREAM, TABLE, 0)
    rows: list[Row] = [("a", 1, 1.0), ("b", 1, 1.0)]
    there = batch_of(TABLE, [1], [("a", 7)], [1])
    (out,) = kernel.process((batch_of(STREAM, [1, 1], rows, None), there), Round(5, NO_TICKS))
    assert {(1, ("a", 1, 1.0, 7)): 1, (2, ("a", 1, 1.0, 7)): -1} == changes_of(out)
    assert kernel.keys.size == 1
    gone = batch_of(TABLE, [6], [("a", 7)], [-1])
    kernel.process((batch_of(STREAM, [], [], None), gone), Round(6, NO_TICKS))
    assert kernel.keys.size == 0
