"""The types of totals over related things, and what relates them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from millstream.calculus.terms import Call, Column, Term
from millstream.calculus.types import INTEGER, NUMBER
from millstream.errors import listing, suggest
from millstream.languages.rules.ast import (
    Apply,
    Expression,
    Field,
    Named,
    Total,
    Word,
    parts,
    written,
)
from millstream.languages.rules.domain import Domain
from millstream.languages.rules.measured import Measured
from millstream.languages.rules.pairs import OTHER, Pairing, RowName, is_between
from millstream.languages.rules.placed import PLACED
from millstream.languages.rules.totals import Totalled
from millstream.languages.rules.typed import Moment, Quantity, Typed, finite
from millstream.languages.rules.typed import quantity as quantity_of
from millstream.languages.rules.units import PLAIN

if TYPE_CHECKING:
    from millstream.languages.rules.check import Checker


def totalled(checker: Checker, total: Total) -> Typed | None:
    if checker.row is not None:
        checker.fail("a total cannot stand inside another one", total.span)
        return None
    if checker.memory is None:
        checker.fail("totals cannot be asked for here", total.span,
                     "conditions of a domain are about one row")  # fmt: skip
        return None
    entity = _entity(checker, total)
    if entity is None:
        return None
    is_own = entity == checker.domain.subject
    if is_own and OTHER in names_in(total) and total.entity == entity:
        checker.fail(f"this counts each {entity}, but asks about others", total.span,
                     "to count those, write count(other where ...)")  # fmt: skip
        return None
    related = _Related(checker, entity, is_own, is_paired(checker.domain, total, entity))
    value = None if total.value is None else related.value(total)
    keys, where = related.relation(total)
    if (total.value is not None and value is None) or related.is_wrong:
        return None
    term = None if value is None else value.term
    if isinstance(value, Quantity):
        term = finite(value.term)
    made = checker.memory.add(
        Totalled("", total.function, entity, is_own, term, where, keys, related.pairing()),
        total.function,
    )
    column = Column(made.column, made.type)
    if isinstance(value, Moment):
        return Moment(column)
    if value is None:
        return quantity_of(Call("number", (column,), NUMBER), PLAIN, whole=True)
    is_counted = total.function != "mean" and _is_whole(checker, total.value)
    return quantity_of(column, value.unit, whole=is_counted)


def _entity(checker: Checker, total: Total) -> str | None:
    """The entity whose rows are put together: the one that is read, or the subject."""
    known, subject = checker.domain.entities, checker.domain.subject
    if total.entity == OTHER or (not total.entity and OTHER in names_in(total)):
        return subject
    read = set() if total.value is None else names_in(total.value)
    if len(read) > 1:
        # Of those that a subject has, its own are meant.
        read = {name for name in read & set(known) if not checker.domain.is_reachable(name)}
    entity = total.entity or (next(iter(read)) if len(read) == 1 else subject)
    if entity in known:
        return entity
    known = {**known, OTHER: known[subject]}
    hint = f"there are: {listing(known)}. {suggest(entity, known) or ''}".strip()
    checker.fail(f'unknown entity "{entity}"', total.span, hint)
    return None


def _is_whole(checker: Checker, value: Expression | None) -> bool:
    value = None if value is None else _unnamed(value)
    if not isinstance(value, Field):
        return False
    entity = checker.domain.subject if value.entity == OTHER else value.entity
    return checker.domain.entities[entity].columns[value.name].type == INTEGER


@dataclass
class _Related:
    """Mutable: whether something is wrong. The rows of the subject's entity are its facts."""

    checker: Checker
    entity: str
    is_own: bool
    is_paired: bool = False
    is_wrong: bool = False
    #: How far rows may be, by the column of that distance.
    bounds: dict[str, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        #: Who reads what is about a row.
        self.rows = self.checker if self.is_own else self.checker.about(self.entity)
        if self.is_paired:
            word = OTHER if self.is_own else self.entity
            self.rows = self.checker.beside(RowName(word, self.entity))

    def fail(self, message: str, expression: Expression, hint: str | None = None) -> None:
        self.is_wrong = True
        self.checker.fail(message, expression.span, hint)

    def value(self, total: Total) -> Quantity | Moment | None:
        assert total.value is not None
        typed = self.rows.typed(total.value)
        if typed is None:
            return None
        if isinstance(typed, Quantity):
            if total.function == "sum" and typed.unit.offset:
                self.checker.misuse("a sum", total.value, typed)
                return None
            return typed
        is_plain = isinstance(typed, Moment) and typed.shift is None
        if isinstance(typed, Moment) and is_plain and total.function in ("min", "max"):
            return typed
        hint = f"to count rows, write count({self.entity} where ...)"
        self.fail(f"{total.function} needs numbers, but this is {typed.spoken}", total.value, hint)
        return None

    # --- what relates rows to a subject ---

    def relation(self, total: Total) -> tuple[tuple[tuple[str, str], ...], Term | None]:
        """The columns that must be equal, and what else must hold of a row."""
        keys = [key for column in total.by if (key := self.shared(column)) is not None]
        where: Term | None = None
        for condition in _conjuncts(total.where) if total.where is not None else ():
            pair = self.equal_columns(condition) if self.is_paired else None
            if pair is not None:
                keys.append(pair)
            elif self.is_paired or self.is_own or not self.reads_facts(condition):
                typed = self.rows.condition(condition, "what follows where")
                if typed is None:
                    self.is_wrong = True
                    continue
                both = None if where is None else (where, typed.term)
                where = typed.term if both is None else Call("and", both, typed.term.type)
                if self.is_paired:
                    self.note_bound(condition)
            elif (pair := self.equal(condition)) is not None:
                keys.append(pair)
        return tuple(dict.fromkeys(keys)), where

    def reads_facts(self, condition: Expression) -> bool:
        return any(isinstance(p, Field) and p.entity != self.entity for p in parts(condition))

    def note_bound(self, condition: Expression) -> None:
        """How far a row may be, if a condition says so by a number."""
        match _unnamed(condition):
            case Apply("<" | "<=", (one, bound)) | Apply(">" | ">=", (bound, one)):
                apart = self.rows.typed(one) if _is_distance(one) else None
                most = self.rows.typed(bound)
                if not isinstance(apart, Quantity) or not isinstance(most, Quantity):
                    return
                if isinstance(apart.term, Column) and most.constant is not None:
                    number = most.in_unit(apart.unit).constant
                    assert number is not None
                    self.bounds.setdefault(apart.term.name, max(number, Fraction(0)))

    def pairing(self) -> Pairing | None:
        if not self.is_paired:
            return None
        assert self.rows.memory is not None
        measured = tuple(one for one in self.rows.memory.all() if isinstance(one, Measured))
        for one in measured:
            if one.column in self.bounds and is_between(one):
                return Pairing(measured, one.column, float(self.bounds[one.column]))
        return Pairing(measured)

    def equal_columns(self, condition: Expression) -> tuple[str, str] | None:
        """The columns of a row and of the facts that a condition says are equal, if it does."""
        assert self.rows.row is not None
        match _unnamed(condition):
            case Apply("==", (Field() as one, Field() as other)):
                row, fact = (one, other) if one.entity == self.rows.row.word else (other, one)
                if row.entity != self.rows.row.word or fact.entity == row.entity:
                    return None
                if self.rows.typed(row) is None or self.rows.typed(fact) is None:
                    return None
                row = replace(row, entity=self.entity)
                types = [self.checker.domain.entities[f.entity].columns[f.name].type
                         for f in (row, fact)]  # fmt: skip
                if types[0] == types[1] != NUMBER:
                    return written(row), written(fact)
        return None

    def shared(self, column: Field) -> tuple[str, str] | None:
        """A column that a row must have in common with the facts."""
        if self.is_own and column.entity == OTHER:
            column = replace(column, entity=self.entity)
        if not self.is_own and column.entity != self.entity:
            hint = f"after by stand columns of {self.entity}; write where {self.entity}.column == "
            self.fail(f"{written(column)} is no column of a {self.entity}", column,
                      hint + written(column))  # fmt: skip
            return None
        if self.checker.typed(column) is None:
            self.is_wrong = True
            return None
        return self.pair(column, column)

    def equal(self, condition: Expression) -> tuple[str, str] | None:
        """The columns of `crane.berth == vessel.destination`."""
        match condition:
            case Apply("==", (Field() as one, Field() as other)):
                row, fact = (one, other) if one.entity == self.entity else (other, one)
                if row.entity == self.entity:
                    is_known = self.rows.typed(row) is not None
                    is_known &= self.checker.typed(fact) is not None
                    self.is_wrong |= not is_known
                    return self.pair(row, fact) if is_known else None
        subject = self.checker.domain.subject
        hint = (f"write {self.entity}.column == {subject}.column, and other conditions about the "
                f"{self.entity} alone")  # fmt: skip
        self.fail(f"a {self.entity} and a {subject} are related by equal columns only", condition,
                  hint)  # fmt: skip
        return None

    def pair(self, row: Field, fact: Field) -> tuple[str, str] | None:
        entities = self.checker.domain.entities
        one, other = (entities[f.entity].columns[f.name] for f in (row, fact))
        if one.type != other.type:
            hint = f"{written(row)} is {one.spoken}; {written(fact)} is {other.spoken}"
            self.fail(f"cannot compare {one.spoken} with {other.spoken}", row, hint)
            return None
        if one.type == NUMBER:
            self.fail(f"{written(row)} is measured, so it is hardly ever the same", row,
                      "relate rows by a text, a whole number or a time")  # fmt: skip
            return None
        return written(row), written(fact)


def names_in(expression: Expression) -> set[str]:
    """The entities that are read, and what is called by its name where it is placed."""
    names: set[str] = set()
    for part in parts(expression):
        match part:
            case Field(entity):
                names.add(entity)
            case Apply(operator, args) if operator in PLACED:
                names |= {arg.name for arg in args if isinstance(arg, Word)}
            case Total(entity=entity):
                names.add(entity)
    return names


def is_paired(domain: Domain, total: Total, entity: str) -> bool:
    """Whether rows are compared with a subject otherwise than by equal columns."""
    names = names_in(total)
    if entity == domain.subject:
        return OTHER in names
    if total.value is not None and (names_in(total.value) - {entity} or _is_placed(total.value)):
        return True
    return total.where is not None and any(
        _is_placed(c) or (names_in(c) - {entity} and not _is_equality(c))
        for c in _conjuncts(total.where)
    )


def _is_placed(expression: Expression) -> bool:
    return any(isinstance(p, Apply) and p.operator in PLACED for p in parts(expression))


def _is_equality(condition: Expression) -> bool:
    match _unnamed(condition):
        case Apply("==", (Field(), Field())):
            return True
    return False


def _is_distance(expression: Expression) -> bool:
    inner = _unnamed(expression)
    return isinstance(inner, Apply) and inner.operator == "distance"


def _unnamed(expression: Expression) -> Expression:
    while isinstance(expression, Named):
        expression = expression.value
    return expression


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    match _unnamed(condition):
        case Apply("and", args):
            for arg in args:
                yield from _conjuncts(arg)
        case _:
            yield condition
