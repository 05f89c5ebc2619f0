"""Accounts: rows of a stream, each with what another stream adds up under its tick, while it is in.

    SELECT ... FROM Bids JOIN Sold USING (bid) WHERE shares - total > 0

If a row that is out is out for ever, nothing needs to be kept of it: neither the row nor the sums
of its tick, which nobody else has. So what is kept follows the rows that are in, and not
history. One fold by the tick is given the rows of both streams:

    row      is there from now on, with all that was added before it came
    entry    is added; the row, if there is one, changes
    both     if the row is out now, all of it is as if it had never been

and what it tells is the latest of each tick. What is added later to a tick whose row is gone
changes nothing. Where rows come in the order of their ticks, it is not even kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.calculus.functions import Assign, Fold, Latest, Map, Merge, Update
from millstream.calculus.graph import Variable
from millstream.calculus.rename import substitute
from millstream.calculus.terms import Call, Column, Literal, Term, VariableField
from millstream.calculus.types import BOOLEAN, INTEGER, TIME, Field, Type
from millstream.calculus.wiring import Queue, Wiring
from millstream.languages.smile.cells import (
    FALSE,
    TRUE,
    Account,
    both,
    choose,
    either,
    negated,
    null,
)
from millstream.source import Span

_KEY, _IS_ROW, _NOW, _GONE, _THERE = ".key", ".is_row", ".now", ".gone", ".there"
_ZERO, _ONE = Literal(0, INTEGER), Literal(1, INTEGER)


@dataclass
class Opening:
    """Mutable: the wiring of an account, and the variable that it is kept in."""

    wiring: Wiring
    account: Account
    name: str
    span: Span | None

    def __post_init__(self) -> None:
        self.variable = self.wiring.fresh_variable(f"{self.name}_account")
        columns = self.account.rows.columns
        self.kept = {n: t for n, t in columns.items() if n != self.account.tick}
        self.sums = [a.name for a in self.account.entries.aggregations]

    def queue(self) -> Queue:
        """The rows that are in, with the columns of both."""
        wiring, name = self.wiring, self.name
        both_streams = wiring.add(Merge(), self._rows(), self._entries(), name=f"{name}_events")
        told = wiring.fold(self._fold(), both_streams, self._state(), f"{name}_account")
        latest = Latest((self.account.tick,), _GONE)
        open_rows = wiring.add(latest, told, name=f"{name}_open", origin=self.span)
        shown = {n: n for n in open_rows.schema.names if n != _GONE}
        return wiring.columns(open_rows, shown, f"{name}_open")

    # --- both streams as one ---

    def _rows(self) -> Queue:
        rows = self.account.rows
        made = [Assign(_KEY, rows.columns[self.account.tick]), Assign(_IS_ROW, TRUE),
                Assign(_NOW, null(TIME))]  # fmt: skip
        made += [Assign(n, t) for n, t in self.kept.items()]
        made += [Assign(n, _ZERO) for n in self.sums]
        return self.wiring.add(Map(tuple(made)), rows.stream, name=f"{self.name}_rows")

    def _entries(self) -> Queue:
        entries = self.account.entries
        flow = entries.flow
        now = null(TIME) if flow.tick is None else flow.stream.column(flow.tick)
        made = [Assign(_KEY, entries.key), Assign(_IS_ROW, FALSE), Assign(_NOW, now)]
        made += [Assign(n, null(t.type)) for n, t in self.kept.items()]
        made += [Assign(a.name, a.term or _ONE) for a in entries.aggregations]
        return self.wiring.add(Map(tuple(made)), flow.stream, name=f"{self.name}_entries")

    # --- the fold ---

    def _state(self) -> Variable:
        fields = [Field(n, t.type) for n, t in self.kept.items()]
        sums = [Field(n, INTEGER) for n in self.sums]
        initial = (*(None for _ in fields), *(0 for _ in sums), False)
        return Variable(self.variable, (*fields, *sums, Field(_THERE, BOOLEAN)), initial)

    def _fold(self) -> Fold:
        is_row = Column(_IS_ROW, BOOLEAN)
        there = self._field(_THERE, BOOLEAN)
        values = {n: choose(is_row, Column(n, t.type), self._field(n, t.type))
                  for n, t in self.kept.items()}  # fmt: skip
        sums: dict[str, Term] = {
            n: Call("+", (self._field(n, INTEGER), Column(n, INTEGER)), INTEGER) for n in self.sums
        }
        is_in = self._told(self.account.mask.is_in, {**values, **sums})
        is_there = either(is_row, there)
        is_out = both(is_there, negated(is_in))
        new = {n: choose(is_out, null(t.type), t) for n, t in values.items()}
        new |= {n: choose(is_out, _ZERO, t) for n, t in sums.items()}
        new[_THERE] = both(is_there, is_in)
        updates = tuple(Update(self.variable, n, t) for n, t in new.items())
        return Fold((_KEY,), self._when(is_row, there), updates, self._emitted(there))

    def _when(self, is_row: Term, there: Term) -> Term | None:
        """What comes for a tick that has passed without a row, or whose row is out, is nothing."""
        if self.account.rows.tick is None or self.account.entries.flow.tick is None:
            return None
        may_come = Call(">=", (Column(_KEY, TIME), Column(_NOW, TIME)), BOOLEAN)
        return either(is_row, there, may_come)

    def _emitted(self, there: Term) -> tuple[Assign, ...]:
        after = {n: self._field(n, t.type) for n, t in self.kept.items()}
        after |= {n: self._field(n, INTEGER) for n in self.sums}
        names = (*self.account.rows.columns, *self.account.entries.columns)
        types = {n: t.type for n, t in self.account.rows.columns.items()}
        types |= {n: t.type for n, t in self.account.entries.columns.items()}
        made = [Assign(n, self._told(Column(n, types[n]), after)) for n in names]
        return (*made, Assign(_GONE, negated(there)))

    def _told(self, term: Term, known: dict[str, Term]) -> Term:
        """A term over the columns of the join, as one over what the fold knows."""
        entries = self.account.entries
        key = Column(_KEY, TIME)
        tallied = {**known, entries.by: key}
        columns = {n: substitute(t, tallied) for n, t in entries.columns.items()}
        return substitute(term, {**columns, **known, self.account.tick: key})

    def _field(self, name: str, type_: Type) -> Term:
        return VariableField(self.variable, name, type_)
