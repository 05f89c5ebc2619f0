"""Conditions and values that look back: their types, and the columns that hold them.

    C for 10 min      C has held for ten minutes without a break
    C within 10 min   C has held at some moment of the last ten minutes
    C since D         D has held at some moment, with C, and C ever since
    C until D         C has held at some moment, and D not since then: hysteresis
    before(x, 10 min) what x was ten minutes ago
    rate(x, 10 min)   by how much x has changed since then, per time

Each becomes a column beside the facts of a subject, which `add_column` makes of their changes.
What is not known now or was not known then is neither true nor false.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.calculus.functions import Assign, Distinct, Filter, Join, Lookup, Map
from millstream.calculus.library.lasting import delayed, held_for, held_within, latched
from millstream.calculus.terms import Call, Column, Literal, Term, columns_read
from millstream.calculus.types import BOOLEAN
from millstream.calculus.wiring import Queue
from millstream.languages.rules.wiring import RulesWiring

#: Conditions that last for a length of time, and conditions between two others.
LASTING = ("for", "within")
BETWEEN = ("since", "until")
#: Values of before, written as calls.
CALLS = ("before", "rate")
_FALSE = Literal(False, BOOLEAN)


@dataclass(frozen=True, slots=True)
class Remembered:
    """A column that tells of what was: `terms` over the facts are what it looks back at."""

    column: str
    kind: str
    terms: tuple[Term, ...]
    #: How far it looks back, in microseconds; nothing where a condition tells.
    length: int = 0

    @property
    def perhaps(self) -> str:
        """Beside a condition that has lasted: whether it may have, as far as is known."""
        return f"{self.column} perhaps"

    def made(self) -> frozenset[str]:
        return frozenset({self.column, self.perhaps} if self.kind in LASTING else {self.column})

    def reads(self) -> frozenset[str]:
        return frozenset[str]().union(*(columns_read(t) for t in self.terms))


def truth_of(remembered: Remembered) -> Term:
    """The condition that a column stands for."""
    column = Column(remembered.column, BOOLEAN)
    if remembered.kind in BETWEEN:
        return column
    unless = Call(
        "if", (Column(remembered.perhaps, BOOLEAN), Literal(None, BOOLEAN), _FALSE), BOOLEAN
    )
    return Call("if", (column, Literal(True, BOOLEAN), unless), BOOLEAN)


def add_column(
    wiring: RulesWiring, facts: Queue, remembered: Remembered, key: str, keep: frozenset[str]
) -> Queue:
    """The facts with one more column; of the others those in `keep` stay."""
    name = remembered.column.replace(" ", "_")
    if remembered.kind in LASTING:
        return _lasting(wiring, facts, remembered, key, name)
    make = _before if remembered.kind == "before" else _between
    table = make(wiring, facts, remembered, key, name)
    whose = f"{remembered.column} of"
    mine = wiring.columns(table, {whose: key, remembered.column: remembered.column}, name)
    if remembered.kind == "before":
        return wiring.left_join(
            facts, mine, ((key, whose),), f"{name}_facts", keep | {remembered.column}
        )
    # Whoever has facts is told of, so nobody is lost.
    both = wiring.add(Join(((key, whose),)), facts, mine, name=f"{name}_facts")
    return wiring.columns(
        both, {n: n for n in (*facts.schema.names, remembered.column)}, f"{name}_facts"
    )


def _narrow(
    wiring: RulesWiring, facts: Queue, key: str, terms: dict[str, Term], name: str
) -> Queue:
    """For each subject what is looked back at, which changes less often than all of its facts."""
    columns = tuple(Assign(n, t) for n, t in {key: facts.column(key), **terms}.items())
    return wiring.add(Distinct(), wiring.add(Map(columns), facts, name=name), name=name)


def _lasting(
    wiring: RulesWiring, facts: Queue, remembered: Remembered, key: str, name: str
) -> Queue:
    """Whether it surely has lasted, and whether it may have."""
    (condition,) = remembered.terms
    rows = _narrow(wiring, facts, key, {remembered.column: condition}, name)
    look_back = held_for if remembered.kind == "for" else held_within
    for column, unknown in ((remembered.column, False), (remembered.perhaps, True)):
        holds = Call(
            "coalesce", (rows.column(remembered.column), Literal(unknown, BOOLEAN)), BOOLEAN
        )
        holding = wiring.columns(wiring.add(Filter(holds), rows, name=name), {key: key}, name)
        once = wiring.add(Distinct(), holding, name=name)
        keys = look_back(wiring, once, remembered.length, name=name)
        facts = wiring.add(Lookup(column, ((key, key),)), facts, keys, name=f"{name}_facts")
    return facts


def _between(
    wiring: RulesWiring, facts: Queue, remembered: Remembered, key: str, name: str
) -> Queue:
    first, second = remembered.terms
    on, off = first, second
    if remembered.kind == "since":
        on = Call("and", (second, first), BOOLEAN)
        off = Call("not", (first,), BOOLEAN)
    rows = _narrow(wiring, facts, key, {remembered.column: on, "off": off}, name)
    return latched(wiring, rows, key, remembered.column, "off", name=name)


def _before(
    wiring: RulesWiring, facts: Queue, remembered: Remembered, key: str, name: str
) -> Queue:
    (value,) = remembered.terms
    rows = _narrow(wiring, facts, key, {remembered.column: value}, name)
    return delayed(wiring, rows, key, remembered.length, name=name)
