"""The statements of a large sheet: cells in memory, loops over rows, functions of a fair size."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.calculus.sheets import Address, Computed, SheetCell, Windows
from millstream.kernels.sheets.large import MOVING, Bundle, moving, pieces
from millstream.kernels.sheets.operands import NotCompiled, Operand, constant, refuse_if
from millstream.kernels.sheets.paths import Compilation, Path
from millstream.values.excel.kinds import Kind

if TYPE_CHECKING:
    from millstream.kernels.sheets.plain_paths import PlainPath

HEAD = "T, U, row, floats, pool, numbers, wides, folded, lengths"


def taken_by(body: list[str], head: str) -> str:
    """What a function takes with these statements: arrays that few want are added."""
    named = [a for a in ("plain", "scratch") if re.search(rf"\b{a}\b", "\n".join(body))]
    return ", ".join([head, *named])


class LargePath(Path):
    """Mutable: as a path, but what is not conditional is put into functions of its own."""

    def __init__(self, whole: Compilation, number: int, plain: PlainPath | None = None) -> None:
        super().__init__(whole, number, plain)
        assert whole.memory is not None
        self.memory = whole.memory
        self.functions: list[str] = []
        self.part_name = "part"
        self.blocks: list[list[str]] = []
        self.rows = 1

    def generate(self) -> None:
        for step in self.whole.steps:
            if isinstance(step, Bundle):
                self._bundle(step)
            else:
                self._one(step)
        self._cut()
        self.finish()

    # --- cells in memory ---

    def cell(self, address: Address) -> Operand | None:
        if address[0].endswith(MOVING):
            return self._moving((address[0].removesuffix(MOVING), *address[1:]))
        return super().cell(address)

    def _moving(self, address: Address) -> Operand:
        """A cell that moves with the row: it must be of one kind in all rows."""
        sheet, row, column = address
        kinds = {self._kind((sheet, row + n, column)) for n in range(self.rows)}
        refuse_if(len(kinds) > 1, "cells of several kinds in a column")
        kind, shows_zero = kinds.pop()
        place = self.memory.place(address)
        return Operand(kind, f"T[{place} + j]", f"U[{place} + j]", shows_zero=shows_zero)

    def _kind(self, address: Address) -> tuple[Kind, bool]:
        if address in self.whole.by_address:
            known = self.whole.kinds[address]
            if address not in self.locals and address not in self.ticks:
                self.cell(address)  # one that an earlier tuple left is loaded first
            return known.kind, known.shows_zero
        value = self.fixed(address)
        if value is None:
            raise NotCompiled("an empty cell in a column")
        return constant(value, self.texts).kind, False

    def _in_memory(self, address: Address, made: Operand) -> Operand:
        place = self.memory.place(address)
        return replace(made, value=f"T[{place}]", status=f"U[{place}]", is_left_out=False)

    def _loaded(self, address: Address) -> Operand:
        loaded = super()._loaded(address)
        kept = self._in_memory(address, loaded)
        self.loads.append(f"{kept.value}, {kept.status} = {loaded.value}, {loaded.status}")
        return kept

    # --- steps ---

    def _one(self, cell: SheetCell) -> None:
        """A cell: into a function if it ticks whenever the input has a tuple."""
        is_formula = isinstance(cell.rule, Computed) and self._any(cell.refers_to) == "True"
        if not is_formula:
            self._cut()
        start = len(self.lines.lines)
        self._cell(cell)
        made = self.locals.get(cell.address)
        if made is not None and cell.address in self.ticks and not isinstance(cell.rule, Windows):
            kept = self._in_memory(cell.address, made)
            self._keep(kept, made)
            self.locals[cell.address] = kept
        if is_formula:
            self._take(start)

    def _keep(self, place: Operand, made: Operand) -> None:
        self.lines.add(f"{place.value}, {place.status} = {made.value}, {made.status}")

    def _take(self, start: int) -> None:
        self.blocks.append(self.lines.lines[start:])
        del self.lines.lines[start:]

    def _cut(self) -> None:
        """What has been gathered becomes functions, which are called here."""
        for lines in pieces(self.blocks):
            name = f"{self.part_name}_{self.number}_{len(self.functions)}"
            self._function(name, [f"    {line}" for line in lines])
        self.blocks = []

    def _function(self, name: str, body: list[str]) -> None:
        head = taken_by(body, f"{HEAD}, memo, sites, asked" if self.whole.called else HEAD)
        self.functions.append("\n".join(["@apart", f"def {name}({head}):", *body, "", ""]))
        self.lines.add(f"{name}({head})")

    def _bundle(self, bundle: Bundle) -> None:
        by_address = {c.address: c for c in bundle.cells}
        ordered = [
            by_address[a[0], a[1] + n, a[2]]
            for n in range(bundle.count)
            for a in (c.address for c in bundle.first)
        ]
        before = dict(self.ticks)
        for cell in ordered:
            tick = self._any(cell.refers_to)
            if tick:
                self.ticks[cell.address] = tick
        ticks = {self.ticks.get(c.address) for c in ordered}
        if ticks == {"True"} and self._rolled(bundle):
            for cell in ordered:
                kinds = self.whole.kinds[cell.address]
                self.locals[cell.address] = self._in_memory(cell.address, kinds)
            return
        self.ticks = before
        if ticks != {None}:
            for cell in ordered:
                self._one(cell)

    def _rolled(self, bundle: Bundle) -> bool:
        """A loop over the rows; nothing, if their formulas differ in what they hold."""
        start, self.rows = len(self.lines.lines), bundle.count
        self.lines.add(f"for j in range({bundle.count}):")
        self.lines.depth += 1
        try:
            for cell in bundle.first:
                self._row(cell)
        except NotCompiled:
            del self.lines.lines[start:]
            return False
        finally:
            self.lines.depth -= 1
            self.rows = 1
        self._take(start)
        return True

    def _row(self, cell: SheetCell) -> None:
        assert isinstance(cell.rule, Computed)
        self.place = None  # what is called is called for a cell, not for all rows
        made = self.formulas.root(moving(cell.rule.formula))
        place = self.memory.place(cell.address)
        self._keep(Operand(made.kind, f"T[{place} + j]", f"U[{place} + j]"), made)

    @property
    def statements(self) -> int:
        return len(self.lines.lines) + sum(f.count("\n") for f in self.functions)


def large_paths(whole: Compilation) -> list[LargePath]:
    inputs = range(1 if whole.sheet.fires_per_instant else len(whole.input_types))
    return [LargePath(whole, n) for n in inputs]
