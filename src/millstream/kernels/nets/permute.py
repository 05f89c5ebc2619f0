"""Filters that only move items: what they do is an order, as what splits and joins do.

Such a filter pushes what it has popped or looked at, keeps nothing, and what it does never
depends on an item. So it is fired once, on numbers instead of items.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from millstream.calculus.functions import Function
from millstream.calculus.procedures import (
    Assign,
    Code,
    Invoke,
    Let,
    Operand,
    Peek,
    Pop,
    Push,
    Statement,
    statements_in,
)
from millstream.calculus.terms import Place, Read, Term, walk
from millstream.calculus.work import Work
from millstream.errors import RunError
from millstream.meaning.procedures import Machine
from millstream.meaning.work import fired_once, started
from millstream.plan.batch import Array
from millstream.values.types import INT32, SINGLE

#: More is not tried: it is done statement by statement, before anything runs.
_MOST_ITEMS, _MOST_STEPS = 1 << 11, 1 << 16


@dataclass(frozen=True, slots=True)
class Permute(Function):
    """Takes so many items off, and sends those of the order, counted from the first one."""

    pop: int
    order: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def permute_of(work: Work) -> Permute | None:
    """What a filter does, if it only moves items."""
    rates = work.rates
    if work.first or work.pace or work.prints or work.code.first is not None:
        return None
    if work.changes or work.shared_count:
        return None
    if work.taken != work.given or work.taken not in (INT32, SINGLE) or not rates.push:
        return None
    if max(rates.peek, rates.push) > _MOST_ITEMS or not _only_moves(work.code):
        return None
    # From 1 on: nothing but an item is not zero.
    items = [n + 1 for n in range(rates.peek)]
    try:
        firing = fired_once(work, _limited(started(work)), rates, items, 1, [])
    except RunError:
        return None  # it is told where it happens
    order = tuple(int(number) - 1 for number in firing.sent)
    return None if min(order) < 0 else Permute(rates.pop, order)


def _limited(machine: Machine) -> Machine:
    machine.steps_left = _MOST_STEPS
    return machine


@functools.lru_cache(maxsize=4096)
def _only_moves(code: Code) -> bool:
    """Whether items go nowhere but out, and nothing else does or is kept."""
    statements = list(statements_in(code.body))
    kept = {slot.name for slot in (*code.parameters, *code.fields)}
    items = _items(statements)
    for statement in statements:
        match statement:
            case Invoke():
                return False
            case Push(value, output):
                if output or _plain(value) not in items:
                    return False
            case Assign(target, value):
                if target.variable in kept or (target.variable in items) != (
                    _plain(value) in items
                ):
                    return False
            case Pop(Place(name, path)) | Peek(_, Place(name, path)):
                if path or name in kept:
                    return False
            case _:
                pass
        if any(_reads(term) & items for term in _looked_at(statement)):
            return False
    return bool(items)


def _items(statements: list[Statement]) -> set[str]:
    """The variables that hold items: those taken, and what those are handed to."""
    items: set[str] = set()
    for statement in statements:
        match statement:
            case Pop(Place(name)) | Peek(_, Place(name)):
                items.add(name)
            case _:
                continue
    while True:
        more = {s.target.variable for s in statements
                if isinstance(s, Assign) and _plain(s.value) in items}  # fmt: skip
        if more <= items:
            return items
        items |= more


def _plain(value: Operand) -> str | None:
    """The variable that a value is, if it is no more than that."""
    match value:
        case Place(name, ()) | Read(Place(name, ())):
            return name
        case _:
            return None


def _looked_at(statement: Statement) -> Iterator[Term]:
    """The terms of a statement, but for what is handed on as it is."""
    match statement:
        case Push(value) | Assign(_, value) if _plain(value) is not None:
            values: tuple[object, ...] = ()
        case Push(value) | Assign(_, value):
            values = (value,)
        case Peek(index):
            values = (index,)
        case Let():
            values = ()
        case _:
            values = (getattr(statement, "condition", None),)
    yield from (v for v in values if v is not None and not isinstance(v, Place))  # type: ignore[misc]
    if isinstance(statement, Assign):
        yield from (step for step in statement.target.path if not isinstance(step, str))


def _reads(term: Term) -> set[str]:
    return {node.place.variable for node in walk(term) if isinstance(node, Read)}


def sent_by(permute: Permute, firings: int) -> Array:
    """Which items so many firings send, counted from the first that the first of them sees."""
    numbers: Array = np.arange(firings)[:, None] * permute.pop + np.array(permute.order)
    return numbers.ravel()
