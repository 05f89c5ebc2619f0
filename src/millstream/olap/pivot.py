"""Columns of members: a row for each group of the rows, a column for each of the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.calculus.cube import TIME_OF_CELL
from millstream.olap.question import OTHERS, Question
from millstream.olap.tables import AnswerTable, plain_values
from millstream.plan.batch import Array, Vector


@dataclass(frozen=True)
class Header:
    """A column of a pivoted answer: its members, the measure, and what it is called."""

    members: tuple[tuple[str, Any], ...]
    measure: str
    name: str

    def record(self) -> dict[str, Any]:
        return {"members": dict(self.members), "measure": self.measure, "name": self.name}


def pivoted(
    table: AnswerTable, question: Question, headers: tuple[Header, ...] | None = None
) -> tuple[AnswerTable, tuple[Header, ...]]:
    """A table whose columns are members; with headers that are given, of these alone.

    Totals have no shares, so they have fewer columns.
    """
    by_name = dict(zip(table.names, table.vectors, strict=True))
    row_names = [n for n in (*question.rows, TIME_OF_CELL, OTHERS) if n in by_name]
    values = [n for n in table.names if n not in (*row_names, *question.columns)]
    rows, first = _numbered([plain_values(by_name[n]) for n in row_names], len(table))
    members = list(zip(*(plain_values(by_name[n]) for n in question.columns), strict=True))
    if headers is None:
        headers = _headers(question, members, values, row_names)
    by_members: dict[tuple[Any, ...], list[int]] = {}
    for place, one in enumerate(members):
        by_members.setdefault(one, []).append(place)
    made = [(n, by_name[n].take(first)) for n in row_names]
    for header in (h for h in headers if h.measure in by_name):
        places = np.array(by_members.get(tuple(v for _, v in header.members), []), np.int64)
        made.append((header.name, _spread(by_name[header.measure], places, rows, len(first))))
    names, vectors = tuple(n for n, _ in made), tuple(v for _, v in made)
    return AnswerTable(names, vectors, len(first)), headers


def _headers(
    question: Question, members: list[tuple[Any, ...]], values: list[str], row_names: list[str]
) -> tuple[Header, ...]:
    """By members, falling where that is asked for; each measure once for each combination."""
    falling = {one.name for one in question.order if one.is_falling}
    distinct = sorted(set(members), key=repr)
    for place, name in reversed([*enumerate(question.columns)]):
        _sort_by(distinct, place, is_falling=name in falling)
    taken = set(row_names)
    made = []
    for one in distinct:
        for value in values:
            words = ["null" if v is None else str(v) for v in one]
            name = wanted = " / ".join([*words, value])
            number = 1
            while name in taken:
                number += 1
                name = f"{wanted} ({number})"
            taken.add(name)
            pairs = tuple(zip(question.columns, one, strict=True))
            made.append(Header(pairs, value, name))
    return tuple(made)


def _sort_by(members: list[tuple[Any, ...]], place: int, *, is_falling: bool) -> None:
    """Null is the last, falling or not."""

    def key(one: tuple[Any, ...]) -> tuple[str, Any]:
        value = one[place]
        return ("", 0) if value is None else (str(type(value)), value)

    members.sort(key=key, reverse=is_falling)
    members.sort(key=lambda one: one[place] is None)


def _numbered(columns: list[list[Any]], size: int) -> tuple[Array, Array]:
    """The number of each distinct row, in the order in which they come, and their first places."""
    known: dict[tuple[Any, ...], int] = {}
    first: list[int] = []
    ids = np.zeros(size, np.int64)
    rows = zip(*columns, strict=True) if columns else (() for _ in range(size))
    for place, row in enumerate(rows):
        if row not in known:
            known[row] = len(first)
            first.append(place)
        ids[place] = known[row]
    return ids, np.array(first, np.int64)


def _spread(vector: Vector, places: Array, rows: Array, size: int) -> Vector:
    values = np.zeros(size, np.asarray(vector.values).dtype)
    valid = np.zeros(size, np.bool_)
    values[rows[places]] = np.asarray(vector.values)[places]
    valid[rows[places]] = vector.mask()[places]
    return Vector(vector.type, values, valid)
