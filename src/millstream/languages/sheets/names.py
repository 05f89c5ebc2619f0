"""Defined names in formulas: each is replaced by what it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from millstream.values.excel.evaluate import Context, Unsupported, value_of
from millstream.values.excel.precedents import Rectangle, areas_of
from millstream.values.excel.syntax import (
    Call,
    Cell,
    Group,
    Literal,
    Name,
    Node,
    Range,
    WindowOf,
    children,
    rebuilt,
    shifted,
)
from millstream.values.excel.table import (
    FAMILIES,
    NAMING,
    STREAM_FUNCTIONS,
    is_known,
    misuse,
    why_unknown,
)
from millstream.values.excel.workbook import Workbook, address_of, key_of


def without_names(node: Node, workbook: Workbook, sheet: str, row: int, column: int) -> Node:
    """The formula of a cell with defined names replaced; `Unsupported` if one means itself."""
    return _Names(workbook, sheet, row, column).replaced(node)


def misuses(node: Node) -> Iterator[str]:
    """What is wrong with the calls in a formula, whatever its cells hold."""
    given = frozenset[str]().union(*(own for _, own in _scoped(node)))
    for call, own in _scoped(node):
        if not isinstance(call, Call) or call.function in STREAM_FUNCTIONS:
            continue
        name = call.function.casefold()
        if is_known(call.function):
            wrong = misuse(call)
        elif name in own:
            continue
        elif name in given:
            wrong = f"{name} is called where it has no meaning yet: no function can call itself"
        else:
            wrong = why_unknown(call.function)
        if wrong is not None:
            yield wrong


def _scoped(node: Node) -> Iterator[tuple[Node, frozenset[str]]]:
    """All parts of a formula, each with the names that LET and LAMBDA have given around it."""
    waiting: list[tuple[Node, frozenset[str]]] = [(node, frozenset())]
    while waiting:
        part, own = waiting.pop()
        yield part, own
        waiting += [(a, own | new) for a, new in reversed(list(_named(part)))]


def _named(node: Node) -> Iterator[tuple[Node, frozenset[str]]]:
    """The parts of a node, each with the names it is given: LET's are known after their values."""
    parts = list(children(node))
    step = NAMING.get(node.function, 0) if isinstance(node, Call) else 0
    names = [
        (place, part.name.casefold())
        for place, part in enumerate(parts[:-1])
        if step and place % step == 0 and isinstance(part, Name)
    ]
    for place, part in enumerate(parts):
        yield part, frozenset(n for at, n in names if at == place or at + step <= place)


def without_named_windows(node: Node, named: Mapping[str, Node] | None = None) -> Node:
    """The formula with windows in the place of the names that LET gives them."""
    named = named or {}
    match node:
        case Name(name):
            return named.get(name.casefold(), node)
        case Call("LET", (*bound, body)):
            inner, kept = dict(named), list[Node]()
            for given, value in zip(bound[::2], bound[1::2], strict=True):
                written = without_named_windows(value, inner)
                assert isinstance(given, Name)
                inner.pop(given.name.casefold(), None)
                if isinstance(_bare(written), WindowOf):
                    inner[given.name.casefold()] = written
                else:
                    kept += (given, written)
            body = without_named_windows(body, inner)
            return Call("LET", (*kept, body)) if kept else body
        case Call("LAMBDA", (*parameters, body)):
            own = {p.name.casefold() for p in parameters if isinstance(p, Name)}
            inner = {name: window for name, window in named.items() if name not in own}
            return Call("LAMBDA", (*parameters, without_named_windows(body, inner)))
        case _:
            return rebuilt(node, lambda n: without_named_windows(n, named))


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
    names = {
        part.name.casefold(): part.name
        for part, own in _scoped(node)
        if isinstance(part, Name) and part.name.casefold() not in own
    }
    return list(names.values())


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
                meaning = self._meaning(name, sheet)
                return node if meaning is None else meaning
            case Call(function, arguments) if not is_known(function):
                meaning = self._meaning(function, self.sheet)
                if meaning is None:
                    return rebuilt(node, self.replaced)
                return Call("LAMBDA.CALL", (meaning, *map(self.replaced, arguments)))
            case Call(function) if function in NAMING:
                parts = (
                    replace(self, hidden=self.hidden | names).replaced(part)
                    for part, names in _named(node)
                )
                return Call(function, tuple(parts))
            case _:
                return rebuilt(node, self.replaced)

    def _meaning(self, name: str, sheet: str) -> Node | None:
        folded = name.casefold()
        meaning = None if folded in self.hidden else self.workbook.defined(name, sheet)
        if meaning is None:
            return None
        if folded in self.opened:
            circle = " -> ".join((*self.opened, folded))
            raise Unsupported(f"the defined name {name} is defined by itself: {circle}")
        moved = shifted(meaning, self.row - 1, self.column - 1)
        inside = replace(self, opened=(*self.opened, folded), hidden=frozenset())
        return Group(inside.replaced(moved))
