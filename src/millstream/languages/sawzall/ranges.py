"""What a quantifier goes through: the indexes of whatever it is an index of."""

from __future__ import annotations

from millstream.calculus.scripts import Expression, Get, Index, Var, nodes_in
from millstream.languages.sawzall.scope import is_same
from millstream.values.records.types import INT, MapOf, resolved


def ranges_of(condition: Expression, var: Var, later: set[int]) -> tuple[Expression, ...]:
    """Arrays, maps and texts in a condition that a variable is an index of, by itself.

    What depends on the variable itself, or on those that are bound after it, is passed over.
    """
    ranges: list[Expression] = []
    for node in nodes_in(condition):
        if not isinstance(node, Index) or not isinstance(node.index, Get):
            continue
        if node.index.var.number != var.number or _reads(node.base) & later:
            continue
        held = resolved(node.base.type)
        wanted = held.key if isinstance(held, MapOf) else INT
        if is_same(wanted, var.type):
            ranges.append(node.base)
    return tuple(ranges)


def _reads(value: Expression) -> set[int]:
    return {n.var.number for n in nodes_in(value) if isinstance(n, Get)}
