"""`millstream check`: all errors at once, nothing started."""

from __future__ import annotations

import argparse

from millstream import api
from millstream.cli.show import print_json
from millstream.errors import Fault, ProgramError


def run(arguments: argparse.Namespace) -> int:
    if arguments.format == "text":
        print(_praise(api.compile(arguments.file)))
        return 0
    try:
        api.compile(arguments.file)
    except ProgramError as error:
        print_json([_record(fault) for fault in error.faults])
        return 2
    print_json([])
    return 0


def _praise(compiled: api.Compiled) -> str:
    program = compiled.program
    shared = sorted(program.shared_variables())
    nature = (
        f"the order of firing can matter: {', '.join('$' + v for v in shared)} is shared"
        if shared
        else "deterministic"
    )
    return (
        f"ok: {_counted(len(program.inputs), 'input')}, "
        f"{_counted(len(program.operators), 'operator')}, "
        f"{_counted(len(program.outputs), 'output')}; {nature}"
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _record(fault: Fault) -> dict[str, object]:
    line = column = None
    file = fault.place
    if fault.span is not None:
        file = fault.span.source.name
        line, column = fault.span.source.line_and_column(fault.span.start)
    return {
        "file": file, "line": line, "column": column, "message": fault.message, "hint": fault.hint,
    }  # fmt: skip
