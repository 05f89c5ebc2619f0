"""Joins, lookups and the first rows, on whole bags."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

from millstream.calculus.functions import Comparison, Join, Lookup, Top
from millstream.calculus.types import Row, Schema
from millstream.meaning.firing import Context, Result, State, fire, row_of
from millstream.meaning.instants import Sides, from_bags, times_of_changes, waited
from millstream.meaning.items import Bag, Entry, Item, changes, row_order, rows_in_order
from millstream.meaning.scalars import evaluate
from millstream.values.core.logic import less


@fire.register
def _join(function: Join, entry: Entry, index: int, state: State, context: Context) -> Result:
    left, right = (t.schema for t in context.input_types)
    kept = function.right_kept(right)
    names = left.names + kept
    beside = right.names
    on = _places(function, left, right)

    def pairs(sides: Sides) -> Bag:
        result: dict[Row, int] = {}
        for one, times in sides[0].bag.items():
            for other, again in sides[1].bag.items():
                if _keys_match(function, one, other, on):
                    pair = one + row_of(dict(zip(beside, other, strict=True)), kept)
                    result[pair] = result.get(pair, 0) + times * again
        return {row: count for row, count in result.items() if count}

    def speak(instant: int, before: Sides, after: Sides) -> list[Item]:
        # A condition on pairs lets through a change of pairs exactly if it holds for them.
        changed = changes(instant, pairs(before), pairs(after))
        return [i for i in changed if _holds(function, i.row, names, context)]

    return waited(entry, index, state, times_of_changes, speak)


def _places(function: Join | Lookup, left: Schema, right: Schema) -> list[tuple[int, int]]:
    """Where the keys stand in a row of each side."""
    return [(left.index(a), right.index(b)) for a, b in function.on]


def _keys_match(
    function: Join | Lookup, one: Row, other: Row, on: Sequence[tuple[int, int]]
) -> bool:
    for a, b in on:
        key, match = one[a], other[b]
        if (key is None or match is None) and not function.nulls_match:
            return False
        # NaN is one object in rows, so `is` makes it equal to itself.
        if not (key is match or key == match):
            return False
    return True


def _holds(function: Join, row: Row, names: tuple[str, ...], context: Context) -> bool:
    if function.where is None:
        return True
    columns = dict(zip(names, row, strict=True))
    return evaluate(function.where, columns, None, context.faults) is True


@fire.register
def _lookup(function: Lookup, entry: Entry, index: int, state: State, context: Context) -> Result:
    left, right = (t.schema for t in context.input_types)

    def answered(sides: Sides) -> Bag:
        return {
            (*one, _has_match(function, one, sides[1].bag, left, right)): count
            for one, count in sides[0].bag.items()
        }

    return waited(entry, index, state, times_of_changes, from_bags(answered))


def _has_match(function: Lookup, one: Row, others: Bag, left: Schema, right: Schema) -> bool:
    on = _places(function, left, right)
    return any(
        count > 0
        and _keys_match(function, one, other, on)
        and _compares(function.where, one, other, left, right)
        for other, count in others.items()
    )


def _compares(where: Comparison | None, one: Row, other: Row, left: Schema, right: Schema) -> bool:
    if where is None:
        return True
    ours, theirs = one[left.index(where.ours)], other[right.index(where.theirs)]
    if ours is None or theirs is None:
        return False
    smaller, greater = (ours, theirs) if where.order[0] == "<" else (theirs, ours)
    return not less(greater, smaller) if where.order[1:] else less(smaller, greater)


@fire.register
def _top(function: Top, entry: Entry, index: int, state: State, context: Context) -> Result:
    schema = context.input_types[0].schema

    def order(one: Row, other: Row) -> int:
        for name in function.by:
            a, b = (row_order((row[schema.index(name)],)) for row in (one, other))
            if a != b:
                sign = -1 if name in function.descending else 1
                return sign if _is_after(a, b) else -sign
        return 0

    def first(sides: Sides) -> Bag:
        # Rows come in canonical order, and sorting keeps it where `order` says nothing.
        there = {row: count for row, count in sides[0].bag.items() if count > 0}
        ordered = sorted(rows_in_order(there), key=cmp_to_key(order))
        bag: dict[Row, int] = {}
        for row in ordered[: function.count]:
            bag[row] = bag.get(row, 0) + 1
        return bag

    return waited(entry, index, state, times_of_changes, from_bags(first))


def _is_after(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return one > other
