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

from dataclasses import dataclass
from typing import ClassVar

from millstream.calculus import functions
from millstream.calculus.graph import Input, Program
from millstream.calculus.types import QueueType
from millstream.calculus.wiring import Queue, Wiring
from millstream.tracing.lambdas import RowFunction, trace_term
from millstream.tracing.rows import (
    concat_function,
    filter_function,
    map_function,
    micros,
    schema_of_names,
)


@dataclass(frozen=True, eq=False)
class Flow:
    """A stream or a relation: the function that gives it, and what it is given."""

    builder: ClassVar[str] = "millstream.languages.brook.flow:program_of"

    type: QueueType
    function: functions.Function | None
    parents: tuple[Flow, ...]
    input: Input | None = None

    def _then(self, function: functions.Function, *others: Flow) -> Flow:
        parents = (self, *others)
        (type_,) = function.output_types(tuple(p.type for p in parents), 1)
        return Flow(type_, function, parents)

    def filter(self, condition: RowFunction) -> Flow:
        """Keep the rows for which the condition is true."""
        return self._then(filter_function(condition, self.type.schema))

    def map(self, function: RowFunction, **columns: str) -> Flow:
        """One row for each row. `columns` are only needed for what cannot be traced."""
        return self._then(map_function(function, self.type.schema, columns).function)

    def flat_map(self, function: RowFunction, **columns: str) -> Flow:
        """A list of rows, as dictionaries, for each row."""
        return self._then(concat_function(function, self.type.schema, columns).function)

    def merge(self, *others: Flow) -> Flow:
        return self._then(functions.Merge(), *others)

    def now(self) -> Flow:
        return self._then(functions.Now())

    def range(self, length: str) -> Flow:
        """The rows of the last while: `range("5 min")`."""
        return self._then(functions.Range(micros(length)))

    def unbounded(self) -> Flow:
        return self._then(functions.Range(None))

    def rows(self, count: int, by: tuple[str, ...] = ()) -> Flow:
        return self._then(functions.Rows(count, by))

    def latest(self, *by: str) -> Flow:
        return self._then(functions.Latest(by))

    def join(self, other: Flow, on: tuple[str, ...] = ()) -> Flow:
        return self._then(functions.Join(tuple((name, name) for name in on)), other)

    def aggregate(
        self, by: tuple[str, ...] = (), **aggregates: tuple[str, RowFunction | None]
    ) -> Flow:
        """`aggregate(by=("symbol",), total=("sum", lambda r: r.volume), n=("count", None))`."""
        wanted = tuple(
            functions.Aggregation(name, how, what and trace_term(what, self.type.schema))
            for name, (how, what) in aggregates.items()
        )
        return self._then(functions.Aggregate(by, wanted))

    def distinct(self) -> Flow:
        return self._then(functions.Distinct())

    def except_(self, other: Flow) -> Flow:
        return self._then(functions.Except(), other)

    def istream(self) -> Flow:
        return self._then(functions.Istream())

    def dstream(self) -> Flow:
        return self._then(functions.Dstream())

    def rstream(self) -> Flow:
        return self._then(functions.Rstream())


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


def program_of(**outputs: Flow) -> Program:
    """The verified program whose outputs are some flows; flows are told apart by identity."""
    wiring = Wiring()
    wiring.names.update(outputs)
    queues: dict[int, Queue] = {}

    def queue(flow: Flow) -> Queue:
        if id(flow) not in queues:
            queues[id(flow)] = made(flow, [queue(parent) for parent in flow.parents])
        return queues[id(flow)]

    def made(flow: Flow, parents: list[Queue]) -> Queue:
        if flow.input is not None:
            return wiring.input(flow.input)
        assert flow.function is not None
        return wiring.add(flow.function, *parents, name=f"q{len(wiring.operators) + 1}")

    return wiring.program({name: queue(flow) for name, flow in outputs.items()})
