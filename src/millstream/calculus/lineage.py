"""Which columns leave an operator as they came, under whatever name."""

from __future__ import annotations

from millstream.calculus.functions import Columns, FlatMap, Fold, Map
from millstream.calculus.graph import Operator
from millstream.calculus.sheets import Sheet
from millstream.calculus.terms import Column
from millstream.calculus.types import QueueType


def carried(op: Operator, inputs: tuple[QueueType, ...], index: int) -> dict[str, str]:
    """The columns of what leaves that are columns of an input, each with its name there."""
    match op.function:
        case Map(columns):
            return _copied(columns)
        case FlatMap(branches=branches):
            first, *others = (_copied(branch.columns) for branch in branches)
            return {n: c for n, c in first.items() if all(o.get(n) == c for o in others)}
        case Fold(emit=emit):
            return _copied(emit or ())
        case Sheet() as sheet:
            return sheet.carried(inputs)
        case function:
            return {name: name for name in function.facts(inputs, index).forwards}


def _copied(columns: Columns) -> dict[str, str]:
    return {c.name: c.term.name for c in columns if isinstance(c.term, Column)}
