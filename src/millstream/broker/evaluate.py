"""A program that is given rows as they come, and says what has changed in its outputs.

`Interpreted` needs no compiling and takes longer with every row; `compiled.Compiled` runs the
kernels of the local engine. By law 1 they say the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from millstream.calculus.graph import Input, Program
from millstream.calculus.types import START_OF_TIME, Row
from millstream.meaning.items import Item, Mark
from millstream.meaning.kept import kept_of, take_up
from millstream.meaning.machine import Machine

#: A time, a row and a weight, which is 1 for rows of streams.
Arrival = tuple[int, Row, int]
#: How often a row came or went.
Changes = dict[Row, int]


class Evaluation(Protocol):
    """Mutable: a program with all that it has been given."""

    def advance(self, mark: int, arrivals: Mapping[str, Sequence[Arrival]]) -> dict[str, Changes]:
        """Take in all that there is up to a mark, and say what has changed, by output."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """All that it has kept, ready to be written down."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None: ...


def at_first(program: Program, *, is_first: bool) -> dict[str, list[Arrival]]:
    """Rows that were always there."""
    values = {one.name: one.values for one in program.inputs if one.values is not None}
    return {n: [(START_OF_TIME, row, 1) for row in v] for n, v in values.items() if is_first}


class Interpreted:
    """Mutable: the machine of meanings, an item at a time."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.machine = Machine(program)
        self.positions: Counter[str] = Counter()
        self.is_first = True

    def advance(self, mark: int, arrivals: Mapping[str, Sequence[Arrival]]) -> dict[str, Changes]:
        given = {**arrivals, **at_first(self.program, is_first=self.is_first)}
        self.is_first = False
        times = {t for some in given.values() for t, _, _ in some} | {mark}
        for declaration, one in enumerate(self.program.inputs):
            self._push(one, declaration, given.get(one.name, ()), sorted(times))
        self.machine.run()
        return {name: self._taken(name) for name in self.program.outputs}

    def _push(
        self, one: Input, declaration: int, items: Sequence[Arrival], instants: Iterable[int]
    ) -> None:
        """Marks before and after every instant, so that what ends between two is seen."""
        entries: list[Item | Mark] = []
        by_time: dict[int, list[Item]] = {}
        for time, row, weight in items:
            self.positions[one.name] += 1
            origin = (time, 0, declaration, self.positions[one.name])
            by_time.setdefault(time, []).append(Item(time, row, weight, origin))
        for instant in instants:
            entries.append(Mark(instant - 1, (), (instant - 1, 1, declaration, 0)))
            entries += by_time.get(instant, [])
            is_told = instant in by_time and not one.is_read_once
            ticks = (instant,) if is_told else ()
            entries.append(Mark(instant, ticks, (instant, 1, declaration, 0)))
        self.machine.push(one.name, entries)

    def snapshot(self) -> dict[str, Any]:
        return {**kept_of(self.machine), "positions": dict(self.positions),
                "is_first": self.is_first}  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        take_up(self.machine, state)
        self.positions = Counter(state["positions"])
        self.is_first = state["is_first"]

    def _taken(self, name: str) -> Changes:
        queue = self.machine.queues[name]
        made = net((item.row, item.weight) for item in queue if isinstance(item, Item))
        queue.clear()
        return made


def net(pairs: Iterable[tuple[Row, int]]) -> Changes:
    made: Changes = {}
    for row, weight in pairs:
        made[row] = made.get(row, 0) + weight
    return {row: weight for row, weight in made.items() if weight}


def difference(before: Changes, after: Changes) -> Changes:
    made = {row: after.get(row, 0) - count for row, count in before.items()}
    made |= {row: count for row, count in after.items() if row not in before}
    return {row: weight for row, weight in made.items() if weight}
