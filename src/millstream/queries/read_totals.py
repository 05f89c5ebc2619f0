"""Aggregates: from tokens to our tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.calculus.types import BOOLEAN, INTEGER, Value
from millstream.queries import ast
from millstream.queries.names import AGGREGATES, ORDERED_TOTALS, TRUTHS
from millstream.queries.ordered_totals import BETWEEN, FRACTIONS
from millstream.queries.read_over import OverReader
from millstream.queries.tokens import Cursor
from millstream.source import Span


def _as_number(truth: ast.Expression) -> ast.Expression:
    """1 or 0, or null: the least of truths is whether all are true, the greatest whether any is."""

    def apply(name: str, *args: ast.Expression) -> ast.Expression:
        return ast.Apply(ast.Word(name, truth.span), args, truth.span)

    zero = ast.Constant(0, INTEGER, truth.span)
    null = ast.Constant(None, None, truth.span)
    number = apply("if", truth, _one(truth.span), zero)
    return apply("if", apply("is_null", truth), null, number)


def _one(span: Span) -> ast.Expression:
    return ast.Constant(1, INTEGER, span)


class TotalReader:
    """Mutable: reads aggregates with a cursor, and what stands behind OVER."""

    def __init__(self, cursor: Cursor, term: Callable[[], ast.Expression]) -> None:
        self.cursor = cursor
        self.term = term
        self.overs = OverReader(cursor, term, self.ordering)

    def ordering(self) -> ast.Ordering:
        """An expression of ORDER BY, with how it is ordered."""
        cursor = self.cursor
        value = self.term()
        is_descending = cursor.take("desc")
        if not is_descending:
            cursor.take("asc")
        nulls_first = not is_descending
        if cursor.take("nulls"):
            nulls_first = cursor.take("first")
            if not nulls_first:
                cursor.require("last", "FIRST or LAST")
        return ast.Ordering(value, is_descending, nulls_first)

    def total(self, word: ast.Word, start: Span) -> ast.Expression:
        """An aggregate, after its opening parenthesis."""
        cursor = self.cursor
        function = ast.Word(AGGREGATES[word.name.lower()], word.span)
        is_distinct = cursor.take("distinct")
        if not is_distinct:
            cursor.take("all")
        arg = None
        if cursor.text() == "*":
            if function.name != "count" or is_distinct:
                cursor.fail(f"{word.name} needs a column; only COUNT(*) counts rows")
            cursor.next()
        elif cursor.text() == ")":
            cursor.fail(f"{word.name} takes one argument, got none")
        else:
            arg = self.term()
            if word.name.lower() in TRUTHS:
                arg = _as_number(arg)
        if function.name in ORDERED_TOTALS.values() and arg is not None:
            total = self.ordered_total(word, function, arg, start)
            total = replace(total, is_distinct=is_distinct)
            self.check_order(word, total)
        else:
            if cursor.text() == ",":
                cursor.fail(f"{word.name} takes one argument, got more")
            cursor.require(")")
            total = ast.Total(function, arg, is_distinct, cursor.since(start))
        if cursor.text(1) == "(" and cursor.take("filter"):
            cursor.require("(")
            cursor.require("where", "WHERE and a condition")
            where = self.term()
            cursor.require(")")
            total = replace(total, where=where, span=cursor.since(start))
        read = self.over(total, start) if self.overs.comes() else total
        if word.name.lower() not in TRUTHS:
            return read
        return ast.Apply(ast.Word("==", word.span), (read, _one(word.span)), read.span)

    def ordered_total(
        self, word: ast.Word, function: ast.Word, arg: ast.Expression, start: Span
    ) -> ast.Total:
        """`STRING_AGG(x, ', ' ORDER BY y)`, `PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)`."""
        cursor = self.cursor
        takes_part = function.name in FRACTIONS and word.name.lower() != "median"
        beside: Value = None
        if cursor.take(","):
            value = self.term()
            if takes_part or function.name in BETWEEN:
                beside = self.beside(word, value)
            else:
                cursor.fail(f"{word.name} takes one argument, got more", value.span)
        order: tuple[ast.Ordering, ...] = ()
        if cursor.take("order", "by"):
            order = cursor.separated(self.ordering)
        cursor.require(")", 'ORDER BY or ")"')
        if cursor.take("within", "group"):
            cursor.require("(")
            cursor.require("order", "ORDER BY")
            cursor.require("by", "BY")
            order = cursor.separated(self.ordering)
            cursor.require(")", 'a comma or ")"')
            if takes_part:
                beside, arg = self.beside(word, arg), order[0].value
        if takes_part and beside is None:
            hint = f"write {word.name}(x, 0.9) or {word.name}(0.9) WITHIN GROUP (ORDER BY x)"
            cursor.fail(f"{word.name} needs a part from 0 to 1", cursor.since(start), hint)
        return ast.Total(
            function, arg, False, cursor.since(start), None, order, beside
        )  # fmt: skip

    def check_order(self, word: ast.Word, total: ast.Total) -> None:
        is_other = any(o.value != total.arg for o in total.order)
        if total.function.name in FRACTIONS and (len(total.order) > 1 or is_other):
            self.cursor.fail(f"{word.name} is in the order of its values", total.span)
        if total.is_distinct and is_other:
            message = "what is aggregated with DISTINCT can only be ordered by itself"
            self.cursor.fail(message, total.span)

    def beside(self, word: ast.Word, value: ast.Expression) -> Value:
        """What is written beside the argument of an aggregate: a text, or a part of 1."""
        constant = value.value if isinstance(value, ast.Constant) else None
        if AGGREGATES[word.name.lower()] in BETWEEN:
            if isinstance(constant, str):
                return constant
            self.cursor.fail("expected the text that stands between, in quotes", value.span)
        is_number = isinstance(constant, (int, float)) and not isinstance(constant, bool)
        if is_number and 0 <= constant <= 1:  # type: ignore[operator]
            return constant
        self.cursor.fail("expected a part from 0 to 1, written as a number", value.span)

    def over(self, total: ast.Total, start: Span) -> ast.Expression:
        if total.is_distinct:
            self.cursor.fail("DISTINCT cannot stand before OVER", total.span)
        args = () if total.arg is None else (total.arg,)
        if total.where is not None and not args:
            args = (ast.Constant(True, BOOLEAN, total.span),)
        return self.overs.over(total.function, args, start, total.where)
