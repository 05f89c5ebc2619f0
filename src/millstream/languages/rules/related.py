"""The types of totals over related things, and what relates them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.calculus.terms import Call, Column, Term
from millstream.calculus.types import INTEGER, NUMBER
from millstream.errors import listing, suggest
from millstream.languages.rules.ast import Apply, Expression, Field, Named, Total, parts, written
from millstream.languages.rules.totals import Totalled
from millstream.languages.rules.typed import Moment, Quantity, Typed, finite
from millstream.languages.rules.typed import quantity as quantity_of
from millstream.languages.rules.units import PLAIN

if TYPE_CHECKING:
    from millstream.languages.rules.check import Checker


def totalled(checker: Checker, one: Total) -> Typed | None:
    if checker.memory is None:
        checker.fail("totals cannot be asked for here", one.span,
                     "conditions of a domain are about one row")  # fmt: skip
        return None
    entity = _entity(checker, one)
    if entity is None:
        return None
    related = _Related(checker, entity, is_own=entity == checker.domain.subject)
    value = None if one.value is None else related.value(one)
    keys, where = related.relation(one)
    if (one.value is not None and value is None) or related.is_wrong:
        return None
    term = None if value is None else value.term
    if isinstance(value, Quantity):
        term = finite(value.term)
    made = checker.memory.add(
        Totalled("", one.function, entity, related.is_own, term, where, keys), one.function
    )
    column = Column(made.column, made.type)
    if isinstance(value, Moment):
        return Moment(column)
    if value is None:
        return quantity_of(Call("number", (column,), NUMBER), PLAIN, whole=True)
    is_counted = one.function != "mean" and _is_whole(checker, one.value)
    return quantity_of(column, value.unit, whole=is_counted)


def _entity(checker: Checker, one: Total) -> str | None:
    """The entity whose rows are put together: the one that is read, or the subject."""
    read = {p.entity for p in parts(one.value) if isinstance(p, Field)} if one.value else set()
    entity = one.entity or (next(iter(read)) if len(read) == 1 else checker.domain.subject)
    known = checker.domain.entities
    if entity in known:
        return entity
    hint = f"there are: {listing(known)}. {suggest(entity, known) or ''}".strip()
    checker.fail(f'unknown entity "{entity}"', one.span, hint)
    return None


def _is_whole(checker: Checker, value: Expression | None) -> bool:
    while isinstance(value, Named):
        value = value.value
    if not isinstance(value, Field):
        return False
    return checker.domain.entities[value.entity].columns[value.name].type == INTEGER


@dataclass
class _Related:
    """Mutable: whether something is wrong. The rows of the subject's entity are its facts."""

    checker: Checker
    entity: str
    is_own: bool
    is_wrong: bool = False

    def __post_init__(self) -> None:
        #: Who reads what is about a row.
        self.rows = self.checker if self.is_own else self.checker.about(self.entity)

    def fail(self, message: str, one: Expression, hint: str | None = None) -> None:
        self.is_wrong = True
        self.checker.fail(message, one.span, hint)

    def value(self, one: Total) -> Quantity | Moment | None:
        assert one.value is not None
        typed = self.rows.typed(one.value)
        if typed is None:
            return None
        if isinstance(typed, Quantity):
            if one.function == "sum" and typed.unit.offset:
                self.checker.misuse("a sum", one.value, typed)
                return None
            return typed
        is_plain = isinstance(typed, Moment) and typed.shift is None
        if isinstance(typed, Moment) and is_plain and one.function in ("min", "max"):
            return typed
        hint = f"to count rows, write count({self.entity} where ...)"
        self.fail(f"{one.function} needs numbers, but this is {typed.spoken}", one.value, hint)
        return None

    # --- what relates rows to a subject ---

    def relation(self, one: Total) -> tuple[tuple[tuple[str, str], ...], Term | None]:
        """The columns that must be equal, and what else must hold of a row."""
        keys = [key for field in one.by if (key := self.shared(field)) is not None]
        where: Term | None = None
        for condition in _conjuncts(one.where) if one.where is not None else ():
            if self.is_own or not self.reads_facts(condition):
                typed = self.rows.condition(condition, "what follows where")
                if typed is None:
                    self.is_wrong = True
                    continue
                both = None if where is None else (where, typed.term)
                where = typed.term if both is None else Call("and", both, typed.term.type)
            elif (pair := self.equal(condition)) is not None:
                keys.append(pair)
        return tuple(dict.fromkeys(keys)), where

    def reads_facts(self, condition: Expression) -> bool:
        return any(isinstance(p, Field) and p.entity != self.entity for p in parts(condition))

    def shared(self, field: Field) -> tuple[str, str] | None:
        """A column that a row must have in common with the facts."""
        if not self.is_own and field.entity != self.entity:
            hint = f"after by stand columns of {self.entity}; write where {self.entity}.column == "
            self.fail(f"{written(field)} is no column of a {self.entity}", field,
                      hint + written(field))  # fmt: skip
            return None
        if self.checker.typed(field) is None:
            self.is_wrong = True
            return None
        return self.pair(field, field)

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


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    inner = condition
    while isinstance(inner, Named):
        inner = inner.value
    match inner:
        case Apply("and", args):
            for arg in args:
                yield from _conjuncts(arg)
        case _:
            yield condition
