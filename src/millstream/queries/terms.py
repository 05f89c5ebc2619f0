"""From expressions of a query to typed terms over the columns of a queue."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from millstream.calculus import syntax
from millstream.calculus.check import Scope, check_into
from millstream.calculus.terms import Term
from millstream.calculus.types import INTEGER, TEXT, TIME_COLUMN, Schema, Type
from millstream.errors import Fault, listing, suggest
from millstream.queries import ast
from millstream.queries.names import AGGREGATES, FUNCTIONS, GRAMMATICAL, QUOTIENT
from millstream.queries.ordered_totals import IN_TIME
from millstream.queries.scope import Names
from millstream.queries.shorthands import SHORTHANDS
from millstream.queries.tokens import Stop
from millstream.values.core.table import OF_ROWS

#: What to write for a part of an expression, or None to write it as it is.
Replacing = Callable[[ast.Expression], syntax.Expression | None]


def nothing(expression: ast.Expression) -> None:
    """Replaces nothing."""


def walk(expression: ast.Expression) -> Iterator[ast.Expression]:
    """The expression and its parts, without what is inside subqueries."""
    yield expression
    match expression:
        case ast.Apply(_, args):
            for arg in args:
                yield from walk(arg)
        case ast.Total(_, arg, where=where, order=order):
            for part in (arg, where, *(o.value for o in order)):
                if part is not None:
                    yield from walk(part)
        case ast.Over(_, args, by, order, where=where):
            inside = (*args, *by, *(o.value for o in order))
            for part in inside if where is None else (*inside, where):
                yield from walk(part)
        case ast.Membership(operand) if operand is not None:
            yield from walk(operand)
        case ast.Quantified(operand):
            yield from walk(operand)


def names_time(part: object) -> bool:
    """Is the time of rows asked for, in a query or anywhere inside it?"""
    match part:
        case ast.Reference(name=name):
            return name.name == TIME_COLUMN
        case ast.Total(function=word, order=()) if word.name in IN_TIME:
            return True
        case tuple():
            return any(names_time(one) for one in part)
        case _ if dataclasses.is_dataclass(part) and type(part).__module__ == ast.__name__:
            return any(names_time(getattr(part, f.name)) for f in dataclasses.fields(part))
        case _:
            return False


def asks(expression: ast.Expression) -> bool:
    """Is there a subquery in it?"""
    return any(isinstance(e, ast.Question) for e in walk(expression))


def mapped(
    expression: ast.Expression, function: Callable[[ast.Expression], ast.Expression]
) -> ast.Expression:
    """The expression with each of its parts replaced, what is inside subqueries apart."""
    match expression:
        case ast.Apply(name, args, span):
            expression = ast.Apply(name, tuple(mapped(a, function) for a in args), span)
        case ast.Membership(operand, query, span) if operand is not None:
            expression = ast.Membership(mapped(operand, function), query, span)
        case ast.Quantified(operand, operator, is_all, query, span):
            expression = ast.Quantified(mapped(operand, function), operator, is_all, query, span)
    return function(expression)


def conjuncts(expression: ast.Expression | None) -> list[ast.Expression]:
    """The conditions that `and` ties together."""
    if expression is None:
        return []
    if isinstance(expression, ast.Apply) and expression.function.name == "and":
        return [one for arg in expression.args for one in conjuncts(arg)]
    return [expression]


def tied_by_and(expressions: Iterable[ast.Expression]) -> ast.Expression | None:
    """The opposite of `conjuncts`."""
    tied: ast.Expression | None = None
    for expression in expressions:
        if tied is None:
            tied = expression
        else:
            tied = ast.Apply(
                ast.Word("and", expression.span), (tied, expression), tied.span.to(expression.span)
            )
    return tied


def term_of(
    expression: ast.Expression,
    names: Names,
    schema: Schema,
    faults: list[Fault],
    *,
    wanted: Type | None = None,
    replacing: Replacing = nothing,
) -> Term:
    """The typed term of an expression, or `Stop` with the faults noted."""
    before = len(faults)
    scope = Scope(schema, "the query")
    asked = _divided(written(expression, names, faults, replacing), scope)
    if asked == NULL:
        wanted = wanted or TEXT  # as in PostgreSQL, unless its place says otherwise
    term = check_into(asked, scope, faults, wanted=wanted)
    if term is None or len(faults) > before:
        raise Stop
    return term


#: NULL before its type is known, which is that of what it meets.
NULL = syntax.Constant(None, None)
#: Functions of values of several types that are null if all of these are.
_OPEN = ("coalesce", "least", "greatest", "neg", "abs", "+", "-", "*", "/", "%", QUOTIENT)


def is_null(expression: ast.Expression, names: Names, replacing: Replacing = nothing) -> bool:
    """Is it nothing but NULL?"""
    return _written(expression, names, [], replacing) == NULL


def _folded(function: str, args: Sequence[syntax.Expression]) -> bool:
    """Is a choice between values nothing but NULL, or what is computed of nothing else?"""
    if function == "if":
        return len(args) == 3 and args[1] == args[2] == NULL
    return function in _OPEN and all(a == NULL for a in args)


def _divided(expression: syntax.Expression, scope: Scope) -> syntax.Expression:
    """The expression with each quotient of a script as what it is: an integer, or a number."""
    if not isinstance(expression, syntax.Apply):
        return expression
    args = tuple(_divided(a, scope) for a in expression.args)
    function = expression.function
    if function == QUOTIENT:
        types = [term.type for a in args if (term := check_into(a, scope, [])) is not None]
        function = "div" if types and all(t == INTEGER for t in types) else "/"
    return replace(expression, function=function, args=args)


def written(
    expression: ast.Expression, names: Names, faults: list[Fault], replacing: Replacing = nothing
) -> syntax.Expression:
    """The expression over columns of the queue, or `Stop` with the faults noted."""
    rewritten = _written(expression, names, faults, replacing)
    if rewritten is None:
        raise Stop
    return rewritten


def _written(
    expression: ast.Expression, names: Names, faults: list[Fault], replacing: Replacing
) -> syntax.Expression | None:
    """The expression over columns of the queue; None if something in it is at fault."""
    replaced = replacing(expression)
    if replaced is not None:
        return replaced
    match expression:
        case ast.Reference():
            seen = names.resolve(expression, faults)
            if seen is not None and seen.is_null:
                return replace(NULL, span=expression.span)
            return None if seen is None else syntax.Name(seen.column, expression.span)
        case ast.Constant(value, type_, span):
            return syntax.Constant(value, type_, span)
        case ast.Apply(function, args, span):
            parts = [_written(a, names, faults, replacing) for a in args]
            given = tuple(w for w in parts if w is not None)
            if len(given) == len(args) > 0 and _folded(function.name, given):
                return replace(NULL, span=span)
            if function.name not in OF_ROWS and function.name != QUOTIENT:
                faults.append(_unknown_function(function))
                return None
            if len(given) < len(args):
                return None
            return syntax.Apply(function.name, given, span, function.span)
        case ast.Total(function, span=span):
            hint = "it can stand in a select list, in HAVING and in ORDER BY"
            name = function.name.upper()
            faults.append(Fault(f"the aggregate {name} cannot stand here", span, hint))
            return None
        case ast.Over(function, span=span):
            hint = "it can stand in a select list, in QUALIFY and in ORDER BY"
            message = f"{function.name.upper()} OVER (...) cannot stand here"
            faults.append(Fault(message, span, hint))
            return None
        case ast.Membership() | ast.Scalar() | ast.Quantified():
            hint = (
                "it can stand in WHERE, in HAVING, in a select list, in aggregates and "
                "in the ON of inner joins"
            )
            faults.append(Fault("a subquery cannot stand here", expression.span, hint))
            return None


def _unknown_function(word: ast.Word) -> Fault:
    if word.name.lower() in ("istream", "dstream", "rstream"):
        message = f"{word.name} stands around a whole query or a whole select list"
        return Fault(message, word.span)
    known = list(dict.fromkeys([*FUNCTIONS, *SHORTHANDS, *GRAMMATICAL, *AGGREGATES]))
    near = suggest(word.name.lower(), known)
    hint = near or f"functions are: {listing(known, 20)}; docs/cql.md has them all"
    return Fault(f'unknown function "{word.name}"', word.span, hint)
