"""Loops that count up to what does not change while they go round: ranges, in Python's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from millstream.calculus.scripts import (
    Assign,
    Const,
    Declare,
    Expression,
    Function,
    Get,
    Intrinsic,
    Loop,
    Operate,
    Place,
    Script,
    Var,
    nodes_in,
)
from millstream.values.records.types import INT, ArrayOf, resolved


@dataclass(frozen=True, slots=True)
class CountingLoop:
    """A loop whose variable goes up by one, as long as it is below a bound, or is the bound."""

    var: Var
    bound: Expression
    takes_bound: bool
    #: Whether the variable is never negative inside of the loop.
    is_natural: bool


class Counting:
    """What a script changes, to tell which of its loops count."""

    def __init__(self, script: Script) -> None:
        nodes = list(nodes_in((script.statics, script.body)))
        self._changes = Counter(n.var.number for n in nodes if isinstance(n, Place))
        self._begins = {n.var.number: n.value for n in nodes if isinstance(n, Declare)}
        bodies = [n.body for n in nodes if isinstance(n, Function)]
        #: Whoever calls a function, under whatever name, may have these changed.
        self._by_functions = frozenset(_resized(bodies))

    def counted(self, loop: Loop) -> CountingLoop | None:
        """How a loop counts, or None if it does not, or only perhaps."""
        match loop.condition, loop.after:
            case (
                Operate("<" | "<=" as sign, (Get(var), bound)),
                (Assign(Place(counted, ()), Operate("+", (Get(again), Const(1)))),),
            ) if var == counted == again and loop.tests_first and resolved(var.type) == INT:
                if self._changes[var.number] != 1 or not self._stays(bound, loop):
                    return None
                begin = self._begins.get(var.number)
                is_natural = isinstance(begin, Const) and begin.value >= 0
                return CountingLoop(var, bound, sign == "<=", is_natural)
        return None

    def _stays(self, bound: Expression, loop: Loop) -> bool:
        """Whether a number is the same in every round."""
        nodes = list(nodes_in(bound))
        changing = {*_resized([loop.body, loop.after]), *self._by_functions}
        read = {n.var.number for n in nodes if isinstance(n, Get)}
        return all(map(_is_plain, nodes)) and not read & changing


def _is_plain(node: Any) -> bool:
    match node:
        case Const() | Get() | Intrinsic("len"):
            return True
        case Operate(operator):
            return operator in ("+", "-", "*")
    return False


def _resized(blocks: list[Any]) -> Iterator[int]:
    """The variables that are given another value, or another length."""
    for node in nodes_in(tuple(blocks)):
        if isinstance(node, Declare):
            yield node.var.number
        elif isinstance(node, Place):
            first = node.path[0] if node.path else None
            is_item = first is not None and first.index is not None and first.high is None
            # An item that is replaced leaves its array as long as it is.
            if not is_item or not isinstance(resolved(node.var.type), ArrayOf):
                yield node.var.number
