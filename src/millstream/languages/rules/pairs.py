"""A subject beside each of the rows that it is compared with: the others of its kind, or a table.

    count(other where distance(vessel, other) <= 500 m)
    min(distance(vessel, buoy) where buoy.lit)

Where a distance is bounded by a number, rows are looked for in the cells around a subject and
nowhere else. On the globe cells are cubes in space, so that there is no edge of the map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product

from millstream.calculus.functions import (
    Assign,
    Branch,
    Distinct,
    Filter,
    FlatMap,
    Join,
    Map,
)
from millstream.calculus.terms import Call, Literal, Term, columns_read
from millstream.calculus.types import BOOLEAN, NUMBER
from millstream.calculus.wiring import Queue
from millstream.languages.rules.distances import AXES, on_globe
from millstream.languages.rules.measured import GLOBE, INSIDE, RADIUS, Measured, add_measure
from millstream.languages.rules.wiring import RulesWiring

#: What the columns of a row begin with, beside those of a subject.
EACH = "each "
#: What coordinates in space may be wrong by, and a little more than what is rounded.
_SPACE_ERROR, _ROUNDED = 1e-7, 1 + 1e-6


#: What another subject is called inside a total.
OTHER = "other"


@dataclass(frozen=True, slots=True)
class RowName:
    """What a row is called beside a subject, and the entity that it is of."""

    word: str
    entity: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """What is measured between a subject and a row, and which of it is bounded by a number.

    The distance `near` is the first of `measured` that has a bound, in its unit.
    """

    measured: tuple[Measured, ...] = ()
    near: str | None = None
    reach: float = 0.0

    def unplaced(self, *, of_row: bool) -> list[Term]:
        """The coordinates, of a row or of the subject, without which nothing is near."""
        return [
            term
            for one in self.measured
            if one.kind != INSIDE and is_between(one)
            for term in one.terms
            if columns_read(term) and _is_of_row(term) == of_row
        ]


def _is_of_row(term: Term) -> bool:
    return any(name.startswith(EACH) for name in columns_read(term))


def is_between(measured: Measured) -> bool:
    return any(map(_is_of_row, measured.terms))


def pairs_of(
    wiring: RulesWiring,
    subjects: Queue,
    rows: Queue,
    pairing: Pairing,
    on: tuple[tuple[str, str], ...],
    name: str,
    *,
    key: str,
    is_own: bool,
) -> Queue:
    """Subjects with rows that have the columns `on` in common (of a row, of a subject)."""
    columns = {EACH + n: n for n in rows.schema.names}
    rows = wiring.columns(rows, columns, name)
    if is_placed := [_is_known(term) for term in pairing.unplaced(of_row=True)]:
        rows = wiring.add(Filter(_all(is_placed)), rows, name=name)
    keys = [(fact, EACH + row) for row, fact in on]
    if pairing.near is not None:
        near = next(one for one in pairing.measured if one.column == pairing.near)
        subjects, rows, cells = _in_cells(wiring, subjects, rows, near, pairing.reach, name)
        keys += cells
    pairs = wiring.add(Join(tuple(keys)), subjects, rows, name=f"{name}_pairs")
    if is_own:
        sides = (pairs.column(key), pairs.column(EACH + key))
        pairs = wiring.add(Filter(Call("!=", sides, BOOLEAN)), pairs, name=f"{name}_others")
    for one in pairing.measured:
        pairs = add_measure(wiring, pairs, one, frozenset(pairs.schema.names))
    return pairs


def narrow(wiring: RulesWiring, facts: Queue, wanted: frozenset[str], name: str) -> Queue:
    """Some columns of the facts, which change less often than all of them."""
    columns = {n: n for n in facts.schema.names if n in wanted}
    return wiring.add(Distinct(), wiring.columns(facts, columns, name), name=name)


# --- cells ---


def _in_cells(
    wiring: RulesWiring, subjects: Queue, rows: Queue, near: Measured, reach: float, name: str
) -> tuple[Queue, Queue, list[tuple[str, str]]]:
    """Rows each in their cell, subjects in all cells that have something within reach.

    A cell is as wide as what is within reach, so on every axis these are two.
    """
    halves = (near.terms[:2], near.terms[2:])
    there = next(half for half in halves if any(map(_is_of_row, half)))
    here = next(half for half in halves if half is not there)
    if near.kind == GLOBE:
        around = min(reach / RADIUS * _ROUNDED + _SPACE_ERROR, 2.0)
        sides = []
        for queue, (north, east), prefix in ((subjects, here, ""), (rows, there, EACH)):
            kept = tuple(queue.schema.names)
            sides.append(on_globe(wiring, queue, north, east, prefix, name, kept))
        subjects, rows = sides
        mine: list[Term] = [subjects.column(axis) for axis in AXES]
        theirs: list[Term] = [rows.column(EACH + axis) for axis in AXES]
        kept_here = [n for n in subjects.schema.names if n not in AXES]
        kept_there = [n for n in rows.schema.names if n not in {EACH + a for a in AXES}]
    else:
        around = max(reach * _ROUNDED, 1e-9)
        mine, theirs = [*here], [*there]
        kept_here, kept_there = list(subjects.schema.names), list(rows.schema.names)
    width = 2 * around * _ROUNDED
    names = [f"cell {n}" for n in range(len(mine))]
    first = [_cell(_plus(term, -around), width) for term in mine]
    least = [Assign(n, subjects.column(n)) for n in kept_here]
    least += [Assign(n, term) for n, term in zip(names, first, strict=True)]
    subjects = wiring.add(Map(tuple(least)), subjects, name=f"{name}_cells")
    subjects = wiring.add(_all_cells(subjects, names), subjects, name=f"{name}_cells")
    own = [Assign(n, rows.column(n)) for n in kept_there]
    own += [Assign(EACH + n, _cell(term, width)) for n, term in zip(names, theirs, strict=True)]
    rows = wiring.add(Map(tuple(own)), rows, name=f"{name}_cells")
    return subjects, rows, [(n, EACH + n) for n in names]


def _all_cells(subjects: Queue, names: list[str]) -> FlatMap:
    """From the least cell on all axes to the one after it on each."""
    others = [Assign(n, subjects.column(n)) for n in subjects.schema.names if n not in names]
    branches: list[Branch] = []
    for steps in product((0, 1), repeat=len(names)):
        cells = [subjects.column(n) for n in names]
        moved = [_plus(c, 1.0) if step else c for c, step in zip(cells, steps, strict=True)]
        # So far out that there is no next cell, a row is not to be found twice.
        is_next: list[Term] = [
            Call(">", (more, cell), BOOLEAN)
            for more, cell, step in zip(moved, cells, steps, strict=True)
            if step
        ]
        columns = [Assign(n, term) for n, term in zip(names, moved, strict=True)]
        branches.append(Branch(_all(is_next) if is_next else None, (*others, *columns)))
    return FlatMap(tuple(branches))


def _cell(place: Term, width: float) -> Term:
    share = Call("/", (place, Literal(width, NUMBER)), NUMBER)
    return _plus(Call("floor", (share,), NUMBER), 0.0)


def _plus(one: Term, other: float) -> Term:
    return Call("+", (one, Literal(other, NUMBER)), NUMBER)


def _all(conditions: list[Term]) -> Term:
    return reduce(lambda a, b: Call("and", (a, b), BOOLEAN), conditions)


def _is_known(term: Term) -> Term:
    return Call("not", (Call("is_null", (term,), BOOLEAN),), BOOLEAN)
