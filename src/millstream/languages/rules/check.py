"""From the tree of a rule file to typed values; all faults at once.

A part that is already wrong is None, and nothing further is said of what contains it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from millstream.calculus.judging import Shown
from millstream.calculus.terms import Call, Column, Literal
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
)
from millstream.errors import Fault, listing, suggest
from millstream.languages.rules import logic
from millstream.languages.rules.ast import (
    Apply,
    Expression,
    Field,
    Named,
    Number,
    Text,
    Total,
    Truth,
    Word,
    parts,
    written,
)
from millstream.languages.rules.beside import ColumnsBeside
from millstream.languages.rules.domain import Domain
from millstream.languages.rules.look_back import looked_back
from millstream.languages.rules.over_time import BETWEEN, CALLS, LASTING
from millstream.languages.rules.pairs import OTHER, RowName
from millstream.languages.rules.placed import PLACED, placed
from millstream.languages.rules.related import totalled
from millstream.languages.rules.typed import (
    Moment,
    Quantity,
    Truthful,
    Typed,
    Wordy,
    comparison,
    constant,
    of_each,
    product_of,
    quantity,
    shown_term,
    size_in_unit,
    truth,
)
from millstream.languages.rules.units import (
    SECONDS,
    UnknownUnitError,
    dimension_name,
    parse_unit,
)
from millstream.source import Span

_VERBS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


class UnitFault(Fault):
    """A fault of dimensions."""


@dataclass
class Checker:
    """Mutable: collects faults. `lost` are names whose definitions could not be read."""

    domain: Domain
    faults: list[Fault]
    lost: frozenset[str] = frozenset()
    #: Which entity's rows a condition is about, where it is not the subject's.
    only: str | None = None
    #: The lines on which names are defined, perhaps only after their use.
    later: Mapping[str, int] = field(default_factory=dict)
    #: What rules look back at; where there is none, only this moment can be asked about.
    memory: ColumnsBeside | None = None
    #: Where terms are about a subject and a row together.
    row: RowName | None = None

    def about(self, entity: str) -> Checker:
        """For conditions about the rows of another entity, and about nothing else."""
        return replace(self, only=entity, memory=None, row=None)

    def beside(self, row: RowName) -> Checker:
        """For terms about a subject and a row; what they measure is remembered apart."""
        return replace(self, row=row, memory=ColumnsBeside())

    def fail(self, message: str, span: Span | None, hint: str | None = None) -> None:
        fault = Fault(message, span, hint)
        if fault not in self.faults:  # a named expression is checked wherever it is used
            self.faults.append(fault)

    def clash(self, verb: str, left: Expression, right: Expression, *sides: Quantity) -> None:
        one, other = (dimension_name(s.unit.dimension) for s in sides)
        joined = {"compare": "with", "add": "to", "subtract": "from"}.get(verb, "by")
        first, second = (one, other) if verb != "subtract" else (other, one)
        if verb == "add":
            first, second = other, one
        message = f"cannot {verb} {first} {joined} {second}"
        span = left.span.to(right.span) if left.span and right.span else left.span
        hint = "; ".join(
            f"{written(e)} is {s.spoken}" for e, s in zip((left, right), sides, strict=True)
        )
        fault = UnitFault(message, span, hint)
        if fault not in self.faults:
            self.faults.append(fault)

    # --- conditions and values ---

    def condition(self, expression: Expression, what: str) -> Truthful | None:
        typed = self.typed(expression)
        if typed is None or isinstance(typed, Truthful):
            return typed
        hint = "compare it with something"
        self.fail(f"{what} must be true or false, but this is {typed.spoken}",
                  expression.span, hint)  # fmt: skip
        return None

    def typed(self, expression: Expression) -> Typed | None:
        match expression:
            case Number():
                return self.number(expression)
            case Text(value):
                return Wordy(Literal(value, TEXT))
            case Truth(value):
                return Truthful(Literal(value, BOOLEAN), logic.Always(value))
            case Field():
                return self.field(expression)
            case Word():
                return self.word(expression)
            case Named(_, value):
                return self.typed(value)
            case Apply(operator) if operator in (*LASTING, *BETWEEN, *CALLS):
                return looked_back(self, expression)
            case Apply(operator) if operator in PLACED:
                return placed(self, expression)
            case Total():
                return totalled(self, expression)
            case Apply(operator, (value,)):
                return self.unary(operator, value)
            case Apply(operator, (left, right)):
                return self.binary(operator, left, right)
            case _:
                raise AssertionError(expression)

    def number(self, number: Number) -> Typed | None:
        try:
            return constant(number.value, parse_unit(number.unit))
        except UnknownUnitError as error:
            self.fail(str(error), number.span, error.hint)
            return None

    def field(self, name: Field) -> Typed | None:
        if self.row is not None and name.entity == self.row.word:
            typed = self.about(self.row.entity).field(replace(name, entity=self.row.entity))
            return None if typed is None else of_each(typed)
        entities = self.domain.entities
        if name.entity not in entities:
            usable = [e for e in entities if self.domain.is_reachable(e)]
            hint = f"there are: {listing(usable)}. {suggest(name.entity, usable) or ''}".strip()
            if name.entity == OTHER:
                hint = (
                    f"another {self.domain.subject} is called so inside a total: count(other ...)"
                )
            self.fail(f'unknown entity "{name.entity}"', name.span, hint)
            return None
        entity = entities[name.entity]
        if name.name not in entity.columns:
            near = suggest(name.name, entity.columns) or ""
            hint = f"{name.entity} has: {listing(entity.columns, 20)}. {near}".strip()
            self.fail(f'{name.entity} has no "{name.name}"', name.span, hint)
            return None
        if name.entity != self.only and (self.only or not self.domain.is_reachable(name.entity)):
            whose = self.only or self.domain.subject
            usable = [e for e in entities if self.domain.is_reachable(e)]
            hint = f"there are: {listing([self.only] if self.only else usable)}"
            if not self.only:
                hint += f"; of several, write max({name.entity}.{name.name} where ...)"
            self.fail(f"a {whose} has no {name.entity} of its own", name.span, hint)
            return None
        column = entity.columns[name.name]
        term = Column(f"{name.entity}.{name.name}", column.type, name.span)
        if column.type == INTEGER:
            whole = Call("number", (term,), NUMBER, name.span)
            return quantity(whole, column.unit, whole=True)
        if column.type == NUMBER:
            return quantity(term, column.unit)
        if column.type == BOOLEAN:
            return Truthful(term, logic.Fact(term.name))
        return Moment(term) if column.type == TIME else Wordy(term, column.members)

    def word(self, word: Word) -> Typed | None:
        members = self.domain.members()
        if word.name in members:
            return Wordy(Literal(word.name, TEXT, word.span), is_bare=True)
        if word.name not in self.lost:
            known = [*members, *self.domain.names, *self.domain.entities]
            hint = suggest(word.name, known) or "define it first: name = expression"
            if word.name in self.later:
                hint = f"it is defined on line {self.later[word.name]}, and known from there on"
                hint += " inside its block"
            self.fail(f'unknown name "{word.name}"', word.span, hint)
        return None

    # --- operators ---

    def unary(self, operator: str, value: Expression) -> Typed | None:
        if operator == "not":
            condition = self.condition(value, "what follows not")
            if condition is None:
                return None
            return truth("not", (condition.term,), logic.negated(condition.formula))
        typed = self.typed(value)
        if typed is None:
            return None
        if not isinstance(typed, Quantity):
            what = "abs" if operator == "abs" else "a minus sign"
            self.fail(f"{what} needs a number, but this is {typed.spoken}", value.span)
            return None
        # A number such as -5 degC is one token; all else turns a scale upside down.
        if typed.unit.offset:
            self.misuse("abs" if operator == "abs" else "a minus sign", value, typed)
            return None
        if typed.constant is not None:
            sign = abs(typed.constant) if operator == "abs" else -typed.constant
            return constant(sign, typed.unit)
        term = Call(operator, (typed.term,), NUMBER)
        if operator == "neg":
            return Quantity(term, typed.unit, typed.linear.scaled(Fraction(-1)))
        return quantity(term, typed.unit, size_in_unit(typed))

    def binary(self, operator: str, left: Expression, right: Expression) -> Typed | None:
        if operator in ("and", "or"):
            return self.connected(operator, left, right)
        one, other = self.side(left, right), self.side(right, left)
        if one is None or other is None:
            return None
        if operator in ("+", "-", "*", "/"):
            return self.arithmetic(operator, (left, one), (right, other))
        return self.comparison(operator, (left, one), (right, other))

    def side(self, side: Expression, opposite: Expression) -> Typed | None:
        """A side of an operator; a word beside a text is a text without its quotes."""
        if isinstance(side, Word) and side.name not in {*self.domain.members(), *self.lost}:
            beside = self.typed(opposite) if isinstance(opposite, Field) else None
            if isinstance(beside, Wordy) and not beside.members:
                self.fail("a text is written in quotes", side.span, f'write "{side.name}"')
                return None
        return self.typed(side)

    def connected(self, operator: str, left: Expression, right: Expression) -> Typed | None:
        one = self.condition(left, f"what stands before {operator}")
        other = self.condition(right, f"what follows {operator}")
        if one is None or other is None:
            return None
        both = (one.formula, other.formula)
        formula = logic.All(both) if operator == "and" else logic.Some(both)
        return truth(operator, (one.term, other.term), formula)

    def arithmetic(self, operator: str, left: _Side, right: _Side) -> Typed | None:
        (one_text, one), (other_text, other) = left, right
        moved = _moved(operator, one, other)
        if moved is not None:
            return moved
        for text, side in (left, right):
            if not isinstance(side, Quantity):
                self.fail(f"cannot {_VERBS[operator]} {side.spoken}", text.span,
                          "only numbers can be calculated with")  # fmt: skip
                return None
        assert isinstance(one, Quantity) and isinstance(other, Quantity)
        if operator == "/" and other.constant == 0:
            self.fail("this divides by zero", _over(one_text, other_text))
            return None
        if operator in ("*", "/"):
            for text, side in (left, right):
                if isinstance(side, Quantity) and side.unit.offset:
                    self.misuse("a product" if operator == "*" else "a quotient", text, side)
                    return None
            return product_of(operator, one, other)
        if one.unit.dimension != other.unit.dimension:
            self.clash(_VERBS[operator], one_text, other_text, one, other)
            return None
        if operator == "+" and one.unit.offset and other.unit.offset:
            self.fail("cannot add two temperatures", _over(one_text, other_text),
                      "add a difference, in K or delta_degC")  # fmt: skip
            return None
        if operator == "-" and other.unit.offset and one.unit.is_difference:
            self.fail("cannot subtract a temperature from a difference of temperatures",
                      _over(one_text, other_text))  # fmt: skip
            return None
        return _sum(operator, one, other)

    def misuse(self, what: str, text: Expression, side: Quantity) -> None:
        """The zero of a scale of temperature means nothing, so neither do its multiples."""
        message = f"{what} needs a difference, but this is a point on a scale ({side.unit.label})"
        self.fail(message, text.span, f"subtract one: {written(text)} - 0 {side.unit.label}")

    def comparison(self, operator: str, left: _Side, right: _Side) -> Typed | None:
        (one_text, one), (other_text, other) = left, right
        match one, other:
            case Quantity(), Quantity():
                if one.unit.dimension != other.unit.dimension:
                    self.clash("compare", one_text, other_text, one, other)
                    return None
                for this, that in ((one, other), (other, one)):
                    if this.unit.is_difference and that.unit.offset:
                        hint = f"differences are in K or {that.unit.without_offset().label}"
                        self.fail("cannot compare a difference of temperatures with a temperature",
                                  _over(one_text, other_text), hint)  # fmt: skip
                        return None
                return comparison(one.linear, operator, other.linear)
            case Moment(), Moment():
                return comparison(_seconds(one, other).linear, operator, logic.Linear())
            case (Wordy(), Wordy()) | (Truthful(), Truthful()) if operator in ("==", "!="):
                return self.equality(operator, left, right)
            case (Wordy(), Wordy()) | (Truthful(), Truthful()):
                self.fail(f"{one.spoken} cannot be ordered", _over(one_text, other_text),
                          "compare it with == or !=")  # fmt: skip
                return None
        hint = f"{written(one_text)} is {one.spoken}; {written(other_text)} is {other.spoken}"
        message = f"cannot compare {one.spoken} with {other.spoken}"
        self.fail(message, _over(one_text, other_text), hint)
        return None

    def equality(self, operator: str, left: _Side, right: _Side) -> Typed | None:
        one, other = left[1], right[1]
        is_equal = operator == "=="
        if isinstance(one, Truthful) and isinstance(other, Truthful):
            both = logic.Some((logic.All((one.formula, other.formula)),
                               logic.All((logic.negated(one.formula),
                                          logic.negated(other.formula)))))  # fmt: skip
            term = _same_truth(one, other)
            if is_equal:
                return Truthful(term, both)
            return truth("not", (term,), logic.negated(both))
        assert isinstance(one, Wordy) and isinstance(other, Wordy)
        if not (self.is_member(one, right) and self.is_member(other, left)):
            return None
        formula: logic.Formula = logic.Fact(f"{one.term}={other.term}", is_equal)
        if one.value is not None and other.value is not None:
            formula = logic.Always((one.value == other.value) == is_equal)
        elif isinstance(one.term, Column) and other.value is not None:
            formula = logic.Member(one.term.name, other.value, is_equal)
        elif isinstance(other.term, Column) and one.value is not None:
            formula = logic.Member(other.term.name, one.value, is_equal)
        return truth(operator, (one.term, other.term), formula)

    def is_member(self, enumeration: Wordy, side: _Side) -> bool:
        """Whether a text that is compared with an enumeration is one of its members."""
        text, other = side
        assert isinstance(other, Wordy)
        if enumeration.members and other.value is not None:
            if other.value not in enumeration.members:
                near = suggest(other.value, enumeration.members) or ""
                hint = f"there are: {listing(enumeration.members, 20)}. {near}".strip()
                self.fail(f'"{other.value}" is none of its values', text.span, hint)
                return False
        elif other.is_bare and not enumeration.is_bare:
            self.fail("a text is written in quotes", text.span, f'write "{other.value}"')
            return False
        return True

    # --- what explains an outcome ---

    def shown(self, expression: Expression) -> Iterator[Shown]:
        """The named expressions and fields of an expression, each once."""
        seen: set[str] = set()
        for part in _own_parts(expression):
            is_named = isinstance(part, Named) and any(map(_is_told, parts(part)))
            if not (is_named or _is_told(part)) or written(part) in seen:
                continue
            seen.add(written(part))
            if isinstance(part, Named) and _is_told(part.value):
                seen.add(written(part.value))  # another name of the same
            typed = self.typed(part)
            assert typed is not None
            unit = typed.unit.label if isinstance(typed, Quantity) else ""
            yield Shown(written(part), unit, shown_term(typed))


_Side = tuple[Expression, Typed]


def _is_told(part: Expression) -> bool:
    """Whether it is something that data tell, which explains an outcome."""
    is_beside = isinstance(part, Apply) and part.operator in (*CALLS, *PLACED)
    return is_beside or isinstance(part, (Field, Total))


def _own_parts(expression: Expression) -> Iterator[Expression]:
    """The parts that are about the subject: inside a total, only what relates others to it."""
    yield expression
    match expression:
        case Named(_, value):
            yield from _own_parts(value)
        case Apply(_, args):
            for arg in args:
                yield from _own_parts(arg)
        case Total(by=by):
            yield from by


def _over(left: Expression, right: Expression) -> Span | None:
    return left.span.to(right.span) if left.span and right.span else left.span


def _seconds(one: Moment, other: Moment) -> Quantity:
    """How much later the one is than the other."""
    difference = Call("-", (one.term, other.term), DURATION)
    seconds = quantity(Call("seconds", (difference,), NUMBER), SECONDS)
    for moment, operator in ((one, "+"), (other, "-")):
        if moment.shift is not None:
            seconds = _sum(operator, seconds, moment.shift)
    return seconds


def _moved(operator: str, one: Typed, other: Typed) -> Quantity | Moment | None:
    """What comes of points in time: the time between two, or a point later or earlier."""
    match operator, one, other:
        case "-", Moment(), Moment():
            return _seconds(one, other)
        case ("+", Quantity(), Moment()) if one.unit.dimension == SECONDS.dimension:
            return _shifted(other, "+", one)
        case (("+" | "-"), Moment(), Quantity()) if other.unit.dimension == SECONDS.dimension:
            return _shifted(one, operator, other)
    return None


def _shifted(moment: Moment, operator: str, by: Quantity) -> Moment:
    before = moment.shift or constant(Fraction(0), SECONDS)
    return replace(moment, shift=_sum(operator, before, by.in_unit(SECONDS)))


def _same_truth(one: Truthful, other: Truthful) -> Call:
    def both(left: Truthful | Call, right: Truthful | Call) -> Call:
        terms = tuple(x if isinstance(x, Call) else x.term for x in (left, right))
        return Call("and", terms, BOOLEAN)

    neither = both(Call("not", (one.term,), BOOLEAN), Call("not", (other.term,), BOOLEAN))
    return Call("or", (both(one, other), neither), BOOLEAN)


def _sum(operator: str, one: Quantity, other: Quantity) -> Quantity:
    """Points and differences: a point minus a point is a difference, else a point stays one.

    Kelvin are both: what a point is subtracted from, is a point.
    """
    sign = 1 if operator == "+" else -1
    is_difference = bool(other.unit.offset) and (sign < 0 or bool(one.unit.offset))
    unit = one.unit
    if other.unit.offset and not is_difference:
        unit = other.unit  # a difference plus a point
    elif one.constant is not None and not one.unit.offset and not other.unit.offset:
        unit = other.unit
    left, right = (
        q.in_unit(unit if q.unit.offset or is_difference else unit.without_offset())
        for q in (one, other)
    )
    result = replace(unit.without_offset(), is_difference=True) if is_difference else unit
    a, b = left.constant, right.constant
    if a is not None and b is not None:
        return constant(a + sign * b, result)
    term = Call(operator, (left.term, right.term), NUMBER)
    return Quantity(term, result, one.linear.plus(other.linear, sign))
