"""Compiled loops that sum equal rows of an instant and put them into canonical order.

Rows lie in columns of int64 words, which are given by their addresses: most columns of a batch
are such words as they are, so that nothing is copied. Rows are ordered by columns, left to right.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from millstream.compiled import inlined, tight
from millstream.kernels.runtime.utf8 import Texts, compare_texts
from millstream.plan.batch import Array


def _define_word_at(typing_context: Any, address: Any, row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        column = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(column, [args[1]]))

    del typing_context, address, row
    return types.int64(types.int64, types.int64), generate


#: `word_at(address, row)`: the caller answers for it that the column is alive and contiguous.
word_at: Any = intrinsic(_define_word_at)

#: The addresses of columns, which of them are codes of texts, and these texts.
Order = tuple[Array, Array, Texts]


@inlined
def _compare(one: Any, other: Any, lead: Any, order: Order) -> Any:
    """The sign of the order of two rows that are equal in all columns before `lead`."""
    columns, is_text, texts = order
    for j in range(lead, columns.size):
        a, b = word_at(columns[j], one), word_at(columns[j], other)
        if a != b:
            if not is_text[j]:
                return -1 if a < b else 1
            order_of_texts = compare_texts(a, b, texts)
            if order_of_texts != 0:
                return order_of_texts
    return 0


@inlined
def _leading(start: Any, end: Any, columns: Array) -> Any:
    """The first column in which not all of these rows are equal; most instants share many."""
    for j in range(columns.size):
        word = word_at(columns[j], start)
        for i in range(start + 1, end):
            if word_at(columns[j], i) != word:
                return j
    return columns.size


@inlined
def _end_of_run(rows: Array, start: Any, lead: Any, order: Order) -> Any:
    """The end of what is in order already; what is in the opposite order is turned round."""
    end = start + 1
    if end < rows.size and _compare(rows[start], rows[end], lead, order) > 0:
        while end < rows.size and _compare(rows[end - 1], rows[end], lead, order) > 0:
            end += 1
        i, j = start, end - 1
        while i < j:
            rows[i], rows[j] = rows[j], rows[i]
            i, j = i + 1, j - 1
        return end
    while end < rows.size and _compare(rows[end - 1], rows[end], lead, order) <= 0:
        end += 1
    return end


@tight
def _sort(rows: Array, spare: Array, ends: Array, lead: int, order: Order) -> None:
    """Merge what is in order until all is: joins tell their pairs in a few such runs."""
    runs, end = 0, 0
    while end < rows.size:
        end = _end_of_run(rows, end, lead, order)
        ends[runs] = end
        runs += 1
    while runs > 1:
        merged, start = 0, 0
        for run in range(0, runs, 2):
            middle = ends[run]
            end = ends[run + 1] if run + 1 < runs else middle
            i, j = start, middle
            for k in range(start, end):
                is_left = j == end or (i < middle and _compare(rows[i], rows[j], lead, order) <= 0)
                spare[k] = rows[i] if is_left else rows[j]
                i, j = (i + 1, j) if is_left else (i, j + 1)
            ends[merged], start = end, end
            merged += 1
        for k in range(rows.size):
            rows[k] = spare[k]
        runs = merged


@inlined
def _is_net(start: Any, end: Any, weight: Array, lead: Any, order: Order) -> Any:
    """Whether changes of one instant are as they should be: each once, in order, none undone."""
    middle = start
    while middle < end and weight[middle] == -1:
        middle += 1
    for i in range(start, end):
        if i >= middle and weight[i] != 1:
            return False
        if i > start and i != middle and _compare(i - 1, i, lead, order) >= 0:
            return False
    i, j = start, middle
    while i < middle and j < end:
        compared = _compare(i, j, lead, order)
        if compared == 0:
            return False
        i, j = (i + 1, j) if compared < 0 else (i, j + 1)
    return True


@tight
def are_net(time: Array, weight: Array, order: Order) -> bool:
    """Whether all changes are as they should be, instant by instant."""
    start = 0
    while start < time.size:
        end = start + 1
        while end < time.size and time[end] == time[start]:
            end += 1
        if not _is_net(start, end, weight, _leading(start, end, order[0]), order):
            return False
        start = end
    return True


@tight
def net_changes(
    time: Array,
    weight: Array,
    order: Order,
    room: tuple[Array, Array, Array, Array],
    picked: Array,
    signs: Array,
) -> int:
    """Sum the changes of equal rows at one instant; how many changes are left.

    Their numbers and signs are put into `picked` and `signs`: deletions first, then
    insertions, each in canonical order and one at a time.
    """
    rows, spare, ends, nets = room
    count, start = 0, 0
    while start < time.size:
        end = start + 1
        while end < time.size and time[end] == time[start]:
            end += 1
        lead = _leading(start, end, order[0])
        if _is_net(start, end, weight, lead, order):
            for i in range(start, end):
                picked[count], signs[count] = i, weight[i]
                count += 1
            start = end
            continue
        for i in range(start, end):
            rows[i], nets[i] = i, 0
        if lead < order[0].size:
            _sort(rows[start:end], spare[start:end], ends[start:end], lead, order)
        # The sum of equal rows is kept at the first of them.
        first = start
        for i in range(start, end):
            if i > first and _compare(rows[first], rows[i], lead, order) != 0:
                first = i
            nets[first] += weight[rows[i]]
        for sign in (-1, 1):
            for i in range(start, end):
                for _ in range(sign * nets[i]):
                    picked[count], signs[count] = rows[i], sign
                    count += 1
        start = end
    return count
