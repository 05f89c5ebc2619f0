"""Trees of regular expressions as instructions of a small machine."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import groupby

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
#: place; take as many of a set as there are, giving back one at a time; the end; one character of
#: each of several sets.
ONE, TRY, GO, NOTE, BE, RUN, END, ROW = range(8)
PLACES = "^$AzZbB"
#: In the place of a branch: others would give back here, in vain.
IN_VAIN = -2
_MOST = 2000
_NO_END = 1 << 30
#: Of so many characters at its beginning is known what a match can have there.
_MOST_LEAD = 8


@dataclass(frozen=True, slots=True)
class PatternCode:
    """Instructions as columns: the kind, and up to four numbers.

    Then the set that what follows begins with, and two places to note before it is done; -1 is
    none. `rows` has the sets of instructions with several. A match begins with `lead` characters at
    least: `steps` says of the last of them how much further on the next match can begin, and
    `starts` which can be the first. `pair` is a place among them and two bytes that are always
    there, as seldom ones as can be; -1 is none. `run` is the set of a pattern that is nothing but
    one or more of it. `branches` is the number of places to remember where ways part; 0 if there is
    but one way.
    """

    code: Array
    sets: Array
    rows: Array
    lead: int
    steps: Array
    starts: Array
    pair: Array
    run: int
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
    builder.fold_notes()
    builder.settle_runs()
    lead = _lead(found[0])[0][:_MOST_LEAD]
    return PatternCode(
        np.array(builder.code, np.int64), builder.set_table(), np.array(builder.rows, np.int64),
        len(lead), _steps(lead), _members(lead[0] if lead else frozenset(range(256))),
        _pair(lead), builder.only_run(), _is_anchored(found[0]), found[1], builder.branches,
    )  # fmt: skip


class _Builder:
    """Mutable: instructions, one after the other."""

    def __init__(self) -> None:
        self.code: list[list[int]] = []
        self.sets: list[frozenset[int]] = []
        self.rows: list[int] = []
        self.branches = 0

    def add(self, kind: int, *numbers: int) -> int:
        if len(self.code) >= _MOST:
            raise _TooLong
        self.code.append([kind, *numbers, *[0] * (4 - len(numbers)), -1, -1, -1])
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
        return np.array([_members(of) for of in self.sets or [frozenset()]])

    def build(self, part: Tree) -> None:
        match part:
            case One(of):
                self.add(ONE, self.set_number(of))
            case Here(kind):
                self.add(BE, PLACES.index(kind))
            case All(parts):
                self.all(parts)
            case Either(parts):
                self.either(parts)
            case Group(number, inner):
                self.note(2 * number)
                self.build(inner)
                self.note(2 * number + 1)
            case Repeat():
                self.repeat(part)

    def all(self, parts: tuple[Tree, ...]) -> None:
        """One after the other; characters that follow each other are one instruction."""
        for are_single, together in groupby(parts, lambda part: isinstance(part, One)):
            run = list(together)
            if not are_single or len(run) == 1:
                for each in run:
                    self.build(each)
                continue
            self.add(ROW, len(self.rows), len(run))
            self.rows += [self.set_number(one.of) for one in run if isinstance(one, One)]

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

    def fold_notes(self) -> None:
        """A place is noted by the instruction that follows, unless others come to that directly."""
        targets = {n for c in self.code for n in c[1 : _TARGETS.get(c[0], 0) + 1]}
        kept: list[list[int]] = []
        places: list[int] = []
        noted: list[int] = []
        for at, instruction in enumerate(self.code):
            if noted and (at in targets or len(noted) == 2):
                kept += [[NOTE, place, 0, 0, 0, -1, -1, -1] for place in noted]
                noted = []
            places.append(len(kept))
            if instruction[0] == NOTE:
                noted.append(instruction[1])
            else:
                instruction[6 : 6 + len(noted)] = noted
                noted = []
                kept.append(instruction)
        for instruction in kept:
            for n in range(1, _TARGETS.get(instruction[0], 0) + 1):
                instruction[n] = places[instruction[n]]
        self.code = kept

    def only_run(self) -> int:
        """The set of a pattern that is one or more of it, and no group; -1 of any other."""
        kinds = [instruction[0] for instruction in self.code]
        first = self.code[0]
        return first[1] if kinds == [RUN, END] and first[2:4] == [1, _NO_END] else -1

    def settle_runs(self) -> None:
        """A run gives nothing back if that cannot help what follows it."""
        for at in reversed(range(len(self.code))):
            instruction = self.code[at]
            if instruction[0] == RUN:
                follows = next(c for c in self.code[at + 1 :] if c[0] != NOTE)
                if follows[0] in (ONE, ROW):
                    instruction[5] = follows[1] if follows[0] == ONE else self.rows[follows[1]]
                # No place to remember means: all or nothing.
                if follows[0] == END or self.is_apart(instruction):
                    instruction[4] = -1
                elif self.is_taken_again(instruction, follows):
                    instruction[4] = IN_VAIN
        if all(c[0] not in (TRY, GO) and (c[0] != RUN or c[4] < 0) for c in self.code):
            self.branches = 0

    def is_apart(self, run: list[int]) -> bool:
        """What follows cannot begin with what a run takes."""
        return run[5] >= 0 and not self.sets[run[5]] & self.sets[run[1]]

    def is_taken_again(self, run: list[int], follows: list[int]) -> bool:
        """What follows is a run that would take all that this one gave back."""
        takes_any = follows[0] == RUN and follows[2] == 0 and follows[3] == _NO_END
        return takes_any and follows[4] < 0 and self.sets[run[1]] <= self.sets[follows[1]]


#: How many of the numbers of an instruction are others to go to.
_TARGETS = {TRY: 2, GO: 1}


def _members(of: frozenset[int]) -> Array:
    members = np.zeros(256, np.bool_)
    members[sorted(of)] = True
    return members


def _lead(part: Tree) -> tuple[list[frozenset[int]], bool]:
    """What the first characters of every match are of, and whether it has no others."""
    match part:
        case One(of):
            return [of], True
        case Here():
            return [], True
        case All(parts):
            return _one_after_the_other(parts)
        case Either(parts):
            ways = [_lead(each) for each in parts]
            sizes = {len(sets) for sets, _ in ways}
            lead = [
                frozenset.union(*sets) for sets in zip(*(sets for sets, _ in ways), strict=False)
            ]
            return lead, len(sizes) == 1 and all(is_whole for _, is_whole in ways)
        case Group(_, inner):
            return _lead(inner)
        case Repeat(inner, least, most):
            lead, is_whole = _one_after_the_other((inner,) * min(least, _MOST_LEAD))
            return lead, is_whole and least == most and least <= _MOST_LEAD


def _one_after_the_other(parts: tuple[Tree, ...]) -> tuple[list[frozenset[int]], bool]:
    lead: list[frozenset[int]] = []
    for part in parts:
        sets, is_whole = _lead(part)
        lead += sets
        if not is_whole:
            return lead, False
    return lead, True


def _steps(lead: list[frozenset[int]]) -> Array:
    """How far to go on from a character that would be the last of the first ones of a match.

    0 if it can be; otherwise to where it can be one of those before, or behind it.
    """
    steps = np.full(256, len(lead), np.int64)
    for place, of in enumerate(lead):
        steps[sorted(of)] = len(lead) - 1 - place
    return steps


#: Characters of logs and letters, those that are met most often first.
_OFTEN = b" etaoinsr0123456789hldcumfpgwybvkxjqz.-/:,"


def _pair(lead: list[frozenset[int]]) -> Array:
    """Where in the first characters two bytes are known, as seldom ones as can be, or one."""
    known = [next(iter(of)) if len(of) == 1 else -1 for of in lead]
    rarity = [-1 if c < 0 else _OFTEN.find(c) % (len(_OFTEN) + 1) for c in known]
    best = (-1, -1, -1, -1)
    for place, c in enumerate(known):
        following = known[place + 1] if place + 1 < len(known) else -1
        if c >= 0 and following >= 0:
            # Any two are better than one.
            worth = len(_OFTEN) + sum(rarity[place : place + 2])
            best = max(best, (worth, place, c, following))
        elif c >= 0:
            best = max(best, (rarity[place], place, c, -1))
    return np.array(best[1:], np.int64)


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
