"""Cubes of few rows, asked without any compiled loop: groups are lists of rows.

What is told of a group is what its measures mean (`meaning/relations.py`); order, limits, shares,
totals and all else are made of groups as they always are. So answers are the same by law 1, and
nothing is compiled for a first question to a small cube.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.lattice import Levels
from millstream.calculus.terms import NAN
from millstream.calculus.types import QueueType, Schema
from millstream.engine.reference.small import MOST_ROWS
from millstream.engine.warm import small_seconds
from millstream.kernels.cube.versions import Members, Version
from millstream.meaning.relations import aggregate_of
from millstream.olap.groups import Content, Grouping, Groups, HeldRows
from millstream.olap.moving import Movements, by_keys, facts_of
from millstream.olap.planning import Span, lattice_of, levels_of
from millstream.olap.program import ServedCube
from millstream.olap.store import CubeStore, kept_vertices
from millstream.plan.batch import Array, Batch, Vector, concat_batches, vector_of

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Facts:
    """The rows of a cube: their values, their partitions, and their members by dimension."""

    schema: Schema
    rows: list[Row]
    partitions: Array
    codes: Array


@dataclass(frozen=True)
class PlainKept:
    """A vertex that would be kept: how many cells it would have."""

    vertex: Vertex
    levels: Levels
    number: int
    facts: Facts
    members: tuple[Members, ...]

    @cached_property
    def _cells(self) -> Array:
        """The partitions of all its cells."""
        columns = [
            self.members[d].numbers(0, wanted)[self.facts.codes[:, d]]
            for d, level in enumerate(self.levels) if level is not None
            for wanted in range(level, len(self.members[d].names))
        ]  # fmt: skip
        whole = np.stack([*columns, self.facts.partitions], axis=1)
        return np.unique(whole, axis=0)[:, -1]

    def count(self, first: int, last: int) -> int:
        return int(((self._cells >= first) & (self._cells <= last)).sum())

    @property
    def size(self) -> int:
        return len(self._cells)


@dataclass(frozen=True)
class PlainVersion(Version):
    """A version without cells: all is asked of the rows themselves."""

    facts: Facts | None = None

    def reading(self) -> Any:
        """Nothing tells of cells where there are none."""
        return None


def plain_version(cube: ServedCube, batches: Iterable[Batch], mark: int | None) -> Version:
    """The rows of all batches as a version that can be asked."""
    batch = concat_batches(list(batches), QueueType(cube.brought))
    movements = Movements(cube.function, facts_of(cube)) if cube.function.moving else None
    if movements is not None:
        batch = movements.taken(batch)
    function, schema = by_keys(cube.function), facts_of(cube)
    now = None if mark is None else int(function.grain.index(mark))
    partitions = np.asarray(function.grain.index(batch.time), np.int64).reshape(-1)
    if now is not None:
        # What has left the window and its history would not be there either.
        stays = np.flatnonzero(partitions >= now - function.window - function.history)
        batch, partitions = batch.take(stays), partitions[stays]
    rows = list(zip(*(batch.column(f.name).to_list() for f in schema), strict=True))
    members, codes = zip(*(_members(names, schema, rows) for names in function.dimensions),
                         strict=True) if function.dimensions else ((), ())  # fmt: skip
    table = np.stack(codes, axis=1) if codes else np.zeros((len(rows), 0), np.int64)
    facts = Facts(schema, rows, partitions, table)
    kept = tuple(_kept(function, v, facts, members) for v in kept_vertices(function))
    no_measures: Any = None
    version: Version = PlainVersion(
        0, mark, cube.function, tuple(members), kept, no_measures, no_measures, (), facts=facts
    )
    return version if movements is None else movements.with_levels(version)


def _kept(function: Cubify, vertex: Vertex, facts: Facts, members: tuple[Members, ...]) -> Any:
    levels = levels_of(function, vertex.attributes)
    return PlainKept(vertex, levels, lattice_of(function).number(levels), facts, members)


def _members(names: tuple[str, ...], schema: Schema, rows: list[Row]) -> tuple[Members, Array]:
    """The members of a dimension, and which of them each row has."""
    places = [schema.index(name) for name in names]
    known: dict[Row, int] = {}
    codes = [
        known.setdefault(tuple(_told_apart(row[p]) for p in places), len(known)) for row in rows
    ]
    values: list[dict[Any, int]] = [{} for _ in names]
    numbers = [
        np.array([own.setdefault(m[n], len(own)) for m in known], np.int64)
        for n, own in enumerate(values)
    ]
    vectors = [vector_of(schema[name], list(own)) for name, own in zip(names, values, strict=True)]
    # Only of the finest level is anything asked here, whose members rows have.
    nothing = np.zeros(0, np.int64)
    plain = (tuple(numbers), *((nothing,) * (len(names) - n) for n in range(1, len(names))))
    return Members(names, tuple(vectors), plain), np.array(codes, np.int64).reshape(-1)


def _told_apart(value: Any) -> Any:
    """NaN is a member like any other."""
    return NAN if value != value else value


class PlainGrouping(Grouping):
    """Mutable: what `Grouping` does, of rows."""

    @property
    def _facts(self) -> Facts:
        assert isinstance(self.version, PlainVersion)
        assert self.version.facts is not None
        return self.version.facts

    def groups(self, span: Span, *, shifted: int = 0) -> Groups:
        parts = self._parts(span, shifted)
        finest = by_keys(self.version.function).finest.attributes
        facts, places = self._facts, self.places(self.by, finest)
        is_asked = (facts.partitions >= span.first) & (facts.partitions <= span.last)
        for place, holds in self._tests(finest):
            is_asked &= holds[facts.codes[:, place.column]]
        chosen = np.flatnonzero(is_asked)
        self.read += self.plan.answering.count(span.first, span.last)
        own = [p.numbers[facts.codes[chosen, p.column]] for p in places]
        time = parts.steps[facts.partitions[chosen] - parts.first] + parts.shift
        rows_of: dict[Row, list[int]] = {}
        keys = zip(*(column.tolist() for column in (*own, time)), strict=True)
        for key, row in zip(keys, chosen.tolist(), strict=True):
            rows_of.setdefault(key, []).append(row)
        self._check_size(len(rows_of))
        codes = np.array(list(rows_of), np.int64).reshape(len(rows_of), len(places) + 1)
        return Groups(codes, HeldRows(list(rows_of.values())))

    def numbered(self, codes: Array) -> tuple[Array, int]:
        known: dict[Row, int] = {}
        ids = [known.setdefault(tuple(row), len(known)) for row in codes.tolist()]
        return np.array(ids, np.int64), len(known)

    def put_together(self, held: Content, ids: Array, count: int) -> HeldRows:
        assert isinstance(held, HeldRows)
        made: list[list[int]] = [[] for _ in range(count)]
        for rows, group in zip(held.rows, ids.tolist(), strict=True):
            if group >= 0:
                made[group] += rows
        return HeldRows(made)

    def told(self, held: Content, order: Array | None = None) -> tuple[Vector, ...]:
        assert isinstance(held, HeldRows)
        facts = self._facts
        chosen = held.rows if order is None else [held.rows[n] for n in order.tolist()]
        bags = [Counter(facts.rows[row] for row in rows) for rows in chosen]
        self.limits.check_time()
        return tuple(
            vector_of(
                measure.result_type(),
                [aggregate_of(measure, bag, facts.schema) if bag else None for bag in bags],
            )
            for measure in self.version.function.measures
        )


class SmallStore:
    """Mutable: a sink that holds few rows as they are, and makes cells of them when there are more.

    So a question to few rows needs no compiled loop.
    """

    def __init__(self, cube: ServedCube) -> None:
        self.cube = cube
        self._held: list[Batch] = []
        self._size = 0
        self._store: CubeStore | None = None

    def write(self, batch: Batch) -> None:
        self._size += len(batch)
        if self._store is not None:
            self._store.write(batch)
            return
        self._held.append(batch)
        if small_seconds() <= 0 or self._size > MOST_ROWS:
            self._store = CubeStore(self.cube)
            for one in self._held:
                self._store.write(one)
            self._held.clear()

    def version(self, mark: int | None) -> Version:
        """What can be asked when all is known up to a mark."""
        if self._store is None:
            return plain_version(self.cube, self._held, mark)
        self._store.advance(self._store.version.number + 1, mark)
        return self._store.version

    def close(self) -> None:
        """What has come can be asked for as long as somebody holds this."""

    def abort(self) -> None:
        """The same."""
