"""The compiler of sheets: for each input, the statements that one of its tuples runs.

As in section 4.3 of the paper: for every cell the inputs at which it can tick; PRE first,
then the others in an order in which they can be computed; and only cells that another input
needs, or that are needed before they are computed, are kept between tuples.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

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
    Windows,
)
from millstream.calculus.types import Kind as ColumnKind
from millstream.calculus.types import QueueType
from millstream.formulas.kinds import Kind
from millstream.formulas.values import ErrorValue, Scalar
from millstream.kernels.loops_window import HIGHS, LOWS, SUMS
from millstream.kernels.sheet_formulas import Formulas
from millstream.kernels.sheet_operands import Lines, NotCompiled, Operand, Texts, constant

_OF_COLUMNS = {ColumnKind.TEXT: Kind.TEXT, ColumnKind.BOOLEAN: Kind.BOOLEAN}
_KEPT_FOR = {"SUM": SUMS, "AVERAGE": SUMS, "MIN": LOWS, "MAX": HIGHS}
#: Larger sheets take minutes to compile; they are walked.
MAX_CELLS = 3_000
MAX_LINES = 600
MAX_INLINED = 2


@dataclass
class Slots:
    """Mutable: where cells are kept between tuples, and what windows keep."""

    cells: dict[Address, int] = field(default_factory=dict)
    previous: dict[Address, int] = field(default_factory=dict)
    windows: dict[Address, int] = field(default_factory=dict)
    kept: dict[Address, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.cells) + len(self.previous)

    def cell(self, address: Address) -> int:
        if address not in self.cells:
            self.cells[address] = self.count
        return self.cells[address]


@dataclass
class Compilation:
    """Mutable: what is known of a sheet while it is compiled."""

    sheet: Sheet
    input_types: tuple[QueueType, ...]
    texts: Texts
    slots: Slots = field(default_factory=Slots)
    kinds: dict[Address, Operand] = field(default_factory=dict)
    paths: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.sheet.cells) > MAX_CELLS:
            raise NotCompiled(f"it has more than {MAX_CELLS:,} cells")
        if self.sheet.fires_per_instant:
            raise NotCompiled("it is computed once per instant")
        self.constants = dict(self.sheet.constants)
        self.by_address = {c.address: c for c in self.sheet.cells}
        for cell in self.sheet.cells:
            if isinstance(cell.rule, Windows):
                self.slots.windows[cell.address] = len(self.slots.windows)
                self.slots.kept[cell.address] = 0
        self._find_kinds()
        self.paths = [Path(self, n) for n in range(len(self.input_types))]
        for path in self.paths:
            path.generate()
            if len(path.lines.lines) > MAX_LINES:
                raise NotCompiled(f"it needs more than {MAX_LINES} statements")

    def _find_kinds(self) -> None:
        """What each cell holds, found by generating every formula once for nothing."""
        for cell in self.sheet.cells:
            rule = cell.rule
            if isinstance(rule, Previous):
                self.kinds[cell.address] = self._kind_of_initial(rule)
        scratch = Path(self, -1)
        for cell in self.sheet.cells:
            found = scratch.typed(cell)
            if isinstance(cell.rule, Previous):
                continue
            self.kinds[cell.address] = replace(
                found, value="", status="?", is_reference=False, is_left_out=False
            )
        for cell in self.sheet.cells:
            rule = cell.rule
            if isinstance(rule, Previous) and rule.source in self.kinds:
                source, mine = self.kinds[rule.source], self.kinds[cell.address]
                if source.kind is not mine.kind or (source.shows_zero and not mine.shows_zero):
                    raise NotCompiled("a PRE whose initial value is of another kind")

    def _kind_of_initial(self, rule: Previous) -> Operand:
        if rule.initial is None or type(rule.initial) is ErrorValue:
            return Operand(Kind.NUMBER, "", "?")
        found = constant(rule.initial, self.texts)
        return Operand(found.kind, "", "?", shows_zero=found.kind is not Kind.NUMBER)

    def fixed(self, address: Address) -> Scalar:
        return self.constants.get(address)


class Path:
    """Mutable: the statements for a tuple of one input. Number -1 is for finding kinds."""

    def __init__(self, whole: Compilation, number: int) -> None:
        self.whole = whole
        self.number = number
        self.texts = whole.texts
        self.lines = Lines(f"P{number}C")
        self.sent: list[tuple[int, str, list[Operand]]] = []
        self.loads: list[str] = []
        self.ticks: dict[Address, str] = {}
        self.locals: dict[Address, Operand] = {}
        self.windows: dict[Address, str] = {}
        self.formulas = Formulas(self)

    # --- what formulas ask ---

    def cell(self, address: Address) -> Operand | None:
        if address not in self.whole.by_address:
            return None
        found = self.locals.get(address)
        if found is None:
            found = self.locals[address] = self._loaded(address)
        return found

    def fixed(self, address: Address) -> Scalar:
        return self.whole.fixed(address)

    def _loaded(self, address: Address) -> Operand:
        """A cell as it was left by an earlier tuple, read before anything else happens."""
        known = self.whole.kinds.get(address)
        if known is None:
            raise NotCompiled("a cell that needs itself")
        if self.number < 0:
            return replace(known, value="0.0", status="s", may_be_empty=True)
        slot = self.whole.slots.cell(address)
        value, status = self.lines.fresh()
        self.loads.append(f"{value}, {status} = F[k, {slot}], np.int64(S[k, {slot}])")
        return replace(known, value=value, status=status, may_be_empty=True)

    def aggregate(self, function: str, window: Address, more: list[Operand]) -> Operand:
        rule = self.whole.by_address[window].rule
        assert isinstance(rule, (TimeWindow, CountWindow))
        source = self.cell_or_constant(rule.source)
        if function not in ("COUNTA", "INDEX") and source.kind is not Kind.NUMBER:
            raise NotCompiled(f"{function} of a window that does not hold numbers")
        self.whole.slots.kept[window] |= _KEPT_FOR.get(function, 0)
        w = self._window(window)
        call = {
            "SUM": f"window_sum({w}, pool, c{w}, f{w}, wides)",
            "AVERAGE": f"window_average({w}, pool, c{w}, f{w}, wides)",
            "MIN": f"window_low({w}, pool)",
            "MAX": f"window_high({w}, pool)",
            "COUNT": f"float({w}[NUMBERS]), 0",
            "COUNTA": f"float({w}[GIVEN]), 0",
            "INDEX": f"window_index({w}, pool, {more[0].value}, {more[0].status})" if more else "",
        }.get(function)
        if not call:
            raise NotCompiled(f"{function} of a window")
        value, status = self.lines.fresh()
        self.lines.add(f"{value}, {status} = {call}")
        if function != "INDEX":
            return Operand(Kind.NUMBER, value, status, may_be_empty=False)
        return Operand(source.kind, value, status, shows_zero=source.shows_zero)

    def cell_or_constant(self, address: Address) -> Operand:
        found = self.cell(address)
        return constant(self.fixed(address), self.texts) if found is None else found

    def _window(self, address: Address) -> str:
        if address not in self.windows:
            number = self.whole.slots.windows[address]
            name = f"w{number}"
            self.windows[address] = name
        return self.windows[address]

    # --- kinds ---

    def typed(self, cell: SheetCell) -> Operand:
        rule = cell.rule
        match rule:
            case Fed(number, column):
                kind = self.whole.input_types[number].schema[column].kind
                found = Operand(_OF_COLUMNS.get(kind, Kind.NUMBER), "0.0", "s")
            case Computed(formula, is_array, _):
                if is_array:
                    raise NotCompiled("an array formula")
                found = self.formulas.root(formula)
            case TimeWindow(source, _, _) | CountWindow(source, _, _):
                found = self.cell_or_constant(source)
            case Selected(source, _):
                found = self.cell_or_constant(source)
                found = replace(found, status="s")
            case Previous():
                found = replace(self.whole.kinds[cell.address], value="0.0", status="s")
        self.locals[cell.address] = found
        return found

    # --- statements ---

    def generate(self) -> None:
        for cell in self.whole.sheet.cells:
            self._cell(cell)
        self._remember()
        for number, columns in enumerate(self.whole.sheet.outputs):
            tick = self._any(tuple(c.address for c in columns))
            if tick:
                found = [self.cell_or_constant(c.address) for c in columns]
                self.sent.append((number, tick, found))

    def _cell(self, cell: SheetCell) -> None:
        rule = cell.rule
        match rule:
            case Fed(number, column):
                if number == self.number:
                    self.ticks[cell.address] = "True"
                    self._fed(cell.address, column)
            case Computed(formula, _, _):
                tick = self._any(cell.refers_to)
                if tick:
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

    def _fed(self, address: Address, column: str) -> None:
        known = self.whole.kinds[address]
        value, status = self.lines.fresh()
        index = self.whole.input_types[self.number].schema.index(column)
        name = f"i{self.number}_{index}"
        self.lines.add(f"{value}, {status} = {name}[i], np.int64({name}s[i])")
        self.locals[address] = replace(known, value=value, status=status)

    def _under(self, cell: SheetCell, tick: str, make: object) -> None:
        """Compute a cell if it ticks; otherwise it stays what it was."""
        assert callable(make)
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
        comes, tick = self.ticks.get(source), self.ticks.get(trigger)
        if not comes and not tick:
            return
        w = self._window(cell.address)
        if comes:
            value = self.cell_or_constant(source)
            self.lines.add(f"if {comes}:")
            self.lines.add(f"    append({w}, pool, t, {value.value}, {value.status})")
        if tick:
            self.ticks[cell.address] = tick
            rule = cell.rule
            kept = f"KEPT_{w}"
            self.lines.add(f"if {tick}:")
            # Few windows are compiled into the loop, which is fast; many would take minutes.
            apart = "_apart" if len(self.whole.slots.windows) > MAX_INLINED else ""
            what = f"{w}, pool, c{w}, f{w}, wides, {kept}"
            if isinstance(rule, TimeWindow):
                self.lines.add(f"    advance_time{apart}({what}, t - {rule.length})")
            else:
                assert isinstance(rule, CountWindow)
                self.lines.add(f"    advance_count{apart}({what}, {rule.count})")

    def _selected(self, cell: SheetCell, source: Address, condition: Address) -> None:
        tick = self.ticks.get(condition)
        if not tick:
            return
        test = self.cell_or_constant(condition)
        if test.kind is not Kind.BOOLEAN:
            return  # only TRUE itself selects
        value = self.cell_or_constant(source)
        is_there = f"{value.status} != 1"
        if source not in self.whole.by_address and self.fixed(source) is None:
            return
        holds = f"({tick}) and {test.status} == 0 and {test.value} != 0.0 and {is_there}"
        self._under(cell, holds, lambda: value)

    def _previous(self, address: Address, initial: Scalar) -> Operand:
        slots = self.whole.slots
        if address not in slots.previous:
            slots.previous[address] = slots.count
        slot = slots.previous[address]
        first = constant(initial, self.texts)
        value, status = self.lines.fresh()
        self.lines.add(f"{value}, {status} = F[k, {slot}], np.int64(S[k, {slot}])")
        self.lines.add(f"if {status} == 1:")
        self.lines.add(f"    {value}, {status} = {first.value}, {first.status}")
        return replace(self.whole.kinds[address], value=value, status=status)

    def _remember(self) -> None:
        """What PRE will want at the next tick of its trigger, once all cells are computed."""
        for cell in self.whole.sheet.cells:
            rule = cell.rule
            if not isinstance(rule, Previous):
                continue
            tick = self.ticks.get(rule.trigger)
            if not tick:
                continue
            slot = self.whole.slots.previous[cell.address]
            source = self.cell_or_constant(rule.source)
            is_nothing = rule.source not in self.whole.by_address and (
                self.fixed(rule.source) is None
            )
            status = "1" if is_nothing else source.status
            self.lines.add(f"if {tick}:")
            self.lines.add(f"    F[k, {slot}], S[k, {slot}] = {source.value}, {status}")

    def stores(self) -> list[str]:
        """Keep the cells that a later tuple will read; the others are temporaries."""
        lines = []
        for address, slot in self.whole.slots.cells.items():
            tick = self.ticks.get(address)
            if tick and address not in self.whole.slots.windows:
                found = self.locals[address]
                store = f"F[k, {slot}], S[k, {slot}] = {found.value}, {found.status}"
                lines.append(store if tick == "True" else f"if {tick}: {store}")
        return lines
