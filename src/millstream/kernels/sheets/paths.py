"""The compiler of sheets: for each input, the statements that one of its tuples runs.

As in section 4.3 of the paper: for every cell the inputs at which it can tick; PRE first,
then the others in an order in which they can be computed; and only cells that another input
needs, or that are needed before they are computed, are kept between tuples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from millstream.calculus.sheet_kinds import cell_kinds
from millstream.calculus.sheets import (
    Address,
    Computed,
    CountWindow,
    Fed,
    Previous,
    Selected,
    Sheet,
    SheetCell,
    TimeWindow,
)
from millstream.calculus.types import Kind as ColumnKind
from millstream.calculus.types import QueueType
from millstream.kernels.sheets.called import Site, Sites
from millstream.kernels.sheets.formulas import Formulas
from millstream.kernels.sheets.large import CellMemory, Step, steps_of
from millstream.kernels.sheets.operands import (
    BOOLEAN_HELD,
    OK,
    Lines,
    NotCompiled,
    Operand,
    Texts,
    constant,
    held_as,
    held_constant,
    refuse_if,
)
from millstream.kernels.sheets.slots import Slots
from millstream.kernels.sheets.windows import Group, by_level, grouped
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Node
from millstream.values.excel.values import ErrorValue, Scalar

if TYPE_CHECKING:
    from millstream.kernels.sheets.blocks import BlockPath
    from millstream.kernels.sheets.plain_paths import PlainPath

_OF_COLUMNS = {ColumnKind.TEXT: Kind.TEXT, ColumnKind.BOOLEAN: Kind.BOOLEAN}
#: Larger sheets take minutes to compile; they are walked.
MAX_CELLS = 20_000
MAX_LINES = 3_000
#: With more statements the cells of a sheet lie in memory, and its code is cut into functions.
LARGE = 300


@dataclass
class Compilation:
    """Mutable: what is known of a sheet while it is compiled."""

    sheet: Sheet
    input_types: tuple[QueueType, ...]
    texts: Texts
    #: The cells of which parts may be called that have no compiled form.
    may_call: frozenset[Address] = frozenset()
    slots: Slots = field(default_factory=Slots)
    kinds: dict[Address, Operand] = field(default_factory=dict)
    paths: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        refuse_if(len(self.sheet.cells) > MAX_CELLS, f"it has more than {MAX_CELLS:,} cells")
        self.slots = self._no_slots()
        self.constants = dict(self.sheet.constants)
        self.by_address = {c.address: c for c in self.sheet.cells}
        self.cells, levels = by_level(self.sheet)
        self.groups, self.windows = grouped(self.sheet, levels)
        self.sites = self._no_sites()
        #: What is tried for many tuples at once.
        self.block: BlockPath | None = None
        #: For large sheets.
        self.memory: CellMemory | None = None
        self.steps: list[Step] = []
        self._find_kinds()
        inputs = range(len(self.input_types))
        # Per instant there is one path, and any of the inputs may have had a tuple.
        self.paths = (
            [Path(self, 0)] if self.sheet.fires_per_instant else [Path(self, n) for n in inputs]
        )
        for path in self.paths:
            path.generate_if_small()
        if sum(path.statements for path in self.paths) > LARGE:
            self._generate_large(levels)
        if not self.sheet.fires_per_instant:
            self._generate_plain()

    def _no_sites(self) -> Sites:
        static = cell_kinds(
            self.sheet.cells,
            self.constants.get,
            lambda fed: self.input_types[fed.input].schema[fed.column],
        )
        return Sites(static, self.constants.get, self.may_call)

    @property
    def called(self) -> list[Site]:
        """The parts of formulas that the loop calls out for."""
        return list(self.sites.found.values())

    def _no_slots(self) -> Slots:
        return Slots(not self.sheet.keys and not self.sheet.fires_per_instant)

    def _generate_plain(self) -> None:
        from millstream.kernels.sheets.blocks import block_path
        from millstream.kernels.sheets.plain_large import plain_path

        for number, path in enumerate(self.paths):
            plain = plain_path(self, path)
            if plain is not None:
                careful = self.paths[number] = type(path)(self, number, plain)
                careful.generate()
        self.block = block_path(self)

    def _generate_large(self, levels: dict[Address, int]) -> None:
        from millstream.kernels.sheets.paths_large import large_paths

        self.slots = self._no_slots()
        self.memory = CellMemory.of([*self.by_address, *self.constants])
        self.steps = steps_of(self.cells, levels)
        self.paths = [*large_paths(self)]
        for path in self.paths:
            path.generate()
        if sum(path.statements for path in self.paths) > MAX_LINES:
            raise NotCompiled(f"it needs more than {MAX_LINES:,} statements")

    def _find_kinds(self) -> None:
        """What each cell holds, found by generating every formula once for nothing."""
        for cell in self.cells:
            rule = cell.rule
            if isinstance(rule, Previous):
                self.kinds[cell.address] = self._kind_of_previous(cell.address, rule)
        scratch = Path(self, -1)
        for cell in self.cells:
            try:
                operand = scratch.typed(cell)
            except NotCompiled as reason:
                reason.address = cell.address
                raise
            if isinstance(cell.rule, Previous):
                continue
            self.kinds[cell.address] = replace(
                operand, value="", status="?", is_reference=False, is_left_out=False
            )
        for cell in self.cells:
            rule = cell.rule
            if isinstance(rule, Previous) and rule.source in self.kinds:
                source, mine = self.kinds[rule.source], self.kinds[cell.address]
                if mine.kind is Kind.MIXED:
                    continue
                if source.kind is not mine.kind or (source.shows_zero and not mine.shows_zero):
                    raise NotCompiled("a PRE whose initial value is of another kind")

    def _kind_of_previous(self, address: Address, rule: Previous) -> Operand:
        if held_as(self.sites.kinds[address]) is Kind.MIXED:
            return Operand(Kind.MIXED, "", "?")
        if rule.initial is None or type(rule.initial) is ErrorValue:
            return Operand(Kind.NUMBER, "", "?")
        initial = constant(rule.initial, self.texts)
        return Operand(initial.kind, "", "?", shows_zero=initial.kind is not Kind.NUMBER)

    def fixed(self, address: Address) -> Scalar:
        return self.constants.get(address)


class Path:
    """Mutable: the statements for a tuple of one input. Number -1 is for finding kinds."""

    def __init__(self, whole: Compilation, number: int, plain: PlainPath | None = None) -> None:
        self.whole = whole
        self.number = number
        #: What is tried before; its statements for windows are compiled into the loop.
        self.plain_form = plain
        self.texts = whole.texts
        self.sites = whole.sites
        self.is_scratch = number < 0
        self.uses_1904 = whole.sheet.uses_1904
        #: The cell whose formula is generated.
        self.place: Address | None = None
        self.lines = Lines(f"P{number}C")
        self.sent: list[tuple[int, str, list[Operand]]] = []
        self.loads: list[str] = []
        self.ticks: dict[Address, str] = {}
        self.locals: dict[Address, Operand] = {}
        #: Functions of its own that a path calls.
        self.functions: list[str] = []
        self.groups: list[Group] = []
        self.moved: list[Group] = []
        self.formulas = Formulas(self)

    # --- what formulas ask ---

    def site(self, node: Node) -> Site | None:
        return self.sites.at(self.place, node)

    def called_from_now_on(self, node: Node, reason: str) -> Site:
        assert self.place is not None
        rule = self.whole.by_address[self.place].rule
        assert isinstance(rule, Computed)
        return self.sites.add(self.place, Computed(node), reason, is_whole=node == rule.formula)

    def called_otherwise(self, node: Node, reason: str, *, is_seldom: bool = False) -> Site:
        site = self.sites.otherwise(self.place, node)
        if site is None:
            refuse_if(self.place is None, reason)
            assert self.place is not None
            rule = self.whole.by_address[self.place].rule
            assert isinstance(rule, Computed)
            site = self.sites.add(
                self.place,
                Computed(node),
                reason,
                is_whole=node == rule.formula,
                is_otherwise=True,
                is_seldom=is_seldom,
            )
        return site

    def is_compiled(self, node: Node, operand: Operand) -> None:
        if self.place is not None:
            self.sites.compiled[self.place, node] = operand

    def cell(self, address: Address) -> Operand | None:
        if address not in self.whole.by_address:
            return None
        operand = self.locals.get(address)
        if operand is None:
            operand = self.locals[address] = self._loaded(address)
        return operand

    def fixed(self, address: Address) -> Scalar:
        return self.whole.fixed(address)

    def formula(self, address: Address) -> Node | None:
        cell = self.whole.by_address.get(address)
        return cell.rule.formula if cell and isinstance(cell.rule, Computed) else None

    def _loaded(self, address: Address) -> Operand:
        """A cell as it was left by an earlier tuple, read before anything else happens."""
        known = self.whole.kinds.get(address)
        if known is None:
            raise NotCompiled("a cell that needs itself")
        if self.number < 0:
            return replace(known, value="0.0", status="s", may_be_empty=True)
        slot = self.whole.slots.cell(address)
        value, status = self.lines.fresh()
        self.loads.append(f"{value}, {status} = {', '.join(self.whole.slots.words(slot))}")
        return replace(known, value=value, status=status, may_be_empty=True)

    def window(self, address: Address) -> tuple[Group, int, Operand]:
        group, column = self.whole.windows[address]
        if group not in self.groups:
            self.groups.append(group)
        source = group.columns[column]
        known = self.whole.kinds.get(source)
        return group, column, self.cell_or_constant(source) if known is None else known

    def cell_or_constant(self, address: Address) -> Operand:
        operand = self.cell(address)
        return constant(self.fixed(address), self.texts) if operand is None else operand

    # --- kinds ---

    def typed(self, cell: SheetCell) -> Operand:
        rule, self.place = cell.rule, cell.address
        match rule:
            case Fed(number, column):
                kind = self.whole.input_types[number].schema[column].kind
                operand = Operand(_OF_COLUMNS.get(kind, Kind.NUMBER), "0.0", "s")
            case Computed(formula, is_array, _):
                operand = self._array(cell) if is_array else self.formulas.root(formula)
            case TimeWindow(source, _, _) | CountWindow(source, _, _):
                operand = self.cell_or_constant(source)
            case Selected(source, _):
                operand = self.cell_or_constant(source)
                operand = replace(operand, status="s")
            case Previous():
                operand = replace(self.whole.kinds[cell.address], value="0.0", status="s")
        self.locals[cell.address] = operand
        return operand

    def _array(self, cell: SheetCell) -> Operand:
        """An array formula, of which the cell has one element."""
        assert isinstance(cell.rule, Computed)
        site = self.site(cell.rule.formula)
        if site is None and cell.rule.element == (0, 0):
            try:
                return self.formulas.in_array(cell.rule.formula)
            except NotCompiled:
                refuse_if(not self.is_scratch, "an array formula")
        if site is None:
            site = self.sites.add(cell.address, cell.rule, "an array formula", is_whole=True)
        return self.formulas.called_operand(site)

    # --- statements ---

    def generate(self) -> None:
        for cell in self.whole.cells:
            self._cell(cell)
        self.finish()

    def generate_if_small(self) -> None:
        """The same, but a large sheet is left alone as soon as it is seen to be one."""
        for cell in self.whole.cells:
            self._cell(cell)
            if self.statements > LARGE:
                return
        self.finish()

    @property
    def statements(self) -> int:
        return len(self.lines.lines)

    def finish(self) -> None:
        """What comes when all cells are computed."""
        self._remember()
        for number, columns in enumerate(self.whole.sheet.outputs):
            tick = self._any(tuple(c.address for c in columns))
            if tick:
                operands = [self.cell_or_constant(c.address) for c in columns]
                self.sent.append((number, tick, operands))

    def _cell(self, cell: SheetCell) -> None:
        rule, self.place = cell.rule, cell.address
        match rule:
            case Fed(number, column):
                if self.whole.sheet.fires_per_instant:
                    self._under(cell, f"a{number}", lambda: self._fed(cell.address, number, column))
                elif number == self.number:
                    self.ticks[cell.address] = "True"
                    self.locals[cell.address] = self._fed(cell.address, number, column)
            case Computed(formula, is_array, _):
                tick = self._any(cell.refers_to)
                if tick and is_array:
                    self._under(cell, tick, lambda: self._array(cell))
                elif tick:
                    self._under(cell, tick, lambda: self.formulas.root(formula))
            case TimeWindow(source, _, trigger) | CountWindow(source, _, trigger):
                self._windowed(cell, source, trigger)
            case Selected(source, condition):
                self._selected(cell, source, condition)
            case Previous(_, trigger, initial):
                tick = self.ticks.get(trigger)
                if tick:
                    self._under(cell, tick, lambda: self._previous(cell.address, initial))

    def _any(self, causes: tuple[Address, ...]) -> str | None:
        """The condition under which one of some cells ticks; None if none ever does."""
        ticks = [self.ticks[a] for a in causes if a in self.ticks]
        if "True" in ticks:
            return "True"
        return " or ".join(dict.fromkeys(ticks)) if ticks else None

    def _fed(self, address: Address, number: int, column: str) -> Operand:
        value, status = self.lines.fresh()
        read = self.read(number, column)
        self.lines.add(f"{value}, {status} = {read[0]}, np.int64({read[1]})")
        return replace(self.whole.kinds[address], value=value, status=status)

    def read(self, number: int, column: str) -> tuple[str, str]:
        """A value of a tuple and its status; texts are numbered by their codes."""
        schema = self.whole.input_types[number].schema
        name = f"i{number}_{schema.index(column)}"
        place = f"p{number}" if self.whole.sheet.fires_per_instant else "i"
        value = f"{name}[{place}]"
        if schema[column].kind is ColumnKind.TEXT:
            value = f"float({name}n[np.uint64({value})])"
        if schema[column].kind is ColumnKind.INTEGER:
            value = f"float({value})"
        return value, f"{name}s[{place}]"

    def _under(self, cell: SheetCell, tick: str, make: Callable[[], Operand]) -> None:
        """Compute a cell if it ticks; otherwise it stays what it was."""
        if tick == "True":
            self.ticks[cell.address] = tick
            self.locals[cell.address] = make()
            return
        before = self.cell(cell.address)
        assert before is not None
        name = f"k{self.lines.fresh()[0]}"
        self.lines.add(f"{name} = {tick}")
        self.ticks[cell.address] = name
        value, status = self.lines.fresh()
        self.lines.add(f"{value}, {status} = {before.value}, {before.status}")
        self.lines.add(f"if {name}:")
        self.lines.depth += 1
        made = make()
        self.lines.add(f"{value}, {status} = {made.value}, {made.status}")
        self.lines.depth -= 1
        known = self.whole.kinds[cell.address]
        self.locals[cell.address] = replace(known, value=value, status=status, may_be_empty=True)

    def _windowed(self, cell: SheetCell, source: Address, trigger: Address) -> None:
        """Move on the group of a window, when the first of its windows comes."""
        comes, tick = self.ticks.get(source), self.ticks.get(trigger)
        if tick:
            self.ticks[cell.address] = tick
        group = self.whole.windows[cell.address][0]
        if (not comes and not tick) or group in self.moved:
            return
        self.moved.append(group)
        if group not in self.groups:
            self.groups.append(group)
        rule = group.rule
        limit = f"t - {rule.length}" if isinstance(rule, TimeWindow) else f"{rule.count}"
        operands = [self.cell_or_constant(a) for a in group.columns] if comes else []
        statuses = " | ".join(
            f"({o.status} << {8 * n})" if n else o.status for n, o in enumerate(operands)
        )
        values = ", ".join(o.value for o in operands)
        g, head = group.number, "row, floats, pool, numbers, wides, folded"
        # The plain form may have come so far.
        before = f"done < {len(self.moved)} and " if self.plain_form else ""
        if comes == tick and not self.plain_form:
            self.lines.add(f"if {tick}:")
            self.lines.add(f"    push_{g}({head}, used, t, {limit}, {statuses}, {values})")
            return
        if comes:
            self.lines.add(f"if {before}({comes}):")
            self.lines.add(f"    append_{g}(row, pool, numbers, used, t, {statuses}, {values})")
        if tick:
            self.lines.add(f"if {before}({tick}):")
            self.lines.add(f"    advance_{g}({head}, {limit})")

    def _selected(self, cell: SheetCell, source: Address, condition: Address) -> None:
        tick = self.ticks.get(condition)
        if not tick:
            return
        test = self.cell_or_constant(condition)
        if test.kind not in (Kind.BOOLEAN, Kind.MIXED):
            return  # only TRUE itself selects
        is_boolean = OK if test.kind is Kind.BOOLEAN else BOOLEAN_HELD
        value = self.cell_or_constant(source)
        is_there = f"{value.status} != 1"
        if source not in self.whole.by_address and self.fixed(source) is None:
            return
        is_true = f"{test.status} == {is_boolean} and {test.value} != 0.0"
        holds = f"({tick}) and {is_true} and {is_there}"
        self._under(cell, holds, lambda: value)

    def _previous(self, address: Address, initial: Scalar) -> Operand:
        slots = self.whole.slots
        if address not in slots.previous:
            slots.previous[address] = slots.count
        slot = slots.previous[address]
        first = held_constant(initial, self.whole.kinds[address].kind, self.texts)
        value, status = self.lines.fresh()
        self.lines.add(f"{value}, {status} = {', '.join(slots.words(slot))}")
        self.lines.add(f"if {status} == 1:")
        self.lines.add(f"    {value}, {status} = {first.value}, {first.status}")
        return replace(self.whole.kinds[address], value=value, status=status)

    def _remember(self) -> None:
        """What PRE will want at the next tick of its trigger, once all cells are computed."""
        for cell in self.whole.cells:
            rule = cell.rule
            if not isinstance(rule, Previous):
                continue
            tick = self.ticks.get(rule.trigger)
            if not tick:
                continue
            slot = self.whole.slots.previous[cell.address]
            source = self.cell_or_constant(rule.source)
            if self.whole.kinds[cell.address].kind is Kind.MIXED:
                source = self.formulas.as_mixed(source)
            is_nothing = rule.source not in self.whole.by_address and (
                self.fixed(rule.source) is None
            )
            status = "1" if is_nothing else source.status
            if tick != "True":
                self.lines.add(f"if {tick}:")
            deeper = "" if tick == "True" else "    "
            self.lines.add(f"{deeper}{self.stored(slot, source.value, status)}")

    def stores(self) -> list[str]:
        """Keep the cells that a later tuple will read; the others are temporaries."""
        lines = []
        for address, slot in self.whole.slots.cells.items():
            tick = self.ticks.get(address)
            if tick and address not in self.whole.windows:
                operand = self.locals[address]
                store = self.stored(slot, operand.value, operand.status)
                lines.append(store if tick == "True" else f"if {tick}: {store}")
        return lines

    def stored(self, slot: int, value: str, status: str) -> str:
        return f"{', '.join(self.whole.slots.words(slot))} = {value}, {status}"
