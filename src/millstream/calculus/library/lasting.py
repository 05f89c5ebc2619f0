"""What has been so for how long, and what was so before: of the changes of a table.

The rows of a table change at exact instants, so all of this is exact as well:

    held_for      rows that have been there for a length of time without a break:
                  Except(rows, Range(Istream(rows)))
    held_within   rows that were there at some moment of the last length of time:
                  Distinct(Merge(rows, Range(Dstream(rows))))
    latched       for each key a condition that one makes true and another false:
                  Latest(Fold(Istream(table))), forgotten when the key leaves
    delayed       the table as it was a length of time ago:
                  Latest(Istream(Held(Istream(table))))
"""

from __future__ import annotations

from millstream.calculus.functions import (
    Assign,
    Distinct,
    Dstream,
    Except,
    Fold,
    Held,
    Istream,
    Latest,
    Map,
    Merge,
    Range,
    Update,
)
from millstream.calculus.graph import Variable
from millstream.calculus.library.columns import flag, kept, unlike
from millstream.calculus.terms import Call, Column, Literal, VariableField
from millstream.calculus.types import BOOLEAN, DURATION, TIME, TIME_COLUMN, Field
from millstream.calculus.wiring import Queue, Wiring


def held_for(wiring: Wiring, rows: Queue, length: int, *, name: str) -> Queue:
    """Of a relation that has each row once, those that have been there so long."""
    began = wiring.add(Istream(), rows, name=name)
    # A window has both its ends, and after exactly the length a row has been there for it.
    recent = wiring.add(Range(length - 1), began, name=name)
    once = wiring.add(Distinct(), recent, name=name)
    return wiring.add(Except(), rows, once, name=name)


def held_within(wiring: Wiring, rows: Queue, length: int, *, name: str) -> Queue:
    """Rows that are there, or were shortly before."""
    left = wiring.add(Dstream(), rows, name=name)
    recent = wiring.add(Range(length - 1), left, name=name)
    return wiring.add(Distinct(), wiring.add(Merge(), rows, recent, name=name), name=name)


def latched(wiring: Wiring, table: Queue, key: str, on: str, off: str, *, name: str) -> Queue:
    """Whether `on` has been true since `off` last was, in the column `on`; at first it is not.

    Where both are true, it is on. What is not known leaves it as it is only if it cannot
    change it: on or (before and not off), in the logic of what is not known.
    """
    variable = wiring.fresh_variable(f"{name}_latch")
    state = VariableField(variable, "is_on", BOOLEAN)
    gone = unlike("gone", table.schema)
    events = _events(wiring, table, key, gone, name)
    stays = Call("and", (state, Call("not", (events.column(off),), BOOLEAN)), BOOLEAN)
    after = Call("or", (events.column(on), stays), BOOLEAN)
    # Who leaves and comes again begins anew.
    is_left = Call("and", (after, Call("not", (events.column(gone),), BOOLEAN)), BOOLEAN)
    columns = (
        Assign(key, events.column(key)), Assign(on, state), Assign(gone, events.column(gone)),
    )  # fmt: skip
    fold = Fold((key,), None, (Update(variable, "is_on", is_left),), columns)
    at_first = Variable(variable, (Field("is_on", BOOLEAN),), (False,))
    folded = wiring.fold(fold, events, at_first, name)
    latest = wiring.add(Latest((key,), gone), folded, name=name)
    return wiring.columns(latest, {key: key, on: on}, name)


def delayed(wiring: Wiring, table: Queue, key: str, length: int, *, name: str) -> Queue:
    """The table as it was so long ago."""
    gone, due = unlike("gone", table.schema), unlike("due", table.schema)
    events = _events(wiring, table, key, gone, name)
    later = Call("+", (Column(TIME_COLUMN, TIME), Literal(length, DURATION)), TIME)
    stamped = wiring.add(Map((*kept(events.schema), Assign(due, later))), events, name=name)
    released = wiring.add(Held(due, is_alone=True), stamped, name=name)
    again = wiring.add(Istream(), released, name=name)
    latest = wiring.add(Latest((key,), gone), again, name=name)
    return wiring.columns(latest, {n: n for n in table.schema.names}, name)


def _events(wiring: Wiring, table: Queue, key: str, gone: str, name: str) -> Queue:
    """The rows that come into a table, and a row without values when a key leaves it."""
    came = wiring.add(Istream(), table, name=name)
    coming = wiring.add(Map((*kept(came.schema), flag(gone, value=False))), came, name=name)
    keys = wiring.add(Distinct(), wiring.columns(table, {key: key}, name), name=name)
    left = wiring.add(Dstream(), keys, name=name)
    empty = tuple(
        Assign(f.name, left.column(key) if f.name == key else Literal(None, f.type))
        for f in table.schema
    )
    leaving = wiring.add(Map((*empty, flag(gone, value=True))), left, name=name)
    return wiring.add(Merge(), coming, leaving, name=name)
