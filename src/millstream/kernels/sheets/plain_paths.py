"""Paths in their plain form, which are tried before the careful ones: see `sheet_plain`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.calculus.sheets import Address, Previous, SheetCell
from millstream.kernels.sheets.operands import Operand
from millstream.kernels.sheets.paths import Compilation, Path
from millstream.kernels.sheets.plain import PlainFormulas, give_up
from millstream.values.excel.kinds import Kind
from millstream.values.excel.values import Scalar


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
            self.lines.add(f"if likely({checks}):")
            self.lines.depth += 1

    def _loaded(self, address: Address) -> Operand:
        slot = self.whole.slots.cell(address)
        value, _ = self.lines.fresh()
        kept, status = self.whole.slots.words(slot)
        self.loads.append(f"{value} = {kept}")
        self.guards.append(status)
        return self._known(address, value)

    def _known(self, address: Address, value: str) -> Operand:
        known = self.whole.kinds[address]
        if known.kind is Kind.MIXED:
            give_up()
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
        kept, status = self.whole.slots.words(slot)
        self.lines.add(f"{value} = {kept}")
        self.guards.append(status)
        return self._known(address, value)

    def stored(self, slot: int, value: str, status: str) -> str:
        kept, where = self.whole.slots.words(slot)
        if status == "0" and where in self.guards:  # it is zero already
            return f"{kept} = {value}"
        return super().stored(slot, value, status)
