"""Flattening: from the formulas of a workbook to rules, one per cell that can change.

Calls of WINDOW, WINDOWROWS, PRE and SELECT inside a formula become cells of their own, as do
their arguments that are not plain references. Defined names are replaced by what they stand
for. A cell that no input can reach is a constant, and is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from millstream.calculus.sheets import (
    HIDDEN_SHEET,
    Address,
    Computed,
    CountWindow,
    Fed,
    Previous,
    Rule,
    Selected,
    SheetCell,
    TimeWindow,
    Windows,
    address_text,
)
from millstream.errors import Fault, MillstreamError, suggest
from millstream.kernels.sheets.named_parts import without_let
from millstream.languages.sheets.elementwise import windows_of_formulas
from millstream.languages.sheets.names import (
    answered,
    misuses,
    undefined_names,
    without_named_windows,
    without_names,
)
from millstream.languages.sheets.order import ordered
from millstream.languages.sheets.windows import check_triggers, check_windows
from millstream.values.excel.computed_references import COMPUTED_REFERENCES, resolved
from millstream.values.excel.evaluate import Context, Unsupported, value_of
from millstream.values.excel.precedents import areas_of
from millstream.values.excel.recalculate import Recalculation
from millstream.values.excel.render import render_formula, render_scalar
from millstream.values.excel.syntax import (
    Call,
    Cell,
    Group,
    Literal,
    Node,
    Range,
    WindowOf,
    rebuilt,
)
from millstream.values.excel.table import STREAM_FUNCTIONS
from millstream.values.excel.values import Scalar
from millstream.values.excel.workbook import Workbook, address_of, key_of, place_of

_ARGUMENTS = {"WINDOW": (2, 3), "WINDOWROWS": (2, 3), "PRE": (3, 3), "SELECT": (2, 2)}
_USAGE = {
    "WINDOW": "WINDOW(cell, seconds [, trigger])",
    "WINDOWROWS": "WINDOWROWS(cell, count [, trigger])",
    "PRE": "PRE(cell, trigger, initial)",
    "SELECT": "SELECT(cell, condition)",
}


@dataclass(frozen=True)
class Flattened:
    """The cells that can change, in an order in which they can be computed, and the rest.

    `faults` are those of the cells that were asked for; `broken` says which cells cannot be
    computed, with the first reason. `doubtful` is what only a program is refused for: to Excel a
    name without a meaning is `#NAME?`, a value like others, and what never changes may yet be given
    values.
    """

    cells: tuple[SheetCell, ...]
    constants: dict[Address, Scalar]
    faults: tuple[Fault, ...]
    broken: dict[Address, Fault]
    doubtful: tuple[Fault, ...] = ()


def flatten(
    workbook: Workbook, inputs: Mapping[Address, Fed], roots: Iterable[Address]
) -> Flattened:
    """The rules of all cells that the roots depend on."""
    flattener = _Flattener(workbook, dict(inputs))
    for root in roots:
        flattener.visit(root)
    flattener.walk()
    return flattener.flattened()


@dataclass
class _Flattener:
    """Mutable: collects rules, and faults by cell."""

    workbook: Workbook
    inputs: dict[Address, Fed]
    rules: dict[Address, Rule] = field(default_factory=dict)
    mentions: dict[Address, list[Address]] = field(default_factory=dict)
    broken: dict[Address, Fault] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    doubtful: list[Fault] = field(default_factory=list)
    waiting: list[Address] = field(default_factory=list)
    seen: set[Address] = field(default_factory=set)
    #: For cells that no worksheet has: the cell in which their formula stands, and the formula.
    hidden: dict[Address, tuple[Address, Node | None]] = field(default_factory=dict)
    #: The cell that was made for a part of formulas, by how it is written.
    parts: dict[str, Address] = field(default_factory=dict)
    #: Formulas that must be constant, with what for and where.
    fixed: list[tuple[Node, str, Address]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.static = Recalculation(self.workbook)

    def visit(self, address: Address) -> None:
        if address not in self.seen:
            self.seen.add(address)
            self.waiting.append(address)

    def walk(self) -> None:
        while self.waiting:
            address = self.waiting.pop()
            if address in self.inputs:
                self.rules[address] = self.inputs[address]
                continue
            if address[0] != HIDDEN_SHEET:
                self._cell(address)

    def _cell(self, address: Address) -> None:
        sheet, row, column = address
        worksheet = self.workbook.sheets[sheet]
        key = key_of(row, column)
        home = worksheet.spilled.get(key, key)
        if home not in worksheet.formulas:
            return
        formula = worksheet.formulas[home]
        if formula.refused:
            self._tell(address, formula.refused)
            return
        try:
            tree = self.workbook.tree(sheet, home)
        except MillstreamError as error:
            self._fail(address, error.faults[0])
            return
        try:
            tree = without_names(tree, self.workbook, sheet, *place_of(home))
            for wrong in misuses(tree):
                self._tell(address, wrong)
            self._check_names(tree, address)
            tree = answered(self._with_references(tree, address), self._context(address))
            if formula.array is None:
                self.rules[address] = self._rule(tree, address)
            else:
                top, left = place_of(home)
                node = self._without_streams(tree, address)
                self._mention(address, node)
                self.rules[address] = Computed(node, True, (row - top, column - left))
        except Unsupported as reason:
            self._tell(address, str(reason))
        except MillstreamError as error:
            self._fail(address, error.faults[0])
        if address in self.broken:
            self.rules.pop(address, None)
            self._mention(address, tree)  # what it refers to may have faults of its own

    def _with_references(self, tree: Node, address: Address) -> Node:
        """The formula with what INDIRECT and OFFSET give, which must stay the same."""

        def constant(node: Node, function: str) -> None:
            if undefined_names(node):
                raise Unsupported(f"what {function} refers to must be known before it runs; here "
                                  f"it depends on the name {undefined_names(node)[0]}")  # fmt: skip
            self._constant(node, function, address)

        return resolved(tree, self._context(address), constant)

    def _tell(self, address: Address, message: str) -> None:
        macros = "; the macros of a workbook are not run" if self.workbook.has_macros else ""
        self._fail(address, Fault(f"{message}{macros}", place=self._shown(address)))

    def _check_names(self, tree: Node, address: Address) -> None:
        for name in undefined_names(tree):
            known = self.workbook.known_names(address[0])
            what = "is broken, or links to another workbook" if name.casefold() in known else None
            self.doubtful.append(
                Fault(
                    f'the name "{name}" {what or "is not defined"}',
                    place=self._shown(address),
                    hint=None if what else suggest(name, known),
                )
            )

    def place(self, address: Address) -> str:
        sheet, row, column = address
        return f"{self.workbook.file} {sheet}!{address_of(row, column)}"

    def _fail(self, address: Address, fault: Fault) -> None:
        self.broken.setdefault(address, fault)
        self.faults.append(fault)

    # --- rules ---

    def _rule(self, tree: Node, home: Address) -> Rule:
        node = tree
        while isinstance(node, Group):
            node = node.inner
        if isinstance(node, Call) and node.function in STREAM_FUNCTIONS:
            return self._stream_rule(node, home)
        node = self._without_streams(tree, home)
        self._mention(home, node)
        return Computed(node)

    def _without_streams(self, node: Node, home: Address) -> Node:
        """The formula with calls of stream functions replaced by cells of their own."""
        if isinstance(node, Call) and node.function in STREAM_FUNCTIONS:
            return self._hidden_cell(node, home)
        return rebuilt(node, lambda n: self._without_streams(n, home))

    def _hidden_cell(self, node: Node, home: Address) -> Cell:
        """A cell for a part of a formula; equal parts are one cell."""
        key = render_formula(node)
        if key not in self.parts:
            address = self._new_cell(home, node)
            try:
                self.rules[address] = self._rule(node, address)
            except Unsupported as reason:
                self._tell(self._home(home), str(reason))
                return Cell(*address)
            self.parts[key] = address
        return Cell(*self.parts[key])

    def _new_cell(self, home: Address, node: Node | None = None) -> Address:
        """A cell that no worksheet has, for a part of the formula in another one."""
        address = (HIDDEN_SHEET, len(self.hidden) + 1, 1)
        self.hidden[address] = (self._home(home), node)
        return address

    def _home(self, address: Address) -> Address:
        """The cell of a worksheet in which a formula stands."""
        return self.hidden[address][0] if address in self.hidden else address

    def _stream_rule(self, call: Call, home: Address) -> Rule:
        least, most = _ARGUMENTS[call.function]
        if not least <= len(call.arguments) <= most:
            raise Unsupported(f"{call.function} takes other arguments: {_USAGE[call.function]}")
        arguments = call.arguments
        if isinstance(arguments[0], Range):
            raise Unsupported(f"{call.function} takes one cell, not a range: "
                              f"{_USAGE[call.function]}")  # fmt: skip
        source = self._as_cell(arguments[0], home)
        if call.function == "SELECT":
            return Selected(source, self._as_cell(arguments[1], home))
        if call.function == "PRE":
            trigger = self._as_cell(arguments[1], home)
            return Previous(source, trigger, self._constant(arguments[2], "PRE", home))
        trigger = self._as_cell(arguments[2], home) if len(arguments) == 3 else source
        amount = self._constant(arguments[1], call.function, home)
        if type(amount) is not float or amount <= 0:
            unit = "seconds" if call.function == "WINDOW" else "values"
            raise Unsupported(
                f"the second argument of {call.function}, the number of {unit}, must be positive; "
                f"it is {render_scalar(amount) if amount is not None else 'empty'}"
            )
        if call.function == "WINDOWROWS":
            if amount < 1:
                raise Unsupported("WINDOWROWS must keep at least one value")
            return CountWindow(source, int(amount), trigger)
        return TimeWindow(source, round(amount * 1_000_000), trigger)

    def _as_cell(self, node: Node, home: Address) -> Address:
        while isinstance(node, Group):
            node = node.inner
        if isinstance(node, Range):
            node = Call("COUNTA", (node,))
        if not isinstance(node, Cell):
            node = self._hidden_cell(node, home)
        address = (node.sheet, node.row, node.column)
        self.visit(address)
        return address

    def _constant(self, node: Node, function: str, home: Address) -> Scalar:
        self.fixed.append((node, function, home))
        for area in areas_of(node, self.workbook):
            for address in self._cells_in(*area):
                if address in self.inputs:
                    raise Unsupported(self._not_fixed(function, address))
                self.visit(address)
        return node.value if isinstance(node, Literal) else value_of(node, self._context(home))

    def _context(self, home: Address) -> Context:
        """Where a formula stands, among the values that never change."""
        return Context(self.static, self.workbook, *self._home(home),
                       uses_1904=self.workbook.uses_1904)  # fmt: skip

    def _not_fixed(self, function: str, address: Address) -> str:
        if function in COMPUTED_REFERENCES:
            return (f"what {function} refers to must not change, but it depends on "
                    f"{address_text(address)}; use INDEX, MATCH or CHOOSE")  # fmt: skip
        what = "the initial value" if function == "PRE" else "the second argument"
        return f"{what} of {function} must be constant, but {address_text(address)} changes"

    def _check_fixed(self, changing: Mapping[Address, None]) -> None:
        for node, function, home in self.fixed:
            for area in areas_of(node, self.workbook):
                for address in self._cells_in(*area):
                    if address in changing and address not in self.inputs:
                        message = self._not_fixed(function, address)
                        self._fail(home, Fault(message, place=self._shown(home)))

    def _mention(self, home: Address, node: Node) -> None:
        mentioned: list[Address] = []
        for sheet, top, left, bottom, right in areas_of(node, self.workbook):
            if sheet == HIDDEN_SHEET:
                mentioned.append((sheet, top, left))
                continue
            mentioned += self._cells_in(sheet, top, left, bottom, right)
        self.mentions[home] = list(dict.fromkeys(mentioned))
        for address in mentioned:
            self.visit(address)

    def _cells_in(self, sheet: str, top: int, left: int, bottom: int, right: int) -> list[Address]:
        worksheet = self.workbook.sheets[sheet]
        addresses = [
            (sheet, row, column)
            for row, column in worksheet.filled(top, left, bottom, right)
            if worksheet.is_formula(key_of(row, column))
        ]
        addresses += [
            a for a in self.inputs
            if a[0] == sheet and top <= a[1] <= bottom and left <= a[2] <= right
        ]  # fmt: skip
        return addresses

    # --- the result ---

    def flattened(self) -> Flattened:
        changing = self._changing()
        self._check_fixed(changing)
        constants: dict[Address, Scalar] = {}
        still = [
            SheetCell(a, r, tuple(self.mentions.get(a, ())))
            for a, r in self.rules.items()
            if a not in changing
        ]
        computable, static_circles = ordered(still, self._shown)
        self.faults += [fault for _, fault in static_circles]
        for cell in computable:
            address, rule = cell.address, cell.rule
            if address not in self.broken:
                self._constant_cell(address, rule, constants)
        windows = {a for a in changing if isinstance(self.rules[a], Windows)}
        cells: list[SheetCell] = []
        for address in changing:
            rule = self.rules[address]
            refers = tuple(sorted(a for a in self.mentions.get(address, ()) if a in changing))
            if isinstance(rule, Computed):
                rule = replace(rule, formula=with_windows(rule.formula, windows))
                rule = written_out(rule) if windows.intersection(refers) else rule
            cells.append(SheetCell(address, rule, refers))
        order, circles = ordered(cells, self._shown)
        for address, fault in circles:
            self._fail(address, fault)
        for address, fault in check_windows(order, self._shown, self._named_window):
            self._fail(address, fault)
        unsure = self._reached(self.broken)
        self.doubtful += check_triggers(order, self._shown, unsure)
        if not self.faults:
            order, _ = ordered(windows_of_formulas(order, self._new_cell), self._shown)
        return Flattened(
            tuple(order), constants, tuple(self.faults), self.broken, tuple(self.doubtful)
        )

    def _shown(self, address: Address) -> str:
        return self.place(self._home(address))

    def _named_window(self, address: Address) -> str:
        """What to call a window: the cell that holds it, or how it is written."""
        _, node = self.hidden.get(address, (address, None))
        return address_text(address) if node is None else render_formula(node)

    def _changing(self) -> dict[Address, None]:
        """The cells that a stream can reach, and those that are made by stream functions."""
        return self._reached(a for a, r in self.rules.items() if not isinstance(r, Computed))

    def _reached(self, start: Iterable[Address]) -> dict[Address, None]:
        """Some cells and all that need them."""
        users: dict[Address, list[Address]] = {}
        for address, rule in self.rules.items():
            for other in SheetCell(address, rule, tuple(self.mentions.get(address, ()))).needs:
                users.setdefault(other, []).append(address)
        reached = dict.fromkeys(start)
        waiting = list(reached)
        while waiting:
            for user in users.get(waiting.pop(), ()):
                if user not in reached:
                    reached[user] = None
                    waiting.append(user)
        return reached

    def _constant_cell(
        self, address: Address, rule: Rule, constants: dict[Address, Scalar]
    ) -> None:
        if address[0] != HIDDEN_SHEET:
            try:
                constants[address] = self.static.read(*address)
            except MillstreamError as error:
                self._fail(address, error.faults[0])
            return
        assert isinstance(rule, Computed)
        constants[address] = value_of(rule.formula, self._context(address))


def written_out(rule: Computed) -> Computed:
    """A formula of windows without the names that LET gives, as far as functions allow it."""
    rule = replace(rule, formula=without_named_windows(rule.formula))
    plain = without_let(SheetCell(("", 1, 1), rule)).rule
    assert isinstance(plain, Computed)
    return plain


def with_windows(node: Node, windows: set[Address]) -> Node:
    """The formula with references to windows marked as such."""
    if isinstance(node, Cell) and (node.sheet, node.row, node.column) in windows:
        return WindowOf(node)
    return rebuilt(node, lambda n: with_windows(n, windows))
