"""Lookups and first rows on longer histories than the reference can bear."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from millstream.calculus.functions import Lookup, Rows, Top
from millstream.calculus.types import INTEGER, TEXT, QueueType, Row, Schema
from millstream.kernels.relational.lookup import LookupKernel
from millstream.kernels.relational.top import TopKernel
from millstream.kernels.relational.window_rows import RowsKernel
from tests.kernels.relational_cases import History, bags, run

LEFT = QueueType(Schema.of(k=INTEGER, t=TEXT), is_relation=True)
RIGHT = QueueType(Schema.of(j=INTEGER), is_relation=True)


def history(seed: int, size: int, keys: int, *, has_text: bool = True) -> History:
    """Random insertions and deletions, several at an instant."""
    choose = random.Random(seed)
    present: list[Row] = []
    found: History = []
    time = 0
    for _ in range(size):
        time += choose.randrange(2)
        if present and choose.random() < 0.45:
            found.append((time, present.pop(choose.randrange(len(present))), -1))
        else:
            key = choose.randrange(keys) if choose.random() > 0.05 else None
            row: Row = (key, f"text number {choose.randrange(7)}") if has_text else (key,)
            present.append(row)
            found.append((time, row, 1))
    return found


ENDS = (10, 11, 250, 251, 700, 1_000)


@pytest.mark.parametrize("seed", range(2))
def test_a_lookup_knows_at_every_instant_what_the_other_side_has(seed: int) -> None:
    left = history(seed, 800, 40)
    right = history(seed + 100, 400, 60, has_text=False)

    def make() -> LookupKernel:
        return LookupKernel(Lookup("found", (("k", "j"),)), (LEFT, RIGHT), 1)

    instants = range(-1, 450, 9)
    expected = [
        Counter({(*row, row[0] is not None and (row[0],) in there): n for row, n in bag.items()})
        for bag, there in zip(bags(left, instants), bags(right, instants), strict=True)
    ]
    for remake in (None, make):
        (out,) = run(make(), [LEFT, RIGHT], [left, right], ENDS, remake=remake)
        assert expected == bags(out, instants)


@pytest.mark.parametrize("few", [1, 1024])
@pytest.mark.parametrize("count", [1, 5, 100])
def test_the_first_rows_are_those_of_a_sorted_list(count: int, few: int) -> None:
    changes = history(count, 800, 300)

    def make() -> TopKernel:
        kernel = TopKernel(Top(count, ("t", "k"), ("k",)), (LEFT,), 1)
        kernel.few = few
        return kernel

    def order(row: Row) -> tuple[object, ...]:
        key, text = row
        return text, float("inf") if key is None else -int(key)

    instants = range(-1, 450, 9)
    expected = [
        Counter(sorted(bag.elements(), key=order)[:count]) for bag in bags(changes, instants)
    ]
    for remake in (None, make):
        (out,) = run(make(), [LEFT], [changes], ENDS, remake=remake)
        assert expected == bags(out, instants)


def test_what_a_lookup_and_the_first_rows_no_longer_need_is_forgotten() -> None:
    changes: History = [(t, (t % 50, f"a text of number {t}"), 1) for t in range(600)]
    gone: History = [(t + 3, row, -1) for t, row, _ in changes]
    everything = sorted([*changes, *gone], key=lambda c: c[0])
    lookup = LookupKernel(Lookup("found", (("k", "j"),)), (LEFT, RIGHT), 1)
    top = TopKernel(Top(3, ("k",)), (LEFT,), 1)
    ends = range(10, 620, 20)
    run(lookup, [LEFT, RIGHT], [everything, []], ends)
    run(top, [LEFT], [everything], ends)
    assert (0, 0) == (lookup.keys.size, lookup.left.rows.size)
    assert 0 == top.rows.size == len(top.first)


def test_old_rows_leave_a_window_of_rows_and_are_forgotten() -> None:
    stream = QueueType(LEFT.schema)
    items: History = [(t * 2, (t % 5, f"text {t}"), 1) for t in range(500)]
    kernel = RowsKernel(Rows(3, ("k",), 11), (stream,), 1)
    (out,) = run(kernel, [stream], [items], [*range(7, 1_100, 9), 1_100])
    expected = [
        Counter(
            row
            for key in range(5)
            for time, row, _ in [i for i in items if i[1][0] == key and i[0] <= now][-3:]
            if time >= now - 11
        )
        for now in range(0, 1_100, 3)
    ]
    assert expected == bags(out, range(0, 1_100, 3))
    assert 0 == kernel.partitions.size == kernel.store.counters[2]
