"""Trees of regular expressions as instructions of a small machine."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from millstream.kernels.records.pattern_trees import (
    All,
    Either,
    Group,
    Here,
    One,
    Repeat,
    Tree,
    tree,
)
from millstream.plan.batch import Array

#: One character of a set; try one way, then another; go on elsewhere; note a place; be at a
#: place; take as many of a set as there are, giving back one at a time; the end.
ONE, TRY, GO, NOTE, BE, RUN, END = range(7)
PLACES = "^$AzZbB"
_MOST = 2000
_NO_END = 1 << 30


@dataclass(frozen=True, slots=True)
class PatternCode:
    """Instructions as columns: the kind, and up to four numbers.

    `starts` are the characters that a match can begin with, if it cannot be empty. `branches` is
    the number of places to remember where ways part.
    """

    code: Array
    sets: Array
    starts: Array
    is_anchored: bool
    groups: int
    branches: int


class _TooLong(Exception):
    pass


@functools.lru_cache(maxsize=1024)
def pattern_code(pattern: str) -> PatternCode | None:
    """The instructions of a pattern, or None if the machine cannot run it."""
    found = tree(pattern)
    if found is None:
        return None
    builder = _Builder()
    try:
        builder.note(0)
        builder.build(found[0])
        builder.note(1)
        builder.add(END)
    except _TooLong:
        return None
    builder.settle_runs()
    return PatternCode(
        np.array(builder.code, np.int64), builder.set_table(), _starts(builder),
        _is_anchored(found[0]), found[1], builder.branches,
    )  # fmt: skip


class _Builder:
    """Mutable: instructions, one after the other."""

    def __init__(self) -> None:
        self.code: list[list[int]] = []
        self.sets: list[frozenset[int]] = []
        self.branches = 0

    def add(self, kind: int, *numbers: int) -> int:
        if len(self.code) >= _MOST:
            raise _TooLong
        self.code.append([kind, *numbers, *[0] * (4 - len(numbers))])
        return len(self.code) - 1

    def note(self, place: int) -> None:
        self.add(NOTE, place)

    def branch(self) -> int:
        self.branches += 1
        return self.branches - 1

    def set_number(self, of: frozenset[int]) -> int:
        if of not in self.sets:
            self.sets.append(of)
        return self.sets.index(of)

    def set_table(self) -> Array:
        table = np.zeros((max(1, len(self.sets)), 256), np.bool_)
        for number, of in enumerate(self.sets):
            table[number, sorted(of)] = True
        return table

    def build(self, part: Tree) -> None:
        match part:
            case One(of):
                self.add(ONE, self.set_number(of))
            case Here(kind):
                self.add(BE, PLACES.index(kind))
            case All(parts):
                for each in parts:
                    self.build(each)
            case Either(parts):
                self.either(parts)
            case Group(number, inner):
                self.note(2 * number)
                self.build(inner)
                self.note(2 * number + 1)
            case Repeat():
                self.repeat(part)

    def either(self, parts: tuple[Tree, ...]) -> None:
        ends = []
        for each in parts[:-1]:
            way = self.add(TRY, 0, 0, self.branch())
            self.code[way][1] = len(self.code)
            self.build(each)
            ends.append(self.add(GO))
            self.code[way][2] = len(self.code)
        self.build(parts[-1])
        for end in ends:
            self.code[end][1] = len(self.code)

    def repeat(self, part: Repeat) -> None:
        if isinstance(part.inner, One) and part.is_greedy:
            most = _NO_END if part.most is None else part.most
            self.add(RUN, self.set_number(part.inner.of), part.least, most, self.branch())
            return
        for _ in range(part.least):
            self.build(part.inner)
        if part.most is None:
            self.loop(part)
            return
        ways = []
        for _ in range(part.most - part.least):
            ways.append(self.add(TRY, 0, 0, self.branch()))
            self.code[ways[-1]][1] = len(self.code)
            self.build(part.inner)
        for way in ways:
            self.turn(way, part, len(self.code))

    def loop(self, part: Repeat) -> None:
        way = self.add(TRY, 0, 0, self.branch())
        self.code[way][1] = len(self.code)
        self.build(part.inner)
        self.add(GO, way)
        self.turn(way, part, len(self.code))

    def turn(self, way: int, part: Repeat, end: int) -> None:
        """A greedy way goes in first, another one out."""
        self.code[way][2] = end
        if not part.is_greedy:
            self.code[way][1], self.code[way][2] = self.code[way][2], self.code[way][1]

    def settle_runs(self) -> None:
        """A run gives nothing back if what follows it cannot begin with what it takes."""
        for at, instruction in enumerate(self.code):
            if instruction[0] == RUN:
                follows = self.code[at + 1]
                while follows[0] == NOTE:
                    at += 1  # noqa: PLW2901 (on to what follows the note)
                    follows = self.code[at + 1]
                is_apart = follows[0] == ONE and not (
                    self.sets[follows[1]] & self.sets[instruction[1]]
                )
                if is_apart or follows[0] == END:
                    # No place to remember means: all or nothing.
                    instruction[4] = -1


def _starts(builder: _Builder) -> Array:
    """Which characters a match can begin with; all of them if it can be empty."""
    starts = np.zeros(256, np.bool_)
    seen: set[int] = set()
    waiting = [0]
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        kind, a, b, *_ = builder.code[at]
        match kind:
            case 0:
                starts[sorted(builder.sets[a])] = True
            case 1:
                waiting += [a, b]
            case 2:
                waiting.append(a)
            case 3 | 4:
                waiting.append(at + 1)
            case 5:
                starts[sorted(builder.sets[a])] = True
                if b == 0:
                    waiting.append(at + 1)
            case _:
                return np.ones(256, np.bool_)
    return starts


def _is_anchored(part: Tree) -> bool:
    match part:
        case Here("^" | "A"):
            return True
        case All(parts) if parts:
            return _is_anchored(parts[0])
        case Either(parts):
            return all(map(_is_anchored, parts))
        case Group(_, inner):
            return _is_anchored(inner)
        case _:
            return False
