"""EMIT EARLY: answers from the rows that have come, corrected by those that come later.

The inputs behind such a query do not wait for their slack. Their rows come at the largest time up
to them, and carry when they happened; windows are by that, so that the relation is at each instant
the query over the rows that have come:

    s [Range T]            Until(happened + T + 1 us)
    TUMBLE, HOP            by the column that says when it happened
    a view                 its query once more, of early inputs

What would have to take back what it has told as a stream, or must know the order in which rows
happened, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.calculus import functions
from millstream.calculus.graph import Input, Program
from millstream.calculus.library.columns import kept
from millstream.calculus.library.event_windows import EVENT_TIME
from millstream.calculus.terms import Call, Column, Literal
from millstream.calculus.types import DURATION, TIME
from millstream.calculus.verify import verify
from millstream.errors import Fault, listing
from millstream.queries import ast
from millstream.queries.build import Flow, KnownSource
from millstream.queries.scope import ROW_TIME
from millstream.queries.tokens import stop
from millstream.source import Span

if TYPE_CHECKING:
    from millstream.queries.translate import Translator


class Early:
    """Mutable: what of a file is told early, and whether that is what is translated now."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self.is_on = False
        self.outputs: list[str] = []
        #: Inputs whose rows say when they happened.
        self.inputs: set[str] = set()
        self._flows: dict[str, Flow] = {}

    @contextmanager
    def told(self, name: str) -> Iterator[None]:
        """While the query of an early output is translated."""
        self.outputs.append(name)
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False

    def refuse(self, what: str, span: Span | None, why: str) -> None:
        """If something early is translated: what it cannot have."""
        if self.is_on:
            stop(self.translator.faults, f"{what} cannot be told with EMIT EARLY", span, why)

    # --- sources ---

    def flow(self, known: KnownSource, span: Span) -> Flow:
        """What has a name, as it is read early."""
        assert known.flow is not None
        name = known.word.name
        if known.is_early:
            return known.flow
        if name not in self._flows:
            self._flows[name] = (
                self._declared(known, span) if known.is_declared else self._view(known)
            )
        return self._flows[name]

    def _view(self, known: KnownSource) -> Flow:
        """The query of a view once more, with the names that it could see."""
        translator = self.translator
        assert known.view is not None
        names, around = translator.known, translator.around
        translator.known, translator.around = dict(known.scope), None
        try:
            return translator.view(known.view, f"{known.word.name}_early")
        finally:
            translator.known, translator.around = names, around

    def _declared(self, known: KnownSource, span: Span) -> Flow:
        flow, name = known.flow, known.word.name
        assert flow is not None
        (input_,) = (i for i in self.translator.inputs if i.name == name)
        if flow.type.is_relation:
            if input_.slack:
                why = "a change may come before what it changes; leave its SLACK out"
                self.refuse("a relation whose changes come out of order", span, why)
            return flow
        happened = EVENT_TIME
        if input_.time is not None and flow.schema.get(input_.time) == TIME:
            happened = Column(input_.time, TIME)
            self.inputs.add(name)
        elif input_.slack:
            why = "declare the column that is its TIME, with type TIME"
            self.refuse(f'"{name}", whose rows do not say when they happened,', span, why)
        columns = (*kept(flow.schema), functions.Assign(ROW_TIME, happened))
        builder = self.translator.builder
        return builder.add(functions.Map(columns), flow, name=f"{name}_happened", span=span)

    # --- windows ---

    def window(self, flow: Flow, window: ast.Window) -> Flow:
        """The rows of a stream that are in a window by when they happened."""
        if window.rows is not None:
            why = "rows that come later may lie before others; use Range or TUMBLE"
            self.refuse("a window of rows", window.span, why)
        if window.slide is not None:
            self.refuse("a window that slides", window.span, "use Range, or HOP")
        builder = self.translator.builder
        if window.length is None and not window.is_now:
            name = f"{flow.queue}_range"
            return builder.add(
                functions.Range(None), flow, name=name, span=window.span, is_monotone=True
            )
        length = 0 if window.is_now else window.length
        assert length is not None
        until, name = builder.hidden("until"), f"{flow.queue}_until"
        end = Call("+", (Column(ROW_TIME, TIME), Literal(length + 1, DURATION)), TIME)
        stamped = (*kept(flow.schema), functions.Assign(until, end))
        names = {n: n for n in flow.schema.names}
        flow = builder.add(functions.Map(stamped), flow, name=name, span=window.span)
        flow = builder.add(
            functions.Until(until), flow, name=name, span=window.span, is_monotone=False
        )
        return builder.columns(flow, names, name, window.span)

    # --- the program ---

    def marked(self, program: Program) -> Program:
        """The program with its early inputs; a fault for one that is read in both ways."""
        if not self.outputs:
            return program
        early = _inputs_behind(program, self.outputs)
        others = [name for name in program.outputs if name not in self.outputs]
        waited_for = _inputs_behind(program, others)
        inputs: list[Input] = []
        for input_ in program.inputs:
            is_early = input_.name in early and input_.name in self.inputs
            if is_early and input_.slack and input_.name in waited_for:
                message = f'"{input_.name}" is read with EMIT EARLY by {listing(self.outputs)}'
                hint = "time cannot be waited for and not: put one of them into a file of its own"
                fault = Fault(f"{message}, and without it by others", input_.span, hint)
                self.translator.faults.append(fault)
            is_early = is_early and input_.name not in waited_for
            inputs.append(replace(input_, is_early=True) if is_early else input_)
        program = replace(program, inputs=tuple(inputs))
        self.translator.faults += verify(program)
        return program


def _inputs_behind(program: Program, outputs: Sequence[str]) -> set[str]:
    """The inputs from which something comes to some outputs."""
    producers = program.producers()
    waiting, seen = list(outputs), set(outputs)
    while waiting:
        producer = producers.get(waiting.pop())
        for queue in producer.inputs if producer is not None else ():
            if queue not in seen:
                seen.add(queue)
                waiting.append(queue)
    return seen & set(program.input_names)
