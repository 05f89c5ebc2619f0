"""Windows of time in FROM: which column is meant, and what a query sees of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.calculus.functions import Assign, Istream, Map
from millstream.calculus.library.columns import kept
from millstream.calculus.library.event_windows import (
    EVENT_TIME,
    complete,
    hopping,
    sessions,
    tumbling,
)
from millstream.calculus.terms import Column
from millstream.calculus.types import TIME, TIME_COLUMN
from millstream.errors import Fault
from millstream.queries import ast
from millstream.queries.build import Builder, Flow
from millstream.queries.scope import ROW_TIME
from millstream.queries.tokens import stop

if TYPE_CHECKING:
    from millstream.queries.translate import Translator


_COLUMN = "name a column of times: TUMBLE(TABLE q, DESCRIPTOR(at), ...)"


class Framing:
    """Mutable: one window of time on its way to operators.

    If it `is_final` its rows are there when it has ended, and at that instant only.
    """

    def __init__(self, translator: Translator, query: ast.Framed, prefix: str) -> None:
        self.translator = translator
        self.builder: Builder = translator.builder
        self.faults: list[Fault] = translator.faults
        self.query = query
        self.prefix = prefix
        self.is_final = translator.is_final

    def flow(self) -> Flow:
        query, name = self.query, f"{self.prefix}_{self.query.kind}"
        early = self.translator.early
        if query.kind == "session":
            why = "a row that comes later may join two sessions into one; use TUMBLE or HOP"
            early.refuse("SESSION", query.span, why)
        flow, event_time = self._source()
        time = self._time(flow, event_time)
        wiring, wired = self.builder.wiring, flow.wired
        if query.kind == "session":
            by = [self.translator.windows.partition_column(flow, r, query.source) for r in query.by]
            if time.name not in (TIME_COLUMN, event_time):
                hint = f"write {event_time or TIME_COLUMN}"
                message = "a session follows the time of the stream"
                stop(self.faults, message, query.time.span, hint)
            made = sessions(wiring, wired, by, query.size, is_complete=self.is_final, name=name)
            return Flow(made.name, made.type, beats=flow.beats)
        if query.kind == "tumble":
            made = tumbling(wiring, wired, time, query.size, query.offset, name=name)
        else:
            made = hopping(wiring, wired, time, query.slide, query.size, query.offset, name=name)
        if self.is_final:
            made = complete(wiring, made, name=name)
        return Flow(made.name, made.type, flow.is_monotone and not self.is_final, flow.beats)

    def _source(self) -> tuple[Flow, str | None]:
        """What the window is of, and the column that is its event time, if one is known."""
        source, translator = self.query.source, self.translator
        event_time: str | None = None
        is_declared = False
        if isinstance(source, ast.Named):
            flow, is_declared = translator.named(source.name)
            given = next((i for i in translator.inputs if i.name == flow.queue), None)
            if given is not None and given.time in given.type.schema:
                event_time = given.time
        else:
            flow = translator.query(source.query, f"{self.prefix}_of")
        needs_stream = self.is_final or self.query.kind == "session"
        if flow.type.is_relation and (needs_stream or self._asks_for_time()):
            translator.early.refuse("a window of the time of a query", source.span, _COLUMN)
            if is_declared or not flow.is_monotone:
                what = f"{self.query.kind.upper()} {'with EMIT FINAL ' * self.is_final}"
                message = f"{what.strip()} is of a stream, but this is a relation"
                stop(self.faults, message, source.span, "say which stream: Istream of the query")
            name = f"{flow.queue}_istream"
            flow = self.builder.add(Istream(), flow, name=name, span=source.span)
        if needs_stream and ROW_TIME not in flow.schema:
            # What comes out is a relation, in which nobody could tell any more.
            columns = (*kept(flow.schema), Assign(ROW_TIME, EVENT_TIME))
            name = f"{flow.queue}_times"
            flow = self.builder.add(Map(columns), flow, name=name, span=source.span)
        return flow, event_time

    def _asks_for_time(self) -> bool:
        return self.query.time.owner is None and self.query.time.name.name == TIME_COLUMN

    def _time(self, flow: Flow, event_time: str | None) -> Column:
        """The column by which rows are in windows."""
        asked = self.query.time
        if self._asks_for_time():
            is_moved = self.translator.early.is_on and ROW_TIME in flow.schema
            name = ROW_TIME if is_moved else TIME_COLUMN
            return Column(name, TIME, asked.span)
        name = self.translator.windows.partition_column(flow, asked, self.query.source)
        type_ = flow.schema[name]
        if type_ != TIME:
            hint = f"the time of the stream is {event_time or TIME_COLUMN}"
            message = f'a window is of times, but "{name}" is of type {type_}'
            stop(self.faults, message, asked.span, hint)
        return Column(name, TIME, asked.span)
