"""GROUP BY: aggregates, and what an expression may read after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from millstream.calculus import syntax
from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Assign,
    Distinct,
    FunctionFault,
    Join,
    Map,
)
from millstream.calculus.terms import Call, Column, Literal, Term, is_known
from millstream.calculus.types import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    TIME_COLUMN,
    Schema,
    Type,
)
from millstream.errors import Fault, listing
from millstream.queries.ast import Apply, Constant, Expression, Reference, Total, Word
from millstream.queries.build import Builder, Flow
from millstream.queries.joins import with_columns
from millstream.queries.names import ORDERED_TOTALS
from millstream.queries.ordered_totals import FRACTIONS, WITH_NULLS, InOrder, OrderedTotal
from millstream.queries.scope import Names
from millstream.queries.spread import SPREADS, reading
from millstream.queries.terms import NULL, Replacing, is_null, nothing, term_of
from millstream.queries.tokens import Stop, stop
from millstream.source import Span

#: Aggregates that look at the order of rows.
IN_ORDER = frozenset(ORDERED_TOTALS.values())


def _shown(total: Total) -> str:
    """An aggregate as it was written."""
    return total.function.span.text.upper()


@dataclass(frozen=True, slots=True)
class Grouped:
    """Groups: the rows of aggregates, and what to write for parts of expressions."""

    flow: Flow
    keys: tuple[tuple[Term, str], ...]
    totals: Mapping[Total, syntax.Expression]
    names: Names
    schema: Schema
    faults: list[Fault]
    #: What to write for the subqueries inside keys.
    before: Replacing

    def replacing(self, expression: Expression) -> syntax.Expression | None:
        """Aggregates and grouped expressions are columns now; other columns are gone."""
        if isinstance(expression, Total):
            return self.totals[expression]
        if isinstance(expression, Constant):
            return None
        key = self._key(expression)
        if key is not None:
            # What is nothing but NULL is so in every group, and of no type yet.
            is_nothing = is_null(expression, self.names, self.before)
            return NULL if is_nothing else syntax.Name(key, expression.span)
        if isinstance(expression, Reference):
            self._complain(expression)
        return None

    def _key(self, expression: Expression) -> str | None:
        if isinstance(expression, Apply) and all(isinstance(t, Column) for t, _ in self.keys):
            return None
        try:
            term = term_of(expression, self.names, self.schema, [], replacing=self.before)
        except Stop:
            return None  # not an expression over the rows before grouping
        return next((name for key, name in self.keys if key == term), None)

    def _complain(self, reference: Reference) -> None:
        if self.names.resolve(reference, self.faults) is not None:
            grouped = listing(name for _, name in self.keys)
            hint = f"the query is grouped by: {grouped}"
            message = f'"{reference.name.name}" is neither grouped by nor inside an aggregate'
            self.faults.append(Fault(message, reference.span, hint))
        raise Stop


@dataclass(frozen=True, slots=True)
class Planned:
    """What must be kept for an aggregate; if it is of distinct values, they are `value`.

    One that looks at the order of rows is `ordered` instead.
    """

    aggregations: tuple[Aggregation, ...]
    value: Assign | None = None
    ordered: OrderedTotal | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it makes."""
        return tuple(a.name for a in (*self.aggregations, self.ordered) if a is not None)


@dataclass
class Grouping:
    """Mutable: makes groups of the rows of a flow."""

    builder: Builder
    prefix: str
    faults: list[Fault]
    names: Names
    span: Span

    def group(
        self,
        flow: Flow,
        keys: Sequence[Expression],
        wanted: Mapping[Total, str | None],
        replacing: Replacing = nothing,
        also: Sequence[str] = (),
    ) -> Grouped:
        """Group a flow; `wanted` has the aggregates, with the names they should have.

        `replacing` says what to write for the subqueries inside aggregates and keys; columns
        `also` are keys.
        """
        schema = flow.schema
        terms: list[Term] = [Column(n, schema[n]) for n in also]
        terms += [term_of(k, self.names, schema, self.faults, replacing=replacing) for k in keys]
        flow, named = with_columns(self.builder, flow, terms, self.prefix, self.span)
        by = tuple(dict.fromkeys(named))
        plans, totals = self.planned(wanted, schema, by, replacing)
        grouped = self.aggregated(flow, by, plans)
        pairs = tuple(zip(terms, named, strict=True))
        return Grouped(grouped, pairs, totals, self.names, schema, self.faults, replacing)

    def planned(
        self,
        wanted: Mapping[Total, str | None],
        schema: Schema,
        taken: Sequence[str] = (),
        replacing: Replacing = nothing,
    ) -> tuple[list[Planned], dict[Total, syntax.Expression]]:
        """What must be kept for aggregates over some columns, and how to read each of them."""
        names = set(taken)
        plans: list[Planned] = []
        totals: dict[Total, syntax.Expression] = {}
        for total, name in wanted.items():
            is_free = name is not None and name not in names
            used = name if name and is_free else self.builder.hidden(total.function.name)
            plans.append(self._plan(total, used, schema, replacing))
            names.add(used)
            totals[total] = reading(total, used)
            if total.arg is not None and total.function.name in ("min", "max"):
                if is_null(total.arg, self.names, replacing):
                    totals[total] = NULL
        return plans, totals

    def aggregated(self, flow: Flow, by: Sequence[str], plans: Sequence[Planned]) -> Flow:
        """The groups of a flow with all that is kept for their aggregates."""
        plain = [a for plan in plans if plan.value is None for a in plan.aggregations]
        apart = [plan for plan in plans if plan.value is not None or plan.ordered is not None]
        grouped = self._main(flow, list(by), plain, is_needed=not apart)
        for plan in apart:
            if plan.ordered is not None:
                in_order = InOrder(self.builder, self.prefix, self.span, plan.ordered)
                grouped = self._beside(grouped, in_order.groups(flow, by), by)
            else:
                grouped = self._joined(grouped, flow, list(by), plan)
        return grouped

    def _plan(self, total: Total, name: str, schema: Schema, replacing: Replacing) -> Planned:
        if total.function.name in IN_ORDER:
            return Planned((), None, self._ordered(total, name, schema, replacing))
        term = self._argument(total, schema, replacing)
        if term is None:
            return Planned((Aggregation(name, "count"),))
        value = None
        if total.is_distinct and total.function.name not in ("min", "max"):
            value = Assign(self.builder.hidden("value"), term)
            term = Column(value.name, term.type, term.span)
        function, _ = SPREADS.get(total.function.name, (total.function.name, False))
        aggregate = Aggregation(name, function, term)
        try:
            aggregate.result_type()
        except FunctionFault as fault:
            stop(self.faults, str(fault), total.span)
        return Planned((aggregate,), value)

    def _ordered(
        self, total: Total, name: str, schema: Schema, replacing: Replacing
    ) -> OrderedTotal:
        """An aggregate that looks at the order of rows."""
        function = total.function.name
        assert total.arg is not None

        def term(expression: Expression, wanted: Type | None = None) -> Term:
            return term_of(
                expression, self.names, schema, self.faults, wanted=wanted, replacing=replacing
            )

        value = term(total.arg)
        if function == "percentile_cont":
            if not value.type.is_numeric:
                message = f"{_shown(total)} is of numbers, not of a {value.type}"
                stop(self.faults, message, total.span)
            if value.type == INTEGER:
                value = Call("number", (value,), NUMBER, value.span)
        ordered = self._order(total, value, term)
        there: Term = Literal(True, BOOLEAN)
        if total.where is not None:
            there = term(total.where, BOOLEAN)
        if function not in WITH_NULLS:
            there = Call("and", (there, is_known(value)), BOOLEAN)
        if function == "array_agg":
            written = Call("json", (value,), TEXT, value.span)
            value = Call("coalesce", (written, Literal("null", TEXT)), TEXT, value.span)
            function = "string_agg"
        if function == "string_agg" and value.type != TEXT:
            value = Call("text", (value,), TEXT, value.span)
        null = Literal(None, BOOLEAN)
        there = Call("if", (there, Literal(True, BOOLEAN), null), BOOLEAN)
        value = Call("if", (there, value, Literal(None, value.type)), value.type, value.span)
        between = total.beside if isinstance(total.beside, str) else ", "
        fraction = total.beside if isinstance(total.beside, (int, float)) else 0.5
        return OrderedTotal(
            name, function, value, there, tuple(ordered), float(fraction), between,
            total.is_distinct,
        )  # fmt: skip

    def _order(
        self, total: Total, value: Term, term: Callable[[Expression], Term]
    ) -> list[tuple[Term, bool]]:
        """What its rows are ordered by, and whether downwards."""
        function = total.function.name
        seen = self.names.candidates(Reference(None, Word(TIME_COLUMN, total.span), total.span))
        order: list[tuple[Term, bool]] = []
        for one in total.order:
            key = term(one.value)
            if one.nulls_first == one.is_descending:
                order.append((Call("is_null", (key,), BOOLEAN), one.nulls_first))
            order.append((key, one.is_descending))
        if not order and function in FRACTIONS:
            order = [(value, False)]
        if not order and len(seen) == 1:
            order = [(Column(seen[0][1].column, TIME), False)]
        if not order and function in ("first", "last"):
            message = f"{_shown(total)} of what has no times needs an order"
            stop(self.faults, message, total.span, f"write {function.upper()}(x ORDER BY y)")
        if function == "last":
            order = [(key, not is_down) for key, is_down in order]
        return order

    def _argument(self, total: Total, schema: Schema, replacing: Replacing) -> Term | None:
        """What is aggregated: null where FILTER is not true; None to count all rows."""
        term: Term | None = None
        if total.arg is not None:
            is_counted = total.function.name in ("count", "min", "max")
            is_untyped = is_null(total.arg, self.names, replacing)
            wanted = INTEGER if is_untyped and not is_counted else None
            term = term_of(
                total.arg, self.names, schema, self.faults, wanted=wanted, replacing=replacing
            )
        if total.function.name in SPREADS:
            assert term is not None
            if not term.type.is_numeric:
                message = f"{total.function.name.upper()} cannot aggregate a {term.type}"
                stop(self.faults, message, total.span)
            if term.type == INTEGER:
                term = Call("number", (term,), NUMBER, term.span)
        if total.where is None:
            return term
        condition = term_of(
            total.where, self.names, schema, self.faults, wanted=BOOLEAN, replacing=replacing
        )
        counted = Literal(True, BOOLEAN) if term is None else term
        null = Literal(None, counted.type)
        return Call("if", (condition, counted, null), counted.type, total.span)

    def _main(
        self, flow: Flow, by: list[str], plain: list[Aggregation], *, is_needed: bool
    ) -> Flow:
        if not plain and is_needed:
            keys = self.builder.columns(flow, {n: n for n in by}, f"{self.prefix}_keys", self.span)
            return self.builder.add(Distinct(), keys, name=f"{self.prefix}_groups", span=self.span)
        if not plain:
            plain = [Aggregation(self.builder.hidden("rows"), "count")]
        return self.builder.add(
            Aggregate(tuple(by), tuple(plain)), flow,
            name=f"{self.prefix}_groups", span=self.span, is_monotone=False,
        )  # fmt: skip

    def _joined(self, grouped: Flow, flow: Flow, by: list[str], plan: Planned) -> Flow:
        """An aggregate over distinct values is computed apart and joined on the keys."""
        assert plan.value is not None
        columns = tuple(Assign(n, Column(n, flow.schema[n])) for n in by)
        name = f"{self.prefix}_distinct"
        values = self.builder.add(Map((*columns, plan.value)), flow, name=name, span=self.span)
        once = self.builder.add(Distinct(), values, name=name, span=self.span)
        apart = self.builder.add(
            Aggregate(tuple(by), plan.aggregations), once,
            name=f"{self.prefix}_groups", span=self.span, is_monotone=False,
        )  # fmt: skip
        return self._beside(grouped, apart, by)

    def _beside(self, grouped: Flow, apart: Flow, by: Sequence[str]) -> Flow:
        """Groups with what was made apart for them."""
        function = Join(tuple((n, n) for n in by), None, nulls_match=True)
        name = f"{self.prefix}_join"
        return self.builder.add(function, grouped, apart, name=name, span=self.span)
