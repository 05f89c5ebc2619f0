"""Rounds of loops that know nothing of each other, all of them at once: each is a row of its own.

Round by round, a loop over the words of a line would look at all rows again for every word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from millstream.calculus.scripts import (
    Apply,
    Block,
    Choose,
    Declare,
    Emit,
    Get,
    Inline,
    Intrinsic,
    Leave,
    Loop,
    Node,
    Place,
    Quantifier,
    Return,
    Undefine,
    Var,
    When,
    nodes_in,
)
from millstream.kernels.records.column import Column
from millstream.plan.batch import Array

if TYPE_CHECKING:
    from millstream.kernels.scripts.column_run import ColumnsRun

#: There are at most so many rounds of all rows together; a row with very many is run alone.
_MOST, _MOST_OF_ONE = 1 << 22, 1 << 12


def are_apart(body: Block, functions: Mapping[int, Declare]) -> bool:
    """Whether no round of a loop leaves anything behind that another one, or what follows, reads.

    What is emitted must lie in the order in which rounds would emit it: one statement for each
    table, and none of them in another loop.
    """
    nodes = list(nodes_in(body))
    if any(isinstance(n, (Apply, Inline, Loop, Return, Undefine, When)) for n in nodes):
        return False
    if any(isinstance(n, Leave) and n.word == "break" for n in nodes):
        return False
    if any(isinstance(n, Get) and n.var.number in functions for n in nodes):
        return False
    if any(isinstance(n, Intrinsic) and n.name == "row" for n in nodes):
        return False
    tables = [n.table for n in nodes if isinstance(n, Emit)]
    own = {v.number for n in nodes for v in _own(n)}
    changed = {n.var.number for n in nodes if isinstance(n, Place)}
    return len(tables) == len(set(tables)) and changed <= own


def _own(node: object) -> tuple[Var, ...]:
    match node:
        case Declare(var) | Quantifier(_, var):
            return (var,)
        case Choose(tag):
            return (tag,)
    return ()


def counted_at_once(run: ColumnsRun, loop: Loop) -> bool:
    """Do all rounds of a loop that counts from 0 on; False if that cannot be done."""
    counted = run.counting.counted(loop)
    if counted is None or not are_apart(loop.body, run.functions):
        return False
    columns, var = run.columns, counted.var
    first = run.certain(columns.value(Get(var)))
    bound = run.certain(columns.value(counted.bound))
    assert isinstance(first.values, np.ndarray)
    assert isinstance(bound.values, np.ndarray)
    if (first.values[columns.active] != 0).any():
        return False
    times = bound.values + counted.takes_bound
    if not _at_once(run, var, times, nodes_in(loop.body), lambda: run.once(loop.body)):
        return False
    run.assign(var.number, Column(np.maximum(times, 0)))
    return True


def each_at_once(run: ColumnsRun, when: When, var: Var, counts: Array) -> bool:
    """The body of a `when` for all indexes with which its condition holds."""
    if not are_apart(when.body, run.functions):
        return False

    def body() -> None:
        columns = run.columns
        condition = columns.value(when.condition)
        assert isinstance(condition.values, np.ndarray)
        holds = condition.values if condition.bad is None else condition.values & ~condition.bad
        columns.active = holds & ~columns.careful
        if run.is_worth_it():
            run.once(when.body)

    return _at_once(run, var, counts, nodes_in((when.condition, when.body)), body)


def _at_once(
    run: ColumnsRun, var: Var, counts: Array, read: Iterable[Node], body: Callable[[], None]
) -> bool:
    """Do so many rounds of each row, with numbers from 0 on; False if there are too many.

    The body finds a row for every round, and of all variables those that are `read`.
    """
    columns = run.columns
    going = columns.active & ~columns.careful
    counts = np.where(going, np.maximum(counts, 0), 0)
    if int(np.minimum(counts, _MOST_OF_ONE + 1).sum()) > _MOST:
        return False
    many = counts > _MOST_OF_ONE
    if many.any():
        columns.look_closer(many)
        counts = np.where(many, 0, counts)
    if columns.count and not counts.any():
        return True
    rows = np.repeat(np.arange(columns.count), counts)
    begun = np.repeat(np.cumsum(counts) - counts, counts)
    numbers = {n.var.number for n in read if isinstance(n, Get)}
    kept, around = run.rows, run.around
    run.columns = columns.of_rows(rows, numbers)
    run.columns.variables[var.number] = Column(np.arange(len(rows)) - begun)
    run.rows, run.around = run.numbers(rows), []
    try:
        body()
        columns.careful[rows[run.columns.careful]] = True
    finally:
        run.columns, run.rows, run.around = columns, kept, around
    return True
