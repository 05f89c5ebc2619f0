from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.calculus.functions import Distinct, Join
from millstream.calculus.types import INTEGER, NUMBER, TEXT, QueueType, Row, Schema
from millstream.kernels.relational.distinct import DistinctKernel
from millstream.kernels.relational.join import JoinKernel
from millstream.kernels.relational.join_pairs import IS_NET
from millstream.kernels.runtime.consolidate import net_of_columns
from millstream.kernels.runtime.interning_text import TextPool
from millstream.kernels.runtime.kernel import Round
from millstream.plan.batch import Batch
from millstream.plan.net import Leaving
from tests.kernels.relational_cases import (
    History,
    bag_of,
    bags,
    cuts,
    marks,
    quick,
    relations,
    run,
)

LEFT = Schema.of(k=TEXT, m=NUMBER, a=TEXT)
RIGHT = Schema.of(k=TEXT, n=NUMBER, b=INTEGER)
TYPES = (QueueType(LEFT, is_relation=True), QueueType(RIGHT, is_relation=True))
END = 45

ons = st.sampled_from([(("k", "k"),), (("k", "k"), ("m", "n"))])


def joined(function: Join, left: History, right: History, time: int) -> Counter[Row]:
    kept = [RIGHT.index(n) for n in function.right_kept(RIGHT)]
    result = Counter[Row]()
    for one, times in bag_of(left, time).items():
        for other, again in bag_of(right, time).items():
            keys = [(one[LEFT.index(a)], other[RIGHT.index(b)]) for a, b in function.on]
            if all(a is not None and b is not None and (a is b or a == b) for a, b in keys):
                result[one + tuple(other[i] for i in kept)] += times * again
    return result


class Checked(JoinKernel):
    """What it calls net is net, and in order, where its pairs leave by these columns."""

    net_batches = 0

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (out,) = super().process(inputs, round_)
        if out.is_net and len(out):
            assert out.weight is not None
            shown = [out.column(n) for n in self.by]
            assert net_of_columns(out.time, out.weight, shown, TextPool()) is None
            Checked.net_batches += 1
        return (out,)

    def __init__(
        self, function: Join, types: tuple[QueueType, ...], count: int, by: Leaving
    ) -> None:
        super().__init__(function, types, count, by)
        self.by = by.columns


def check(
    function: Join, left: History, right: History, ends: list[int], by: tuple[str, ...] = ()
) -> None:
    def make() -> JoinKernel:
        return Checked(function, TYPES, 1, Leaving(by, by))

    instants = range(-1, END + 1)
    wanted = [joined(function, left, right, t) for t in instants]
    for remake in (None, make):
        (out,) = run(make(), TYPES, [left, right], marks(ends, END), remake=remake)
        assert wanted == bags(out, instants)
        assert all(n == 1 for n in Counter((t, row) for t, row, _ in out).values())


@given(ons, relations(LEFT, small=True), relations(RIGHT, small=True), cuts)
@quick
def test_join_is_the_bag_of_pairs_at_every_instant(
    on: tuple[tuple[str, str], ...], left: History, right: History, ends: list[int]
) -> None:
    check(Join(on), left, right, ends)


@given(relations(LEFT), relations(RIGHT), cuts)
@quick
def test_join_of_all_kinds_of_keys(left: History, right: History, ends: list[int]) -> None:
    check(Join((("k", "k"), ("m", "n"))), left, right, ends)


@given(
    st.permutations(["k", "a", "b"]), relations(LEFT, small=True), relations(RIGHT, small=True),
    cuts,
)  # fmt: skip
@quick
def test_lists_in_order_change_no_pair(
    by: list[str], left: History, right: History, ends: list[int]
) -> None:
    check(Join((("k", "k"),)), left, right, ends, tuple(by))


@pytest.mark.parametrize("by", [("k", "a", "b"), ("b", "k", "a")])
def test_pairs_of_one_key_are_told_in_the_order_in_which_they_leave(by: tuple[str, ...]) -> None:
    """Both sides come in no order, and rows of both change at one instant."""
    left: History = [(n, ("k", 0.0, f"a{7 * n % 10}"), 1) for n in range(10)]
    right: History = [(n, ("k", 0.0, 3 * n % 10), 1) for n in range(10)]
    left += [(20, ("k", 0.0, "a4"), -1), (20, ("k", 0.0, "a45"), 1)]
    right += [(20, ("k", 0.0, 5), -1), (20, ("k", 0.0, -5), 1)]
    kernel = Checked(Join((("k", "k"),)), TYPES, 1, Leaving(by, by))
    (out,) = run(kernel, TYPES, [left, right], [END])
    names = kernel.type.schema.names
    places = [names.index(n) for n in by]
    told = [(t, weight, [row[i] for i in places]) for t, row, weight in out]
    assert len(told) == 100 + 2 * 19
    assert told == sorted(told)
    assert kernel.cursor[IS_NET]


@pytest.mark.parametrize("by", [(), ("b", "a")])
@pytest.mark.parametrize("is_left", [True, False])
def test_rows_that_are_replaced_meet_partners_that_are_there_twice(
    by: tuple[str, ...], *, is_left: bool
) -> None:
    """Also if they are of another key, if nothing changes, and if one is there once less."""
    left: History = [(0, ("k", 0.0, f"a{n}"), 1 + n) for n in range(3)]
    right: History = [(1, (key, 0.0, 1), 2) for key in "kl"]
    some = left if is_left else right
    row, other = some[-1][1], (("l", 0.0, "a") if is_left else ("k", 0.0, 7))
    some += [(2, row, -1), (2, other, 3), (3, other, 0), (4, row, 1), (4, other, -3)]
    some += [(5, row, -1), (5, row, 1), (6, row, -2)]
    check(Join((("k", "k"),)), left, right, [3, END], by)


@pytest.mark.parametrize("by", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("is_left", [True, False])
def test_changes_of_an_instant_that_come_in_no_order_are_told_in_order(
    by: tuple[str, ...], *, is_left: bool
) -> None:
    """Of a window two rows may come at once; `Checked` looks at what is called net."""
    left: History = [(t, ("k", 0.0, f"a{n}"), 1) for t, n in ((0, 2), (1, 3), (2, 9), (2, 5))]
    right: History = [(t, ("k", 0.0, n), 1) for t, n in ((0, 2), (1, 3), (3, 9), (3, 5))]
    some = [left, right[:2]] if is_left else [left[:2], right]
    kernel = Checked(Join((("k", "k"),)), TYPES, 1, Leaving(by, by))
    (out,) = run(kernel, TYPES, some, [END])
    names = kernel.type.schema.names
    told = [(t, weight, [row[names.index(n)] for n in by]) for t, row, weight in out]
    assert len(told) == 8
    assert told == sorted(told)
    assert kernel.cursor[IS_NET]


@pytest.mark.parametrize("rows", [5, 40])
@pytest.mark.parametrize("by", [("a", "b"), ("b", "a")])
def test_many_rows_of_a_key_come_and_go_at_one_instant(by: tuple[str, ...], rows: int) -> None:
    """More rows than are looked for one by one; blocks grow, slide and shrink."""
    left: History = []
    right: History = [(0, ("k", 0.0, n), 1) for n in range(3)]
    for t in range(30):
        names = [f"a{(7 * t + 11 * n) % 1000:03}" for n in range(rows)]
        left += [(t, ("k", 0.0, name), 1) for name in names]
        left += [(t + 3, ("k", 0.0, name), -1) for name in names]
    left.sort(key=lambda change: change[0])
    check(Join((("k", "k"),)), left, right, list(range(0, 30, 4)), by)


def test_without_keys_all_pairs_are_joined() -> None:
    left_type = QueueType(Schema.of(a=INTEGER), is_relation=True)
    right_type = QueueType(Schema.of(b=INTEGER), is_relation=True)
    kernel = JoinKernel(Join(), (left_type, right_type), 1)
    left: History = [(t, (t % 5,), 1) for t in range(40)]
    right: History = [(t, (t % 7,), 1) for t in range(0, 40, 2)]
    (out,) = run(kernel, [left_type, right_type], [left, right], [7, 39])
    pairs = Counter((a, b) for (_, (a,), _) in left for (_, (b,), _) in right)
    assert pairs == bag_of(out, 39)


@pytest.mark.parametrize(("left_time", "right_time"), [(0, 0), (0, 1), (1, 0)])
def test_an_instant_may_have_many_more_pairs_than_changes(left_time: int, right_time: int) -> None:
    left: History = [(left_time, ("k", float(i), None), 1) for i in range(60)]
    right: History = [(right_time, ("k", float(i), None), 1) for i in range(60)]
    function = Join((("k", "k"),))
    (out,) = run(JoinKernel(function, TYPES, 1), TYPES, [left, right], [1])
    assert 3600 == len(out)
    assert joined(function, left, right, 1) == bag_of(out, 1)


def test_rows_and_keys_that_are_gone_are_forgotten() -> None:
    left: History = []
    right: History = []
    for t in range(0, 2000, 2):
        key = f"a rather long key of number {t}"
        left += [(t, (key, 1.0, "x"), 1), (t + 1, (key, 1.0, "x"), -1)]
        right += [(t, (key, 2.0, t), 1), (t + 2, (key, 2.0, t), -1)]
    kernel = JoinKernel(Join((("k", "k"),)), TYPES, 1)
    right.sort(key=lambda c: c[0])
    (out,) = run(kernel, TYPES, [left, right], range(9, 2020, 10))
    assert 2000 == len(out)
    sizes = (kernel.keys.size, kernel.left.rows.size, kernel.right.rows.size)
    assert (0, 0, 0) == sizes
    assert max(kernel.keys.bound, kernel.left.rows.bound, kernel.right.rows.bound) < 20
    assert 0 == np.count_nonzero(kernel.keys.table.records)


RELATION = TYPES[0]


@given(relations(LEFT), cuts)
@quick
def test_distinct_has_each_row_once(history: History, ends: list[int]) -> None:
    def make() -> DistinctKernel:
        return DistinctKernel(Distinct(), (RELATION,), 1)

    instants = range(-1, END + 1)
    wanted = [Counter(set(bag_of(history, t))) for t in instants]
    for remake in (None, make):
        (out,) = run(make(), [RELATION], [history], marks(ends, END), remake=remake)
        assert wanted == bags(out, instants)
        assert all(n == 1 for n in Counter((t, row) for t, row, _ in out).values())


def test_distinct_forgets_rows_that_are_gone() -> None:
    history: History = []
    for t in range(0, 1000, 2):
        row: Row = (f"a rather long text of number {t}", 1.0, "x")
        history += [(t, row, 2), (t + 1, row, -2)]
    kernel = DistinctKernel(Distinct(), (RELATION,), 1)
    (out,) = run(kernel, [RELATION], [history], range(9, 1010, 10))
    assert 1000 == len(out)
    assert 0 == kernel.rows.size
    assert kernel.rows.bound < 20
