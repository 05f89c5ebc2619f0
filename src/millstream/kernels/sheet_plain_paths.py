"""Paths in their plain form, which are tried before the careful ones: see `sheet_plain`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.calculus.sheets import Address, Previous, Selected, SheetCell, Windows
from millstream.formulas.kinds import Kind
from millstream.formulas.values import ErrorValue, Scalar
from millstream.kernels.sheet_large import Bundle, offsets
from millstream.kernels.sheet_operands import NotCompiled, Operand
from millstream.kernels.sheet_paths import Compilation, Path
from millstream.kernels.sheet_paths_large import HEAD, LargePath
from millstream.kernels.sheet_plain import PlainFormulas, give_up

#: To compile a large sheet twice would take too long.
_MAX_STATEMENTS = 600


class PlainPath(Path):
    """Mutable: the plain statements for a tuple of one input."""

    def __init__(self, whole: Compilation, number: int) -> None:
        super().__init__(whole, number)
        self.lines.prefix = f"Q{number}C"
        self.plain = PlainFormulas(self)
        self.formulas = self.plain
        #: Statuses that must all be zero before anything is computed.
        self.guards: list[str] = []

    def finish(self) -> None:
        kept = [a for a in self.whole.slots.cells if a in self.ticks and a in self.locals]
        for address in kept:
            self.locals[address] = self.plain.settled(self.locals[address])
        # Whatever is remembered or leaves must be checked before anything is written.
        for cell in self.whole.cells:
            if isinstance(cell.rule, Previous) and self.ticks.get(cell.rule.trigger):
                self.cell_or_constant(cell.rule.source)
        for columns in self.whole.sheet.outputs:
            if self._any(tuple(c.address for c in columns)):
                for column in columns:
                    self.cell_or_constant(column.address)
        self._checkpoint()
        super().finish()

    def cell_or_constant(self, address: Address) -> Operand:
        return self.plain.settled(super().cell_or_constant(address))

    def _checkpoint(self) -> None:
        """From here on only if everything so far was right."""
        checks = self.plain.taken_checks()
        if checks:
            self.lines.add(f"if {checks}:")
            self.lines.depth += 1

    def _loaded(self, address: Address) -> Operand:
        slot = self.whole.slots.cell(address)
        value, _ = self.lines.fresh()
        self.loads.append(f"{value} = floats[{2 * slot}]")
        self.guards.append(f"row[{2 * slot + 1}]")
        return self._known(address, value)

    def _known(self, address: Address, value: str) -> Operand:
        known = self.whole.kinds[address]
        return replace(known, value=value, status="0", may_be_empty=False)

    def _fed(self, address: Address, number: int, column: str) -> Operand:
        value, _ = self.lines.fresh()
        read, status = self.read(number, column)
        self.lines.add(f"{value} = {read}")
        self.guards.append(status)
        return self._known(address, value)

    def _under(self, cell: SheetCell, tick: str, make: Callable[[], Operand]) -> None:
        if tick == "True":
            self.ticks[cell.address] = tick
            self.locals[cell.address] = self._checked(make())
            return
        before = self.cell(cell.address)
        assert before is not None
        value, right = self.lines.fresh()
        name = f"k{value}"
        self.lines.add(f"{name} = {tick}")
        self.ticks[cell.address] = name
        self.lines.add(f"{value}, {right} = {before.value}, True")
        self.lines.add(f"if {name}:")
        self.lines.depth += 1
        made, checks = self.plain.apart(lambda: self.plain.settled(make()))
        self.lines.add(f"{value} = {self._checked(made).value}")
        if checks:
            self.lines.add(f"{right} = {checks}")
            self.plain.checks.append(right)
        self.lines.depth -= 1
        self.locals[cell.address] = self._known(cell.address, value)

    def _checked(self, made: Operand) -> Operand:
        if not made.is_sure:
            give_up()
        return made

    def _windowed(self, cell: SheetCell, source: Address, trigger: Address) -> None:
        moved = len(self.moved)
        group = self.whole.windows[cell.address][0]
        if group not in self.moved and (self.ticks.get(source) or self.ticks.get(trigger)):
            # What has entered a window cannot be taken back.
            for address in group.columns if self.ticks.get(source) else ():
                self.cell_or_constant(address)
            self._checkpoint()
        super()._windowed(cell, source, trigger)
        if len(self.moved) > moved:
            self.lines.add(f"done = {len(self.moved)}")

    def _previous(self, address: Address, initial: Scalar) -> Operand:
        slot = self.whole.slots.previous[address]
        value, _ = self.lines.fresh()
        self.lines.add(f"{value} = floats[{2 * slot}]")
        self.guards.append(f"row[{2 * slot + 1}]")
        return self._known(address, value)


class PlainLargePath(PlainPath, LargePath):
    """Mutable: the same for a large sheet: its functions tell whether all was well in them."""

    def __init__(self, whole: Compilation, number: int) -> None:
        super().__init__(whole, number)
        # Each function has variables of its own.
        self.plain.depth = 1
        self.part_name = "plain_part"
        self.lines.add("ok = True")

    def finish(self) -> None:
        self.plain.checks.append("ok")
        super().finish()

    def _cell(self, cell: SheetCell) -> None:
        if isinstance(cell.rule, (Windows, Selected)):
            give_up()
        super()._cell(cell)

    def _under(self, cell: SheetCell, tick: str, make: Callable[[], Operand]) -> None:
        if tick != "True":
            give_up()
        super()._under(cell, tick, make)

    # --- cells in memory ---

    def _kind(self, address: Address) -> tuple[Kind, bool]:
        if address not in self.whole.by_address and type(self.fixed(address)) is ErrorValue:
            give_up()
        return super()._kind(address)

    def _moving(self, address: Address) -> Operand:
        return replace(super()._moving(address), status="0", may_be_empty=False)

    def _in_memory(self, address: Address, made: Operand) -> Operand:
        return replace(super()._in_memory(address, made), status="0", may_be_empty=False)

    def _loaded(self, address: Address) -> Operand:
        found = super()._loaded(address)
        kept = self._in_memory(address, found)
        self.loads.append(f"{kept.value} = {found.value}")
        return kept

    def _keep(self, place: Operand, made: Operand) -> None:
        self.lines.add(f"{place.value} = {self.plain.settled(self._checked(made)).value}")
        checks = self.plain.taken_checks()
        if checks:
            self.lines.add(f"ok = ok & {checks}")

    # --- functions and loops ---

    def _function(self, name: str, body: list[str]) -> None:
        lines = ["@apart", f"def {name}({HEAD}):", "    ok = True", *body, "    return ok", "", ""]
        self.functions.append("\n".join(lines))
        self.lines.add(f"ok = ok & {name}({HEAD})")

    def _end_row(self, bundle: Bundle) -> None:
        """If a row is what the row before was, all others are too: the rest is left out.

        That holds if a row is computed from nothing but the row before and what does not move.
        """
        read = self._read_of_row_before(bundle)
        if not read:
            return
        places = [self.memory.place(address) for address in read]
        same = " & ".join(f"(T[{p} + j] == T[{p - 1} + j])" for p in places)
        self.lines.add(f"if {same}:")
        last = bundle.count - 1
        for address, rows in self._read_elsewhere(bundle).items():
            place = self.memory.place(address)
            if rows == {last}:
                self.lines.add(f"    T[{place + last}] = T[{place} + j]")
            elif rows:
                self.lines.add(f"    for m in range(j + 1, {bundle.count}):")
                self.lines.add(f"        T[{place} + m] = T[{place} + j]")
        self.lines.add("    break")

    def _read_of_row_before(self, bundle: Bundle) -> list[Address]:
        """Of which columns a row reads the row before; none if it reads anything else."""
        mine = {c.address for c in bundle.first}
        found: dict[Address, None] = {}
        for cell in bundle.first:
            for (sheet, row, column), offset in offsets(cell):
                address = (sheet, row - offset, column)
                if address not in mine or offset not in (0, -1):
                    return []
                if offset:
                    found[address] = None
        return list(found)

    def _read_elsewhere(self, bundle: Bundle) -> dict[Address, set[int]]:
        """For each column the rows that are needed when the loop is done."""
        mine = {c.address for c in bundle.cells}
        read = {c.address for columns in self.whole.sheet.outputs for c in columns}
        for cell in self.whole.cells:
            if cell.address not in mine:
                read |= {*cell.refers_to, *cell.causes, *cell.needs}
            if isinstance(cell.rule, Previous):
                read.add(cell.rule.source)
        is_alone = len(self.whole.input_types) == 1  # others may read any cell
        return {
            (sheet, row, column): {
                n for n in range(bundle.count) if not is_alone or (sheet, row + n, column) in read
            }
            for sheet, row, column in (c.address for c in bundle.first)
        }


def plain_path(whole: Compilation, careful: Path) -> PlainPath | None:
    """The plain form of a path, if it has one."""
    if careful.statements > _MAX_STATEMENTS:
        return None
    kind = PlainPath if whole.memory is None else PlainLargePath
    path = kind(whole, careful.number)
    try:
        path.generate()
    except NotCompiled:
        return None
    return path
