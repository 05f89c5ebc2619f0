"""Defined names in formulas: each is replaced by what it stands for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from millstream.values.excel.evaluate import Unsupported
from millstream.values.excel.syntax import Call, Group, Name, Node, children, rebuilt, shifted
from millstream.values.excel.table import is_known, why_unknown
from millstream.values.excel.workbook import Workbook


def without_names(node: Node, workbook: Workbook, sheet: str, row: int, column: int) -> Node:
    """The formula of a cell with defined names replaced; `Unsupported` if one means itself."""
    return _Names(workbook, sheet, row, column).replaced(node)


def check_functions(node: Node) -> None:
    """`Unsupported` for the first function that is not there, nor made by LET around it."""
    waiting: list[tuple[Node, frozenset[str]]] = [(node, frozenset())]
    while waiting:
        one, own = waiting.pop()
        if isinstance(one, Call):
            if not is_known(one.function) and one.function.casefold() not in own:
                raise Unsupported(why_unknown(one.function))
            own |= bound_names(one)
        waiting += [(child, own) for child in reversed(children(one))]


def undefined_names(node: Node) -> list[str]:
    """The names left in a formula without defined names: nothing gives them a meaning."""
    found: dict[str, str] = {}
    waiting: list[tuple[Node, frozenset[str]]] = [(node, frozenset())]
    while waiting:
        one, own = waiting.pop()
        if isinstance(one, Name) and one.name.casefold() not in own:
            found.setdefault(one.name.casefold(), one.name)
        if isinstance(one, Call):
            own |= bound_names(one)
        waiting += [(child, own) for child in reversed(children(one))]
    return list(found.values())


def bound_names(call: Call) -> frozenset[str]:
    """What LET gives a name to, and the parameters of LAMBDA."""
    step = {"LET": 2, "LAMBDA": 1}.get(call.function)
    named = call.arguments[:-1:step] if step else ()
    return frozenset(a.name.casefold() for a in named if isinstance(a, Name))


@dataclass(frozen=True)
class _Names:
    """Where a formula stands, the names it is inside of, and those that mean something else."""

    workbook: Workbook
    sheet: str
    row: int
    column: int
    opened: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()

    def replaced(self, node: Node) -> Node:
        match node:
            case Name(name, sheet):
                found = self._meaning(name, sheet)
                return node if found is None else found
            case Call(function, arguments) if not is_known(function):
                found = self._meaning(function, self.sheet)
                if found is None:
                    return rebuilt(node, self.replaced)
                return Call("LAMBDA.CALL", (found, *map(self.replaced, arguments)))
            case Call():
                inside = replace(self, hidden=self.hidden | bound_names(node))
                return rebuilt(node, inside.replaced)
            case _:
                return rebuilt(node, self.replaced)

    def _meaning(self, name: str, sheet: str) -> Node | None:
        folded = name.casefold()
        found = None if folded in self.hidden else self.workbook.defined(name, sheet)
        if found is None:
            return None
        if folded in self.opened:
            circle = " -> ".join((*self.opened, folded))
            raise Unsupported(f"the defined name {name} is defined by itself: {circle}")
        moved = shifted(found, self.row - 1, self.column - 1)
        inside = replace(self, opened=(*self.opened, folded), hidden=frozenset())
        return Group(inside.replaced(moved))
