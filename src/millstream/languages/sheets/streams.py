"""Bindings inside the workbook: a worksheet named `streams`, one row per binding.

    stream   | direction | attribute | cell | type   | role
    ---------|-----------|-----------|------|--------|----------
    Trades   | input     | sym       | A3   | text   | partition
    Trades   | input     | price     | B3   | number |
    Bargains | output    | vwap      | G12  |        |

The first row names the columns, in any order. `type` is needed for inputs, and says as what an
output attribute leaves (`time`, `integer`) if that is not what its cell holds; `role` is
`partition` (the partitioning key), `time` (the event time; then the cell may be left out)
or nothing. A row `firing` in `direction` with `instant` in `attribute` computes the sheet
once per instant. Capitals and spaces around words do not matter, as nowhere in a workbook:
`trades` is the stream that another row calls `Trades`. What a row with anything else in it
means nobody knows, and it is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.calculus.types import TYPES_BY_NAME, Type
from millstream.errors import Fault, listing, suggest
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.values.excel.values import Scalar, to_text
from millstream.values.excel.workbook import Workbook, key_of

STREAMS = "streams"
_HEADS = ("stream", "direction", "attribute", "cell", "type", "role")
_DIRECTIONS = ("input", "output", "firing")
_ROLES = ("", "partition", "time")
#: Other words that people write.
_SAME_TYPES = {
    "string": "text", "str": "text", "float": "number", "double": "number", "numeric": "number",
    "decimal": "number", "int": "integer", "bool": "boolean", "logical": "boolean",
    "date": "time", "datetime": "time", "timestamp": "time",
}  # fmt: skip
_SAME_DIRECTIONS = {"in": "input", "out": "output"}
_SAME_ROLES = {"key": "partition", "partition key": "partition"}


def type_named(word: str) -> Type | None:
    """A type by its name, or by another word for it."""
    folded = word.casefold()
    return TYPES_BY_NAME.get(_SAME_TYPES.get(folded, folded))


def has_streams(workbook: Workbook) -> bool:
    return workbook.sheet_name(STREAMS) is not None


def first_sheet(workbook: Workbook) -> str:
    """The worksheet of addresses that name none: the first that holds no bindings."""
    names = list(workbook.sheets)
    return next((n for n in names if n.casefold() != STREAMS), names[0])


def input_cells(workbook: Workbook) -> Iterator[str]:
    """The cells that the workbook itself says are filled by streams."""
    if has_streams(workbook):
        bindings, _ = bindings_in(workbook)
        for one in bindings.inputs:
            yield from (b.cell for b in one.cells)


def bindings_in(workbook: Workbook) -> tuple[Bindings, list[Fault]]:
    """What the worksheet `streams` says, and all that is wrong with it."""
    reader = _Reader(workbook)
    return reader.bindings(), reader.faults


class _Reader:
    """Mutable: collects bindings and faults."""

    def __init__(self, workbook: Workbook) -> None:
        name = workbook.sheet_name(STREAMS)
        assert name is not None
        self.workbook = workbook
        self.sheet = workbook.sheets[name]
        self.faults: list[Fault] = []
        self.inputs: dict[str, InputBinding] = {}
        self.outputs: dict[str, OutputBinding] = {}
        self.fires_per_instant = False

    def bindings(self) -> Bindings:
        heads = self._heads()
        if heads is not None:
            last, _ = self.sheet.extent()
            for row in range(2, last + 1):
                texts = {head: self._text(row, column) for head, column in heads.items()}
                if any(texts.values()):
                    self._row(row, texts)
        return Bindings(
            tuple(self.inputs.values()), tuple(self.outputs.values()), self.fires_per_instant
        )

    def _text(self, row: int, column: int) -> str:
        value: Scalar = self.sheet.constants.get(key_of(row, column))
        return to_text(value).strip()

    def _heads(self) -> dict[str, int] | None:
        _, width = self.sheet.extent()
        columns = {self._text(1, column).casefold(): column for column in range(1, width + 1)}
        missing = [h for h in _HEADS[:4] if h not in columns]
        if missing:
            self.faults.append(
                Fault(
                    f"the worksheet {self.sheet.name} has no column {listing(missing)}",
                    hint=f"its first row names the columns: {', '.join(_HEADS)}",
                    place=f"{self.workbook.file} {self.sheet.name}!A1",
                )
            )
            return None
        return {h: columns[h] for h in _HEADS if h in columns}

    def _fail(self, row: int, message: str, hint: str | None = None) -> None:
        place = f"{self.workbook.file} {self.sheet.name}!A{row}"
        self.faults.append(Fault(message, hint=hint, place=place))

    def _row(self, row: int, texts: dict[str, str]) -> None:
        direction, role = texts["direction"].casefold(), texts.get("role", "").casefold()
        direction, role = _SAME_DIRECTIONS.get(direction, direction), _SAME_ROLES.get(role, role)
        if direction not in _DIRECTIONS:
            near = suggest(direction, _DIRECTIONS) or f"it is one of: {listing(_DIRECTIONS)}"
            self._fail(row, f'unknown direction "{texts["direction"]}"', near)
            return
        if direction == "firing":
            self._firing(row, texts["attribute"].casefold())
            return
        if role not in _ROLES:
            self._fail(row, f'unknown role "{texts["role"]}"', "it is partition, time or nothing")
            return
        if not texts["stream"] or not texts["attribute"]:
            self._fail(row, "this row needs a stream and an attribute")
            return
        place = f"{self.workbook.file} {self.sheet.name}!A{row}"
        binding = Binding(texts["attribute"], texts["cell"], place)
        if direction == "output":
            self._output(row, texts["stream"], binding, texts.get("type", ""))
        else:
            self._input(row, texts["stream"], binding, texts.get("type", ""), role)

    def _firing(self, row: int, how: str) -> None:
        if how not in ("tuple", "instant", "punctuation"):
            self._fail(row, f'unknown firing "{how}"', "it is tuple or instant")
        self.fires_per_instant = how != "tuple"

    def _output(self, row: int, stream: str, binding: Binding, kind: str) -> None:
        if not binding.cell:
            self._fail(row, f'the attribute "{binding.attribute}" needs a cell')
            return
        if kind:
            type_ = type_named(kind)
            if type_ is None:
                hint = f"types are: {listing(TYPES_BY_NAME)}"
                self._fail(row, f'"{binding.attribute}" of {stream} has no type "{kind}"', hint)
                return
            binding = replace(binding, type=type_)
        output = self.outputs.setdefault(stream.casefold(), OutputBinding(stream))
        self.outputs[stream.casefold()] = output.with_cell(binding)

    def _input(self, row: int, stream: str, binding: Binding, kind: str, role: str) -> None:
        type_ = type_named(kind or ("time" if role == "time" else ""))
        if type_ is None:
            hint = f"types are: {listing(TYPES_BY_NAME)}"
            self._fail(row, f'"{binding.attribute}" of {stream} needs a type, got "{kind}"', hint)
            return
        if not binding.cell and not role:
            self._fail(row, f'the attribute "{binding.attribute}" needs a cell')
            return
        input_ = self.inputs.setdefault(stream.casefold(), InputBinding(stream))
        self.inputs[stream.casefold()] = input_.with_cell(binding, type_, role)
