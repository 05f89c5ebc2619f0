from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from millstream.calculus.functions import Dstream, Istream, Rstream
from millstream.calculus.types import INTEGER, NUMBER, TEXT, QueueType, Row, Schema
from millstream.kernels.relational.tostream import DifferenceKernel, RstreamKernel
from millstream.kernels.runtime.consolidate import consolidate
from tests.kernels.relational_cases import (
    Change,
    History,
    bag_of,
    batch,
    changes,
    cuts,
    marks,
    order,
    quick,
    relations,
    run,
)

SCHEMA = Schema.of(a=TEXT, b=NUMBER, c=INTEGER)
RELATION = QueueType(SCHEMA, is_relation=True)
END = 45


def net(history: History) -> History:
    """The difference of the bags at each instant, in canonical order."""
    expected: list[Change] = []
    for time in sorted({t for t, _, _ in history}):
        before, after = bag_of(history, time - 1), bag_of(history, time)
        expected += [(time, r, -1) for r in sorted((before - after).elements(), key=order)]
        expected += [(time, r, 1) for r in sorted((after - before).elements(), key=order)]
    return expected


@given(relations(SCHEMA))
@quick
def test_consolidated_changes_are_differences_of_bags_in_order(history: History) -> None:
    consolidated = consolidate(batch(RELATION, history))
    assert net(history) == changes(consolidated, -1, END)


def test_many_changes_at_one_instant_are_sorted() -> None:
    rng = np.random.default_rng(3)
    some: list[Row] = [
        (None if i % 7 == 0 else f"text {i}", float(i % 3), None) for i in rng.permutation(500)
    ]
    history = [(0, r, 1) for r in some] + [(1, r, -1) for r in some[:250]]
    assert net(history) == changes(consolidate(batch(RELATION, history)), -1, END)


@pytest.mark.parametrize("swapped", [(0, 1), (1, 2), (2, 3)])
def test_what_is_net_and_in_order_stays_as_it_is(swapped: tuple[int, int]) -> None:
    history: History = [(1, ("b", 0.0, 2), -1), (1, ("c", 0.0, 1), -1), (1, ("a", 0.0, 1), 1),
                        (1, ("c", 0.0, 2), 1)]  # fmt: skip
    given = batch(RELATION, history)
    assert consolidate(given) is given
    places = np.arange(4)
    places[list(swapped)] = swapped[::-1]
    assert changes(consolidate(given.take(places)), -1, END) == history


def test_a_row_that_goes_and_comes_at_one_instant_stays() -> None:
    """Deletions and insertions may each be in order, and still undo each other."""
    history: History = [(1, ("b", 0.0, 2), -1), (1, ("c", 0.0, 1), -1), (1, ("c", 0.0, 1), 1),
                        (1, ("d", 0.0, 2), 1)]  # fmt: skip
    assert [row[0] for row in consolidate(batch(RELATION, history)).rows()] == ["b", "d"]


def test_changes_alone_at_their_instants_are_left_alone() -> None:
    history: History = [(t, ("a", 1.0, t), 1) for t in range(5)]
    given_ = batch(RELATION, history)
    assert given_ is consolidate(given_)


@pytest.mark.parametrize("function", [Istream(), Dstream()])
@given(history=relations(SCHEMA, small=True), ends=cuts)
@quick
def test_istream_and_dstream_are_the_parts_of_the_difference(
    function: Istream | Dstream, history: History, ends: list[int]
) -> None:
    kernel = DifferenceKernel(function, (RELATION,), 1)
    (out,) = run(kernel, [RELATION], [history], marks(ends, END))
    sign = 1 if isinstance(function, Istream) else -1
    assert [(t, r, 1) for t, r, w in net(history) if w == sign] == out


def rstream() -> RstreamKernel:
    return RstreamKernel(Rstream(), (RELATION,), 1)


@given(relations(SCHEMA, small=True), cuts, cuts)
@quick
def test_rstream_is_the_whole_relation_at_each_tick(
    history: History, ticks: list[int], ends: list[int]
) -> None:
    ticks = sorted(set(ticks))
    (out,) = run(rstream(), [RELATION], [history], marks(ends, END), ticks=ticks)
    expected = [
        (tick, row, 1)
        for tick in ticks
        for row in sorted(bag_of(history, tick).elements(), key=order)
    ]
    assert expected == out
    (again,) = run(rstream(), [RELATION], [history], marks(ends, END), ticks=ticks, remake=rstream)
    assert expected == again


def test_rstream_forgets_rows_that_are_gone() -> None:
    kernel = rstream()
    history: History = []
    for t in range(0, 400, 2):
        row: Row = (f"a rather long text of number {t}", float(t), t)
        history += [(t, row, 1), (t + 1, row, -1)]
    run(kernel, [RELATION], [history], range(9, 410, 10), ticks=range(400))
    assert (0, 0) == (kernel.rows.size, len(kernel.order))
    assert kernel.rows.bound < 20


def test_minus_zero_undoes_zero_and_nan_undoes_nan() -> None:
    history: History = [
        (0, ("a", 0.0, None), 1),
        (0, ("a", math.nan, 1), 1),
        (0, ("a", -0.0, None), -1),
        (0, ("a", -math.nan, 1), -1),
    ]
    assert [] == changes(consolidate(batch(RELATION, history)), -1, END)
