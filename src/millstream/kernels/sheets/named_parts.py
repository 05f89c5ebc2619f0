"""LET without names: what a name stands for is written wherever it is used.

A part that is named twice is then computed twice, which the compiler of loops sees; formulas
that would become too long by it stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from millstream.calculus.sheets import Computed, SheetCell
from millstream.values.excel.syntax import Call, Name, Node, children, rebuilt

#: Of so many parts a formula may be made.
_MOST = 2_000


def without_let(cell: SheetCell) -> SheetCell:
    rule = cell.rule
    if not isinstance(rule, Computed) or not _names_parts(rule.formula):
        return cell
    formula = _written_out(rule.formula, {})
    return cell if formula is None else replace(cell, rule=replace(rule, formula=formula))


def _names_parts(node: Node) -> bool:
    return (isinstance(node, Call) and node.function == "LET") or any(
        map(_names_parts, children(node))
    )


def _written_out(node: Node, named: Mapping[str, Node]) -> Node | None:
    """None if it becomes too long, or if a function is made in it."""
    sizes = {name: _size(value) for name, value in named.items()}
    if _size(node, sizes) > _MOST or _makes_functions(node):
        return None
    return _replaced(node, named)


def _replaced(node: Node, named: Mapping[str, Node]) -> Node | None:
    if isinstance(node, Name):
        return named.get(node.name.casefold(), node)
    if isinstance(node, Call) and node.function == "LET":
        *bound, body = node.arguments
        more = dict(named)
        for name, value in zip(bound[::2], bound[1::2], strict=True):
            written = _written_out(value, more)
            if written is None or not isinstance(name, Name):
                return None
            more[name.name.casefold()] = written
        return _written_out(body, more)
    if isinstance(node, Call) and node.function.casefold() in named:
        return None  # what has a name is called
    parts = [_replaced(child, named) for child in children(node)]
    if None in parts:
        return None
    left = iter(parts)
    return rebuilt(node, lambda child: next(left) or child)


def _size(node: Node, named: Mapping[str, int] | None = None) -> int:
    if isinstance(node, Name) and named:
        return named.get(node.name.casefold(), 1)
    return 1 + sum(_size(child, named) for child in children(node))


def _makes_functions(node: Node) -> bool:
    return (isinstance(node, Call) and node.function in ("LAMBDA", "LAMBDA.CALL")) or any(
        map(_makes_functions, children(node))
    )
