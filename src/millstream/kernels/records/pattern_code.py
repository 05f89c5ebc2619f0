"""Trees of regular expressions as instructions of a small machine."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from millstream.kernels.records.pattern_leads import is_anchored, lead_of, needed, sieve
from millstream.kernels.records.pattern_scan import range_table, set_table
from millstream.kernels.records.pattern_trees import (
    BEYOND,
    WORD,
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
#: each of several sets; as few of a set as there are until one of another comes.
ONE, TRY, GO, NOTE, BE, RUN, END, ROW, UNTIL = range(9)
PLACES = "^$AzZbB"
#: In the place of a branch: others would give back here, in vain.
IN_VAIN = -2
_MOST = 2000
_NO_END = 1 << 30
#: So many characters are compared with one look.
_MOST_AT_ONCE = 8
#: What is known of a pattern, by its place among the `traits` of its code; -1 is none.
#: How many characters a match has at least, as far as they are known; which set the first is of.
LEAD, START = 0, 1
#: Two places among these, and the sets that are looked for there.
FIRST, FIRST_SET, SECOND, SECOND_SET = 2, 3, 4, 5
#: Bytes that are in every match: one, and another one behind it.
NEEDED, FOLLOWED = 6, 7
#: The set of a run at the beginning, when no match begins inside of one where another has failed.
SKIPPED = 8
#: Whether a match can only be at the beginning.
ANCHORED = 9
#: The number of places to remember where ways part; 0 if there is but one way.
BRANCHES = 10
_TRAITS = 11


@dataclass(frozen=True, slots=True)
class PatternCode:
    """Instructions as columns: the kind, and up to five numbers; then two places to note.

    A place is noted before the instruction is done; -1 is none. `sets` and `ranges` are what
    `pattern_scan` says, `rows` has the sets of instructions with several, and `run` is the set of a
    pattern that is nothing but one or more of it.
    """

    code: Array
    sets: Array
    ranges: Array
    rows: Array
    traits: Array
    run: int
    groups: int

    @property
    def branches(self) -> int:
        return int(self.traits[BRANCHES])

    @property
    def is_anchored(self) -> bool:
        return bool(self.traits[ANCHORED])


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
    builder.settle()
    traits = builder.traits(found[0])
    return PatternCode(
        np.array(builder.code, np.int64), set_table(builder.sets), range_table(builder.sets),
        np.array(builder.rows, np.int64), traits, builder.only_run(), found[1],
    )  # fmt: skip


class _Builder:
    """Mutable: instructions, one after the other."""

    def __init__(self) -> None:
        self.code: list[list[int]] = []
        self.sets: list[frozenset[int]] = []
        self.rows: list[int] = []
        self.first: list[frozenset[int] | None] = []
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
            for first in range(0, len(run), _MOST_AT_ONCE):
                some = run[first : first + _MOST_AT_ONCE]
                self.row([one.of for one in some if isinstance(one, One)])

    def row(self, sets: list[frozenset[int]]) -> None:
        """The characters as a word of eight bytes, if each is known but for one bit at most."""
        at = self.add(ROW, len(self.rows), len(sets))
        self.rows += [self.set_number(of) for of in sets]
        word = mask = 0
        for place, of in enumerate(sets):
            differing = min(of, default=0) ^ max(of, default=0)
            if not 0 < len(of) <= 2 or differing.bit_count() > 1 or BEYOND in of:
                return
            word |= (min(of) & ~differing) << (8 * place)
            mask |= (127 & ~differing) << (8 * place)
        self.code[at][3:5] = word, mask

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
        if isinstance(part.inner, One) and part.most is None:
            self.until(part.inner, part.least)
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

    def until(self, of: One, least: int) -> None:
        number = self.set_number(of.of)
        if least:
            self.add(RUN, number, least, least, self.branch())
        self.add(UNTIL, number, number, self.branch())

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
        targets |= {n for n, c in enumerate(self.code) if c[0] == UNTIL}
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

    def traits(self, whole: Tree) -> Array:
        traits = np.full(_TRAITS, -1, np.int64)
        lead = lead_of(whole)
        pair = needed(whole, lead)
        traits[LEAD] = len(lead)
        if lead:
            traits[START] = self.set_number(lead[0])
            first, second, *_ = sieve(lead) * 2
            traits[FIRST], traits[FIRST_SET] = first, self.set_number(lead[first])
            traits[SECOND], traits[SECOND_SET] = second, self.set_number(lead[second])
        # At one place alone it is told as soon whether there is a match.
        if pair is not None and (self.branches or not is_anchored(whole)):
            traits[NEEDED], traits[FOLLOWED] = pair
        begins = next(c for c in self.code if c[0] != NOTE)
        if begins[0] == RUN and begins[3] == _NO_END and begins[4] < 0:
            traits[SKIPPED] = begins[1]
        traits[ANCHORED], traits[BRANCHES] = is_anchored(whole), self.branches
        return traits

    def settle(self) -> None:
        """Ways part only where what comes next does not tell which of them to go."""
        self.first = self.beginnings()
        for at in reversed(range(len(self.code))):
            instruction = self.code[at]
            if instruction[0] == TRY:
                one, other = (self.first[way] for way in instruction[1:3])
                instruction[4:6] = self.optional(one), self.optional(other)
                if one is not None and other is not None and not one & other:
                    instruction[3] = -1
            elif instruction[0] == RUN:
                self.settle_run(instruction, at)
            elif instruction[0] == UNTIL:
                self.settle_until(instruction, at)
        parting = [c for c in self.code if c[0] in _BRANCH and c[_BRANCH[c[0]]] >= 0]
        for number, instruction in enumerate(parting):
            instruction[_BRANCH[instruction[0]]] = number
        self.branches = len(parting)

    def beginnings(self) -> list[frozenset[int] | None]:
        """What the next character can be from each instruction on; None if none is needed."""
        first: list[frozenset[int] | None] = [frozenset()] * len(self.code)
        is_settled = False
        while not is_settled:  # a second time where something goes back
            before = list(first)
            for at in reversed(range(len(self.code))):
                first[at] = self.beginning(at, first)
            is_settled = first == before
        return first

    def beginning(self, at: int, first: list[frozenset[int] | None]) -> frozenset[int] | None:
        kind, one, other, *_ = self.code[at]
        if kind == END:
            return None
        if kind == ROW:
            return self.sets[self.rows[one]]
        if kind == ONE or (kind == RUN and other):
            return self.sets[one]
        ways = {TRY: (one, other), GO: (one,)}.get(kind, (at + 1,))
        together = self.sets[one] if kind in (RUN, UNTIL) else frozenset()
        for way in ways:
            following = first[way]
            if following is None:
                return None
            together |= following
        return together

    def settle_run(self, run: list[int], at: int) -> None:
        """A run gives nothing back if that cannot help what follows it."""
        of, following = self.sets[run[1]], self.first[at + 1]
        run[5] = self.optional(following)
        follows = self.landing(at + 1)
        # No place to remember means: all or nothing.
        is_apart = following is not None and not following & of
        if run[2] == run[3] or follows[0] == END or is_apart:
            run[4] = -1
        elif self.is_taken_again(of, follows) or self.is_no_place(run, follows):
            run[4] = IN_VAIN

    def settle_until(self, until: list[int], at: int) -> None:
        of, following = self.sets[until[1]], self.first[at + 1]
        until[4] = self.optional(following)
        if following is not None:
            until[2] = self.set_number(of - following)
        is_apart = following is not None and not following & of
        if is_apart or self.landing(at + 1)[0] == END:
            until[3] = -1

    def optional(self, of: frozenset[int] | None) -> int:
        return -1 if of is None else self.set_number(of)

    def landing(self, at: int) -> list[int]:
        """The first instruction from a place on that does something."""
        while self.code[at][0] in (NOTE, GO):
            at = at + 1 if self.code[at][0] == NOTE else self.code[at][1]
        return self.code[at]

    def is_taken_again(self, of: frozenset[int], follows: list[int]) -> bool:
        """What follows is a run that would take all that one of a set gave back."""
        takes_any = follows[0] == RUN and follows[2] == 0 and follows[3] == _NO_END
        return takes_any and follows[4] < 0 and of <= self.sets[follows[1]]

    def is_no_place(self, run: list[int], follows: list[int]) -> bool:
        """What follows is a place that is not before what a run gave back."""
        if follows[0] != BE:
            return False
        of, kind = self.sets[run[1]], PLACES[follows[1]]
        return (
            kind == "z"
            or (kind in "$Z" and 10 not in of)
            or (kind == "b" and run[2] > 0 and of <= WORD)
        )


#: Where in an instruction the number of the place stands that it has to remember, if any.
_BRANCH = {TRY: 3, RUN: 4, UNTIL: 3}
#: How many of the numbers of an instruction are others to go to.
_TARGETS = {TRY: 2, GO: 1}
