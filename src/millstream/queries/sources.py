"""What a source of a FROM clause is: the relation that its window makes of a stream."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.calculus import functions
from millstream.calculus.library.columns import kept
from millstream.calculus.library.event_windows import EVENT_TIME
from millstream.errors import Fault
from millstream.queries import ast
from millstream.queries.build import Builder, Flow
from millstream.queries.early import Early
from millstream.queries.scope import ROW_TIME, Names, Seen, Visible
from millstream.queries.tokens import Stop, stop


@dataclass(frozen=True)
class Windows:
    """Puts windows on sources; `early` says whether they are told before they are over."""

    builder: Builder
    early: Early
    faults: list[Fault]

    def windowed(
        self, flow: Flow, source: ast.Named | ast.Nested, *, is_declared: bool, shows_time: bool
    ) -> Flow:
        """The relation of a source: through its window, or the default one of a stream.

        The query sees the time of each row of a stream, if it `shows_time`.
        """
        window, span = source.window, source.span
        if flow.type.is_relation:
            if window is None:
                return flow
            flow = self.as_stream(flow, window, is_declared=is_declared)
        if shows_time and ROW_TIME not in flow.schema:
            columns = (*kept(flow.schema), functions.Assign(ROW_TIME, EVENT_TIME))
            name = f"{flow.queue}_times"
            flow = self.builder.add(functions.Map(columns), flow, name=name, span=span)
        return self.window(flow, window or ast.Window(span=span), source)

    def as_stream(self, flow: Flow, window: ast.Window, *, is_declared: bool) -> Flow:
        """A window on a query that only grows means a window on what comes to it."""
        self.early.refuse("a window on a query", window.span, "put it on the stream")
        if is_declared or not flow.is_monotone:
            message = "a window stands on a stream, but this is a relation"
            hint = (
                "leave the window out"
                if is_declared
                else "say what stream is meant: Istream, Dstream or Rstream of the query"
            )
            stop(self.faults, message, window.span, hint)
        return self.builder.add(
            functions.Istream(), flow, name=f"{flow.queue}_istream", span=window.span
        )

    def window(self, flow: Flow, window: ast.Window, source: ast.Named | ast.Nested) -> Flow:
        if self.early.is_on:
            return self.early.window(flow, window)
        function: functions.Function
        if window.is_now:
            function, word = functions.Now(), "now"
        elif window.rows is not None:
            by = tuple(self.partition_column(flow, r, source) for r in window.by)
            function, word = functions.Rows(window.rows, by, window.length), "rows"
        else:
            function, word = functions.Range(window.length, window.slide), "range"
        is_monotone = isinstance(function, functions.Range) and window.length is None
        return self.builder.add(
            function, flow, name=f"{flow.queue}_{word}", span=window.span, is_monotone=is_monotone
        )

    def partition_column(
        self, flow: Flow, asked: ast.Reference, source: ast.Named | ast.Nested
    ) -> str:
        """A column of the stream, which may be named before it."""
        written = [source.name] if isinstance(source, ast.Named) else []
        names = [w.name for w in (*written, source.alias) if w is not None]
        columns = tuple(Seen(f.name, f.name, f.type) for f in flow.schema)
        visible = Names(tuple(Visible(name, columns) for name in names or [flow.queue]))
        seen = visible.resolve(asked, self.faults)
        if seen is None:
            raise Stop
        return seen.column
