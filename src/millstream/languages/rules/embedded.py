"""Rules written in Python: operators build the tree, and remember on which line they stand."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from millstream.api import Compiled
from millstream.errors import UsageError, listing, suggest
from millstream.languages.rules import ast
from millstream.languages.rules.domain import Domain
from millstream.languages.rules.domain_file import load_domain
from millstream.languages.rules.load import Checked, check_tree, translated
from millstream.languages.rules.pairs import OTHER
from millstream.languages.rules.totals import FUNCTIONS
from millstream.languages.rules.units import UnknownUnitError, parse_unit
from millstream.source import Source, Span

_HERE = str(Path(__file__).parent)

#: What may stand beside an operator.
Given = "Value | float | int | str | bool"


def _place() -> Span | None:
    """The line of the caller outside this package."""
    frame = sys._getframe(1)  # noqa: SLF001  inspect offers it no faster, and this runs often
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    lines = linecache.getlines(frame.f_code.co_filename)
    if not 0 < frame.f_lineno <= len(lines):
        return None
    source = Source(frame.f_code.co_filename, "".join(lines))
    start = sum(len(line) for line in lines[: frame.f_lineno - 1])
    text = lines[frame.f_lineno - 1]
    indent = len(text) - len(text.lstrip())
    return Span(source, start + indent, start + max(len(text.rstrip()), indent))


def _node(given: object) -> ast.Expression:
    match given:
        case Value(node):
            return node
        case bool():
            return ast.Truth(given, _place())
        case int() | float():
            return ast.Number(Fraction(str(given)), "", _place())
        case str():
            return ast.Text(given, _place())
        case _:
            raise UsageError(f"expected a value of a rule, got {given!r}")


@dataclass(frozen=True, eq=False)
class Value:
    """A value that will be known when the rules run; operators on it make others."""

    node: ast.Expression

    def _with(self, operator: str, *others: object) -> Value:
        args = (self.node, *(_node(o) for o in others))
        return Value(ast.Apply(operator, args, _place()))

    def _from(self, operator: str, first: object) -> Value:
        return Value(ast.Apply(operator, (_node(first), self.node), _place()))

    def __add__(self, other: object) -> Value:
        return self._with("+", other)

    def __radd__(self, other: object) -> Value:
        return self._from("+", other)

    def __sub__(self, other: object) -> Value:
        return self._with("-", other)

    def __rsub__(self, other: object) -> Value:
        return self._from("-", other)

    def __mul__(self, other: object) -> Value:
        return self._with("*", other)

    def __rmul__(self, other: object) -> Value:
        return self._from("*", other)

    def __truediv__(self, other: object) -> Value:
        return self._with("/", other)

    def __rtruediv__(self, other: object) -> Value:
        return self._from("/", other)

    def __neg__(self) -> Value:
        node = self.node
        if isinstance(node, ast.Number) and node.value >= 0:
            return Value(replace(node, value=-node.value))
        return self._with("neg")

    def __abs__(self) -> Value:
        return self._with("abs")

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return self._with("==", other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return self._with("!=", other)

    def __lt__(self, other: object) -> Value:
        return self._with("<", other)

    def __le__(self, other: object) -> Value:
        return self._with("<=", other)

    def __gt__(self, other: object) -> Value:
        return self._with(">", other)

    def __ge__(self, other: object) -> Value:
        return self._with(">=", other)

    def __and__(self, other: object) -> Value:
        return self._with("and", other)

    def __or__(self, other: object) -> Value:
        return self._with("or", other)

    def __invert__(self) -> Value:
        return self._with("not")

    __hash__ = None  # type: ignore[assignment]  # `==` makes a value, so it cannot be a key

    def __bool__(self) -> NoReturn:
        raise UsageError(
            "the truth of a rule is not known while it is written",
            hint="write & for and, | for or, ~ for not, with parentheses around comparisons",
        )


#: What related rows have in common with the subject.
By = Value | tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class UnitOf:
    """A unit: `15 * unit("m")` is a length."""

    text: str

    def __rmul__(self, number: float) -> Value:
        return Value(ast.Number(Fraction(str(number)), self.text, _place()))


def unit(text: str) -> UnitOf:
    """A unit by its name, such as `m`, `knots` or `kg/m^3`."""
    try:
        parse_unit(text)
    except UnknownUnitError as error:
        raise UsageError(str(error), span=_place(), hint=error.hint) from None
    return UnitOf(text)


def named(name: str, value: Value) -> Value:
    """A named expression: explanations call it by its name."""
    return Value(ast.Named(name, value.node, _place()))


def lasting(condition: Value, length: Value) -> Value:
    """Whether a condition has held so long without a break: `C for 10 min`."""
    return Value(ast.Apply("for", (_node(condition), _node(length)), _place()))


def within(condition: Value, length: Value) -> Value:
    """Whether a condition has held at some moment of the last so long: `C within 10 min`."""
    return Value(ast.Apply("within", (_node(condition), _node(length)), _place()))


def since(condition: Value, start: Value) -> Value:
    """Whether a condition has held ever since another one held: `C since D`."""
    return Value(ast.Apply("since", (_node(condition), _node(start)), _place()))


def until(start: Value, end: Value) -> Value:
    """True from when the one condition holds to when the other does: `C until D`."""
    return Value(ast.Apply("until", (_node(start), _node(end)), _place()))


def before(value: Value, length: Value) -> Value:
    """What a value was so long ago."""
    return Value(ast.Apply("before", (_node(value), _node(length)), _place()))


def rate(value: Value, length: Value) -> Value:
    """By how much a value has changed in so long, per time."""
    return Value(ast.Apply("rate", (_node(value), _node(length)), _place()))


def count(entity: EntityWords, *, by: By = (), where: Value | None = None) -> Value:
    """How many rows of an entity are related to the subject: `count(E by C where D)`."""
    return _total("count", None, entity._entity, by, where)  # noqa: SLF001  its fields are those of a row


def total(function: str, value: Value, *, by: By = (), where: Value | None = None) -> Value:
    """`sum`, `min`, `max` or `mean` of a value over the rows that are related to the subject."""
    known = [name for name in FUNCTIONS if name != "count"]
    if function not in known:
        hint = suggest(function, known) or f"there are: {listing(known)}"
        raise UsageError(f'unknown total "{function}"', span=_place(), hint=hint)
    return _total(function, _node(value), "", by, where)


def _total(
    function: str, value: ast.Expression | None, entity: str, by: By, where: Value | None
) -> Value:
    columns = [one.node for one in ((by,) if isinstance(by, Value) else by)]
    fields = tuple(c for c in columns if isinstance(c, ast.Field))
    if len(fields) < len(columns):
        raise UsageError("rows are related by columns, such as berth.basin", span=_place())
    condition = None if where is None else _node(where)
    return Value(ast.Total(function, value, entity, fields, condition, _place()))


def distance(one: EntityWords | str, other: EntityWords | str) -> Value:
    """How far two things lie apart; a place of the domain is given by its name."""
    return Value(ast.Apply("distance", (_named(one), _named(other)), _place()))


def inside(entity: EntityWords | str, area: str) -> Value:
    """Whether something lies in an area of the domain."""
    return Value(ast.Apply("inside", (_named(entity), _named(area)), _place()))


def _named(entity: EntityWords | str) -> ast.Word:
    name = entity if isinstance(entity, str) else entity._entity  # noqa: SLF001  its fields are those of a row
    return ast.Word(name, _place())


def require(condition: Value, otherwise: str = "", severity: str = "") -> ast.Require:
    """What must hold; `otherwise` is what reasons say where it does not, and how severe that is."""
    return ast.Require(_node(condition), otherwise, _place(), severity)


def when(condition: Value, *body: ast.Statement) -> ast.When:
    return ast.When(_node(condition), body, _place())


def location(name: str | tuple[str, ...], *body: ast.Statement) -> ast.Location:
    """Rules for one place, or for several of which each will do."""
    names = (name,) if isinstance(name, str) else name
    return ast.Location(tuple(ast.Text(n, _place()) for n in names), body, _place())


def domain(name: str | Path = "port") -> Vocabulary:
    """The words of a domain that ships with Millstream, or of the file at a path."""
    path = Path(name)
    if path.suffix == ".toml":
        return Vocabulary(load_domain(path.name, path.parent), str(name))
    return Vocabulary(load_domain(str(name), Path()), str(name))


@dataclass(frozen=True)
class EntityWords:
    """The fields of an entity, as attributes; hence it has hardly any of its own."""

    _domain: Domain
    _entity: str

    def __getattr__(self, field: str) -> Value:
        entity = self._domain.subject if self._entity == OTHER else self._entity
        columns = self._domain.entities[entity].columns
        if field.startswith("_") or field not in columns:
            near = suggest(field, columns) or f"it has: {listing(columns, 20)}"
            raise AttributeError(f'{self._entity} has no "{field}"; {near}')
        return Value(ast.Field(self._entity, field, _place()))


@dataclass(frozen=True)
class Vocabulary:
    """The entities of a domain, the members of its enumerations and its own names.

    `other` is another subject, inside a total.
    """

    domain: Domain
    name: str

    def __getattr__(self, name: str) -> Any:
        if name in self.domain.entities or name == OTHER:
            return EntityWords(self.domain, name)
        if name in self.domain.names:
            return Value(ast.Named(name, self.domain.names[name].value, _place()))
        members = self.domain.members()
        if name in members:
            return Value(ast.Word(name, _place()))
        known = [*self.domain.entities, *self.domain.names, *members]
        near = suggest(name, known) or f"it has: {listing(known, 20)}"
        raise AttributeError(f'the domain has no "{name}"; {near}')

    def rules(self, *statements: ast.Statement) -> Book:
        return Book(ast.Rules(statements, self.name), self.domain)


@dataclass(frozen=True)
class Book:
    """Rules, and the domain they are written for."""

    tree: ast.Rules
    domain: Domain

    def check(self) -> Checked:
        """The rules with types, or an error with every fault in it."""
        return check_tree(self.tree, self.domain, Path())

    def compile(self) -> Compiled:
        """A program that can be run; its outputs are `status` and `warnings`."""
        return Compiled.of(translated(self.check()), "rules", Path())
