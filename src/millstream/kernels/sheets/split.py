"""Which cells of a sheet are computed outside of its loop, because no loop can compute them.

A cell that is made of the tuples of one input alone is another column of that input, worked out
before the loop runs. A cell that nothing in the sheet looks at again, or only others of its kind,
is worked out of what the loop has sent, afterwards. Either is done once for each combination of
values (`outside`). Of a formula in between, the parts that are made of one input alone go before.
What is left is a sheet without these cells, for which the loop is generated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from millstream.calculus.sheet_kinds import cell_kinds
from millstream.calculus.sheets import (
    HIDDEN_SHEET,
    Address,
    Computed,
    Fed,
    OutputColumn,
    Selected,
    Sheet,
    SheetCell,
    address_text,
    reached,
    tick_atoms,
)
from millstream.calculus.types import BOOLEAN, NUMBER, TEXT, Field, QueueType, Schema, Type
from millstream.kernels.sheets.formulas import COMPILED
from millstream.kernels.sheets.named_parts import without_let
from millstream.kernels.sheets.operands import NotCompiled, held_as
from millstream.kernels.sheets.scalar_parts import ALIKE, OF_PLACES, is_scalar
from millstream.kernels.sheets.selected_parts import can_select_parts, select_parts
from millstream.values.excel.kinds import Kind, Kinds
from millstream.values.excel.syntax import (
    Binary,
    Call,
    Cell,
    Name,
    Node,
    Range,
    WindowOf,
    children,
    rebuilt,
)

#: The inputs and selections that make a cell tick.
Ticks = frozenset[object]
#: What may be of several kinds is sent as a number, and its status says what it is.
TYPES = {Kind.NUMBER: NUMBER, Kind.TEXT: TEXT, Kind.BOOLEAN: BOOLEAN, Kind.MIXED: NUMBER}
#: They are compiled for numbers, not for all texts.
_OF_NUMBERS = frozenset({"INDEX", "MATCH", "SUMPRODUCT", "VLOOKUP"})


@dataclass(frozen=True)
class Before:
    """A column that an input gets, and the cells that it is made of."""

    made: OutputColumn
    cells: tuple[SheetCell, ...]


@dataclass(frozen=True)
class Split:
    """A sheet for the loop, with what is done for it outside."""

    sheet: Sheet
    input_types: tuple[QueueType, ...]
    #: For each input, its columns more.
    before: tuple[tuple[Before, ...], ...]
    #: The cells that come after the loop, in order.
    after: tuple[SheetCell, ...]
    #: Why each cell is outside.
    reasons: tuple[str, ...]


@dataclass
class SplitCells:
    """Mutable: the cells of a sheet, and where each that no loop computes has gone."""

    sheet: Sheet
    input_types: tuple[QueueType, ...]
    #: The input of which each such cell is a column.
    before: dict[Address, int] = field(default_factory=dict)
    after: set[Address] = field(default_factory=set)
    reasons: dict[Address, str] = field(default_factory=dict)
    #: Cells that cannot be moved: the loop calls out for what has no compiled form.
    may_call: frozenset[Address] = frozenset()

    def __post_init__(self) -> None:
        self.constants = dict(self.sheet.constants)
        self.cells = {c.address: without_let(c) for c in self.sheet.cells}
        self._find_kinds()

    def _find_kinds(self) -> None:
        self.atoms = tick_atoms(self.cells.values())
        self.kinds = cell_kinds(list(self.cells.values()), self.constants.get, self._column_type)

    def _column_type(self, fed: Fed) -> Type:
        return self.input_types[fed.input].schema[fed.column]

    # --- moving cells out ---

    def moved(self, reason: NotCompiled) -> bool:
        """Move out what cannot be compiled; False if it must stay."""
        cell = None if reason.address is None else self.cells.get(reason.address)
        if cell is None or not isinstance(cell.rule, Computed):
            return False
        if cell.address in self.before or cell.address in self.after:
            return False
        if (self._is_text_made(cell) and self._goes_after(cell)) or (
            self._parts_go_before(cell) or self._goes_before(cell) or self._goes_after(cell)
        ):
            self.reasons.setdefault(cell.address, str(reason))
            return True
        return False

    def _is_text_made(self, cell: SheetCell) -> bool:
        """Is it a text that is put together, of numbers which a loop may well compute?"""
        rule = cell.rule
        assert isinstance(rule, Computed)
        return held_as(self.kinds[cell.address]) is Kind.TEXT and _joins(rule.formula)

    def _goes_before(self, cell: SheetCell) -> bool:
        rule = cell.rule
        assert isinstance(rule, Computed)
        number = self._only_input(cell.refers_to)
        if number is None or _has_window(rule.formula):
            return False
        if _single(self.kinds[cell.address]) is None:
            return False
        self.before[cell.address] = number
        return True

    def _only_input(self, addresses: Iterable[Address]) -> int | None:
        """The one input that cells are made of; None if there is more to them."""
        inputs = {self._input_of(a) for a in addresses}
        return next(iter(inputs)) if len(inputs) == 1 else None

    def _input_of(self, address: Address) -> int | None:
        rule = self.cells[address].rule
        return rule.input if isinstance(rule, Fed) else self.before.get(address)

    def _parts_go_before(self, cell: SheetCell) -> bool:
        """Make columns of the parts of a formula that no loop computes, if it has such."""
        rule = cell.rule
        assert isinstance(rule, Computed)
        if rule.is_array:
            return False
        # What never has a compiled form first; then what has none for some kinds of values.
        for never in (True, False):
            places: dict[Node, Cell] = {}
            whole = self.atoms[cell.address]
            formula = self._with_columns(rule.formula, None, places, whole, never=never)
            if places and not isinstance(formula, Cell):
                parts = {_address(place): self._part(node, place) for node, place in places.items()}
                self._replace(cell, formula, parts)
                self.before |= {a: self._only_input(p.refers_to) or 0 for a, p in parts.items()}
                return True
        return False

    def _with_columns(
        self, node: Node, parent: Node | None, places: dict[Node, Cell], whole: Ticks, *,
        never: bool,
    ) -> Node:  # fmt: skip
        """A formula in which parts of it are cells, which are told as they are found."""
        if self._is_column(node, parent, never=never) and self._is_there(node, whole):
            return self._hidden(node, places)
        return rebuilt(
            node, lambda child: self._with_columns(child, node, places, whole, never=never)
        )

    def _is_there(self, node: Node, whole: Ticks) -> bool:
        """Whether a cell with a part of a formula has ticked whenever the whole does.

        If it had not, it would be empty: not what the part is when all that it names is empty.
        """
        none: Ticks = frozenset()
        part = none.union(*(self.atoms[a] for a in self._mentioned(node)))

        def has_ticked(when: Ticks) -> bool:
            return all(
                # A selection ticks only when its condition does.
                atom in part
                or (isinstance(atom, tuple) and has_ticked(self.atoms.get(atom[0], none)))
                for atom in when
            )

        return has_ticked(whole)

    def _hidden(self, node: Node, places: dict[Node, Cell]) -> Cell:
        if node not in places:
            places[node] = Cell(HIDDEN_SHEET, self._fresh_row() + len(places), 1)
        return places[node]

    def _is_column(self, node: Node, parent: Node | None, *, never: bool) -> bool:
        if not isinstance(node, (Call, Binary)) or _has_compiled_form(node, always=not never):
            return False
        mentioned = self._mentioned(node)
        if not mentioned or self._only_input(mentioned) is None or not _is_anywhere(node):
            return False
        return self._is_alike(node, parent)

    def _kinds_of(self, node: Node) -> Kinds:
        probe = SheetCell((HIDDEN_SHEET, 0, 0), Computed(node), self._mentioned(node))
        cells = [*(self.cells[a] for a in self._behind(probe)), probe]
        return cell_kinds(cells, self.constants.get, self._column_type)[probe.address]

    def _behind(self, cell: SheetCell) -> list[Address]:
        """The cells that a cell is made of, in order."""
        wanted = set(cell.refers_to)
        for address, one in reversed(self.cells.items()):
            if address in wanted:
                wanted.update(one.looks_at)
        return [a for a in self.cells if a in wanted]

    def _fresh_row(self) -> int:
        return 1 + max((row for sheet, row, _ in self.cells if sheet == HIDDEN_SHEET), default=0)

    def _part(self, node: Node, place: Cell) -> SheetCell:
        return SheetCell(_address(place), Computed(node), self._mentioned(node))

    def _replace(self, cell: SheetCell, formula: Node, parts: dict[Address, SheetCell]) -> None:
        """Another formula for a cell, and the cells that it needs before it."""
        cells: dict[Address, SheetCell] = {}
        for address, one in self.cells.items():
            if address == cell.address:
                cells |= parts
            cells[address] = one
        self.cells = cells
        assert isinstance(cell.rule, Computed)
        rule = replace(cell.rule, formula=formula)
        cells[cell.address] = SheetCell(cell.address, rule, self._mentioned(formula))
        self._find_kinds()

    def _goes_after(self, cell: SheetCell) -> bool:
        moving = self._dependents(cell.address)
        if moving is None:
            return False
        outside = {*moving, *self.after}
        for one in moving:
            if isinstance(self.cells[one].rule, Selected):
                before = set(self.cells)
                self.cells = select_parts(self.cells, one, outside)
                outside |= self._computed_of(outside, set(self.cells) - before)
                self._find_kinds()
            elif not self._keep_inside(one, outside):
                return False
        self.after.update(a for a in self.cells if a in outside)
        return True

    def _computed_of(self, outside: set[Address], new: set[Address]) -> set[Address]:
        """Those of some new cells that are formulas: they come after the loop, too."""
        return {a for a in new - outside if isinstance(self.cells[a].rule, Computed)}

    def _formula(self, address: Address) -> Node:
        rule = self.cells[address].rule
        assert isinstance(rule, Computed)
        return rule.formula

    def _dependents(self, address: Address) -> list[Address] | None:
        """A cell and all that are made of it, selected ones too; None if others look at one."""
        moving = {address}
        for cell in self.cells.values():
            is_made = isinstance(cell.rule, Computed) and not moving.isdisjoint(cell.refers_to)
            if is_made or self._is_selected_of(cell, moving):
                moving.add(cell.address)
        for cell in self.cells.values():
            if cell.address not in moving and not moving.isdisjoint(cell.looks_at):
                return None
        return [a for a in self.cells if a in moving]

    def _is_selected_of(self, cell: SheetCell, moving: set[Address]) -> bool:
        """Does it select one of some cells, and could be computed of what the loop selects?"""
        match cell.rule:
            case Selected(source, condition) if source in moving and condition not in moving:
                return all(map(can_select_parts, self._formulas_behind(source, moving)))
        return False

    def _formulas_behind(self, address: Address, moving: set[Address]) -> list[SheetCell]:
        """The cells that a cell is made of and that are computed outside as well, it included."""
        behind = [address]
        for one in behind:
            rule = self.cells[one].rule
            named = (rule.source,) if isinstance(rule, Selected) else self.cells[one].refers_to
            behind += [a for a in named if (a in moving or a in self.after) and a not in behind]
        return [c for c in map(self.cells.__getitem__, behind) if not isinstance(c.rule, Selected)]

    def _keep_inside(self, address: Address, after: set[Address]) -> bool:
        """Of a formula that goes after the loop, what a loop can compute stays in it.

        There are fewer combinations of what is left. False if it may be something else in a
        cell than it is in a formula: nothing at all, say, which is zero in a cell.
        """
        cell = self.cells[address]
        assert isinstance(cell.rule, Computed)
        places: dict[Node, Cell] = {}

        def changed(node: Node, parent: Node) -> Node:
            if self._is_kept(node, parent, after, self.atoms[address]):
                return self._hidden(node, places)
            return rebuilt(node, lambda child: changed(child, node))

        formula = inside = self._formula(address)
        if not cell.rule.is_array:
            inside = rebuilt(formula, lambda child: changed(child, formula))
        if places:
            parts = {_address(place): self._part(node, place) for node, place in places.items()}
            self._replace(cell, inside, parts)
        return not _has_window(inside)

    def _is_kept(self, node: Node, parent: Node, after: set[Address], whole: Ticks) -> bool:
        if not isinstance(node, (Call, Binary)) or not _is_compiled_throughout(node):
            return False
        mentioned = self._mentioned(node)
        if not mentioned or not after.isdisjoint(mentioned) or not self._is_there(node, whole):
            return False
        return self._is_alike(node, parent)

    def _is_alike(self, node: Node, parent: Node | None) -> bool:
        """Whether a part of a formula means the same to the rest if it stands in a cell."""
        if not is_scalar(node) or (isinstance(parent, Call) and parent.function in OF_PLACES):
            return False
        kind = _single(self._kinds_of(node))
        if kind is None:
            return False
        is_same = not isinstance(parent, Call) or parent.function in ALIKE
        return kind is Kind.NUMBER or is_same

    def _mentioned(self, node: Node) -> tuple[Address, ...]:
        """The cells that change and that a formula names."""
        return tuple(dict.fromkeys(self._named(node)))

    def _named(self, node: Node) -> Iterator[Address]:
        match node:
            case Cell():
                if _address(node) in self.cells:
                    yield _address(node)
            case WindowOf(cell):
                yield _address(cell)
            case Range(first, last):
                yield from (
                    a for a in self.cells
                    if a[0] == first.sheet and first.row <= a[1] <= last.row
                    and first.column <= a[2] <= last.column
                )  # fmt: skip
        for child in children(node):
            yield from self._named(child)

    # --- what is left ---

    def split(self) -> Split:
        names = {a: self._column_name(a) for a in self.before}
        outputs = tuple(self._sent(columns) for columns in self.sheet.outputs)
        inside = {
            a: self._fed(c, names) if a in self.before else c
            for a, c in self.cells.items()
            if a not in self.after
        }
        wanted = {c.address for columns in outputs for c in columns}
        kept = reached(wanted, inside)
        befores = tuple(
            tuple(
                self._before(a, names[a]) for a in self.before if a in kept and self.before[a] == n
            )
            for n in range(len(self.input_types))
        )
        sheet = replace(
            self.sheet, cells=tuple(c for a, c in inside.items() if a in kept), outputs=outputs
        )
        types = tuple(map(_widened, self.input_types, befores))
        after = tuple(c for a, c in self.cells.items() if a in self.after)
        reasons = tuple(
            f"{'a cell' if a[0] == HIDDEN_SHEET else address_text(a)} {self._when(a)}: {reason}"
            for a, reason in self.reasons.items()
        )
        return Split(sheet, types, befores, after, reasons)

    def _when(self, address: Address) -> str:
        if address in self.after:
            return "after the loop"
        return "before the loop" if address in self.before else "in part before the loop"

    def _column_name(self, address: Address) -> str:
        name = f"={address_text(address)}"
        while name in self.input_types[self.before[address]].schema:
            name = f"={name}"
        return name

    def _fed(self, cell: SheetCell, names: dict[Address, str]) -> SheetCell:
        return SheetCell(cell.address, Fed(self.before[cell.address], names[cell.address]))

    def _sent(self, columns: tuple[OutputColumn, ...]) -> tuple[OutputColumn, ...]:
        """What the loop sends: cells of an output, and those that others are made of."""
        sent = {c.address: c for c in columns if c.address not in self.after}
        for address in self._leaves([c.address for c in columns if c.address in self.after]):
            if address not in sent:
                kind = held_as(self.kinds[address])
                sent[address] = OutputColumn(address_text(address), address, TYPES[kind])
        return tuple(sent.values())

    def _leaves(self, addresses: Iterable[Address]) -> list[Address]:
        wanted = set(addresses)
        for address, cell in reversed(self.cells.items()):
            if address in wanted and address in self.after:
                wanted.update(cell.refers_to)
        return [a for a in self.cells if a in wanted - self.after]

    def _before(self, address: Address, name: str) -> Before:
        kind = _single(self.kinds[address])
        assert kind is not None
        cell = self.cells[address]
        cells = [*(self.cells[a] for a in self._behind(cell)), cell]
        return Before(OutputColumn(name, address, TYPES[kind]), tuple(cells))


def _has_compiled_form(node: Call | Binary, *, always: bool) -> bool:
    """Whether a function or an operator has a compiled form, for some values or always."""
    if isinstance(node, Binary):
        return node.operator in "+-*/^" or (node.operator != "&" and not always)
    return node.function in COMPILED and not (always and node.function in _OF_NUMBERS)


def _is_compiled_throughout(node: Node) -> bool:
    if isinstance(node, (Call, Binary)) and not _has_compiled_form(node, always=False):
        return isinstance(node, Call) and any(isinstance(a, WindowOf) for a in node.arguments)
    if isinstance(node, Name) or (isinstance(node, Call) and node.function in OF_PLACES):
        return False
    return all(map(_is_compiled_throughout, children(node)))


def _held(kinds: Kinds) -> Kind | None:
    """The one kind of value that a cell can hold, errors and emptiness aside."""
    plain = kinds - {Kind.ERROR, Kind.EMPTY}
    return next(iter(plain)) if len(plain) == 1 else None


def _single(kinds: Kinds) -> Kind | None:
    """The same, where an empty cell is shown as the number zero."""
    return _held(kinds if Kind.EMPTY not in kinds else kinds | {Kind.NUMBER})


def _joins(node: Node) -> bool:
    match node:
        case Binary("&", _, _) | Call("TEXT" | "CONCATENATE" | "CONCAT", _):
            return True
        case Call("IF", (_, *sides)):
            return any(map(_joins, sides))
    return False


def _address(cell: Cell) -> Address:
    return (cell.sheet, cell.row, cell.column)


def _has_window(node: Node) -> bool:
    return isinstance(node, WindowOf) or any(map(_has_window, children(node)))


def _is_anywhere(node: Node) -> bool:
    """Whether a formula gives the same wherever it stands, and has no window."""
    if isinstance(node, (Name, WindowOf)) or (
        isinstance(node, Call) and node.function in OF_PLACES
    ):
        return False
    return all(map(_is_anywhere, children(node)))


def _widened(type_: QueueType, befores: tuple[Before, ...]) -> QueueType:
    more = tuple(Field(b.made.name, b.made.type) for b in befores)
    return replace(type_, schema=Schema((*type_.schema.fields, *more)))
