"""Levels that move: the newest version of each member says what they are, for all of the window.

Cells are kept by keys. A question looks up the levels of every key that has cells, as members have
others: so a member that moves takes all its cells along, at the cost of one entry. What was
before is remembered for as long as a past step can be asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from millstream.calculus.cube import Cubify, Moving
from millstream.calculus.library.cube_changing import GONE
from millstream.calculus.types import QueueType, Schema
from millstream.kernels.cube.versions import Members, Version
from millstream.olap.program import OF_VERSIONS, ServedCube
from millstream.plan.batch import Array, Batch, Vector, vector_of

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """At a time a key got other levels than it had."""

    time: int
    key: Any
    before: Values | None


class Moved:
    """Mutable: the levels of every key of one dimension, now and before."""

    def __init__(self, moving: Moving) -> None:
        self.moving = moving
        self.known: dict[Any, Values] = {}
        self._changes: list[Change] = []
        #: For each level the number of every value that there was; 0 is null.
        self._values: list[dict[Any, int]] = [{None: 0} for _ in moving.levels]
        self._vectors: tuple[Vector, ...] = ()
        #: For each key that has cells, by its number, the numbers of its levels.
        self._codes = np.zeros((0, len(moving.levels)), np.int64)
        self._is_shared = False
        self._numbers: dict[Any, int] = {}
        self._last: MovedMembers | None = None

    # --- versions ---

    def take(self, time: int, key: Any, values: Values, *, is_gone: bool) -> None:
        """What is told of one version. Nobody has the key null, so it has no version."""
        before = self.known.get(key)
        after = None if is_gone else values
        if key is None or before == after:
            return
        self._changes.append(Change(time, key, before))
        if after is None:
            del self.known[key]
        else:
            self.known[key] = after
            self._number(after)
        number = self._numbers.get(key)
        if number is not None:
            if self._is_shared:  # with versions that can be asked
                self._codes, self._is_shared = self._codes.copy(), False
            self._codes[number] = self.coded(after)

    def _number(self, values: Values | None) -> None:
        for known, value in zip(self._values, values or (), strict=values is not None):
            known.setdefault(value, len(known))

    def coded(self, values: Values | None) -> list[int]:
        """The numbers of levels that were numbered before."""
        if values is None:
            return [0] * len(self._values)
        return [known[value] for known, value in zip(self._values, values, strict=True)]

    def forget_before(self, time: int) -> None:
        """Nobody asks any more for what was before a time."""
        count = bisect_right(self._changes, time, key=lambda change: change.time)
        if 2 * count > len(self._changes):
            self._changes = self._changes[count:]

    # --- members ---

    def members(self, given: Members) -> MovedMembers:
        """The members of a dimension with the levels of now; they do not change any more."""
        values = given.values[given.names.index(self.moving.key)]
        first = len(self._codes)
        if first < len(values):
            new = values.take(np.arange(first, len(values))).to_list()
            self._numbers |= {key: first + n for n, key in enumerate(new)}
            more = np.array([self.coded(self.known.get(key)) for key in new], np.int64)
            self._codes = np.concatenate([self._codes, more.reshape(len(new), -1)])
        if [len(v) for v in self._vectors] != [len(known) for known in self._values]:
            pairs = zip(self.moving.levels, self._values, strict=True)
            self._vectors = tuple(vector_of(f.type, list(known)) for f, known in pairs)
        last, self._is_shared = self._last, True
        if (
            last is None
            or last.given is not given
            or last.codes is not self._codes
            or (last.vectors is not self._vectors)
        ):
            last = MovedMembers(self, given, self._codes, self._vectors, [], 0)
        self._last = replace(last, changes=self._changes, count=len(self._changes))
        return self._last

    def number_of(self, key: Any) -> int | None:
        return self._numbers.get(key)

    # --- from one run to the next ---

    def snapshot(self) -> list[Any]:
        changes = [[c.time, c.key, None if c.before is None else list(c.before)]
                   for c in self._changes]  # fmt: skip
        return [[[key, list(values)] for key, values in self.known.items()], changes]

    def restore(self, state: list[Any]) -> None:
        known, changes = state
        self.known = {key: tuple(values) for key, values in known}
        self._changes = [
            Change(time, key, None if before is None else tuple(before))
            for time, key, before in changes
        ]
        for values in (*self.known.values(), *(c.before for c in self._changes)):
            self._number(values)


@dataclass(frozen=True)
class MovedMembers:
    """Members and their moved levels as they were when a version was made."""

    moved: Moved
    given: Members
    codes: Array
    vectors: tuple[Vector, ...]
    changes: list[Change]
    count: int

    @cached_property
    def now(self) -> Members:
        return self._with(self.codes)

    def at(self, time: int) -> Members:
        """As it was at the end of an instant."""
        first = bisect_right(self.changes, time, hi=self.count, key=lambda change: change.time)
        before: dict[Any, Values | None] = {}
        for change in self.changes[first : self.count]:
            before.setdefault(change.key, change.before)
        codes = self.codes.copy()
        for key, values in before.items():
            number = self.moved.number_of(key)
            if number is not None and number < len(codes):
                codes[number] = self.moved.coded(values)
        return self._with(codes)

    def _with(self, codes: Array) -> Members:
        """Only from the keys can one tell what moves."""
        given, moving = self.given, self.moved.moving
        moves = {f.name: n for n, f in enumerate(moving.levels)}
        keys = given.plain[0][0]
        values, of_keys = [], []
        for name in moving.names:
            if name in moves:
                values.append(self.vectors[moves[name]])
                of_keys.append(np.ascontiguousarray(codes[:, moves[name]])[keys])
            else:
                place = given.names.index(name)
                values.append(given.values[place])
                of_keys.append(given.plain[0][place])
        plain: list[tuple[Array, ...]] = [tuple(of_keys)]
        nothing = np.zeros(0, np.int64)
        for level, name in enumerate(moving.names[1:], 1):
            own = None if name in moves else given.names.index(name)
            plain.append(tuple(
                nothing if own is None or other in moves
                else given.plain[own][given.names.index(other) - own]
                for other in moving.names[level:]
            ))  # fmt: skip
        return Members(moving.names, tuple(values), tuple(plain))


class Movements:
    """Mutable: all dimensions of a cube whose members move."""

    def __init__(self, cube: Cubify, facts: Schema) -> None:
        self.cube = cube
        self.moved = [Moved(one) for one in cube.moving]
        self._facts = facts

    def taken(self, batch: Batch) -> Batch:
        """The facts of a batch; what it tells of versions is taken up."""
        marks = batch.column(OF_VERSIONS)
        is_version = marks.mask()
        for number, moved in enumerate(self.moved):
            own = batch.take(np.flatnonzero(is_version & (np.asarray(marks.values) == number)))
            if len(own):
                self._take(moved, own)
        facts = batch.take(np.flatnonzero(~is_version))
        columns = tuple(facts.column(name) for name in self._facts.names)
        return Batch(QueueType(self._facts), facts.time, columns)

    def _take(self, moved: Moved, batch: Batch) -> None:
        keys = batch.column(moved.moving.key).to_list()
        levels = [batch.column(f.name).to_list() for f in moved.moving.levels]
        gone = batch.column(GONE).to_list()
        rows = list(zip(batch.time.tolist(), gone, keys, zip(*levels, strict=True), strict=True))
        # Of an instant what goes is told before what comes; else they stay in their order.
        rows.sort(key=lambda row: (row[0], not row[1]))
        for time, is_gone, key, values in rows:
            moved.take(time, key, values, is_gone=bool(is_gone))

    def forget(self, mark: int) -> None:
        oldest = int(self.cube.grain.index(mark)) - self.cube.history
        for one in self.moved:
            one.forget_before(int(self.cube.grain.start(oldest)))

    def with_levels(self, version: Version) -> Version:
        """A version that can be asked for what moves too."""
        moved = [one.members(version.members[one.moving.dimension]) for one in self.moved]

        def members(time: int | None) -> tuple[Members, ...]:
            made = list(version.members)
            for one in moved:
                own = one.now if time is None else one.at(time)
                made[one.moved.moving.dimension] = own
            return tuple(made)

        return replace(version, members=members(None), members_at=members)

    def snapshot(self) -> list[Any]:
        return [one.snapshot() for one in self.moved]

    def restore(self, state: list[Any]) -> None:
        for one, own in zip(self.moved, state, strict=True):
            one.restore(own)

    def __len__(self) -> int:
        return sum(len(one.known) for one in self.moved)


def facts_of(cube: ServedCube) -> Schema:
    """The columns of facts, without the levels that move."""
    moves = {f.name for one in cube.function.moving for f in one.levels}
    return Schema(tuple(f for f in cube.schema if f.name not in moves))


def by_keys(cube: Cubify) -> Cubify:
    """The cube of cells: of levels that move it has the keys."""
    dimensions = list(cube.dimensions)
    for one in cube.moving:
        moves = {f.name for f in one.levels}
        dimensions[one.dimension] = tuple(n for n in one.names if n not in moves)
    return replace(cube, dimensions=tuple(dimensions), moving=())
