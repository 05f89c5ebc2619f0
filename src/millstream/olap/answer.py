"""Answering a question from one version of a cube."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from millstream.calculus.cube import TIME_OF_CELL
from millstream.calculus.types import INTEGER, NUMBER, TIME
from millstream.kernels.cube.versions import Version
from millstream.olap.groups import (
    Content,
    Grouping,
    Groups,
    Limits,
    PlacedAttribute,
    TooMuch,
    parts_as_times,
)
from millstream.olap.pivot import Header, pivoted
from millstream.olap.plain import PlainGrouping, PlainVersion
from millstream.olap.planning import Plan, kept_vertex, plan, vertex_record
from millstream.olap.question import OTHERS, Order, Question
from millstream.olap.tables import AnswerTable, ranks, stacked, taken
from millstream.plan.batch import Array, Vector
from millstream.values.instants import render_time


@dataclass(frozen=True)
class Answer:
    """The cells that were asked for, of which version, and what it took."""

    cells: AnswerTable
    totals: tuple[AnswerTable, ...]
    headers: tuple[Header, ...]
    as_of: int | None
    version: int
    asked: dict[str, object]
    answering: dict[str, object]
    read: int
    milliseconds: float

    def about(self) -> dict[str, Any]:
        """All but the cells."""
        return {
            "as_of": None if self.as_of is None else render_time(self.as_of),
            "version": self.version, "asked": self.asked, "answered_by": self.answering,
            "cells_read": self.read, "milliseconds": round(self.milliseconds, 3),
        }  # fmt: skip

    def record(self) -> dict[str, Any]:
        made: dict[str, Any] = {"cells": self.cells.records()}
        if self.headers:
            made["columns"] = [h.record() for h in self.headers]
        if self.totals:
            made["totals"] = [row for table in self.totals for row in table.records()]
        return made | self.about()


def answer(version: Version, question: Question, limits: Limits | None = None) -> Answer:
    """The answer of a version to a question."""
    started = perf_counter()
    how = plan(version, question)
    version = version.as_of(None if question.as_of is None else how.as_of)
    grouping = PlainGrouping if isinstance(version, PlainVersion) else Grouping
    begun = grouping(version, question, how, (limits or Limits()).begun())
    answering = _Answering(version, question, how, begun)
    cells, totals, headers = answering.tables()
    cube = version.function
    return Answer(
        cells, totals, headers, how.as_of, version.number,
        vertex_record(cube, how.asked, question.grain), kept_vertex(how.answering, cube),
        answering.grouping.read, 1000 * (perf_counter() - started),
    )  # fmt: skip


class _Answering:
    """Mutable: one question on its way to its answer."""

    def __init__(self, version: Version, question: Question, how: Plan, grouping: Grouping) -> None:
        self.version = version
        self.question = question
        self.how = how
        self.limits = grouping.limits
        self.grouping = grouping
        finest = version.function.finest.attributes
        self.places = self.grouping.places(self.grouping.by, finest)
        self.chosen = [
            n for n, m in enumerate(version.function.measures) if m.name in question.measures
        ]
        self.chosen.sort(key=lambda n: question.measures.index(version.function.measures[n].name))
        self.names = [version.function.measures[n].name for n in self.chosen]

    def tables(self) -> tuple[AnswerTable, tuple[AnswerTable, ...], tuple[Header, ...]]:
        question, how = self.question, self.how
        groups = self.grouping.groups(how.span)
        before: Content | None = None
        if how.before is not None:
            assert question.earlier is not None
            earlier = self.grouping.groups(how.before, shifted=question.earlier)
            groups, before = self._beside(groups, earlier)
        table = self._table(groups, before)
        totals = tuple(self._totals(groups, before)) if question.has_totals else ()
        headers: tuple[Header, ...] = ()
        if question.columns:
            table, headers = pivoted(table, question)
            totals = tuple(pivoted(t, question, headers)[0] for t in totals)
        if len(table) * max(1, len(table.names)) > 20 * self.limits.cells or (
            len(table) > self.limits.cells
        ):
            raise TooMuch(
                f"the answer has more than {self.limits.cells:,} cells",
                hint="ask for coarser levels, for some members, or with a limit",
            )
        return table, totals, headers

    def _table(self, groups: Groups, before: Content | None) -> AnswerTable:
        """The cells in the order that is asked for."""
        question = self.question
        if before is None and not (question.order or question.limit or question.share):
            # Most ask so: nothing is made before its place is known.
            order = None if self._is_in_order(groups) else self._usual_order(groups)
            if order is not None:
                groups = replace(groups, codes=groups.codes.take(order, axis=0), _numbers={})
            told_measures = zip(self.names, self._told(groups.held, order), strict=True)
            return _table([*self._attributes(groups), *told_measures], len(groups))
        measures = self._measures(groups.held, before) + self._shares(groups)
        order = self._order(groups, measures)
        if question.limit is not None:
            return self._limited(groups, before, measures, order)
        columns = [*self._attributes(groups), *measures]
        return _table(columns, len(groups)).take(order)

    # --- columns ---

    def _attributes(self, groups: Groups, count: int | None = None) -> Iterator[tuple[str, Vector]]:
        """The members of groups; of rows only so many where that is said."""
        question = self.question
        rows = len(question.rows) if count is None else count
        names = [*question.rows[:rows], *question.columns]
        places = [*range(rows), *range(len(question.rows), len(self.places))]
        for name, column in zip(names, places, strict=True):
            yield name, taken(self.places[column].values, groups.numbers(column))
        if question.grain is not None:
            yield TIME_OF_CELL, Vector(TIME, parts_as_times(groups.codes[:, -1], question.grain))

    def _measures(self, held: Content, before: Content | None) -> list[tuple[str, Vector]]:
        now = self._told(held)
        made = list(zip(self.names, now, strict=True))
        if before is not None:
            for name, vector, old in zip(self.names, now, self._told(before), strict=True):
                made += [(f"{name}_before", old), (f"{name}_change", _difference(vector, old))]
        return made

    def _told(self, held: Content, order: Array | None = None) -> list[Vector]:
        """The measures that are asked for."""
        vectors = self.grouping.told(held, order)
        return [vectors[n] for n in self.chosen]

    def _shares(self, groups: Groups) -> list[tuple[str, Vector]]:
        """What a group has of all groups with the same parent."""
        question = self.question
        if not question.share:
            return []
        parents, count = self._parents(groups)
        whole = self.grouping.put_together(groups.held, parents, count)
        names = [m.name for m in self.version.function.measures]
        own, theirs = (self.grouping.told(held) for held in (groups.held, whole))
        made = []
        for name in question.share:
            part, of = own[names.index(name)], theirs[names.index(name)].take(parents)
            made.append((f"{name}_share", _quotient(part, of)))
        return made

    def _parents(self, groups: Groups) -> tuple[Array, int]:
        """Groups by all rows but the last, by columns and by time."""
        last = len(self.question.rows) - 1
        codes = np.delete(groups.codes, last, axis=1) if last >= 0 else groups.codes
        return self.grouping.numbered(codes)

    def _rows(self, groups: Groups, *, but: int = 0) -> tuple[Array, int]:
        """Groups by all rows, or all but so many of the last, and by time; whatever the columns."""
        shown = len(self.question.rows)
        return self.grouping.numbered(
            groups.codes[:, [*range(shown - but), groups.codes.shape[1] - 1]]
        )

    # --- order ---

    def _order(self, groups: Groups, measures: list[tuple[str, Vector]]) -> Array:
        """Groups as they are asked for, then by their members."""
        asked = [
            self._key(one, groups, dict(measures)) for one in self.question.order
            if one.name not in self.question.columns
        ]  # fmt: skip
        if not asked and self.question.limit is None:
            return self._usual_order(groups)
        *usual, time = self._usual_keys(groups)
        keys = [*asked, *usual, time]
        if self.question.limit is not None:
            # The members of a parent stay together, in the order that is asked for.
            last = len(self.question.rows) - 1
            keys = [*usual[:last], time, *asked, *usual[last:]]
        return np.lexsort(keys[::-1])

    def _usual_keys(self, groups: Groups) -> list[Array]:
        """The members of rows, then time; of those that are columns the table has no order."""
        return [*(self._rank(n, groups) for n in range(len(self.question.rows))),
                groups.codes[:, -1]]  # fmt: skip

    def _is_in_order(self, groups: Groups) -> bool:
        """Columns come before time in the order of groups."""
        return groups.is_in_order and not (self.question.columns and self.question.grain)

    def _usual_order(self, groups: Groups) -> Array:
        """By members, then by time."""
        if self._is_in_order(groups):
            return np.arange(len(groups))
        return np.lexsort(self._usual_keys(groups)[::-1])

    def _key(self, order: Order, groups: Groups, measures: dict[str, Vector]) -> Array:
        """Equal values have equal keys; null comes last, falling or not."""
        if order.name == TIME_OF_CELL and order.name not in self.grouping.by:
            parts = groups.codes[:, -1]
            return -parts if order.is_falling else parts
        if order.name in self.grouping.by:
            column = self.grouping.by.index(order.name)
            key = self._rank(column, groups)
            valid = self.places[column].values.mask()[groups.codes[:, column]]
        elif self.question.columns:
            # Cells of a row stand beside each other: it is the whole row that is ordered by.
            rows, count = self._rows(groups)
            whole = self.grouping.put_together(groups.held, rows, count)
            vector = self._told_of(order.name, whole).take(rows)
            key, valid = ranks(vector), vector.mask()
        else:
            vector = measures.get(order.name) or self._told_of(order.name, groups.held)
            key, valid = ranks(vector), vector.mask()
        return np.where(valid, -key, 1) if order.is_falling else key

    def _told_of(self, name: str, held: Content) -> Vector:
        names = [m.name for m in self.version.function.measures]
        return self.grouping.told(held)[names.index(name)]

    def _rank(self, column: int, groups: Groups) -> Array:
        place: PlacedAttribute = self.places[column]
        return place.members.ranks(place.wanted)[groups.codes[:, column]]

    # --- limits, totals, comparisons ---

    def _limited(
        self, groups: Groups, before: Content | None, measures: list[tuple[str, Vector]],
        order: Array,
    ) -> AnswerTable:  # fmt: skip
        """The first of each parent, and all others of it as one row."""
        limit = self.question.limit
        assert limit is not None
        parents, count = self._parents(groups)
        place = self._places_of_rows(groups, order)
        first, rest = order[place < limit], order[place >= limit]
        columns = [*self._attributes(groups), *measures]
        table = _table(columns, len(groups)).take(first)
        if not self.question.has_others:
            return table
        table = AnswerTable(
            (*table.names, OTHERS), (*table.vectors, _nulls(len(table))), len(table)
        )
        if not len(rest):
            return table
        others, example = self._others(groups, before, parents, rest, count)
        # Others come after the first ones of their parent.
        above, size = self._rows(groups, but=1)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        start = np.full(size, len(order))
        np.minimum.at(start, above, place)
        shown = np.concatenate([first, example])
        is_other = np.arange(len(shown)) >= len(first)
        keys = [place[shown], is_other, start[above[shown]]]
        return stacked(table, others).take(np.lexsort(keys))

    def _places_of_rows(self, groups: Groups, order: Array) -> Array:
        """The how manieth row of its parent each group is in, in the order of groups."""
        rows, above = (self._rows(groups, but=n)[0][order] for n in (0, 1))
        is_new_row = np.diff(rows, prepend=-1) != 0
        is_new_parent = np.diff(above, prepend=-1) != 0
        numbers = np.cumsum(is_new_row)
        return numbers - np.maximum.accumulate(np.where(is_new_parent, numbers, 0))

    def _others(
        self, groups: Groups, before: Content | None, parents: Array, rest: Array, count: int
    ) -> tuple[AnswerTable, Array]:
        """One row for each parent that has more members than are shown, and a group of each."""
        present = _distinct(parents[rest])
        target = np.full(count, -1, np.int64)
        target[present] = np.arange(len(present))
        ids = target[parents[rest]]
        targets = np.full(len(groups), -1, np.int64)
        targets[rest] = ids
        merged = [
            None if given is None else self.grouping.put_together(given, targets, len(present))
            for given in (groups.held, before)
        ]
        assert merged[0] is not None
        rows, above = self._rows(groups)[0][rest], self._rows(groups, but=1)[0]
        left = above[rest][np.unique(rows, return_index=True)[1]]
        # Any of them will do for what they share.
        example = np.empty(len(present), np.int64)
        example[ids] = rest
        size = np.bincount(left, minlength=len(groups))[above[example]].astype(np.int64)
        columns = dict(self._attributes(Groups(groups.codes[example], merged[0])))
        last = self.question.rows[-1]
        columns[last] = _none_of(columns[last])
        columns |= dict(self._measures(merged[0], merged[1]))
        for name in self.question.share:
            columns[f"{name}_share"] = self._rest_of_share(
                groups, name, parents, present, merged[0]
            )
        columns_told = [*columns.items(), (OTHERS, Vector(INTEGER, size))]
        return _table(columns_told, len(present)), example

    def _rest_of_share(
        self, groups: Groups, name: str, parents: Array, present: Array, held: Content
    ) -> Vector:
        names = [m.name for m in self.version.function.measures]
        count = int(parents.max(initial=-1)) + 1
        whole = self.grouping.put_together(groups.held, parents, count)
        of = self.grouping.told(whole)[names.index(name)].take(present)
        return _quotient(self.grouping.told(held)[names.index(name)], of)

    def _totals(self, groups: Groups, before: Content | None) -> Iterator[AnswerTable]:
        """For each number of rows but all of them, those of the groups that share so many."""
        rows = len(self.question.rows)
        for count in range(rows):
            kept = [*range(count), *range(rows, groups.codes.shape[1])]
            ids, size = self.grouping.numbered(groups.codes[:, kept])
            merged = [
                None if given is None else self.grouping.put_together(given, ids, size)
                for given in (groups.held, before)
            ]
            assert merged[0] is not None
            codes = np.empty((size, groups.codes.shape[1]), np.int64)
            codes[ids] = groups.codes
            whole = Groups(codes, merged[0])
            columns = [*self._attributes(whole, count), *self._measures(merged[0], merged[1])]
            ranked = [self._rank(n, whole) for n in kept if n < len(self.places)]
            order = np.lexsort([codes[:, -1], *ranked[::-1]])
            yield _table(columns, size).take(order)

    def _beside(self, now: Groups, before: Groups) -> tuple[Groups, Content]:
        """The groups of both periods; those that one of them lacks are empty there."""
        both = np.concatenate([now.codes, before.codes])
        ids, size = self.grouping.numbered(both)
        codes = np.empty((size, both.shape[1]), np.int64)
        codes[ids] = both
        ours, theirs = (
            self.grouping.put_together(given.held, own, size)
            for given, own in zip((now, before), np.split(ids, [len(now)]), strict=True)
        )
        return Groups(codes, ours), theirs


def _distinct(numbers: Array) -> Array:
    return np.unique(numbers)


def _table(columns: list[tuple[str, Vector]], size: int) -> AnswerTable:
    return AnswerTable(tuple(n for n, _ in columns), tuple(v for _, v in columns), size)


def _nulls(size: int) -> Vector:
    return Vector(INTEGER, np.zeros(size, np.int64), np.zeros(size, np.bool_))


def _none_of(vector: Vector) -> Vector:
    """As many nulls of the same type."""
    if vector.is_text:
        import pyarrow as pa

        return Vector(vector.type, pa.nulls(len(vector), pa.string()))
    return Vector(vector.type, vector.values, np.zeros(len(vector), np.bool_))


def _difference(now: Vector, before: Vector) -> Vector:
    """Now less before; null where one of them is."""
    valid = now.mask() & before.mask()
    if now.type.kind is NUMBER.kind:
        with np.errstate(all="ignore"):
            return Vector(now.type, np.asarray(now.values) - np.asarray(before.values), valid)
    one, other = (np.where(v.mask(), v.values, 0).astype(np.int64) for v in (now, before))
    made = one - other
    # What does not fit is null, as everywhere.
    valid &= ((one ^ other) & (one ^ made)) >= 0
    return Vector(now.type if now.type != TIME else INTEGER, made, valid)


def _quotient(part: Vector, of: Vector) -> Vector:
    whole = np.where(of.mask(), of.values, 0).astype(np.float64)
    valid = part.mask() & of.mask() & (whole != 0)
    with np.errstate(all="ignore"):
        values = np.where(valid, part.values, 0).astype(np.float64) / np.where(valid, whole, 1.0)
    return Vector(NUMBER, values, valid)
