"""The plain form of a large sheet: rows of filled columns go from one to the next in variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.calculus.sheets import (
    Address,
    Computed,
    Previous,
    Selected,
    SheetCell,
    Windows,
)
from millstream.kernels.sheets.large import Bundle, moving, offsets
from millstream.kernels.sheets.operands import NotCompiled, Operand
from millstream.kernels.sheets.paths import Compilation, Path
from millstream.kernels.sheets.paths_large import HEAD, LargePath, taken_by
from millstream.kernels.sheets.plain import give_up
from millstream.kernels.sheets.plain_paths import PlainPath
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Call, Cell, Node
from millstream.values.excel.values import ErrorValue

#: To compile a large sheet twice would take too long.
_MAX_STATEMENTS = 600


class PlainLargePath(PlainPath, LargePath):
    """Mutable: the same for a large sheet: its functions tell whether all was well in them."""

    def __init__(self, whole: Compilation, number: int) -> None:
        super().__init__(whole, number)
        # Each function has variables of its own.
        self.plain.depth = 1
        self.part_name = "plain_part"
        #: In a loop over rows: the variables of the row before and of this one, by the cells of
        #: the first row.
        self.row_before: dict[Address, str] = {}
        self.this_row: dict[Address, str] = {}
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
        operand = replace(super()._moving(address), status="0", may_be_empty=False)
        sheet, row, column = address
        name = self.this_row.get(address) or self.row_before.get((sheet, row + 1, column))
        return operand if name is None else replace(operand, value=name)

    def _in_memory(self, address: Address, made: Operand) -> Operand:
        return replace(super()._in_memory(address, made), status="0", may_be_empty=False)

    def _loaded(self, address: Address) -> Operand:
        loaded = super()._loaded(address)
        kept = self._in_memory(address, loaded)
        self.loads.append(f"{kept.value} = {loaded.value}")
        return kept

    def _keep(self, place: Operand, made: Operand) -> None:
        self.lines.add(f"{place.value} = {self.plain.settled(self._checked(made)).value}")
        checks = self.plain.taken_checks()
        if checks:
            self.lines.add(f"ok = ok & {checks}")

    # --- functions and loops ---

    def _function(self, name: str, body: list[str]) -> None:
        head = taken_by(body, HEAD)
        lines = ["@apart", f"def {name}({head}):", "    ok = True", *body, "    return ok", "", ""]
        self.functions.append("\n".join(lines))
        self.lines.add(f"ok = ok & {name}({head})")

    def _rolled(self, bundle: Bundle) -> bool:
        """A loop over rows, without memory between a row and the next where that can be."""
        read = self._read_of_row_before(bundle)
        if not read:
            return super()._rolled(bundle)
        start, self.rows = len(self.lines.lines), bundle.count
        for address in read:
            name = self.row_before[address] = f"r{self.lines.fresh()[0]}"
            self.lines.add(f"{name} = T[{self.memory.place(address) - 1}]")
        self.lines.add(f"for j in range({bundle.count}):")
        self.lines.depth += 1
        try:
            self._carried_row(bundle, read)
        except NotCompiled:
            del self.lines.lines[start:]
            return False
        else:
            self.lines.depth -= 1
            self._keep_last(bundle)
            self.lines.depth += 1
        finally:
            self.lines.depth -= 1
            self.rows, self.row_before, self.this_row = 1, {}, {}
        self._take(start)
        return True

    def _carried_row(self, bundle: Bundle, read: list[Address]) -> None:
        """A row; if it is what the row before was, all others are too, and are left out."""
        stays = _what_stays(bundle)
        if stays is not None:
            test = self.plain.sure(self.plain.number(self.plain.operand(moving(stays))))
            self._all_is_well()
            self.lines.add(f"if {self._checked(test).value} != 0.0:")
            self._fill_rest(bundle, "j", self.row_before)
            self.lines.add("    break")
        for cell in bundle.first:
            self._new(cell, is_moving_on=stays is not None)
        self._all_is_well()
        for address in self._kept_in_all_rows(bundle):
            self.lines.add(f"T[{self.memory.place(address)} + j] = {self.this_row[address]}")
        if stays is None:
            same = " & ".join(f"({self.this_row[a]} == {self.row_before[a]})" for a in read)
            self.lines.add(f"if {same}:")
            self._fill_rest(bundle, "j + 1", self.this_row)
            self.lines.add("    break")
        old, new = ([names[a] for a in read] for names in (self.row_before, self.this_row))
        self.lines.add(f"{', '.join(old)} = {', '.join(new)}")

    def _new(self, cell: SheetCell, *, is_moving_on: bool) -> None:
        """A cell of this row; the last part of its IF, if it does not stay what it was."""
        assert isinstance(cell.rule, Computed)
        formula = moving(cell.rule.formula)
        if is_moving_on:
            assert isinstance(formula, Call)
            made = self.plain.side(formula.arguments[2])
        else:
            made = self.plain.root(formula)
        if made.kind is not self.whole.kinds[cell.address].kind:
            give_up()
        name = self.this_row[cell.address] = self.lines.fresh()[0]
        self.lines.add(f"{name} = {self.plain.settled(self._checked(made)).value}")

    def _all_is_well(self) -> None:
        checks = self.plain.taken_checks()
        if checks:
            self.lines.add(f"ok = ok & {checks}")

    def _kept_in_all_rows(self, bundle: Bundle) -> list[Address]:
        """The columns of which more than the last row is read when the loop is done."""
        last = bundle.count - 1
        return [a for a, rows in self._read_elsewhere(bundle).items() if rows - {last}]

    def _fill_rest(self, bundle: Bundle, first: str, names: dict[Address, str]) -> None:
        for address in self._kept_in_all_rows(bundle):
            self.lines.add(f"    for m in range({first}, {bundle.count}):")
            self.lines.add(f"        T[{self.memory.place(address)} + m] = {names[address]}")

    def _keep_last(self, bundle: Bundle) -> None:
        last = bundle.count - 1
        for address, rows in self._read_elsewhere(bundle).items():
            if rows == {last}:
                name = self.row_before.get(address) or self.this_row[address]
                self.lines.add(f"T[{self.memory.place(address) + last}] = {name}")

    def _read_of_row_before(self, bundle: Bundle) -> list[Address]:
        """Of which columns a row reads the row before; none if it reads anything else."""
        mine = {c.address for c in bundle.first}
        addresses: dict[Address, None] = {}
        for cell in bundle.first:
            for (sheet, row, column), offset in offsets(cell):
                address = (sheet, row - offset, column)
                if address not in mine or offset not in (0, -1):
                    return []
                if offset:
                    addresses[address] = None
        return list(addresses)

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


def _what_stays(bundle: Bundle) -> Node | None:
    """The condition under which each cell of a row is what it was in the row before.

    What is computed once and then handed down, `IF(C3>4,A3,...)`, knows by it that the rest of
    the rows need not be looked at: it is met in all of them.
    """
    tests: set[Node] = set()
    for cell in bundle.first:
        assert isinstance(cell.rule, Computed)
        match cell.rule.formula:
            case Call("IF", (test, Cell(sheet, row, column, False, _), _)) if (
                sheet,
                row + 1,
                column,
            ) == cell.address:
                tests.add(test)
            case _:
                return None
        alone = replace(cell, rule=replace(cell.rule, formula=test))
        if any(offset != -1 for _, offset in offsets(alone)):
            return None
    return tests.pop() if len(tests) == 1 else None


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
