"""`Ordered` of rows that come in the very order that is asked for, with what it needs and no more.

Where rows only ever come, and in the order of their times, what follows from the rows before does
not change any more:

    places, neighbours, frames of rows    Fold: a number, the last so many values, a sum
    frames of a range of time             Join(Now, Aggregate(Range)): with all rows of the instant

Rows of one instant are in the order of their values, as those of `Ordered` are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.calculus.aggregation import Aggregation
from millstream.calculus.functions import (
    Aggregate,
    Assign,
    Fold,
    Istream,
    Join,
    Map,
    Now,
    Range,
    Update,
)
from millstream.calculus.graph import Variable
from millstream.calculus.library.columns import kept
from millstream.calculus.ordering import PLACES, SUMS, Placed
from millstream.calculus.terms import Call, Column, Literal, Term, VariableField, is_null
from millstream.calculus.types import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TIME,
    Field,
    Schema,
    Type,
    Value,
)
from millstream.calculus.wiring import Queue, Wiring

#: So many values before a row are remembered at most.
FARTHEST = 100


def is_known_in_time(placed: Placed) -> bool:
    """Does it follow from the rows before, of which few are needed?"""
    if placed.function in PLACES:
        return True
    if placed.function == "lag":
        return placed.offset <= FARTHEST
    start, end = placed.frame.ends
    if placed.function == "first":
        return start is None and end == 0
    if placed.function not in SUMS or end != 0:
        return False
    return start is None or (start <= 0 and (placed.frame.unit == "range" or -start <= FARTHEST))


def placed_in_time(
    wiring: Wiring, rows: Queue, by: Sequence[str], time: str, columns: Sequence[Placed], *,
    name: str,
) -> Queue:  # fmt: skip
    """The rows of a relation that only grows, in the order of a column that is their time."""
    stream = wiring.add(Istream(), rows, name=name)
    ranges = [c for c in columns if _is_range(c)]
    memory = _Memory(wiring.fresh_variable(f"{name}_before"), rows.schema, time)
    made = [Assign(c.name, memory.term(c)) for c in columns if c not in ranges]
    flow = stream
    if made:
        fold = Fold(tuple(by), None, tuple(memory.updates()), (*kept(rows.schema), *made))
        flow = wiring.fold(fold, stream, memory.variable(), name)
    for start in dict.fromkeys(c.frame.start for c in ranges):
        window = Range(None if start is None else -start)
        sums = tuple(_aggregation(c, rows.schema) for c in ranges if c.frame.start == start)
        there = wiring.add(window, stream, name=name)
        groups = wiring.add(Aggregate(tuple(by), sums), there, name=name)
        now = wiring.add(Now(), flow, name=name)
        on = tuple((n, n) for n in by)
        pairs = wiring.add(Join(on, nulls_match=True), now, groups, name=name)
        flow = wiring.add(Istream(), pairs, name=name)
    order = (*rows.schema.names, *(c.name for c in columns))
    flow = wiring.add(Map(tuple(Assign(n, flow.column(n)) for n in order)), flow, name=name)
    return wiring.add(Range(None), flow, name=name)


def _is_range(placed: Placed) -> bool:
    return placed.function in SUMS and placed.frame.unit == "range"


def _aggregation(placed: Placed, schema: Schema) -> Aggregation:
    term = None if placed.column is None else Column(placed.column, schema[placed.column])
    return Aggregation(placed.name, placed.function, term)


class _Memory:
    """Mutable: the variable of a fold, as far as is known what it has to remember.

    Terms are of the state after a row.
    """

    def __init__(self, name: str, schema: Schema, time: str) -> None:
        self.name = name
        self.schema = schema
        self.time = Column(time, TIME)
        self.fields: dict[str, tuple[Type, Value, Term]] = {}

    def variable(self) -> Variable:
        fields = tuple(Field(n, type_) for n, (type_, _, _) in self.fields.items())
        return Variable(self.name, fields, tuple(first for _, first, _ in self.fields.values()))

    def updates(self) -> Iterable[Update]:
        return (Update(self.name, n, term) for n, (_, _, term) in self.fields.items())

    def _field(self, field: str, type_: Type, first: Value, after: Term) -> Term:
        self.fields.setdefault(field, (type_, first, after))
        return VariableField(self.name, field, type_)

    def term(self, placed: Placed) -> Term:
        if placed.function == "row_number":
            return self._number()
        if placed.function == "rank":
            return self._place("rank", _plus(self._before("number"), 1))
        if placed.function == "dense_rank":
            return self._place("kinds", _plus(self._before("kinds"), 1))
        if placed.column is None:
            number = self._number()
            if placed.frame.start is None:
                return number
            return Call("least", (number, Literal(1 - placed.frame.start, INTEGER)), INTEGER)
        column = Column(placed.column, self.schema[placed.column])
        if placed.function == "lag":
            return self._last(column, placed.offset)
        if placed.function == "first":
            self._number()
            is_first = Call("==", (self._before("number"), Literal(0, INTEGER)), BOOLEAN)
            field = f"first_{placed.column}"
            earlier = VariableField(self.name, field, column.type)
            chosen = Call("if", (is_first, column, earlier), column.type)
            return self._field(field, column.type, None, chosen)
        return self._framed(placed, column)

    # --- places ---

    def _before(self, field: str) -> Term:
        """A number before the row has come."""
        return VariableField(self.name, field, INTEGER)

    def _number(self) -> Term:
        return self._field("number", INTEGER, 0, _plus(self._before("number"), 1))

    def _place(self, field: str, new: Term) -> Term:
        """A number that rows of one time have in common."""
        self._number()
        last = VariableField(self.name, "time", TIME)
        is_same = Call("coalesce", (Call("==", (last, self.time), BOOLEAN),
                                    Literal(False, BOOLEAN)), BOOLEAN)  # fmt: skip
        self._field("time", TIME, None, self.time)
        return self._field(
            field, INTEGER, 0, Call("if", (is_same, self._before(field), new), INTEGER)
        )

    # --- values ---

    def _last(self, column: Column, back: int) -> Term:
        """The value of so many rows before; that of the row itself is the zeroth."""
        value: Term = column
        for number in range(back + 1):
            field = f"last{number}_{column.name}"
            self._field(field, column.type, None, value)
            value = VariableField(self.name, field, column.type)
        return value

    def _framed(self, placed: Placed, column: Column) -> Term:
        if placed.frame.start is None:
            total, count = self._running(placed.function, column)
        else:
            total, count = self._of_last(placed.function, column, -placed.frame.start)
        if placed.function == "count":
            return count
        if placed.function == "avg":
            number = total if total.type == NUMBER else Call("number", (total,), NUMBER)
            return Call("/", (number, Call("number", (count,), NUMBER)), NUMBER)
        return total

    def _running(self, function: str, column: Column) -> tuple[Term, Term]:
        one = Call("if", (is_null(column), Literal(0, INTEGER), Literal(1, INTEGER)), INTEGER)
        field = f"count_{column.name}"
        before = self._before(field)
        count = self._field(field, INTEGER, 0, Call("+", (before, one), INTEGER))
        if function == "count":
            return count, count
        kind = {"min": "least", "max": "greatest"}.get(function, "+")
        field = f"{kind}_{column.name}"
        so_far = VariableField(self.name, field, column.type)
        both = Call(kind, (so_far, column), column.type)
        if kind == "+":
            is_new = Call("if", (is_null(so_far), column, both), column.type)
            both = Call("if", (is_null(column), so_far, is_new), column.type)
        return self._field(field, column.type, None, both), count

    def _of_last(self, function: str, column: Column, back: int) -> tuple[Term, Term]:
        values = [self._last(column, n) for n in range(back + 1)]
        zero, one = Literal(0, INTEGER), Literal(1, INTEGER)
        counts: list[Term] = [Call("if", (is_null(v), zero, one), INTEGER) for v in values]
        count = _tied("+", counts, INTEGER)
        if function == "count":
            return count, count
        if function in ("min", "max"):
            kind = "least" if function == "min" else "greatest"
            best = Call(kind, tuple(values), column.type) if back else values[0]
            return best, count
        nothing = Literal(0, column.type)
        added = _tied("+", [Call("coalesce", (v, nothing), v.type) for v in values], column.type)
        is_empty = Call("==", (count, zero), BOOLEAN)
        return Call("if", (is_empty, Literal(None, column.type), added), column.type), count


def _plus(term: Term, number: int) -> Term:
    return Call("+", (term, Literal(number, INTEGER)), INTEGER)


def _tied(function: str, terms: Sequence[Term], type_: Type) -> Term:
    """Terms added in halves, so as not to be deep."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    sides = (_tied(function, some, type_) for some in (terms[:half], terms[half:]))
    return Call(function, tuple(sides), type_)
