"""Aggregates that look at the order of a group: MEDIAN, STRING_AGG, FIRST and their like.

    in order = Ordered(rows): those that count first, each with its number and how many there are
    answer   = the first row of each group, or the rows at the places that are asked for

Rows that do not count (by FILTER, or as their value is null) stay in their group, so that a group
of which none counts has an answer too, which is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Assign,
    Distinct,
    Filter,
    Function,
    Map,
    Ordered,
    Placed,
)
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, Type
from millstream.queries.build import Builder, Flow
from millstream.source import Span

#: Those that take a text between values, and those that take a part of the whole.
BETWEEN = ("string_agg",)
FRACTIONS = ("percentile_cont", "percentile_disc")
#: Those whose rows are in the order of time, if nothing else is said.
IN_TIME = ("string_agg", "array_agg", "first", "last")
#: Those that take a null for a value.
WITH_NULLS = ("array_agg", "first", "last")


@dataclass(frozen=True, slots=True)
class OrderedTotal:
    """An aggregate of the values of a group in an order.

    Rows count where `there` is true, and not where it is null. A percentile is at a `fraction`;
    `between` stands between texts.
    """

    name: str
    function: str
    value: Term
    there: Term
    order: tuple[tuple[Term, bool], ...]
    fraction: float = 0.5
    between: str = ""
    is_distinct: bool = False

    @property
    def terms(self) -> tuple[Term, ...]:
        return (self.value, self.there, *(term for term, _ in self.order))

    def result_type(self) -> Type:
        return NUMBER if self.function == "percentile_cont" else self.value.type


@dataclass
class InOrder:
    """Mutable: makes the answer of one of them for each group of a flow."""

    builder: Builder
    prefix: str
    span: Span
    total: OrderedTotal

    def groups(self, flow: Flow, by: Sequence[str]) -> Flow:
        """A row for each group: its key, and the answer."""
        rows, value, there, order = self._rows(flow, by)
        number, count, whole = (self.builder.hidden(w) for w in ("place", "count", "whole"))
        down = (there, *(name for name, is_down in order if is_down))
        columns = [Placed(number, "row_number"), Placed(count, "count", there)]
        if self.total.function == "string_agg":
            columns.append(Placed(whole, "join", value, between=self.total.between))
        on = tuple(dict.fromkeys((there, *(name for name, _ in order))))
        function = Ordered(tuple(by), on, tuple(dict.fromkeys(down)), tuple(columns))
        ordered = self._add(function, rows, "ordered")
        place, size = Column(number, INTEGER), Column(count, INTEGER)
        if self.total.function == "percentile_cont":
            made = self._between(ordered, by, value, place, size)
        else:
            wanted: Term = Literal(1, INTEGER)
            if self.total.function == "percentile_disc":
                parts = Call("ceil", (_share(size, self.total.fraction),), NUMBER)
                wanted = Call("greatest", (wanted, Call("integer", (parts,), INTEGER)), INTEGER)
            ordered = self._add(Filter(Call("==", (place, wanted), BOOLEAN)), ordered, "first")
            shown = whole if self.total.function == "string_agg" else value
            made = self._shown(ordered, by, Column(shown, ordered.schema[shown]))
        if by:
            return made
        # There is always one row, though the group may be empty.
        last = Aggregation(self.total.name, "max", Column(self.total.name, answer_type(made)))
        return self._add(Aggregate((), (last,)), made, "groups")

    def _rows(self, flow: Flow, by: Sequence[str]) -> tuple[Flow, str, str, list[tuple[str, bool]]]:
        """The keys, what is aggregated, and what it is ordered by."""
        total, hidden = self.total, self.builder.hidden
        value, there = hidden("value"), hidden("there")
        order = [(hidden("order"), is_down) for _, is_down in total.order]
        columns = [Assign(n, Column(n, flow.schema[n])) for n in by]
        columns += [Assign(value, total.value), Assign(there, total.there)]
        pairs = zip(order, total.order, strict=True)
        columns += [Assign(name, term) for (name, _), (term, _) in pairs]
        rows = self._add(Map(tuple(columns)), flow, "values")
        if total.is_distinct:
            rows = self._add(Distinct(), rows, "distinct")
        return rows, value, there, order

    def _between(
        self, ordered: Flow, by: Sequence[str], value: str, place: Term, size: Term
    ) -> Flow:
        """The value at a place that may lie between two rows, in a straight line."""
        others: Term = Call("-", (size, Literal(1, INTEGER)), INTEGER)
        others = Call("greatest", (others, Literal(0, INTEGER)), INTEGER)
        ends = []
        for function in ("floor", "ceil"):
            at = Call(function, (_share(others, self.total.fraction),), NUMBER)
            ends.append(Call("+", (Call("integer", (at,), INTEGER), Literal(1, INTEGER)), INTEGER))
        is_asked = Call("or", tuple(Call("==", (place, e), BOOLEAN) for e in ends), BOOLEAN)
        ordered = self._add(Filter(is_asked), ordered, "places")
        low, high, rows = (self.builder.hidden(w) for w in ("low", "high", "rows"))
        given = Column(value, NUMBER)
        sums = (Aggregation(low, "min", given), Aggregation(high, "max", given),
                Aggregation(rows, "max", size))  # fmt: skip
        pairs = self._add(Aggregate(tuple(by), sums), ordered, "ends")
        a, b = (Column(n, NUMBER) for n in (low, high))
        if self.total.order[0][1]:
            a, b = b, a
        others = Call("-", (Column(rows, INTEGER), Literal(1, INTEGER)), INTEGER)
        exact = _share(others, self.total.fraction)
        part = Call("-", (exact, Call("floor", (exact,), NUMBER)), NUMBER)
        way = Call("*", (Call("-", (b, a), NUMBER), part), NUMBER)
        line = Call("+", (a, way), NUMBER)
        answer = Call("if", (Call("==", (a, b), BOOLEAN), a, line), NUMBER)
        return self._shown(pairs, by, answer)

    def _shown(self, flow: Flow, by: Sequence[str], answer: Term) -> Flow:
        keys = (Assign(n, Column(n, flow.schema[n])) for n in by)
        return self._add(Map((*keys, Assign(self.total.name, answer))), flow, "answer")

    def _add(self, function: Function, flow: Flow, word: str) -> Flow:
        return self.builder.add(
            function, flow, name=f"{self.prefix}_{word}", span=self.span, is_monotone=False
        )


def answer_type(flow: Flow) -> Type:
    return flow.schema.fields[-1].type


def _share(count: Term, fraction: float) -> Term:
    return Call("*", (Call("number", (count,), NUMBER), Literal(fraction, NUMBER)), NUMBER)
