"""Subqueries inside expressions: what they answer, as columns of the outer rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from millstream.calculus import syntax
from millstream.calculus.functions import Aggregation, FunctionFault
from millstream.calculus.terms import Call, Column, Term
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER
from millstream.queries import ast
from millstream.queries.build import Flow
from millstream.queries.correlation import Correlation
from millstream.queries.gather import Gathering
from millstream.queries.group import Grouping, Planned
from millstream.queries.scope import Names
from millstream.queries.subqueries import Inner, Lookups, Operand
from millstream.queries.terms import (
    Replacing,
    conjuncts,
    is_null,
    nothing,
    term_of,
    walk,
    written,
)
from millstream.queries.tokens import stop
from millstream.source import Span

if TYPE_CHECKING:
    from millstream.queries.select import SelectTranslator


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
        expressions: Sequence[ast.Expression],
        replacing: Replacing,
        truth: ast.Expression | None = None,
    ) -> tuple[Flow, Replacing]:
        """The flow with the answers of all subqueries, and what to write for them.

        Of the question `truth` nobody cares whether it is false or null.
        """
        answers: dict[ast.Expression, syntax.Expression] = {}

        def answer(part: ast.Expression) -> syntax.Expression | None:
            return answers[part] if part in answers else replacing(part)

        for one in [q for e in expressions for q in questions_in(e, replacing)]:
            if one in answers:
                continue
            as_value = self._as_value(one, flow, names)
            if as_value is not None:
                flow, values = self.answered(flow, names, [as_value], answer)
                answers[one] = written(as_value, names, self.faults, values)
            elif isinstance(one, ast.Membership):
                is_truth = one is truth
                flow, answers[one] = self._member(flow, names, one, answer, only_truth=is_truth)
                # Where an answer is seen, its turning true takes the other one away.
                flow = replace(flow, is_monotone=flow.is_monotone and truth is not None)
            elif isinstance(one, ast.Scalar):
                flow, answers[one] = self._scalar(flow, names, one, answer)
            else:
                flow, answers[one] = self._quantified(flow, names, one, answer)
        return flow, answer if answers else replacing

    def _as_value(self, question: ast.Question, flow: Flow, names: Names) -> ast.Expression | None:
        """IN, EXISTS, ALL and ANY of a query with one row for each outer row, by its value."""
        query = question.query
        if (
            not isinstance(query, ast.Select)
            or isinstance(question, ast.Scalar)
            or not _is_single(query)
        ):
            return None
        if not self._correlation(query, flow, names).is_correlated():
            return None
        span = question.span
        if len(parts_of(question.operand)) > 1:
            message = "several values are not compared with totals that depend on the outer row"
            stop(self.faults, message, span, "compare them one by one")
        true, false = (ast.Constant(v, BOOLEAN, span) for v in (True, False))

        def apply(name: str, *args: ast.Expression) -> ast.Expression:
            return ast.Apply(ast.Word(name, span), args, span)

        there: ast.Expression = true
        if query.having is not None:
            shown = replace(query, items=(ast.Item(true, None, span),))
            there = apply("coalesce", ast.Scalar(shown, span), false)
        if question.operand is None:
            return there
        operator = question.operator if isinstance(question, ast.Quantified) else "=="
        compared = apply(operator, question.operand, ast.Scalar(query, span))
        is_all = isinstance(question, ast.Quantified) and question.is_all
        return apply("if", there, compared, true if is_all else false)

    # --- IN and EXISTS ---

    def _member(
        self, flow: Flow, names: Names, question: ast.Membership, replacing: Replacing, *,
        only_truth: bool,
    ) -> tuple[Flow, syntax.Expression]:  # fmt: skip
        inner = self._inner(question.query, question, flow, names)
        compared: list[tuple[Operand, Term]] = []
        for place, asked in enumerate(parts_of(question.operand)):
            value = inner.values[place]
            if is_null(asked, names, replacing):
                asked = ast.Constant(None, value.type, asked.span)  # noqa: PLW2901
            operand = Operand(
                term_of(asked, names, flow.schema, self.faults, replacing=replacing),
                written(asked, names, self.faults, replacing),
            )
            if place == 0:
                value = inner.typed(operand.term.type).values[0]
            compared.append(self._unified(operand, value, question))
        lookups = Lookups(self.builder, self.prefix)
        return lookups.ask(flow, inner, compared, question.span, only_truth=only_truth)

    def _unified(
        self, operand: Operand, value: Term, question: ast.Membership
    ) -> tuple[Operand, Term]:
        """Both sides of IN as numbers, if one of them is."""
        types = (operand.term.type, value.type)
        if types[0] == types[1]:
            return operand, value
        if not all(t.is_numeric for t in types):
            message = f"IN compares {types[0]} with {types[1]}"
            stop(self.faults, message, question.span)
        return replace(operand, term=_number(operand.term)), _number(value)

    # --- ALL and ANY ---

    def _quantified(
        self, flow: Flow, names: Names, question: ast.Quantified, replacing: Replacing
    ) -> tuple[Flow, syntax.Expression]:
        """Compared with the least or the greatest value, if there are any at all."""
        operand = written(question.operand, names, self.faults, replacing)
        term = term_of(question.operand, names, flow.schema, self.faults, replacing=replacing)
        inner = self._inner(question.query, question, flow, names).typed(term.type)
        value, span = inner.value, question.span
        assert value is not None
        made = {word: self.builder.hidden(word) for word in ("rows", "count", "min", "max")}
        value, read = _ordered(value)
        asked = (
            Aggregation(made["rows"], "count"),
            *(Aggregation(made[w], w, value) for w in ("count", *_extremes(question))),
        )
        self._check(asked, span)
        flow = self._gathering(Names(), span).gather(flow, inner, [Planned(asked)])

        def apply(function: str, *args: syntax.Expression) -> syntax.Expression:
            return syntax.Apply(function, args, span)

        rows, known = (syntax.Name(made[w], span) for w in ("rows", "count"))
        null, true, false = (syntax.Constant(v, BOOLEAN, span) for v in (None, True, False))
        tie = "and" if question.is_all else "or"
        compared = [
            apply(question.operator, operand, read(syntax.Name(made[w], span)))
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
        self, flow: Flow, names: Names, question: ast.Scalar, replacing: Replacing
    ) -> tuple[Flow, syntax.Expression]:
        query = question.query
        if isinstance(query, ast.With):
            with self.select.translator.local(query.views, f"{self.prefix}_sub"):
                return self._scalar(flow, names, replace(question, query=query.query), replacing)
        if isinstance(query, ast.Select) and query.limit and query.limit.count == 1:
            return self._first(flow, names, question)
        item = self._only_total(question)
        assert isinstance(query, ast.Select)
        inside = self.select.inside(query)
        wanted = dict.fromkeys(inside.totals(), None)
        parts = [part for t in wanted for part in (t.arg, t.where) if part is not None]
        with self.select.translator.inside(names):
            correlation = self._correlation(query, flow, names)
            tied = correlation.tied(parts)
            correlation.check_totals(wanted, tied.names)
            rows, answered = inside.questions.answered(tied.flow, tied.names, parts, nothing)
            gathering = self._gathering(tied.names, question.span)
            plans, totals = gathering.grouping.planned(wanted, rows.schema, replacing=answered)
        flow = gathering.gather(flow, Inner(rows, None, tied.ties, tied.keys), plans)
        having = [inside.unaliased(c, tied.names) for c in conjuncts(query.having)]
        flow, outer = self.answered(flow, names, [item.value, *having], replacing)

        def replaced(part: ast.Expression) -> syntax.Expression | None:
            if isinstance(part, ast.Total):
                return totals[part]
            if isinstance(part, ast.Reference) and replace(tied.names, outer=None).knows(part):
                message = f'"{part.name.name}" is not inside an aggregate'
                stop(self.faults, message, part.span, "use MAX or MIN of it")
            return outer(part)

        value = written(item.value, names, self.faults, replaced)
        for one in having:
            condition = written(one, names, self.faults, replaced)
            null = syntax.Constant(None, None, question.span)
            value = syntax.Apply("if", (condition, value, null), question.span)
        return flow, value

    def _first(
        self, flow: Flow, names: Names, question: ast.Scalar
    ) -> tuple[Flow, syntax.Expression]:
        """The only row of a query with LIMIT 1: the greatest of one value is that value."""
        with self.select.translator.inside(names):
            result = self.select.translator.relation(question.query, f"{self.prefix}_sub")
        value: Term = self._columns(result, question)[0]
        if result.untyped:
            return flow, syntax.Constant(None, None, question.span)
        name = self.builder.hidden("first")
        value, read = _ordered(value)
        asked = (Aggregation(name, "max", value),)
        self._check(asked, question.span)
        gathering = self._gathering(Names(), question.span)
        flow = gathering.gather(flow, Inner(result, value), [Planned(asked)])
        return flow, read(syntax.Name(name, question.span))

    def _only_total(self, question: ast.Scalar) -> ast.Item:
        """The one column of a query that can only have one row."""
        query = question.query
        if not isinstance(query, ast.Select) or not _is_single(query):
            message = "this query may have more than one row, but one value is needed"
            hint = "aggregate it without GROUP BY, as in (SELECT MAX(x) FROM ...), or add LIMIT 1"
            stop(self.faults, message, question.span, hint)
        item = query.items[0]
        if len(query.items) != 1 or not isinstance(item, ast.Item):
            self._complain_about_columns(question, len(query.items))
        assert isinstance(item, ast.Item)
        return item

    def _check(self, asked: Sequence[Aggregation], span: Span) -> None:
        for one in asked:
            try:
                one.result_type()
            except FunctionFault as fault:
                stop(self.faults, str(fault), span)

    def _gathering(self, names: Names, span: Span) -> Gathering:
        prefix = f"{self.prefix}_sub"
        grouping = Grouping(self.builder, prefix, self.faults, names, span)
        return Gathering(self.builder, prefix, span, grouping)

    # --- the rows of a subquery ---

    def _correlation(self, query: ast.Select, flow: Flow, names: Names) -> Correlation:
        return Correlation(self.select.inside(query), flow, names)

    def _inner(self, query: ast.Query, question: ast.Question, flow: Flow, names: Names) -> Inner:
        """The rows of a subquery, its value, and what ties it to the outside."""
        if isinstance(query, ast.With):
            with self.select.translator.local(query.views, f"{self.prefix}_sub"):
                return self._inner(query.query, question, flow, names)
        needs_value = not isinstance(question, ast.Membership) or question.operand is not None
        if isinstance(query, ast.Select) and query.limit is None:
            correlation = self._correlation(query, flow, names)
            if not is_grouped(query) or correlation.is_correlated():
                with self.select.translator.inside(names):
                    return self._rows(correlation, question, needs_value=needs_value)
        with self.select.translator.inside(names):
            result = self.select.translator.relation(query, f"{self.prefix}_sub")
        if not needs_value:
            return Inner(result, None)
        value, *others = self._columns(result, question)
        return Inner(result, value, is_untyped=value.name in result.untyped, others=tuple(others))

    def _rows(
        self, correlation: Correlation, question: ast.Question, *, needs_value: bool
    ) -> Inner:
        """The rows or groups of a subquery that may read the query around it."""
        inside = correlation.inside
        if not needs_value and not is_grouped(inside.query):
            tied = correlation.tied(())
            inside.check_list(tied.names, correlation.schema(tied.flow))
            return Inner(tied.flow, None, tied.ties, tied.keys)
        having = [] if inside.query.having is None else [inside.query.having]
        others = [*inside.shown(), *inside.query.group_by, *having]
        tied = correlation.tied(others, is_grouped=is_grouped(inside.query))
        correlation.check_totals(inside.totals(), tied.names)
        flow, wanted, _ = inside.listed(tied.flow, tied.names, tied.marked)
        if not needs_value:
            return Inner(flow, None, tied.ties, tied.keys)
        if len(wanted) != _width(question):
            self._complain_about_columns(question, len(wanted))
        first, *more = wanted
        return Inner(
            flow, first.term, tied.ties, tied.keys, first.is_untyped, tuple(w.term for w in more)
        )

    def _columns(self, flow: Flow, question: ast.Question) -> list[Column]:
        if len(flow.schema) != _width(question):
            self._complain_about_columns(question, len(flow.schema))
        return [Column(field.name, field.type) for field in flow.schema]

    def _complain_about_columns(self, question: ast.Question, count: int) -> NoReturn:
        where = {ast.Membership: "after IN ", ast.Quantified: "after ALL or ANY "}.get(
            type(question), ""
        )
        wanted = "one column" if _width(question) == 1 else f"{_width(question)} columns"
        message = f"the query {where}must have {wanted}, but has {count}"
        stop(self.faults, message, question.span)


def parts_of(operand: ast.Expression | None) -> tuple[ast.Expression, ...]:
    """What stands before IN: nothing, a value, or several in parentheses."""
    match operand:
        case None:
            return ()
        case ast.Apply(ast.Word(ast.ROW), args):
            return args
        case _:
            return (operand,)


def _width(question: ast.Question) -> int:
    """How many columns a subquery must have."""
    return max(1, len(parts_of(question.operand))) if isinstance(question, ast.Membership) else 1


def questions_in(expression: ast.Expression, replacing: Replacing) -> Iterator[ast.Question]:
    """The subqueries of an expression, those inside others first; none in aggregates.

    What is replaced has been answered.
    """
    if isinstance(expression, ast.Apply | ast.Question) and replacing(expression) is not None:
        return
    match expression:
        case ast.Apply(_, args):
            for arg in args:
                yield from questions_in(arg, replacing)
        case ast.Membership(operand) if operand is not None:
            yield from questions_in(operand, replacing)
        case ast.Quantified(operand):
            yield from questions_in(operand, replacing)
    if isinstance(expression, ast.Question):
        yield expression


def totals_in(expression: ast.Expression) -> list[ast.Total]:
    return [e for e in walk(expression) if isinstance(e, ast.Total)]


def is_grouped(query: ast.Select) -> bool:
    shown = [i.value for i in query.items if isinstance(i, ast.Item)]
    shown += [query.having] if query.having is not None else []
    return bool(query.group_by) or any(totals_in(e) for e in shown)


def _is_single(query: ast.Select) -> bool:
    """Has it one row, or none by HAVING?"""
    return is_grouped(query) and not query.group_by


def _extremes(question: ast.Quantified) -> tuple[str, ...]:
    """Which values decide: for `> ALL` the greatest, for `= ALL` both ends."""
    if question.operator in ("==", "!="):
        return ("min", "max")
    is_above = question.operator in (">", ">=")
    return ("max",) if is_above == question.is_all else ("min",)


def _ordered(value: Term) -> tuple[Term, Callable[[syntax.Expression], syntax.Expression]]:
    """A value that has a least and a greatest, and how to read these: 0 and 1 for booleans."""
    if value.type != BOOLEAN:
        return value, lambda name: name
    number = Call("integer", (value,), INTEGER, value.span)
    return number, lambda name: syntax.Apply("boolean", (name,), value.span)


def _number(term: Term) -> Term:
    return Call("number", (term,), NUMBER, term.span) if term.type == INTEGER else term
