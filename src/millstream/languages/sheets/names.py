"""Defined names in formulas: each is replaced by what it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from millstream.formulas.evaluate import Context, Unsupported, value_of
from millstream.formulas.precedents import Rectangle, areas_of
from millstream.formulas.syntax import (
    Call,
    Cell,
    Group,
    Literal,
    Name,
    Node,
    Range,
    children,
    rebuilt,
    shifted,
)
from millstream.formulas.table import FAMILIES, is_known, why_unknown
from millstream.formulas.workbook import Workbook, address_of, key_of


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


def records_asked(node: Node, workbook: Workbook) -> Iterator[str]:
    """Where criteria of calls such as DSUM are formulas of the records themselves."""
    for child in children(node):
        yield from records_asked(child, workbook)
    if not (isinstance(node, Call) and node.function in _OF_RECORDS and len(node.arguments) == 3):
        return
    for sheet, top, *rest in areas_of(node.arguments[2], workbook):
        worksheet = workbook.sheets[sheet]
        for place in worksheet.filled(top + 1, *rest):
            key = key_of(*place)
            read = list(areas_of(workbook.tree(sheet, key), workbook)) if (
                key in worksheet.formulas) else []  # fmt: skip
            records = areas_of(node.arguments[0], workbook)
            if any(_overlap(a, b) for b in records for a in read):
                yield f"{sheet}!{address_of(*place)}"


def _overlap(a: Rectangle, b: Rectangle) -> bool:
    return a[0] == b[0] and a[1] <= b[3] and b[1] <= a[3] and a[2] <= b[4] and b[2] <= a[4]


#: Their answers depend on the workbook, not on what its cells hold.
_OF_THE_WORKBOOK = frozenset({"ISFORMULA", "SHEET", "SHEETS"})
_OF_RECORDS = frozenset(name for name in FAMILIES["conditions"] if name.startswith("D"))


def answered(node: Node, context: Context) -> Node:
    """The formula with questions about the workbook answered."""
    if isinstance(node, Call) and node.function in _OF_THE_WORKBOOK:
        if all(isinstance(_bare(a), (Cell, Range, Literal)) for a in node.arguments):
            return Literal(value_of(node, context))
    return rebuilt(node, lambda n: answered(n, context))


def _bare(node: Node) -> Node:
    return _bare(node.inner) if isinstance(node, Group) else node


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
