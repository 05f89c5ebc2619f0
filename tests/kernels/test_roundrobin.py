from __future__ import annotations

from itertools import cycle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from millstream.calculus.functions import Merge, RoundRobinJoin, RoundRobinSplit
from millstream.calculus.types import INTEGER, TEXT, QueueType, Schema
from millstream.kernels.kernel import Round
from millstream.kernels.merge import MergeKernel
from millstream.kernels.roundrobin import RoundRobinJoinKernel, RoundRobinSplitKernel
from millstream.plan.batch import Batch
from tests.kernels.relational_cases import History, batch, cuts, marks, quick, run, streams

SCHEMA = Schema.of(a=TEXT, b=INTEGER)
STREAM = QueueType(SCHEMA)
END = 40

weights = st.sampled_from([(), (1, 1, 1), (2, 1, 3), (1, 5, 1)])
inputs = st.tuples(*(streams(SCHEMA, size=12) for _ in range(3)))


@given(streams(SCHEMA), weights, cuts)
@quick
def test_split_deals_items_out_by_count(
    history: History, w: tuple[int, ...], ends: list[int]
) -> None:
    def make() -> RoundRobinSplitKernel:
        return RoundRobinSplitKernel(RoundRobinSplit(w), (STREAM,), 3)

    expected: list[History] = [[], [], []]
    turn = cycle([n for n, times in enumerate(w or (1, 1, 1)) for _ in range(times)])
    for item in history:
        expected[next(turn)].append(item)
    for remake in (None, make):
        assert expected == run(make(), [STREAM], [history], marks(ends, END), remake=remake)


def joined(histories: tuple[History, ...], w: tuple[int, ...]) -> History:
    queues = [list(h) for h in histories]
    out: History = []
    last = -(10**6)
    for n in cycle([n for n, times in enumerate(w or (1, 1, 1)) for _ in range(times)]):
        if not queues[n]:
            return out
        time, row, _ = queues[n].pop(0)
        last = max(last, time)
        out.append((last, row, 1))
    raise AssertionError


@given(inputs, weights, cuts)
@quick
def test_join_takes_turns_and_waits(
    histories: tuple[History, ...], w: tuple[int, ...], ends: list[int]
) -> None:
    def make() -> RoundRobinJoinKernel:
        return RoundRobinJoinKernel(RoundRobinJoin(w), (STREAM,) * 3, 1)

    for remake in (None, make):
        (out,) = run(make(), [STREAM] * 3, histories, marks(ends, END), remake=remake)
        assert joined(histories, w) == out


@given(inputs, cuts)
@quick
def test_merge_is_by_time_then_input_then_position(
    histories: tuple[History, ...], ends: list[int]
) -> None:
    kernel = MergeKernel(Merge(), (STREAM,) * 3, 1)
    (out,) = run(kernel, [STREAM] * 3, histories, marks(ends, END))
    assert sorted((i for h in histories for i in h), key=lambda i: i[0]) == out


def test_ranks_travel_with_the_rows() -> None:
    plain = batch(STREAM, [(1, ("a", 1), 1), (2, ("b", 2), 1), (2, ("c", 3), 1)])
    ranked = Batch(STREAM, plain.time, plain.columns, None, np.array([7, 8, 9]))
    round_ = Round(2, np.zeros(0, np.int64))
    split = RoundRobinSplitKernel(RoundRobinSplit(), (STREAM,), 2).process((ranked,), round_)
    assert [[7, 9], [8]] == [b.rank.tolist() for b in split if b.rank is not None]
    (merged,) = MergeKernel(Merge(), (STREAM,) * 2, 1).process((ranked, plain), round_)
    assert merged.rank is None
