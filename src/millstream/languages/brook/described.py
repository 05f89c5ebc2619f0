"""Functions whose bodies are described line by line, in a language of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from millstream.calculus import functions
from millstream.calculus.each import PerKey
from millstream.calculus.library.cube import cube_of
from millstream.calculus.procedure_read import work_of_lines
from millstream.calculus.sheet_text import SheetTextFault, sheet_of_lines
from millstream.errors import CheckError, Fault, ParseError
from millstream.source import Source, Span

if TYPE_CHECKING:
    from millstream.languages.brook.bodies import Body


def cubify(body: Body) -> functions.Function | None:
    lines = body.texts("a line of a configuration, as a text")
    return cube_of(Source("Cubify", "\n".join(lines)), body.inputs[0].schema, body.faults)


def sheet(body: Body) -> functions.Function | None:
    try:
        return sheet_of_lines(body.texts("a text that describes a cell"))
    except (SheetTextFault, ParseError) as fault:
        body.fail(str(fault).split("\n", maxsplit=1)[0])
        return None


def work(body: Body) -> functions.Function | None:
    faults: list[Fault] = []
    made = work_of_lines(body.texts("a line of code, as a text"), faults)
    _tell(body, faults)
    return made


def per_key(body: Body) -> functions.Function | None:
    """A program in a program."""
    from millstream.languages.brook.load import load  # which reads bodies, this one among them

    by = body.column_names("by")
    source = Source("PerKey", "\n".join(body.texts("a line of a program, as a text")))
    if not by:
        body.fail("there is no key", hint='write PerKey[by key; "output out;", ...]')
        return None
    try:
        program = load(source)
    except (ParseError, CheckError) as error:
        _tell(body, error.faults)
        return None
    if len(program.inputs) != 1 or len(program.outputs) != 1:
        body.fail("the program of a key has one input and one output")
        return None
    most = body.whole(body.items("first"), "a number of items, as in `first 10`")
    if len(most) > 1:
        body.fail("there is one number of items", hint="write `first 10`")
        return None
    return PerKey(by, program, most[0] if most else None)


def _tell(body: Body, faults: Iterable[Fault]) -> None:
    """What is wrong in the lines, in the place of the function that they describe."""
    for fault in faults:
        body.fail(f"{fault.message}{_line(fault.span)}", hint=fault.hint)


def _line(span: Span | None) -> str:
    """The line in which something is wrong."""
    if span is None:
        return ""
    line, _ = span.source.line_and_column(span.start)
    return f", in `{span.source.line_text(line).strip()}`"
