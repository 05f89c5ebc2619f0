"""A workbook as a node of a project: cells are bound to streams once their columns are known.

A sheet does not say what columns its inputs have; the project does, or the node that gives
them. A workbook with a worksheet `streams` says all of it itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from millstream.calculus.types import TYPES_BY_NAME, QueueType
from millstream.errors import CheckError, Fault, listing
from millstream.languages.language import Translation, Want
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.read import read_workbook
from millstream.languages.sheets.streams import bindings_in, has_streams, type_named
from millstream.languages.sheets.translate import columns_of, translate_workbook
from millstream.source import Span
from millstream.tables import Tables
from millstream.values.excel.workbook import Workbook


@dataclass(frozen=True, slots=True)
class SheetNode:
    """What a project says of a workbook: None if it binds no cells."""

    bindings: Bindings | None
    span: Span | None


@dataclass(frozen=True, slots=True)
class WrittenSheet:
    """A workbook whose cells are bound; `faults` are those of its worksheet `streams`."""

    workbook: Workbook
    bindings: Bindings
    faults: tuple[Fault, ...] = ()

    @property
    def wants(self) -> tuple[Want, ...]:
        return tuple(Want(i.stream, not i.columns.fields) for i in self.bindings.inputs)

    @property
    def promises(self) -> tuple[str, ...]:
        return tuple(o.stream for o in self.bindings.outputs)

    def translate(self, types: Mapping[str, QueueType]) -> Translation:
        order = list(types)
        inputs = [_with_columns(i, types.get(i.stream)) for i in self.bindings.inputs]
        # Tuples of one time are taken in the order in which streams are declared.
        inputs.sort(key=lambda i: order.index(i.stream) if i.stream in types else len(order))
        bound = replace(self.bindings, inputs=tuple(inputs))
        return Translation(translate_workbook(self.workbook, bound, self.faults))


def read(path: Path, shown: str, node: SheetNode | None) -> WrittenSheet:
    """A workbook, bound by its project or by itself."""
    workbook = read_workbook(path, shown)
    if node is not None and node.bindings is not None:
        return WrittenSheet(workbook, node.bindings)
    if not has_streams(workbook):
        raise _unbound(workbook, node)
    bindings, faults = bindings_in(workbook)
    return WrittenSheet(workbook, bindings, tuple(faults))


def _unbound(workbook: Workbook, node: SheetNode | None) -> CheckError:
    if node is None:
        return CheckError(
            "this workbook says nothing about streams",
            place=workbook.file,
            hint="add a worksheet named `streams` (see docs/sheets.md), or bind its cells in "
            "a project",
        )
    return CheckError(
        "this node binds no cells, and its workbook has no worksheet `streams`",
        span=node.span,
        hint='write inputs.Trades = { B3 = "price" } and outputs.Totals = { sum = "G9" }',
    )


def _with_columns(given: InputBinding, type_: QueueType | None) -> InputBinding:
    if type_ is None:
        return given
    columns = type_.schema
    wanted = {b.attribute for b in given.cells} | ({given.key} if given.key else set())
    if not wanted <= set(columns.names):
        return replace(given, columns=columns)  # what is missing is told by the translation
    return replace(given, columns=columns_of(columns, wanted))


# --- the table of a node ----------------------------------------------------------------


def settings(tables: Tables, here: str, table: dict[str, Any]) -> SheetNode:
    """What the table of a node says of cells."""
    keys = _partition(tables, here, table)
    inputs = tuple(
        InputBinding(stream, _cells(tables, here, cells, is_input=True), keys.get(stream))
        for stream, cells in _tables_of_cells(tables, here, table, "inputs")
    )
    outputs = tuple(
        OutputBinding(stream, _cells(tables, here, cells, is_input=False))
        for stream, cells in _tables_of_cells(tables, here, table, "outputs")
    )
    for stream in keys:
        if stream not in [i.stream for i in inputs]:
            tables.fail(f'"{stream}" is no input of this node', tables.place(here, "partition"))
    firing = tables.text(table, here, "firing", "tuple")
    if firing not in ("tuple", "instant", "punctuation"):
        tables.fail(f"unknown firing {firing!r}", tables.place(here, "firing"), "tuple or instant")
    bindings = Bindings(inputs, outputs, firing != "tuple")
    return SheetNode(bindings if inputs or outputs else None, tables.place(here))


def _tables_of_cells(
    tables: Tables, here: str, table: dict[str, Any], key: str
) -> list[tuple[str, dict[str, Any]]]:
    given = table.get(key, {})
    is_cell = _is_cell if key == "outputs" else (lambda cell: isinstance(cell, str))
    if isinstance(given, dict) and all(
        isinstance(cells, dict) and all(map(is_cell, cells.values())) for cells in given.values()
    ):
        return list(given.items())
    what = 'Trades = { B3 = "price" }' if key == "inputs" else 'Totals = { sum = "G9" }'
    tables.fail(
        f'expected tables of cells in "{key}"', tables.place(here, key), f"write {key}.{what}"
    )
    return []


def _is_cell(given: Any) -> bool:
    """`"G9"`, or `{ cell = "G9", type = "time" }`."""
    return isinstance(given, str) or (
        isinstance(given, dict)
        and given.keys() == {"cell", "type"}
        and isinstance(given["cell"], str)
        and isinstance(given["type"], str)
    )


def _cells(
    tables: Tables, here: str, cells: dict[str, Any], *, is_input: bool
) -> tuple[Binding, ...]:
    """Of an input `cell = "attribute"`, of an output `attribute = "cell"`."""
    span = tables.place(here, "inputs" if is_input else "outputs")
    place = span.place if span else tables.source.name
    if is_input:
        return tuple(Binding(attribute, cell, place) for cell, attribute in cells.items())
    bindings = []
    for attribute, given in cells.items():
        typed = given if isinstance(given, dict) else {"cell": given, "type": ""}
        type_ = type_named(typed["type"])
        if typed["type"] and type_ is None:
            tables.fail(f'"{attribute}" has no type "{typed["type"]}"', span,
                        f"types are: {listing(TYPES_BY_NAME)}")  # fmt: skip
        bindings.append(Binding(attribute, typed["cell"], place, type_))
    return tuple(bindings)


def _partition(tables: Tables, here: str, table: dict[str, Any]) -> dict[str, str]:
    """The key of each input; one name is the key of all."""
    given = table.get("partition", {})
    if isinstance(given, str):
        inputs = table.get("inputs", {})
        return dict.fromkeys(inputs, given) if isinstance(inputs, dict) else {}
    return tables.names(table, here, "partition")
