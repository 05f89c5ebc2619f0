"""Programs written in Python: streams and relations with methods.

    >>> import millstream
    >>> trades = millstream.stream("trades", symbol="text", price="number")
    >>> cheap = trades.filter(lambda r: r.price < 10).map(lambda r: {"symbol": r.symbol})
    >>> job = millstream.compile_flow(cheap=cheap)
    >>> job.run({"trades": [{"_time": 1, "symbol": "A", "price": 5.0}]}).rows("cheap")
    [{'_time': 1, 'symbol': 'A'}]

Lambdas are traced into terms where that is possible; a callable that cannot be traced is
kept as `Opaque` and needs the schema of what it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.api import Compiled
from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Distinct,
    Dstream,
    Duplicate,
    Filter,
    Function,
    Istream,
    Join,
    Latest,
    Map,
    Merge,
    Now,
    Opaque,
    Range,
    Rows,
    Rstream,
)
from millstream.calculus.graph import Input, Operator, Program, without_copies
from millstream.calculus.types import BOOLEAN, QueueType, Row, Schema
from millstream.calculus.verify import verified
from millstream.errors import UsageError, listing
from millstream.languages.algebra import Stream, Table, program_of
from millstream.tracing.lambdas import RowFunction, Untraceable, trace_row, trace_term
from millstream.tracing.rows import (
    flat_mapping,
    keeping,
    mapping,
    micros,
    schema_needed,
    schema_of_names,
)


@dataclass(frozen=True, eq=False)
class Flow:
    """A stream or a relation: the function that gives it, and what it is given."""

    type: QueueType
    function: Function | None
    parents: tuple[Flow, ...]
    input: Input | None = None

    def _then(self, function: Function, *others: Flow) -> Flow:
        parents = (self, *others)
        (type_,) = function.output_types(tuple(p.type for p in parents), 1)
        return Flow(type_, function, parents)

    def filter(self, condition: RowFunction) -> Flow:
        """Keep the rows for which the condition is true."""
        try:
            return self._then(Filter(trace_term(condition, self.type.schema, BOOLEAN)))
        except Untraceable:
            return self._opaque(condition, self.type.schema, keeping)

    def map(self, function: RowFunction, **columns: str) -> Flow:
        """One row for each row. `columns` are only needed for what cannot be traced."""
        try:
            return self._then(Map(trace_row(function, self.type.schema)))
        except Untraceable as reason:
            return self._opaque(function, schema_needed(columns, reason), mapping)

    def flat_map(self, function: RowFunction, **columns: str) -> Flow:
        """A list of rows, as dictionaries, for each row."""
        schema = schema_needed(columns, Untraceable("a list of rows has no term"))
        return self._opaque(function, schema, flat_mapping)

    def _opaque(
        self,
        function: RowFunction,
        schema: Schema,
        adapt: Callable[[RowFunction, Schema, Schema], Callable[[Row, int], list[Row]]],
    ) -> Flow:
        label = getattr(function, "__qualname__", repr(function))
        return self._then(Opaque(label, schema, adapt(function, self.type.schema, schema)))

    def merge(self, *others: Flow) -> Flow:
        return self._then(Merge(), *others)

    def now(self) -> Flow:
        return self._then(Now())

    def range(self, length: str) -> Flow:
        """The rows of the last while: `range("5 min")`."""
        return self._then(Range(micros(length)))

    def unbounded(self) -> Flow:
        return self._then(Range(None))

    def rows(self, count: int, by: tuple[str, ...] = ()) -> Flow:
        return self._then(Rows(count, by))

    def latest(self, *by: str) -> Flow:
        return self._then(Latest(by))

    def join(self, other: Flow, on: tuple[str, ...] = ()) -> Flow:
        return self._then(Join(tuple((name, name) for name in on)), other)

    def aggregate(
        self, by: tuple[str, ...] = (), **aggregates: tuple[str, RowFunction | None]
    ) -> Flow:
        """`aggregate(by=("symbol",), total=("sum", lambda r: r.volume), n=("count", None))`."""
        found = tuple(
            Aggregation(name, how, what and trace_term(what, self.type.schema))
            for name, (how, what) in aggregates.items()
        )
        return self._then(Aggregate(by, found))

    def distinct(self) -> Flow:
        return self._then(Distinct())

    def istream(self) -> Flow:
        return self._then(Istream())

    def dstream(self) -> Flow:
        return self._then(Dstream())

    def rstream(self) -> Flow:
        return self._then(Rstream())


def stream(
    name: str,
    columns: dict[str, str] | None = None,
    /,
    *,
    time: str | None = None,
    slack: str = "0 s",
    **more: str,
) -> Flow:
    """An input stream: its columns by name, or as a dictionary where a name is taken."""
    return _input(name, (columns or {}) | more, time, slack, is_relation=False)


def relation(
    name: str,
    columns: dict[str, str] | None = None,
    /,
    *,
    time: str | None = None,
    slack: str = "0 s",
    **more: str,
) -> Flow:
    """An input relation: rows with `_weight` +1 or -1."""
    return _input(name, (columns or {}) | more, time, slack, is_relation=True)


def _input(
    name: str, columns: dict[str, str], time: str | None, slack: str, *, is_relation: bool
) -> Flow:
    type_ = QueueType(schema_of_names(columns), is_relation)
    return Flow(type_, None, (), Input(name, type_, time, micros(slack)))


# --- from flows to programs -------------------------------------------------------------


def compile_flow(**outputs: Flow | Stream | Table) -> Compiled:
    """The program whose outputs are some flows, ready to run.

    Streams and tables of `millstream.algebra` are compiled too; a table leaves as a relation.
    """
    flows = {name: one for name, one in outputs.items() if isinstance(one, Flow)}
    others = {name: one for name, one in outputs.items() if not isinstance(one, Flow)}
    if flows and others:
        raise UsageError(
            "one program is written with flows or with the algebra, not with both",
            hint=f"flows are: {listing(flows)}; of the algebra are: {listing(others)}",
        )
    if others:
        return Compiled(program_of(**others))
    return Compiled(verified(without_copies(_Linearised(flows).program())))


class _Linearised:
    """Mutable: names queues, and duplicates those that several flows read."""

    def __init__(self, outputs: dict[str, Flow]) -> None:
        self.outputs = outputs
        self.flows: list[Flow] = []
        self.same: dict[int, Flow] = {}
        for flow in outputs.values():
            self._visit(flow)
        self.readers: dict[int, list[str]] = {}
        self.names = {id(f): f.input.name if f.input else f"q{n}" for n, f in enumerate(self.flows)}

    def _visit(self, flow: Flow) -> None:
        for parent in flow.parents:
            self._visit(parent)
        # Two flows of one input are one flow; all others are told apart by identity.
        known = (f for f in self.flows if f is flow or (f.input and f.input == flow.input))
        self.same[id(flow)] = found = next(known, flow)
        if found is flow and not any(f is flow for f in self.flows):
            self.flows.append(flow)

    def _read(self, flow: Flow, wanted: str | None = None) -> str:
        """A queue of one's own with the items of a flow."""
        flow = self.same[id(flow)]
        name = wanted or f"{self.names[id(flow)]}_{len(self.readers.get(id(flow), ()))}"
        self.readers.setdefault(id(flow), []).append(name)
        return name

    def program(self) -> Program:
        operators: list[Operator] = []
        for flow in self.flows:
            if flow.function is None:
                continue
            name = self.names[id(flow)]
            inputs = tuple(self._read(p) for p in flow.parents)
            state = tuple(f"{name}_{n}" for n in range(flow.function.state_count(len(inputs))))
            operators.append(Operator(flow.function, inputs, (name,), state, state))
        for output, flow in self.outputs.items():
            self._read(flow, output)
        copies = [
            Operator(Duplicate(), (self.names[id(f)],), tuple(self.readers[id(f)]))
            for f in self.flows
        ]
        inputs_found = tuple(f.input for f in self.flows if f.input is not None)
        return Program(inputs_found, tuple(self.outputs), (*copies, *operators))
