"""Totals over related things, as columns beside the facts of a subject.

    count(vessel by berth.basin)                        those in the basin, oneself among them
    sum(crane.reach where crane.berth == vessel.berth)  the rows of a table that belong to one

Rows are put together by the columns that relate them, and every subject finds the total of
its own. What is not known of a related row leaves the total unknown; a row of which it is not
known to what it is related is related to nothing. Where rows are compared with the subject
otherwise than by equal columns (see `pairs`), pairs are put together by the subject.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from millstream.calculus.functions import Aggregate, Aggregation, Assign, Filter, Map
from millstream.calculus.terms import Call, Column, Literal, Term, columns_read
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, Type
from millstream.calculus.wiring import Queue
from millstream.languages.rules.pairs import EACH, Pairing, narrow, pairs_of
from millstream.languages.rules.typed import finite
from millstream.languages.rules.wiring import RulesWiring

#: What they are called here, and in the calculus.
FUNCTIONS = {"count": "count", "sum": "sum", "min": "min", "max": "max", "mean": "avg"}


@dataclass(frozen=True, slots=True)
class Totalled:
    """A function over the rows of an entity; those of the subject are the facts themselves.

    `keys` are pairs of columns, of a row and of the facts, that must be equal. `value` and
    `where` are about a row.
    """

    column: str
    function: str
    entity: str
    is_own: bool
    value: Term | None
    where: Term | None
    keys: tuple[tuple[str, str], ...]
    #: If terms are about a subject and a row together; columns of a row then begin with `EACH`.
    pairing: Pairing | None = None

    @property
    def type(self) -> Type:
        return INTEGER if self.value is None else self.value.type

    def made(self) -> frozenset[str]:
        return frozenset({self.column})

    def reads(self) -> frozenset[str]:
        """The columns of the facts."""
        facts = frozenset(fact for _, fact in self.keys)
        if self.pairing is not None:
            facts |= {n for n in self._columns() if not n.startswith(EACH)}
        return facts | self.rows() if self.is_own else facts

    def rows(self) -> frozenset[str]:
        """The columns of the rows that are put together."""
        columns = self._columns()
        if self.pairing is not None:
            columns = frozenset(n.removeprefix(EACH) for n in columns if n.startswith(EACH))
        return columns.union(row for row, _ in self.keys)

    def _columns(self) -> frozenset[str]:
        terms = [t for t in (self.value, self.where) if t is not None]
        measured = () if self.pairing is None else self.pairing.measured
        terms += [t for one in measured for t in one.terms]
        made = {one.column for one in measured}
        return frozenset[str]().union(*map(columns_read, terms)) - made


def add_paired_total(
    wiring: RulesWiring,
    facts: Queue,
    rows: Queue,
    totalled: Totalled,
    key: str,
    keep: frozenset[str],
) -> Queue:
    """The facts with a column that is a total over pairs of a subject and a row."""
    pairing = totalled.pairing
    assert pairing is not None
    name = totalled.column.replace(" ", "_")
    subjects = narrow(wiring, facts, totalled.reads() | {key}, f"{name}_subjects")
    others = subjects if totalled.is_own else rows
    pairs = pairs_of(
        wiring, subjects, others, pairing, totalled.keys, name, key=key, is_own=totalled.is_own
    )  # fmt: skip
    by_subject = replace(totalled, keys=((key, key),), is_own=False, pairing=None)
    # Of whom it is not known where it is, it is not known either what is near.
    needed = {fact: facts.column(fact) for _, fact in totalled.keys}
    terms = [*needed.values(), *pairing.unplaced(of_row=False)]
    joined = add_total(wiring, facts, pairs, by_subject, keep.union(*map(columns_read, terms)))
    made: Term = joined.column(totalled.column)
    for term in terms:
        made = Call("if", (_is_null(term), Literal(None, totalled.type), made), totalled.type)
    columns = [Assign(n, joined.column(n)) for n in facts.schema.names if n in keep]
    return wiring.add(Map((*columns, Assign(totalled.column, made))), joined, name=f"{name}_facts")


def add_total(
    wiring: RulesWiring, facts: Queue, rows: Queue, totalled: Totalled, keep: frozenset[str]
) -> Queue:
    """The facts with one more column; of the others those in `keep` stay."""
    name = totalled.column.replace(" ", "_")
    there = f"{totalled.column} there"
    mine = tuple((fact, f"{totalled.column} by {n}") for n, (_, fact) in enumerate(totalled.keys))
    totals = _totals(wiring, rows, totalled, tuple(key for _, key in mine), name)
    # A group that all have left is still there if it is the group of all.
    either = (totals.column(totalled.column), _of_none(totalled))
    total = Call("coalesce", either, totalled.type)
    nothing = Literal(None, totalled.type)
    known = Call("if", (_is_zero(totals.column("doubts")), total, nothing), totalled.type)
    columns = [Assign(key, totals.column(key)) for _, key in mine]
    columns += [Assign(totalled.column, known), Assign(there, Literal(True, BOOLEAN))]
    totalled_rows = wiring.add(Map(tuple(columns)), totals, name=name)
    wanted = keep | totalled.made() | {there} | {fact for fact, _ in mine}
    joined = wiring.left_join(facts, totalled_rows, mine, f"{name}_facts", wanted)
    kept = [Assign(n, joined.column(n)) for n in facts.schema.names if n in keep]
    kept.append(Assign(totalled.column, _of_subject(joined, totalled, there)))
    return wiring.add(Map(tuple(kept)), joined, name=f"{name}_facts")


def _totals(
    wiring: RulesWiring, rows: Queue, totalled: Totalled, keys: tuple[str, ...], name: str
) -> Queue:
    """For each group its total, and of how many rows it is not known what they add to it."""
    asked = [_is_known(rows.column(row)) for row, _ in totalled.keys]
    doubtful: list[Term] = []
    if totalled.where is not None:
        asked.append(Call("coalesce", (totalled.where, Literal(True, BOOLEAN)), BOOLEAN))
        doubtful.append(_is_null(totalled.where))
    if totalled.value is not None:
        doubtful.append(_is_null(totalled.value))
    if asked:
        condition = reduce(lambda a, b: Call("and", (a, b), BOOLEAN), asked)
        rows = wiring.add(Filter(condition), rows, name=f"{name}_related")
    doubt: Term = Literal(0, INTEGER)
    for reason in doubtful:
        doubt = Call("if", (reason, Literal(1, INTEGER), doubt), INTEGER)
    columns = [
        Assign(key, rows.column(row)) for key, (row, _) in zip(keys, totalled.keys, strict=True)
    ]
    columns.append(Assign("doubt", doubt))
    if totalled.value is not None:
        columns.append(Assign("value", totalled.value))
    related = wiring.add(Map(tuple(columns)), rows, name=f"{name}_related")
    value = None if totalled.value is None else related.column("value")
    total = Aggregation(totalled.column, FUNCTIONS[totalled.function], value)
    doubts = Aggregation("doubts", "sum", related.column("doubt"))
    return wiring.add(Aggregate(keys, (total, doubts)), related, name=f"{name}_total")


def _of_none(totalled: Totalled) -> Literal:
    """Of nothing at all the sum is nothing, but the greatest is not known."""
    if totalled.function == "count":
        return Literal(0, INTEGER)
    return Literal(0.0 if totalled.function == "sum" else None, totalled.type)


def _of_subject(joined: Queue, totalled: Totalled, there: str) -> Term:
    total: Term = joined.column(totalled.column)
    if totalled.type == NUMBER:
        total = finite(total)
    made: Term = Call(
        "if", (_is_null(joined.column(there)), _of_none(totalled), total), totalled.type
    )
    for _, fact in totalled.keys:
        is_unknown = _is_null(joined.column(fact))
        made = Call("if", (is_unknown, Literal(None, totalled.type), made), totalled.type)
    return made


def _is_zero(count: Column) -> Term:
    """Of a group without rows there is no sum of doubts."""
    zero = Literal(0, INTEGER)
    return Call("==", (Call("coalesce", (count, zero), INTEGER), zero), BOOLEAN)


def _is_null(term: Term) -> Term:
    return Call("is_null", (term,), BOOLEAN)


def _is_known(term: Term) -> Term:
    return Call("not", (_is_null(term),), BOOLEAN)
