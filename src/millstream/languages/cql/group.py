"""GROUP BY: aggregates, and what an expression may read after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from millstream.calculus.terms import Call, Column, Term
from millstream.calculus.types import INTEGER, NUMBER, Field, Schema
from millstream.errors import Fault, listing
from millstream.languages.cql.ast import Apply, Constant, Expression, Reference, Total
from millstream.languages.cql.build import Builder, Flow
from millstream.languages.cql.joins import with_columns
from millstream.languages.cql.scope import Names
from millstream.languages.cql.terms import term_of
from millstream.languages.cql.tokens import Stop
from millstream.source import Span


@dataclass(frozen=True, slots=True)
class Grouped:
    """Groups: the rows of aggregates, and what to write for parts of expressions."""

    flow: Flow
    keys: tuple[tuple[Term, str], ...]
    totals: Mapping[Total, syntax.Expression]
    names: Names
    schema: Schema
    faults: list[Fault]

    def replacing(self, expression: Expression) -> syntax.Expression | None:
        """Aggregates and grouped expressions are columns now; other columns are gone."""
        if isinstance(expression, Total):
            return self.totals[expression]
        if isinstance(expression, Constant):
            return None
        key = self._key(expression)
        if key is not None:
            return syntax.Name(key, expression.span)
        if isinstance(expression, Reference):
            self._complain(expression)
        return None

    def _key(self, expression: Expression) -> str | None:
        if isinstance(expression, Apply) and all(isinstance(t, Column) for t, _ in self.keys):
            return None
        try:
            term = term_of(expression, self.names, self.schema, [])
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


@dataclass
class Grouping:
    """Mutable: makes groups of the rows of a flow."""

    builder: Builder
    prefix: str
    faults: list[Fault]
    names: Names
    span: Span

    def group(
        self, flow: Flow, keys: Sequence[Expression], wanted: Mapping[Total, str | None]
    ) -> Grouped:
        """Group a flow; `wanted` has the aggregates, with the names they should have."""
        schema = flow.schema
        terms = [term_of(k, self.names, schema, self.faults) for k in keys]
        flow, named = with_columns(self.builder, flow, terms, self.prefix, self.span)
        by = list(dict.fromkeys(named))
        taken = Schema(tuple(Field(n, flow.schema[n]) for n in by))
        plain: list[Aggregation] = []
        separate: list[tuple[Total, Aggregation]] = []
        totals: dict[Total, syntax.Expression] = {}
        for total, name in wanted.items():
            for one in self._aggregations(total, name, schema, taken):
                taken = Schema((*taken.fields, Field(one.name, one.result_type())))
                is_apart = total.is_distinct and one.function not in ("min", "max")
                if is_apart:
                    separate.append((total, one))
                else:
                    plain.append(one)
            totals[total] = _reading(total, [f.name for f in taken.fields])
        grouped = self._main(flow, by, plain, is_needed=not separate)
        for _, one in separate:
            grouped = self._joined(grouped, flow, by, one)
        found = tuple(zip(terms, named, strict=True))
        return Grouped(grouped, found, totals, self.names, schema, self.faults)

    def _aggregations(
        self, total: Total, name: str | None, schema: Schema, taken: Schema
    ) -> list[Aggregation]:
        """What must be kept for an aggregate; the last of them is the aggregate itself."""
        if name is None or name in taken:
            name = self.builder.hidden(total.function.name)
        if total.arg is None:
            return [Aggregation(name, "count")]
        if total.function.name == "stddev":
            return self._deviation(total, name, schema, taken)
        found = Aggregation(
            name, total.function.name, term_of(total.arg, self.names, schema, self.faults)
        )
        try:
            found.result_type()
        except FunctionFault as fault:
            self.faults.append(Fault(str(fault), total.span))
            raise Stop from None
        return [found]

    def _deviation(
        self, total: Total, name: str, schema: Schema, taken: Schema
    ) -> list[Aggregation]:
        """A standard deviation is made of the number, the sum and the sum of squares."""
        assert total.arg is not None
        term = term_of(total.arg, self.names, schema, self.faults, wanted=None)
        if term.type == INTEGER:
            term = Call("number", (term,), NUMBER, term.span)
        if term.type != NUMBER or total.is_distinct:
            what = "distinct values" if total.is_distinct else f"a {term.type}"
            message = f"STDDEV cannot aggregate {what}"
            self.faults.append(Fault(message, total.span))
            raise Stop
        square = Call("*", (term, term), NUMBER, term.span)
        return [
            Aggregation(f"{name}.n", "count", term),
            Aggregation(f"{name}.sum", "sum", term),
            Aggregation(f"{name}.squares", "sum", square),
        ]

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

    def _joined(self, grouped: Flow, flow: Flow, by: list[str], one: Aggregation) -> Flow:
        """An aggregate over distinct values is computed apart and joined on the keys."""
        assert one.term is not None
        value = self.builder.hidden("value")
        columns = tuple(Assign(n, Column(n, flow.schema[n])) for n in by)
        name = f"{self.prefix}_distinct"
        values = self.builder.add(
            Map((*columns, Assign(value, one.term))), flow, name=name, span=self.span
        )
        once = self.builder.add(Distinct(), values, name=name, span=self.span)
        column = Column(value, one.term.type)
        apart = self.builder.add(
            Aggregate(tuple(by), (Aggregation(one.name, one.function, column),)), once,
            name=f"{self.prefix}_groups", span=self.span, is_monotone=False,
        )  # fmt: skip
        function = Join(tuple((n, n) for n in by), None, nulls_match=True)
        name = f"{self.prefix}_join"
        return self.builder.add(function, grouped, apart, name=name, span=self.span)


def _reading(total: Total, columns: list[str]) -> syntax.Expression:
    """How to read an aggregate from the columns that were made for it, the last ones."""
    span = total.span
    if total.function.name != "stddev":
        return syntax.Name(columns[-1], span)
    n, total_sum, squares = (syntax.Name(c, span) for c in columns[-3:])

    def apply(function: str, *args: syntax.Expression) -> syntax.Expression:
        return syntax.Apply(function, args, span)

    mean_square = apply("/", apply("*", total_sum, total_sum), n)
    rest = apply("-", n, syntax.Constant(1, INTEGER, span))
    # Rounding may leave a little less than nothing.
    variance = apply("greatest", syntax.Constant(0.0, NUMBER, span),
                     apply("/", apply("-", squares, mean_square), rest))  # fmt: skip
    is_enough = apply(">", n, syntax.Constant(1, INTEGER, span))
    return apply("if", is_enough, apply("sqrt", variance), syntax.Constant(None, NUMBER, span))
