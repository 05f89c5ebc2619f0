"""From expressions as written to typed terms; all faults of one expression at once.

A subexpression that is already wrong has the type `None`, and nothing further is said
of what contains it: one mistake, one message.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from millstream.calculus.syntax import Apply, Constant, Expression, Name, VariableName
from millstream.calculus.terms import Call, Column, Literal, Term, VariableField
from millstream.calculus.types import (
    BOOLEAN,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    NUMBER,
    TIME,
    TIME_COLUMN,
    TYPES_BY_NAME,
    Kind,
    Schema,
    Type,
)
from millstream.errors import CheckError, Fault, listing, suggest
from millstream.source import Span
from millstream.values.core.scalar import Signature
from millstream.values.core.table import OF_ROWS
from millstream.values.instants import parse_time


@dataclass(frozen=True, slots=True)
class Scope:
    """The names an expression may use; `owner` says whose columns they are."""

    columns: Schema
    owner: str = "the input"
    variables: Mapping[str, Schema] = field(default_factory=dict)


def check(expression: Expression, scope: Scope, *, wanted: Type | None = None) -> Term:
    """The typed term of an expression, or a `CheckError` with every fault in it."""
    faults: list[Fault] = []
    term = check_into(expression, scope, faults, wanted=wanted)
    if term is None:
        raise CheckError(faults)
    return term


def check_into(
    expression: Expression, scope: Scope, faults: list[Fault], *, wanted: Type | None = None
) -> Term | None:
    """As `check`, but adds faults to a list that a caller collects."""
    before = len(faults)
    term = _Checker(scope, faults).term(expression, wanted)
    if len(faults) > before or term is None:
        return None
    if wanted is None or term.type == wanted:
        return term
    if wanted == NUMBER and term.type == INTEGER:
        return _promoted(term, wanted)
    faults.append(Fault(f"expected a value of type {wanted}, got {term.type}", term.span))
    return None


@dataclass
class _Checker:
    scope: Scope
    faults: list[Fault]

    def fail(self, message: str, span: Span | None, hint: str | None = None) -> None:
        self.faults.append(Fault(message, span, hint))

    def term(self, expression: Expression, wanted: Type | None = None) -> Term | None:
        match expression:
            case Name():
                return self.column(expression)
            case VariableName():
                return self.variable(expression)
            case Constant():
                return self.literal(expression, wanted)
            case Apply():
                return self.call(expression)

    def column(self, name: Name) -> Term | None:
        type_ = self.scope.columns.get(name.name)
        if type_ is not None:
            return Column(name.name, type_, name.span)
        if name.name == TIME_COLUMN:
            return Column(TIME_COLUMN, TIME, name.span)
        names = self.scope.columns.names
        near = suggest(name.name, names)
        hint = f"{self.scope.owner} has: {listing(names)}." + (f" {near}" if near else "")
        self.fail(f'unknown column "{name.name}"', name.span, hint)
        return None

    def variable(self, name: VariableName) -> Term | None:
        fields = self.scope.variables.get(name.variable)
        if fields is None:
            known = [f"${v}" for v in self.scope.variables]
            near = suggest(f"${name.variable}", known)
            hint = f"variables that can be read here: {listing(known)}."
            self.fail(
                f'unknown variable "${name.variable}"',
                name.span,
                f"{hint} {near}" if near else hint,
            )
            return None
        type_ = fields.get(name.field)
        if type_ is None:
            near = suggest(name.field, fields.names)
            hint = f"${name.variable} has: {listing(fields.names)}."
            self.fail(
                f'unknown field "{name.field}" of ${name.variable}',
                name.span,
                f"{hint} {near}" if near else hint,
            )
            return None
        return VariableField(name.variable, name.field, type_, name.span)

    def literal(self, constant: Constant, wanted: Type | None) -> Term | None:
        type_ = constant.type or wanted
        if type_ is None:
            self.fail("the type of this null is not known", constant.span, "write null(number)")
            return None
        value = constant.value
        if type_.kind in (Kind.INTEGER, Kind.TIME, Kind.DURATION) and isinstance(value, int):
            if not INT64_MIN <= value <= INT64_MAX:
                self.fail(
                    f"{value} does not fit a 64-bit {type_}",
                    constant.span,
                    f"write {value}.0 for a number" if type_ == INTEGER else None,
                )
                return None
        return Literal(value, type_, constant.span)

    def call(self, apply: Apply) -> Term | None:
        scalar = OF_ROWS.get(apply.function)
        if scalar is None:
            hint = suggest(apply.function, OF_ROWS)
            self.fail(
                f'unknown function "{apply.function}"', apply.function_span or apply.span, hint
            )
            for arg in apply.args:
                self.term(arg)
            return None
        args = [None if _is_untyped_null(a) else self.term(a) for a in apply.args]
        if any(t is None and not _is_untyped_null(a)
               for t, a in zip(args, apply.args, strict=True)):  # fmt: skip
            if apply.function in ("and", "or"):
                self.conditions(args)
            return None
        signature = _signature(scalar.rule, [None if t is None else t.type for t in args])
        if isinstance(signature, str):
            usage = f"usage: {scalar.usage}" if scalar.name.isidentifier() else None
            self.fail(signature, apply.span, usage)
            return None
        typed = tuple(
            Literal(None, p, a.span) if t is None else _promoted(t, p)
            for t, a, p in zip(args, apply.args, signature.params, strict=True)
        )
        return self.folded(Call(apply.function, typed, signature.result, apply.span))

    def conditions(self, args: list[Term | None]) -> None:
        """What is right beside something wrong must still be a condition."""
        for term in args:
            if term is not None and term.type != BOOLEAN:
                self.fail(f"expected a boolean, got {term.type}", term.span)

    def folded(self, call: Call) -> Term | None:
        """`-3` and `time("2026-01-01")` are literals, so that printing and parsing agree."""
        argument = call.args[0] if len(call.args) == 1 else None
        if not isinstance(argument, Literal) or argument.value is None:
            return call
        value = argument.value
        if call.function == "neg" and isinstance(value, (int, float)) and value != INT64_MIN:
            return Literal(-value, call.type, call.span)
        if call.function == "time" and isinstance(value, int):
            return Literal(value, TIME, call.span)
        if call.function == "time" and isinstance(value, str):
            moment = parse_time(value)
            if moment is None:
                self.fail(
                    f"{value!r} is not a time",
                    call.span,
                    "write an ISO 8601 time, such as 2026-01-31T12:00:00Z",
                )
                return None
            return Literal(moment, TIME, call.span)
        return call


def _is_untyped_null(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.type is None


def _signature(rule: object, types: Iterable[Type | None]) -> Signature | str:
    """Apply a typing rule; an untyped null takes the first type that fits."""
    assert callable(rule)
    known = list(types)
    candidates = [*dict.fromkeys(t for t in known if t), *TYPES_BY_NAME.values()]
    answer: Signature | str = "no type fits"
    holes = sum(t is None for t in known)
    for number, filling in enumerate(itertools.product(candidates, repeat=holes)):
        fill = iter(filling)
        attempt = rule(tuple(next(fill) if t is None else t for t in known))
        if isinstance(attempt, Signature):
            return attempt
        answer = attempt if number == 0 else answer
    return answer


def _promoted(term: Term, wanted: Type) -> Term:
    """An integer where a number is wanted becomes one; all else is already right."""
    if term.type.kind is Kind.INTEGER and wanted.kind is Kind.NUMBER:
        if isinstance(term, Literal) and isinstance(term.value, int):
            return Literal(term.value, wanted, term.span)
        return Call("number", (term,), wanted, term.span)
    return term
