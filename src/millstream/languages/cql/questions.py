"""Subqueries inside expressions: what they answer, as columns of the outer rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.calculus import syntax
from millstream.calculus.functions import Aggregation, FunctionFault
from millstream.calculus.terms import Call, Column, Term
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, Field, Schema
from millstream.errors import Fault
from millstream.languages.cql.ast import (
    Apply,
    Expression,
    Item,
    Membership,
    Quantified,
    Query,
    Question,
    Reference,
    Scalar,
    Select,
    Streamed,
    Total,
    With,
)
from millstream.languages.cql.build import Flow
from millstream.languages.cql.gather import Gathering
from millstream.languages.cql.group import Grouping, Planned
from millstream.languages.cql.scope import Names
from millstream.languages.cql.subqueries import (
    MARK,
    Inner,
    Lookups,
    Operand,
    both,
    is_correlated,
)
from millstream.languages.cql.terms import (
    Replacing,
    conjuncts,
    nothing,
    term_of,
    walk,
    written,
)
from millstream.languages.cql.tokens import Stop
from millstream.source import Span

if TYPE_CHECKING:
    from millstream.languages.cql.select import SelectTranslator


class Questions:
    """Mutable: asks the subqueries of one SELECT."""

    def __init__(self, select: SelectTranslator) -> None:
        self.select = select
        self.builder = select.builder
        self.faults = select.faults
        self.prefix = select.prefix

    def answered(
        self,
        flow: Flow,
        names: Names,
        expressions: Sequence[Expression],
        replacing: Replacing,
        truth: Expression | None = None,
    ) -> tuple[Flow, Replacing]:
        """The flow with the answers of all subqueries, and what to write for them.

        Of the question `truth` nobody cares whether it is false or null.
        """
        answers: dict[Expression, syntax.Expression] = {}

        def answer(part: Expression) -> syntax.Expression | None:
            return answers[part] if part in answers else replacing(part)

        for one in [q for e in expressions for q in questions_in(e)]:
            if one in answers:
                continue
            if isinstance(one, Membership):
                is_truth = one is truth
                flow, answers[one] = self._member(flow, names, one, answer, only_truth=is_truth)
                # Where an answer is seen, its turning true takes the other one away.
                flow = replace(flow, is_monotone=flow.is_monotone and truth is not None)
            elif isinstance(one, Scalar):
                flow, answers[one] = self._scalar(flow, names, one, answer)
            else:
                flow, answers[one] = self._quantified(flow, names, one, answer)
        return flow, answer if answers else replacing

    # --- IN and EXISTS ---

    def _member(
        self, flow: Flow, names: Names, question: Membership, replacing: Replacing, *,
        only_truth: bool,
    ) -> tuple[Flow, syntax.Expression]:  # fmt: skip
        inner = self._inner(question.query, question, flow, names)
        operand = None
        if question.operand is not None:
            assert inner.value is not None
            before = len(self.faults)
            operand = Operand(
                term_of(question.operand, names, flow.schema, self.faults, replacing=replacing),
                written(question.operand, names, self.faults, replacing),
            )
            if operand.term.type != inner.value.type and len(self.faults) == before:
                operand, inner = self._unified(operand, inner, question)
        lookups = Lookups(self.builder, self.prefix)
        return lookups.ask(flow, inner, operand, question.span, only_truth=only_truth)

    def _unified(
        self, operand: Operand, inner: Inner, question: Membership
    ) -> tuple[Operand, Inner]:
        """Both sides of IN as numbers, if one is an integer."""
        assert inner.value is not None
        types = (operand.term.type, inner.value.type)
        if not all(t.is_numeric for t in types):
            message = f"IN compares {types[0]} with {types[1]}"
            self.faults.append(Fault(message, question.span))
            raise Stop
        return Operand(_number(operand.term), operand.written), Inner(
            inner.flow, _number(inner.value), inner.ties
        )

    # --- ALL and ANY ---

    def _quantified(
        self, flow: Flow, names: Names, question: Quantified, replacing: Replacing
    ) -> tuple[Flow, syntax.Expression]:
        """Compared with the least or the greatest value, if there are any at all."""
        inner = self._inner(question.query, question, flow, names)
        value, span = inner.value, question.span
        assert value is not None
        made = {word: self.builder.hidden(word) for word in ("rows", "count", "min", "max")}
        asked = (
            Aggregation(made["rows"], "count"),
            *(Aggregation(made[w], w, value) for w in ("count", *_extremes(question))),
        )
        self._check(asked, span)
        flow = self._gathering(Names(()), span).gather(flow, inner, [Planned(asked)])
        operand = written(question.operand, names, self.faults, replacing)

        def apply(function: str, *args: syntax.Expression) -> syntax.Expression:
            return syntax.Apply(function, args, span)

        rows, known = (syntax.Name(made[w], span) for w in ("rows", "count"))
        null, true, false = (syntax.Constant(v, BOOLEAN, span) for v in (None, True, False))
        tie = "and" if question.is_all else "or"
        compared = [
            apply(question.operator, operand, syntax.Name(made[w], span))
            for w in _extremes(question)
        ]
        result = compared[0] if len(compared) == 1 else apply(tie, *compared)
        # A null among the values may be anything, unless the others settle it.
        unless = apply("if", apply(">", rows, known), null, true if question.is_all else false)
        result = apply(tie, result, unless)
        zero = syntax.Constant(0, INTEGER, span)
        if question.is_all:
            return flow, apply("or", apply("==", rows, zero), result)
        return flow, apply("and", apply(">", rows, zero), result)

    # --- values ---

    def _scalar(
        self, flow: Flow, names: Names, question: Scalar, replacing: Replacing
    ) -> tuple[Flow, syntax.Expression]:
        query = question.query
        if isinstance(query, With):
            with self.select.translator.local(query.views, f"{self.prefix}_sub"):
                return self._scalar(flow, names, replace(question, query=query.query), replacing)
        if not isinstance(query, Streamed) and query.limit and query.limit.count == 1:
            return self._first(flow, question)
        item = self._only_total(question)
        assert isinstance(query, Select)
        inside = self.select.inside(query)
        rows, seen, ties = self._rows(query, inside, flow, names)
        wanted = dict.fromkeys(inside.totals(), None)
        self._check_outer(wanted, seen, names)
        gathering = self._gathering(seen, question.span)
        plans, totals = gathering.grouping.planned(wanted, rows.schema)
        flow = gathering.gather(flow, Inner(rows, None, ties), plans)
        having = [inside.unaliased(c, seen) for c in conjuncts(query.having)]
        flow, outer = self.answered(flow, names, [item.value, *having], replacing)

        def replaced(part: Expression) -> syntax.Expression | None:
            if isinstance(part, Total):
                return totals[part]
            if isinstance(part, Reference) and seen.knows(part):
                message = f'"{part.name.name}" is not inside an aggregate'
                self.faults.append(Fault(message, part.span, "use MAX or MIN of it"))
                raise Stop
            return outer(part)

        value = written(item.value, names, self.faults, replaced)
        for one in having:
            condition = written(one, names, self.faults, replaced)
            null = syntax.Constant(None, None, question.span)
            value = syntax.Apply("if", (condition, value, null), question.span)
        return flow, value

    def _first(self, flow: Flow, question: Scalar) -> tuple[Flow, syntax.Expression]:
        """The only row of a query with LIMIT 1: the greatest of one value is that value."""
        result = self.select.translator.relation(question.query, f"{self.prefix}_sub")
        value = self._only_column(result, question)
        name = self.builder.hidden("first")
        asked = (Aggregation(name, "max", value),)
        self._check(asked, question.span)
        gathering = self._gathering(Names(()), question.span)
        flow = gathering.gather(flow, Inner(result, value, ()), [Planned(asked)])
        return flow, syntax.Name(name, question.span)

    def _only_total(self, question: Scalar) -> Item:
        """The one column of a query that can only have one row."""
        query = question.query
        is_single = isinstance(query, Select) and is_grouped(query) and not query.group_by
        if not is_single:
            message = "this query may have more than one row, but one value is needed"
            hint = "aggregate it without GROUP BY, as in (SELECT MAX(x) FROM ...), or add LIMIT 1"
            self.faults.append(Fault(message, question.span, hint))
            raise Stop
        assert isinstance(query, Select)
        item = query.items[0]
        if len(query.items) != 1 or not isinstance(item, Item):
            self._complain_about_columns(question, len(query.items))
        assert isinstance(item, Item)
        return item

    def _check_outer(self, wanted: dict[Total, None], seen: Names, outer: Names) -> None:
        for total in wanted:
            if is_correlated(total, seen, outer):
                message = "an aggregate of a subquery cannot read columns of the outer query"
                self.faults.append(Fault(message, total.span))
                raise Stop

    def _check(self, asked: Sequence[Aggregation], span: Span) -> None:
        for one in asked:
            try:
                one.result_type()
            except FunctionFault as fault:
                self.faults.append(Fault(str(fault), span))
                raise Stop from None

    def _gathering(self, names: Names, span: Span) -> Gathering:
        prefix = f"{self.prefix}_sub"
        grouping = Grouping(self.builder, prefix, self.faults, names, span)
        return Gathering(self.builder, prefix, span, grouping)

    # --- the rows of a subquery ---

    def _inner(self, query: Query, question: Question, flow: Flow, outer: Names) -> Inner:
        """The rows of a subquery, its value, and the conditions that tie it to the outside."""
        needs_value = not isinstance(question, Membership) or question.operand is not None
        if not isinstance(query, Select) or is_grouped(query) or query.limit is not None:
            result = self.select.translator.relation(query, f"{self.prefix}_sub")
            return Inner(result, self._only_column(result, question) if needs_value else None, ())
        inside = self.select.inside(query)
        result, names, ties = self._rows(query, inside, flow, outer)
        value = None
        if needs_value:
            result, replacing = inside.questions.answered(result, names, inside.shown(), nothing)
            wanted = inside.wanted(result, names, replacing, is_grouped=False)
            if len(wanted) != 1:
                self._complain_about_columns(question, len(wanted))
            value = wanted[0].term
        return Inner(result, value, ties)

    def _rows(
        self, query: Select, inside: SelectTranslator, flow: Flow, outer: Names
    ) -> tuple[Flow, Names, tuple[Term, ...]]:
        """The joined and selected sources of a subquery, and what ties them to the outside."""
        parts = self.select.translator.parts(query.sources, inside.prefix)
        seen = Names(tuple(p.visible for p in parts))
        where = conjuncts(query.where)
        tied = [c for c in where if is_correlated(c, seen, outer)]
        result, names = inside.selected(parts, [c for c in where if c not in tied])
        marked = tuple(Field(MARK + f.name, f.type) for f in flow.schema)
        schema = Schema((*result.schema.fields, *marked))
        all_names = both(names, outer, MARK)
        ties = tuple(term_of(c, all_names, schema, self.faults, wanted=BOOLEAN) for c in tied)
        return result, names, ties

    def _only_column(self, flow: Flow, question: Question) -> Term:
        if len(flow.schema) != 1:
            self._complain_about_columns(question, len(flow.schema))
        (field,) = flow.schema
        return Column(field.name, field.type)

    def _complain_about_columns(self, question: Question, count: int) -> None:
        where = {Membership: "after IN ", Quantified: "after ALL or ANY "}.get(type(question), "")
        message = f"the query {where}must have one column, but has {count}"
        self.faults.append(Fault(message, question.span))
        raise Stop


def questions_in(expression: Expression) -> Iterator[Question]:
    """The subqueries of an expression, those inside others first; none in aggregates."""
    match expression:
        case Apply(_, args):
            for arg in args:
                yield from questions_in(arg)
        case Membership(operand) if operand is not None:
            yield from questions_in(operand)
        case Quantified(operand):
            yield from questions_in(operand)
    if isinstance(expression, Question):
        yield expression


def asks(expression: Expression) -> bool:
    return any(isinstance(e, Question) for e in walk(expression))


def totals_in(expression: Expression) -> list[Total]:
    return [e for e in walk(expression) if isinstance(e, Total)]


def is_grouped(query: Select) -> bool:
    shown = [i.value for i in query.items if isinstance(i, Item)]
    shown += [query.having] if query.having is not None else []
    return bool(query.group_by) or any(totals_in(e) for e in shown)


def _extremes(question: Quantified) -> tuple[str, ...]:
    """Which values decide: for `> ALL` the greatest, for `= ALL` both ends."""
    if question.operator in ("==", "!="):
        return ("min", "max")
    is_above = question.operator in (">", ">=")
    return ("max",) if is_above == question.is_all else ("min",)


def _number(term: Term) -> Term:
    return Call("number", (term,), NUMBER, term.span) if term.type == INTEGER else term
