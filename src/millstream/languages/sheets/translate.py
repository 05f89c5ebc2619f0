"""From a workbook and its bindings to a program with one operator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from millstream.calculus.graph import Input, Operator, Program
from millstream.calculus.sheet_kinds import cell_kinds, column_type_of
from millstream.calculus.sheets import (
    HIDDEN_SHEET,
    Address,
    Computed,
    Fed,
    OutputColumn,
    Previous,
    Selected,
    Sheet,
    SheetCell,
    Windows,
    address_text,
)
from millstream.calculus.types import BOOLEAN, INTEGER, TEXT, TIME, QueueType, Schema, Type
from millstream.calculus.verify import verified
from millstream.errors import CheckError, Fault, listing, suggest
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding
from millstream.languages.sheets.flatten import Flattened, flatten
from millstream.languages.sheets.names import records_asked
from millstream.languages.sheets.streams import first_sheet
from millstream.source import Source, Span
from millstream.values.excel.kinds import Kind, Kinds, kind_of
from millstream.values.excel.precedents import areas_of
from millstream.values.excel.recalculate import Recalculation
from millstream.values.excel.syntax import MAX_COLUMN, MAX_ROW, Cell, column_number
from millstream.values.excel.values import Scalar
from millstream.values.excel.workbook import Workbook, key_of

_ADDRESS = re.compile(r"(?:(?:'((?:[^']|'')+)'|([^!']+))!)?\$?([A-Za-z]{1,3})\$?([1-9]\d{0,6})")
#: What a cell must hold to leave as one of a type; others are numbers.
_HELD = {TEXT: Kind.TEXT, BOOLEAN: Kind.BOOLEAN}
#: More constants than this in one operator would make programs unwieldy.
MAX_CONSTANTS = 500_000


def translate_workbook(
    workbook: Workbook, bindings: Bindings, faults: Iterable[Fault] = ()
) -> Program:
    """The verified program, or an error with everything that is wrong."""
    translator = _Translator(workbook, bindings, list(faults))
    program = translator.program()
    if translator.faults:
        raise CheckError(dict.fromkeys(translator.faults))
    assert program is not None
    return verified(program)


@dataclass
class _Translator:
    """Mutable: collects faults."""

    workbook: Workbook
    bindings: Bindings
    faults: list[Fault] = field(default_factory=list)

    def program(self) -> Program | None:
        inputs = self._inputs()
        outputs = self._outputs(inputs)
        self._check_keys()
        self._check_times()
        roots = [a for columns in outputs.values() for _, a in columns]
        flattened = flatten(self.workbook, inputs, roots)
        self.faults += (*flattened.faults, *flattened.doubtful)
        self._check_criteria(flattened)
        self._check_shown(outputs, flattened)
        if self.faults:
            return None
        kinds = cell_kinds(flattened.cells, self._constant(flattened), self._column_type)
        columns = tuple(
            tuple(
                self._column(one.stream, b, a, kinds.get(a) or self._fixed(flattened, a))
                for b, (_, a) in zip(one.cells, outputs[one.stream], strict=True)
            )
            for one in self.bindings.outputs
        )
        sheet = Sheet(
            self._with_all_fed(flattened.cells, inputs),
            self._constants(flattened),
            self._keys(),
            columns,
            self.bindings.fires_per_instant,
            self.workbook.uses_1904,
        )
        return self._wired(sheet, list(outputs))

    def _column(
        self, stream: str, binding: Binding, address: Address, kinds: Kinds
    ) -> OutputColumn:
        """An attribute of an output, of the type that is said, or else of the cell's."""
        natural = column_type_of(kinds)
        type_ = binding.type or natural
        wanted = _HELD.get(type_, Kind.NUMBER)
        plain = kinds - {Kind.ERROR, Kind.EMPTY}
        if wanted is not Kind.TEXT and plain and wanted not in plain:
            self._fail(f"{stream}.{binding.attribute} is to be a {type_}, but "
                       f"{address_text(address)} never holds one: it is a {natural}",
                       binding.place)  # fmt: skip
        return OutputColumn(binding.attribute, address, type_)

    def _wired(self, sheet: Sheet, outputs: list[str]) -> Program:
        names = [one.stream for one in self.bindings.inputs]
        state = tuple(f"waiting {n}" for n in names)
        state += tuple(variable_name(c) for c in sheet.stateful())
        origin = Span(Source(self.workbook.file, ""), 0, 0)
        operator = Operator(sheet, tuple(names), tuple(outputs), state, state, origin)
        inputs = tuple(
            Input(one.stream, QueueType(one.columns), one.time, one.slack)
            for one in self.bindings.inputs
        )
        return Program(inputs, tuple(outputs), (operator,))

    # --- bindings ---

    def _fail(self, message: str, place: str | None, hint: str | None = None) -> None:
        self.faults.append(Fault(message, hint=hint, place=place or self.workbook.file))

    def _address(self, binding: Binding) -> Address | None:
        match = _ADDRESS.fullmatch(binding.cell.strip())
        if match is None:
            named = self.workbook.defined(binding.cell.strip(), self._first_sheet())
            if isinstance(named, Cell):
                return named.sheet, named.row, named.column
            self._fail(f'"{binding.cell}" is no address of a cell, nor the name of one',
                       binding.place, "write B3 or Sheet2!B3")  # fmt: skip
            return None
        quoted, plain, letters, digits = match.groups()
        wanted = (quoted or plain or "").replace("''", "'")
        sheet = self.workbook.sheet_name(wanted) if wanted else self._first_sheet()
        if sheet is None:
            names = listing(self.workbook.sheets)
            near = suggest(wanted, self.workbook.sheets) or ""
            self._fail(f'{self.workbook.file} has no worksheet "{wanted}"', binding.place,
                       f"it has: {names}. {near}".strip())  # fmt: skip
            return None
        row, column = int(digits), column_number(letters)
        if row > MAX_ROW or column > MAX_COLUMN:
            self._fail(f'"{binding.cell}" lies outside a worksheet', binding.place)
            return None
        return sheet, row, column

    def _first_sheet(self) -> str:
        return first_sheet(self.workbook)

    def _inputs(self) -> dict[Address, Fed]:
        fed: dict[Address, Fed] = {}
        if not self.bindings.inputs:
            self._fail("no stream fills a cell of this sheet", None)
        for number, one in enumerate(self.bindings.inputs):
            for binding in one.cells:
                address = self._address(binding)
                if address is None:
                    continue
                self._check_input(one, binding, address, fed)
                sheet, row, column = address
                self.workbook.sheets[sheet].fill(key_of(row, column))
                fed[address] = Fed(number, binding.attribute)
        return fed

    def _check_input(
        self, one: InputBinding, binding: Binding, address: Address, fed: Mapping[Address, Fed]
    ) -> None:
        sheet, row, column = address
        worksheet, key = self.workbook.sheets[sheet], key_of(row, column)
        name = address_text(address)
        if worksheet.is_formula(key):
            self._fail(f"{one.stream}.{binding.attribute} is bound to {name}, which has a formula",
                       binding.place, "bind it to a cell that formulas read")  # fmt: skip
        if address in fed:
            self._fail(f"{name} is filled twice", binding.place)
        if binding.attribute not in one.columns:
            near = suggest(binding.attribute, one.columns.names) or ""
            self._fail(
                f'{one.stream} has no attribute "{binding.attribute}" for {name}',
                binding.place,
                f"it has: {listing(one.columns.names)}. {near}".strip(),
            )

    def _outputs(self, inputs: Mapping[Address, Fed]) -> dict[str, list[tuple[str, Address]]]:
        outputs: dict[str, list[tuple[str, Address]]] = {}
        if not self.bindings.outputs:
            self._fail("this sheet has no output", None, "bind a stream to some of its cells")
        for one in self.bindings.outputs:
            columns = outputs.setdefault(one.stream, [])
            if not one.cells:
                self._fail(f"the output {one.stream} has no attribute", None)
            for binding in one.cells:
                address = self._address(binding)
                if address is None:
                    continue
                sheet, row, column = address
                worksheet, key = self.workbook.sheets[sheet], key_of(row, column)
                is_there = worksheet.is_formula(key) or worksheet.constants.get(key) is not None
                if not is_there and address not in inputs:
                    where = f"{one.stream}.{binding.attribute} is read from"
                    self._fail(f"{where} {address_text(address)}, which is empty", binding.place)
                if any(name == binding.attribute for name, _ in columns):
                    self._fail(f"{one.stream}.{binding.attribute} is bound twice", binding.place)
                columns.append((binding.attribute, address))
        return outputs

    def _check_keys(self) -> None:
        keyed = [one for one in self.bindings.inputs if one.key is not None]
        types: set[Type] = set()
        for one in self.bindings.inputs:
            if keyed and one.key is None:
                self._fail(f"{one.stream} has no partitioning key, but {keyed[0].stream} has", None,
                           "either all inputs are partitioned, or none")  # fmt: skip
            elif one.key is not None and one.key not in one.columns:
                near = suggest(one.key, one.columns.names) or ""
                self._fail(f'{one.stream} has no attribute "{one.key}" to be partitioned by', None,
                           f"it has: {listing(one.columns.names)}. {near}".strip())  # fmt: skip
            elif one.key is not None:
                types.add(one.columns[one.key])
        if len(types) > 1:
            self._fail(f"the partitioning keys have different types: "
                       f"{listing(sorted(map(str, types)))}", None)  # fmt: skip

    def _keys(self) -> tuple[str, ...]:
        return tuple(one.key for one in self.bindings.inputs if one.key is not None)

    def _column_type(self, fed: Fed) -> Type:
        return self.bindings.inputs[fed.input].columns[fed.column]

    def _check_shown(
        self, outputs: Mapping[str, list[tuple[str, Address]]], flattened: Flattened
    ) -> None:
        """A window is no value that could leave."""
        windows = {c.address for c in flattened.cells if isinstance(c.rule, Windows)}
        changing = {c.address for c in flattened.cells}
        is_sound = not self.faults
        for one in self.bindings.outputs:
            columns = outputs[one.stream]
            if is_sound and not any(address in changing for _, address in columns):
                self._fail(f"the output {one.stream} would have no rows: none of its cells changes",
                           one.cells[0].place, "bind it to cells that read an input")  # fmt: skip
            for binding, (_, address) in zip(one.cells, columns, strict=False):
                if address in windows:
                    self._fail(f"{one.stream}.{binding.attribute} is read from "
                               f"{address_text(address)}, which holds a window, not one value",
                               binding.place, "bind it to a cell with SUM or COUNT, say, of the "
                               "window")  # fmt: skip

    def _check_times(self) -> None:
        for one in self.bindings.inputs:
            type_ = one.columns.get(one.time) if one.time else None
            if type_ not in (None, TIME, INTEGER):
                place = next((b.place for b in one.cells if b.attribute == one.time), None)
                self._fail(f"the event time {one.stream}.{one.time} is a {type_}, expected a time",
                           place, "declare it as time, or leave out the role")  # fmt: skip

    def _check_criteria(self, flattened: Flattened) -> None:
        """Formulas are not copied down for records that streams change."""
        for cell in flattened.cells:
            if isinstance(cell.rule, Computed):
                for place in records_asked(cell.rule.formula, self.workbook):
                    self._fail("criteria that are formulas of the records are only computed in "
                               "workbooks without streams", f"{self.workbook.file} {place}",
                               "put the formula into a column of the records")  # fmt: skip

    # --- constants ---

    def _constant(self, flattened: Flattened) -> Callable[[Address], Scalar]:
        def constant(address: Address) -> Scalar:
            if address in flattened.constants:
                return flattened.constants[address]
            sheet, row, column = address
            if sheet not in self.workbook.sheets:
                return None
            return self.workbook.sheets[sheet].constants.get(key_of(row, column))

        return constant

    def _fixed(self, flattened: Flattened, address: Address) -> Kinds:
        return frozenset((kind_of(self._constant(flattened)(address)),))

    def _with_all_fed(
        self, cells: tuple[SheetCell, ...], inputs: Mapping[Address, Fed]
    ) -> tuple[SheetCell, ...]:
        """Cells that are filled but that no output needs are kept: they tick, too."""
        known = {c.address for c in cells}
        unused = tuple(SheetCell(a, f) for a, f in inputs.items() if a not in known)
        return unused + cells

    def _constants(self, flattened: Flattened) -> tuple[tuple[Address, Scalar], ...]:
        """The values of the cells that formulas refer to and nothing changes."""
        static = Recalculation(self.workbook)
        changing = {c.address for c in flattened.cells}
        constants: dict[Address, Scalar] = {}
        for cell in flattened.cells:
            for address in self._referred(cell):
                if address in changing or address in constants:
                    continue
                if address[0] == HIDDEN_SHEET:
                    constants[address] = flattened.constants[address]
                else:
                    value = static.read(*address)
                    if value is not None:
                        constants[address] = value
        for one in self.bindings.outputs:
            for binding in one.cells:
                address_ = self._address(binding)
                if address_ is not None and address_ not in changing and address_ not in constants:
                    constants[address_] = static.read(*address_)
        if len(constants) > MAX_CONSTANTS:
            self._fail(f"the formulas refer to {len(constants):,} constants; at most "
                       f"{MAX_CONSTANTS:,} fit into one sheet", None)  # fmt: skip
        return tuple(sorted(constants.items(), key=lambda pair: pair[0]))

    def _referred(self, cell: SheetCell) -> Iterable[Address]:
        match cell.rule:
            case Computed(formula, _, _):
                for sheet, top, left, bottom, right in areas_of(formula, self.workbook):
                    if sheet == HIDDEN_SHEET:
                        yield sheet, top, left
                        continue
                    worksheet = self.workbook.sheets[sheet]
                    for row, column in worksheet.filled(top, left, bottom, right):
                        yield sheet, row, column
            case Selected(source, _) | Previous(source, _, _):
                yield source
            case _:
                return


def variable_name(cell: SheetCell) -> str:
    """The name of the variable that keeps a cell."""
    return address_text(cell.address)


def columns_of(schema: Schema, names: Iterable[str]) -> Schema:
    """Some columns of a schema, in its order."""
    wanted = set(names)
    return Schema(tuple(f for f in schema if f.name in wanted))
