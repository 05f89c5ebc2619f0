"""Searching columns of texts for patterns: where a match may begin, and the walk from there."""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.blocks64 import first_bit
from millstream.compiled import inlined, tight
from millstream.kernels.records.pattern_code import (
    ANCHORED,
    BRANCHES,
    FIRST,
    FIRST_SET,
    FOLLOWED,
    LEAD,
    NEEDED,
    SECOND,
    SECOND_SET,
    SKIPPED,
    START,
    PatternCode,
)
from millstream.kernels.records.pattern_scan import (
    has_ranges,
    members64,
    next_bytes,
    next_of_two,
    run_end,
)
from millstream.kernels.records.pattern_walk import FOUND, NONE, UNKNOWN, attempt, straight
from millstream.plan.batch import Array

_ONE = np.uint64(1)
#: Texts that are longer are left to the libraries.
LONGEST = 4096


@inlined
def _next_place(
    sets: Array, ranges: Array, traits: Array, data: Array, at: int, end: int, limit: int,
    ahead: Array,
) -> Any:  # fmt: skip
    """The next place at which a match may begin, by characters that it must have.

    What was found behind a row is kept for those that follow: `ahead` is from where on nothing
    lies before what. Rows that do not follow each other have no `limit` but their end.
    """
    if limit >= 0 and ahead[0] <= at <= ahead[1]:
        return ahead[1]
    place = next_of_two(
        sets, ranges, traits[FIRST], traits[FIRST_SET], traits[SECOND], traits[SECOND_SET], data,
        at, max(end, limit),
    )  # fmt: skip
    if limit >= 0:
        ahead[0], ahead[1] = at, place
    return place


@inlined
def _lacks(
    traits: Array, data: Array, at: int, end: int, limit: int, ahead: Array
) -> Any:  # fmt: skip
    """Whether what every match has does not come any more; `ahead` as above, further on."""
    if limit < 0 or not ahead[2] <= at <= ahead[3]:
        ahead[2] = at
        ahead[3] = next_bytes(data, at, max(end, limit), traits[NEEDED], traits[FOLLOWED])
    return ahead[3] + 1 + (traits[FOLLOWED] >= 0) > end


@inlined
def _clear(places: Array) -> None:
    for n in range(len(places)):
        places[n] = -1


@inlined
def _first_match(
    code: Array, sets: Array, ranges: Array, rows: Array, traits: Array, data: Array, start: int,
    end: int, limit: int, ahead: Array, stamp: int, width: int, seen: Array, stack: Array,
    places: Array,
) -> int:  # fmt: skip
    """Whether there is a match from `start` on; `places`, all -1, get where its groups lie."""
    if traits[NEEDED] >= 0 and _lacks(traits, data, start, end, limit, ahead):
        return NONE
    at, lead, result = start, traits[LEAD], NONE
    is_anchored = traits[ANCHORED] > 0
    last = start if is_anchored else end - lead
    while result == NONE:
        if lead and not is_anchored:
            at = _next_place(sets, ranges, traits, data, at, end, limit, ahead)
        if at > last:
            break
        if not lead or sets[traits[START], data[at]]:
            if traits[BRANCHES] == 0:
                result = straight(code, sets, ranges, rows, data, start, at, end, places)
            else:
                result = attempt(
                    code, sets, ranges, rows, data, start, at, end, stamp, width, seen, stack,
                    places,
                )  # fmt: skip
            if result == NONE:
                _clear(places)
                if traits[SKIPPED] >= 0:
                    at = max(at, run_end(sets, ranges, traits[SKIPPED], data, at, end) - 1)
        at += 1
    return result


@tight
def _search(
    code: Array, sets: Array, ranges: Array, rows: Array, traits: Array, data: Array,
    starts: Array, ends: Array, limit: int, ahead: Array, chosen: Array, found: Array,
    spans: Array, seen: Array, stack: Array, width: int,
) -> None:  # fmt: skip
    """Of every chosen row whether there is a match, and where."""
    stamp, lead = 0, traits[LEAD]
    for row in range(len(starts)):
        start, end = starts[row], ends[row]
        _clear(spans[row])
        if not chosen[row] or end - start >= width:
            found[row] = UNKNOWN if chosen[row] else NONE
            continue
        if limit >= 0 and ahead[0] <= start and ahead[1] + lead > end:
            found[row] = NONE  # what must be there comes later
            continue
        stamp += 1
        found[row] = _first_match(
            code, sets, ranges, rows, traits, data, start, end, limit, ahead, stamp, width, seen,
            stack, spans[row],
        )  # fmt: skip


@tight
def _search_on(
    code: Array, sets: Array, ranges: Array, rows: Array, traits: Array, data: Array,
    starts: Array, ends: Array, limit: int, ahead: Array, chosen: Array, times: int,
    counts: Array, spans: Array, seen: Array, stack: Array, width: int, places: Array, done: Array,
) -> None:  # fmt: skip
    """All matches of rows, one after the other, each in what the last one has left.

    From row `done[0]` on, behind `done[1]` spans; it stops where there may not be room for a row.
    A count of -1 is not known. `done[2]` is what was last noted of ways that have failed.
    """
    stamp, made = done[2], done[1]
    for row in range(done[0], len(starts)):
        start, end = starts[row], ends[row]
        if made + (end - start) + 2 > len(spans):
            done[0], done[1], done[2] = row, made, stamp
            return
        counts[row] = 0
        if not chosen[row]:
            continue
        if end - start >= width:
            counts[row] = -1
            continue
        begun, last_end = made, -1
        while made - begun < times:
            stamp += 1
            _clear(places)
            result = _first_match(
                code, sets, ranges, rows, traits, data, start, end, limit, ahead, stamp, width,
                seen, stack, places,
            )  # fmt: skip
            if result != FOUND:
                if result == UNKNOWN:
                    made, counts[row] = begun, -1
                break
            found = start + places[1]
            if found == last_end:  # no second empty match at the same place
                if start >= end:
                    break
                start += 1
                continue
            spans[made, 0], spans[made, 1] = start + places[0], found
            made += 1
            start = last_end = found
        if counts[row] == 0:
            counts[row] = made - begun
    done[0], done[1] = len(starts), made


@inlined
def _members(sets: Array, ranges: Array, of: int, data: Array, at: int, end: int) -> Any:
    """Which of the next 64 bytes before an end are of a set."""
    left = end - at
    if has_ranges(ranges, of) and at + 64 <= data.size:
        members = members64(ranges, of, data, at)
        return members if left >= 64 else members & ((_ONE << np.uint64(left)) - _ONE)
    members = np.uint64(0)
    for n in range(min(left, 64)):
        members |= np.uint64(sets[of, data[at + n]]) << np.uint64(n)
    return members


@inlined
def _runs_of_row(
    sets: Array, ranges: Array, of: int, data: Array, start: int, end: int, times: int,
    spans: Array, made: int,
) -> Any:  # fmt: skip
    """Put the runs of a row behind those that are made; how many there are then."""
    most, is_open, before = made + times, False, np.uint64(0)
    for at in range(start, end, 64):
        members = _members(sets, ranges, of, data, at, end)
        # A bit for each place where a run begins or has ended.
        edges = members ^ ((members << _ONE) | before)
        before = members >> np.uint64(63)
        while edges:
            spans[made, int(is_open)] = at + first_bit(edges)
            edges &= edges - _ONE
            made += is_open
            is_open = not is_open
            if made == most:
                return made
    if is_open:
        spans[made, 1] = end
        made += 1
    return made


@tight
def _search_runs(
    sets: Array, ranges: Array, of: int, data: Array, starts: Array, ends: Array, chosen: Array,
    times: int, counts: Array, spans: Array, done: Array,
) -> None:  # fmt: skip
    """As `_search_on`, of a pattern that is one or more of a set."""
    made = done[1]
    for row in range(done[0], len(starts)):
        if made + (ends[row] - starts[row]) + 2 > len(spans):
            done[0], done[1] = row, made
            return
        begun = made
        if chosen[row] and times:
            made = _runs_of_row(sets, ranges, of, data, starts[row], ends[row], times, spans, made)
        counts[row] = made - begun
    done[0], done[1] = len(starts), made


def _limit(pattern: PatternCode, starts: Array, ends: Array) -> int:
    """Where the last of texts ends that follow each other; -1 of others."""
    is_looked_for = pattern.traits[FIRST] >= 0 or pattern.traits[NEEDED] >= 0
    if not is_looked_for or not len(starts):
        return -1
    return -1 if (starts[1:] < ends[:-1]).any() else int(ends[-1])


def _nothing_ahead() -> Array:
    return np.array([0, -1, 0, -1], np.int64)


class _Room:
    """Room for trying ways in texts of some length: what has failed, and what is left to try."""

    def __init__(self, pattern: PatternCode, starts: Array, ends: Array) -> None:
        self.longest = int((ends - starts).max()) if len(starts) else 0
        self.width = min(self.longest, LONGEST) + 1
        branches = pattern.branches
        size = (2 * branches + 4 * pattern.groups + 8) * (self.width + 1) if branches else 1
        self.seen = np.zeros(max(1, branches * self.width), np.int64)
        self.stack = np.empty((size, 4), np.int64)


def search_on(
    pattern: PatternCode, data: Array, starts: Array, ends: Array, chosen: Array, times: int
) -> tuple[Array, Array]:
    """How many matches each row has, at most so many, or -1; and where all of them lie."""
    count, room = len(starts), _Room(pattern, starts, ends)
    places = np.empty(2 * pattern.groups + 2, np.int32)
    counts, done = np.zeros(count, np.int64), np.zeros(3, np.int64)
    limit, ahead = _limit(pattern, starts, ends), _nothing_ahead()
    spans = np.empty((4 * count + room.longest + 2, 2), np.int64)
    sets, ranges = pattern.sets, pattern.ranges
    while True:
        if pattern.run >= 0:
            of = pattern.run
            _search_runs(sets, ranges, of, data, starts, ends, chosen, times, counts, spans, done)
        else:
            _search_on(
                pattern.code, sets, ranges, pattern.rows, pattern.traits, data, starts, ends,
                limit, ahead, chosen, times, counts, spans, room.seen, room.stack, room.width,
                places, done,
            )  # fmt: skip
        if done[0] == count:
            return counts, spans[: done[1]]
        more = np.empty((2 * len(spans) + room.longest + 2, 2), np.int64)
        more[: done[1]] = spans[: done[1]]
        spans = more


def search(
    pattern: PatternCode, data: Array, starts: Array, ends: Array, chosen: Array
) -> tuple[Array, Array]:
    """For slices of bytes, all ASCII: NONE, FOUND or UNKNOWN, and the spans of the groups."""
    count, room = len(starts), _Room(pattern, starts, ends)
    found = np.empty(count, np.int8)
    spans = np.empty((count, 2 * pattern.groups + 2), np.int32)
    limit, ahead = _limit(pattern, starts, ends), _nothing_ahead()
    _search(
        pattern.code, pattern.sets, pattern.ranges, pattern.rows, pattern.traits, data, starts,
        ends, limit, ahead, chosen, found, spans, room.seen, room.stack, room.width,
    )  # fmt: skip
    return found, spans
