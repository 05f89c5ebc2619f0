"""The spreadsheets of a project: their cells are bound once the streams are known.

A sheet does not say what columns its inputs have; the project does, or the node that gives
them. So sheets are translated after all other programs, those that feed sheets first.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from millstream.calculus.types import Schema
from millstream.errors import Fault, MillstreamError, listing, suggest
from millstream.languages import Translation
from millstream.languages.sheets.bindings import Bindings, InputBinding
from millstream.languages.sheets.read import read_workbook
from millstream.languages.sheets.streams import bindings_in, has_streams
from millstream.languages.sheets.translate import columns_of, translate_workbook
from millstream.project.file import SHEET, NodeTable, ProjectFile
from millstream.values.excel.workbook import Workbook


def add_sheets(project: ProjectFile, folder: Path, programs: dict[str, Translation]) -> list[Fault]:
    """Translate the sheets of a project into `programs`; returns what is wrong with them."""
    faults: list[Fault] = []
    waiting = [node for node in project.nodes if node.language == SHEET]
    books: dict[str, Workbook] = {}
    for node in waiting:
        path = folder / node.path
        try:
            books[node.name] = read_workbook(path, str(path))
        except MillstreamError as error:
            faults += error.faults
    waiting = [node for node in waiting if node.name in books]
    bindings = {node.name: _bindings(node, books[node.name], faults) for node in waiting}
    while waiting:
        known = _known(project, programs)
        promised = {one.stream for node in waiting for one in bindings[node.name].outputs}
        ready = [n for n in waiting if _is_ready(bindings[n.name], known, promised)] or waiting
        for node in ready:
            waiting.remove(node)
            faults += _added(node, bindings[node.name], books[node.name], known, project, programs)
    return faults


def _bindings(node: NodeTable, workbook: Workbook, faults: list[Fault]) -> Bindings:
    if node.bindings is not None:
        return node.bindings
    if not has_streams(workbook):
        faults.append(
            Fault(
                f'node "{node.name}" binds no cells, and its workbook has no worksheet `streams`',
                node.span,
                'write inputs.Trades = { B3 = "price" } and outputs.Totals = { sum = "G9" }',
            )
        )
        return Bindings((), ())
    found, wrong = bindings_in(workbook)
    faults += wrong
    return found


def _known(project: ProjectFile, programs: dict[str, Translation]) -> dict[str, Schema]:
    """The columns of all streams that can be read so far."""
    known = {s.name: s.columns for s in project.streams if s.columns is not None}
    for node in project.nodes:
        found = programs.get(node.name)
        if found is None:
            continue
        types = found.program.queue_types()
        outside = {inner: outer for outer, inner in node.outputs.items()}
        known |= {outside.get(q, q): types[q].schema for q in found.program.outputs}
    return known


def _is_ready(bindings: Bindings, known: dict[str, Schema], promised: set[str]) -> bool:
    return all(one.stream in known or one.stream not in promised for one in bindings.inputs)


def _added(
    node: NodeTable,
    bindings: Bindings,
    workbook: Workbook,
    known: dict[str, Schema],
    project: ProjectFile,
    programs: dict[str, Translation],
) -> list[Fault]:
    faults: list[Fault] = []
    order = [s.name for s in project.streams]
    inputs = [_with_columns(one, node, known, faults) for one in bindings.inputs]
    # Tuples of one time are taken in the order in which streams are declared.
    inputs.sort(key=lambda one: order.index(one.stream) if one.stream in order else len(order))
    if faults or not (bindings.inputs or bindings.outputs):
        return faults
    try:
        program = translate_workbook(workbook, replace(bindings, inputs=tuple(inputs)))
        programs[node.name] = Translation(program)
    except MillstreamError as error:
        return list(error.faults)
    return []


def _with_columns(
    one: InputBinding, node: NodeTable, known: dict[str, Schema], faults: list[Fault]
) -> InputBinding:
    columns = known.get(one.stream)
    if columns is None and one.columns.fields:
        return one
    if columns is None:
        near = suggest(one.stream, known) or ""
        faults.append(
            Fault(
                f'node "{node.name}" reads "{one.stream}", whose columns are not known',
                node.span,
                f"give it columns in [stream.{one.stream}]; known are: {listing(known)}. "
                f"{near}".strip(),
            )
        )
        return one
    wanted = {b.attribute for b in one.cells} | ({one.key} if one.key else set())
    if not wanted <= set(columns.names):
        return replace(one, columns=columns)
    return replace(one, columns=columns_of(columns, wanted))
