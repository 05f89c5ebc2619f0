"""How the rows of a view follow from the rows of streams, one by one.

Most rules work on relations, whatever these are made of. Where more is known, less need be kept:

RowFlow   each row of the view is a row of a stream, and its columns are terms over that
Tally     each row is a group of the rows of a stream, of which sums and counts are taken
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from millstream.calculus.functions import Aggregation
from millstream.calculus.rename import substitute
from millstream.calculus.terms import Column, Term, columns_read
from millstream.calculus.types import INTEGER
from millstream.calculus.wiring import Queue

Columns = Mapping[str, Term]


@dataclass(frozen=True, slots=True)
class RowFlow:
    """The columns of a view's queue as terms over a stream, whose rows come at their `tick`.

    `tick` is None where a row may come at another time than its tick says.
    """

    stream: Queue
    columns: Columns
    tick: str | None = None

    def of(self, term: Term) -> Term:
        """A term over the columns of the queue as one over those of the stream."""
        return substitute(term, dict(self.columns))


@dataclass(frozen=True, slots=True)
class FlowGroups:
    """Groups of the rows of a flow by one key.

    `columns` are terms over the key, by its name `by`, and over the aggregations.
    """

    flow: RowFlow
    by: str
    key: Term
    aggregations: tuple[Aggregation, ...]
    columns: Columns

    def of(self, term: Term) -> Term:
        return substitute(term, dict(self.columns))


def renamed(
    rows: RowFlow | FlowGroups | None, names: Mapping[str, str]
) -> RowFlow | FlowGroups | None:
    """The same of a queue whose columns have other names."""
    if rows is None:
        return None
    return replace(rows, columns={names[old]: term for old, term in rows.columns.items()})


def projected(rows: RowFlow | FlowGroups | None, columns: Columns) -> RowFlow | FlowGroups | None:
    """The same of a queue whose columns are terms over those before."""
    if rows is None or any(columns_read(t) - set(rows.columns) for t in columns.values()):
        return None
    return replace(rows, columns={name: rows.of(term) for name, term in columns.items()})


def tallied(
    flow: RowFlow | FlowGroups | None, by: str, key: Term, aggregations: tuple[Aggregation, ...]
) -> FlowGroups | None:
    """The groups of a flow, if all that is taken of them are sums and counts of whole numbers."""
    if not isinstance(flow, RowFlow):
        return None
    made: list[Aggregation] = []
    for one in aggregations:
        term = None if one.term is None else flow.of(one.term)
        is_sum = one.function == "sum" and isinstance(term, Column) and term.type == INTEGER
        if not is_sum and (one.function != "count" or term is not None):
            return None
        made.append(replace(one, term=term))
    names = (by, *(a.name for a in made))
    types = (key.type, *(a.result_type() for a in made))
    columns = {n: Column(n, t) for n, t in zip(names, types, strict=True)}
    return FlowGroups(flow, by, flow.of(key), tuple(made), columns)
