"""The tree of a rule file; the same whether it was written as text or in Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from millstream.source import Span


@dataclass(frozen=True, slots=True)
class Number:
    """A number, exactly as written, with its unit; `""` is a plain number."""

    value: Fraction
    unit: str = ""
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Text:
    value: str
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Field:
    """`vessel.draught`."""

    entity: str
    name: str
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Word:
    """A bare word: a member of an enumeration, such as `Chemical`."""

    name: str
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Named:
    """The use of a named expression, with what it names."""

    name: str
    value: Expression
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator or a function on one or two arguments; `neg` is the unary minus."""

    operator: str
    args: tuple[Expression, ...]
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Total:
    """`sum(vessel.length by berth.basin where vessel.type == Chemical)`.

    A function over the rows of an entity that have `by` in common with the subject, and for
    which the condition holds; `value` is None where rows are counted.
    """

    function: str
    value: Expression | None
    entity: str
    by: tuple[Field, ...] = ()
    where: Expression | None = None
    span: Span | None = dataclasses.field(default=None, compare=False)


Expression = Number | Text | Truth | Field | Word | Named | Apply | Total


@dataclass(frozen=True, slots=True)
class Require:
    """`message` is what the author says if it does not hold, `severity` how much that matters."""

    condition: Expression
    message: str = ""
    span: Span | None = dataclasses.field(default=None, compare=False)
    severity: str = ""


@dataclass(frozen=True, slots=True)
class When:
    condition: Expression
    body: tuple[Statement, ...]
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Location:
    """One place, or several of which each will do."""

    names: tuple[Text, ...]
    body: tuple[Statement, ...]
    span: Span | None = dataclasses.field(default=None, compare=False)


Statement = Require | When | Location


@dataclass(frozen=True, slots=True)
class Rules:
    """A whole rule file; `domain` is a name or the path of a file."""

    statements: tuple[Statement, ...]
    domain: str = "port"


def parts(expression: Expression) -> Iterator[Expression]:
    """The expression and all that is inside it."""
    yield expression
    match expression:
        case Named(_, value):
            yield from parts(value)
        case Apply(_, args):
            for arg in args:
                yield from parts(arg)
        case Total(_, value, _, by, where):
            for inner in (value, *by, where):
                if inner is not None:
                    yield from parts(inner)


_BINDING = {"or": 1, "and": 2, "for": 4, "within": 4, "since": 4, "until": 4,
            "==": 5, "!=": 5, "<": 5, "<=": 5, ">": 5, ">=": 5,
            "+": 6, "-": 6, "*": 7, "/": 7}  # fmt: skip


def written(expression: Expression, floor: int = 0) -> str:
    """The expression as text, with the parentheses it needs inside a binding of `floor`."""
    match expression:
        case Number(value, unit):
            number = str(value.numerator) if value.denominator == 1 else repr(float(value))
            return f"{number} {unit}" if unit else number
        case Text(value):
            return f'"{value}"'
        case Truth(value):
            return "true" if value else "false"
        case Field(entity, name):
            return f"{entity}.{name}"
        case Word(name) | Named(name):
            return name
        case Apply("not", (value,)):
            text = f"not {written(value, 3)}"
            return f"({text})" if floor > 3 else text
        case Apply("neg", (value,)):
            return f"-{written(value, 8)}"
        case Total(function, value, entity, by, where):
            text = entity if value is None else written(value)
            text += f" by {', '.join(map(written, by))}" if by else ""
            text += f" where {written(where)}" if where is not None else ""
            return f"{function}({text})"
        case Apply(("abs" | "before" | "rate" | "distance" | "inside") as function, args):
            return f"{function}({', '.join(written(a) for a in args)})"
        case Apply(operator, (left, right)):
            level = _BINDING[operator]
            # Comparisons do not chain, so both their sides bind tighter.
            first = level if operator not in ("==", "!=", "<", "<=", ">", ">=") else level + 1
            text = f"{written(left, first)} {operator} {written(right, level + 1)}"
            return f"({text})" if level < floor else text
        case _:
            raise AssertionError(expression)
