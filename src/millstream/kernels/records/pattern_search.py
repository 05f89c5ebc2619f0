"""Searching columns of texts with the instructions of a pattern.

Ways are tried in order, as Perl does, and a way from a place where it has failed before is never
tried again: the time is bounded by the length of the text times that of the pattern.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.compiled import inlined, tight
from millstream.kernels.records.pattern_code import PatternCode
from millstream.plan.batch import Array
from millstream.words64 import load64

_ONES, _HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
#: Texts that are longer are left to the libraries.
LONGEST = 4096
NONE, FOUND, UNKNOWN = 0, 1, 2
_WAY, _OLD, _RUN = 0, 1, 2


@inlined
def _is_word(c: int) -> bool:
    return 48 <= c <= 57 or 65 <= c <= 90 or c == 95 or 97 <= c <= 122


@inlined
def _is_here(kind: int, at: int, start: int, end: int, data: Array) -> bool:
    if kind in (0, 2):
        return at == start
    if kind == 3:
        return at == end
    if kind in (1, 4):
        return at == end or (at == end - 1 and data[at] == 10)
    before = at > start and _is_word(data[at - 1])
    after = at < end and _is_word(data[at])
    return (before != after) == (kind == 5)


@inlined
def _run_end(sets: Array, of: int, data: Array, at: int, limit: int) -> Any:
    """The first place from here on with a character that is not of a set.

    Indexes without a sign are not looked at for being negative.
    """
    place, end = np.uint64(at), np.uint64(limit)
    row, one = np.uint64(of), np.uint64(1)
    while place < end and sets[row, data[place]]:
        place += one
    return np.int64(place)


@inlined
def _pushed(stack: Array, depth: int, kind: int, a: int, b: int, c: int) -> int:
    stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = kind, a, b, c
    return depth + 1


@inlined
def _unseen(seen: Array, base: int, at: int, low: int, stamp: int) -> int:
    """The last place not below `low` from which the rest has not failed yet; it is noted."""
    while at >= low and seen[base + at] == stamp:
        at -= 1
    if at >= low:
        seen[base + at] = stamp
    return at


@inlined
def _back(
    code: Array, sets: Array, data: Array, start: int, stamp: int, width: int, seen: Array,
    stack: Array, depth: int, places: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Where to go on after a failure, or -1: an instruction, a place, and what is left to try."""
    while depth:
        depth -= 1
        kind, first = stack[depth, 0], stack[depth, 1]
        if kind == _WAY:
            return first, stack[depth, 2], depth
        if kind == _OLD:
            places[first] = stack[depth, 2]
            continue
        low, at, of = stack[depth, 2], stack[depth, 3], code[first, 5]
        if of >= 0:
            # Only where the next character fits is it worth to go on.
            while at >= low and not sets[of, data[at]]:
                at -= 1
        at = _unseen(seen, code[first, 4] * width - start, at, low, stamp)
        if at >= low:
            if at > low:
                depth = _pushed(stack, depth, _RUN, first, low, at - 1)
            return first + 1, at, depth
    return -1, 0, 0


@inlined
def _noted(
    code: Array, pc: int, at: int, stack: Array, depth: int, places: Array
) -> int:  # fmt: skip
    """Note the places that an instruction has to; what is left to try knows what they were."""
    for n in range(6, 8):
        place = code[pc, n]
        if place < 0:
            break
        if depth:
            depth = _pushed(stack, depth, _OLD, place, places[place], 0)
        places[place] = at
    return depth


@inlined
def _are_next(
    rows: Array, first: int, count: int, sets: Array, data: Array, at: int, end: int
) -> bool:  # fmt: skip
    """Whether the next characters are of several sets."""
    n = 0 if at + count <= end else count + 1
    while n < count and sets[rows[first + n], data[at + n]]:
        n += 1
    return n == count


@inlined
def _attempt(
    code: Array, sets: Array, rows: Array, data: Array, start: int, at: int, end: int, stamp: int,
    width: int, seen: Array, stack: Array, places: Array,
) -> int:  # fmt: skip
    """A match that begins here; `places` has where its groups lie."""
    pc, depth, most = 0, 0, len(stack) - 2
    while pc >= 0:
        kind, first = code[pc, 0], code[pc, 1]
        goes_on = True
        depth = _noted(code, pc, at - start, stack, depth, places)
        if kind == 0:  # one
            goes_on = at < end and sets[first, data[at]]
            at += 1
        elif kind == 7:  # row
            goes_on = _are_next(rows, first, code[pc, 2], sets, data, at, end)
            at += code[pc, 2]
        elif kind == 5:  # run
            low = at + code[pc, 2]
            at = _run_end(sets, first, data, at, min(end, at + code[pc, 3]))
            if code[pc, 4] >= 0:
                at = _unseen(seen, code[pc, 4] * width - start, at, low, stamp)
                if at > low:
                    depth = _pushed(stack, depth, _RUN, pc, low, at - 1)
            goes_on = at >= low
        elif kind == 3:  # note
            if depth:
                depth = _pushed(stack, depth, _OLD, first, places[first], 0)
            places[first] = at - start
        elif kind == 1:  # try
            mark = code[pc, 3] * width + at - start
            goes_on = seen[mark] != stamp
            seen[mark] = stamp
            if goes_on:
                depth = _pushed(stack, depth, _WAY, code[pc, 2], at, 0)
            pc = first - 1
        elif kind == 2:  # go
            pc = first - 1
        elif kind == 4:  # be
            goes_on = _is_here(first, at, start, end, data)
        else:
            return FOUND
        if depth > most:
            return UNKNOWN
        pc += 1
        if not goes_on:
            pc, at, depth = _back(code, sets, data, start, stamp, width, seen, stack, depth, places)
    return NONE


@inlined
def _straight(
    code: Array, sets: Array, rows: Array, data: Array, start: int, at: int, end: int,
    places: Array,
) -> int:  # fmt: skip
    """As `_attempt`, of a pattern that can be tried in one way only."""
    for pc in range(len(code)):
        kind, first = code[pc, 0], code[pc, 1]
        for n in range(6, 8):
            if code[pc, n] >= 0:
                places[code[pc, n]] = at - start
        if kind == 5:  # run
            low = at + code[pc, 2]
            at = _run_end(sets, first, data, at, min(end, at + code[pc, 3]))
            if at < low:
                break
        elif kind == 7:  # row
            if not _are_next(rows, first, code[pc, 2], sets, data, at, end):
                break
            at += code[pc, 2]
        elif kind == 0:  # one
            if at >= end or not sets[first, data[at]]:
                break
            at += 1
        elif kind == 3:  # note
            places[first] = at - start
        elif kind == 4:  # be
            if not _is_here(first, at, start, end, data):
                break
        else:
            return FOUND
    return NONE


@inlined
def _next_end(steps: Array, data: Array, behind: int, end: int) -> Any:
    """Where the first characters of the next match may end, from here on."""
    place, last = np.uint64(behind), np.uint64(end)
    while place < last:
        step = steps[data[place]]
        if step == 0:
            break
        place += np.uint64(step)
    return np.int64(place)


@inlined
def _next_bytes(data: Array, at: int, limit: int, one: int, two: int) -> int:
    """Where a byte comes next, and another one behind it unless that is -1; or the limit."""
    ones, twos = np.uint64(one) * _ONES, np.uint64(max(two, 0)) * _ONES
    # The second of the words ends one byte behind the first.
    last = min(limit, data.size) - 9
    while at <= last:
        word = load64(data, at) ^ ones
        if two >= 0:
            word |= load64(data, at + 1) ^ twos
        if (word - _ONES) & ~word & _HIGH:
            break
        at += 8
    while at < limit and (
        data[at] != one or (two >= 0 and (at + 1 >= limit or data[at + 1] != two))
    ):
        at += 1
    return at


@inlined
def _next_place(
    pair: Array, data: Array, at: int, end: int, limit: int, ahead: Array
) -> Any:  # fmt: skip
    """The next place at which a match may begin, by the bytes it must have.

    What was found behind a row is kept for those that follow: `ahead` is from where on nothing
    lies before what. Rows that do not follow each other have no `limit` but their end.
    """
    wanted = at + pair[0]
    if limit < 0:
        return _next_bytes(data, wanted, end, pair[1], pair[2]) - pair[0]
    if wanted < ahead[0] or wanted > ahead[1]:
        ahead[0], ahead[1] = wanted, _next_bytes(data, wanted, limit, pair[1], pair[2])
    return ahead[1] - pair[0]


@inlined
def _clear(places: Array) -> None:
    for n in range(len(places)):
        places[n] = -1


@inlined
def _first_match(
    code: Array, sets: Array, rows: Array, lead: int, steps: Array, first: Array, pair: Array,
    is_anchored: int, branches: int, data: Array, start: int, end: int, limit: int,
    ahead: Array, stamp: int, width: int, seen: Array, stack: Array, places: Array,
) -> int:  # fmt: skip
    """Whether there is a match from `start` on; `places`, all -1, get where its groups lie."""
    at, last, result = start, start if is_anchored else end, NONE
    while result == NONE:
        if pair[0] >= 0 and not is_anchored:
            at = _next_place(pair, data, at, end, limit, ahead)
            if at + lead > end:
                break
        elif lead:
            behind = _next_end(steps, data, at + lead - 1, end)
            at = behind - lead + 1
            if behind >= end:
                break
        if at > last:
            break
        if not lead or first[data[at]]:
            if branches == 0:
                result = _straight(code, sets, rows, data, start, at, end, places)
            else:
                result = _attempt(
                    code, sets, rows, data, start, at, end, stamp, width, seen, stack, places
                )
            if result == NONE:
                _clear(places)
        at += 1
    return result


@tight
def _search(
    code: Array, sets: Array, rows: Array, lead: int, steps: Array, first: Array, pair: Array,
    is_anchored: int, branches: int, data: Array, starts: Array, ends: Array, limit: int,
    ahead: Array, chosen: Array, found: Array, spans: Array, seen: Array, stack: Array, width: int,
) -> None:  # fmt: skip
    """Of every chosen row whether there is a match, and where."""
    stamp = 0
    for row in range(len(starts)):
        start, end = starts[row], ends[row]
        if not chosen[row] or end - start >= width:
            found[row] = UNKNOWN if chosen[row] else NONE
            continue
        if limit >= 0 and start + pair[0] >= ahead[0] and ahead[1] - pair[0] + lead > end:
            found[row] = NONE  # what must be there comes later
            continue
        stamp += 1
        found[row] = _first_match(
            code, sets, rows, lead, steps, first, pair, is_anchored, branches, data, start, end,
            limit, ahead, stamp, width, seen, stack, spans[row],
        )  # fmt: skip


@tight
def _search_on(
    code: Array, sets: Array, rows: Array, lead: int, steps: Array, first: Array, pair: Array,
    is_anchored: int, branches: int, data: Array, starts: Array, ends: Array, limit: int,
    ahead: Array, chosen: Array, times: int, counts: Array, spans: Array, seen: Array, stack: Array,
    width: int, places: Array, done: Array,
) -> None:  # fmt: skip
    """All matches of rows, one after the other, each in what the last one has left.

    From row `done[0]` on, behind `done[1]` spans; it stops where there may not be room for a row.
    A count of -1 is not known.
    """
    stamp, made = 0, done[1]
    for row in range(done[0], len(starts)):
        start, end = starts[row], ends[row]
        if made + (end - start) + 2 > len(spans):
            done[0], done[1] = row, made
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
                code, sets, rows, lead, steps, first, pair, is_anchored, branches, data, start,
                end, limit, ahead, stamp, width, seen, stack, places,
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


@tight
def _search_runs(
    members: Array, data: Array, starts: Array, ends: Array, chosen: Array, times: int,
    counts: Array, spans: Array, done: Array,
) -> None:  # fmt: skip
    """As `_search_on`, of a pattern that is one or more of a set."""
    made, one = done[1], np.uint64(1)
    for row in range(done[0], len(starts)):
        place, end = np.uint64(starts[row]), np.uint64(ends[row])
        if made + (ends[row] - starts[row]) + 2 > len(spans):
            done[0], done[1] = row, made
            return
        begun = made
        if not chosen[row]:
            end = place
        while made - begun < times:
            while place < end and not members[data[place]]:
                place += one
            if place >= end:
                break
            spans[made, 0] = np.int64(place)
            while place < end and members[data[place]]:
                place += one
            spans[made, 1] = np.int64(place)
            made += 1
        counts[row] = made - begun
    done[0], done[1] = len(starts), made


def _limit(pattern: PatternCode, starts: Array, ends: Array) -> int:
    """Where the last of texts ends that follow each other; -1 of others."""
    if pattern.pair[0] < 0 or pattern.is_anchored or not len(starts):
        return -1
    return -1 if (starts[1:] < ends[:-1]).any() else int(ends[-1])


def _nothing_ahead() -> Array:
    return np.array([0, -1], np.int64)


def search_on(
    pattern: PatternCode, data: Array, starts: Array, ends: Array, chosen: Array, times: int
) -> tuple[Array, Array]:
    """How many matches each row has, at most so many, or -1; and where all of them lie."""
    count = len(starts)
    longest = int((ends - starts).max()) if count else 0
    width = min(longest, LONGEST) + 1
    seen = np.zeros(max(1, pattern.branches * width), np.int64)
    stack = np.empty(((2 * pattern.branches + 4 * pattern.groups + 8) * (width + 1), 4), np.int64)
    places = np.empty(2 * pattern.groups + 2, np.int32)
    counts, done = np.zeros(count, np.int64), np.zeros(2, np.int64)
    limit, ahead = _limit(pattern, starts, ends), _nothing_ahead()
    spans = np.empty((4 * count + longest + 2, 2), np.int64)
    while True:
        if pattern.run >= 0:
            members = pattern.sets[pattern.run]
            _search_runs(members, data, starts, ends, chosen, times, counts, spans, done)
        else:
            _search_on(
                pattern.code, pattern.sets, pattern.rows, pattern.lead, pattern.steps,
                pattern.starts, pattern.pair, int(pattern.is_anchored), pattern.branches, data,
                starts, ends, limit, ahead, chosen, times, counts, spans, seen, stack, width,
                places, done,
            )  # fmt: skip
        if done[0] == count:
            return counts, spans[: done[1]]
        more = np.empty((2 * len(spans) + longest + 2, 2), np.int64)
        more[: done[1]] = spans[: done[1]]
        spans = more


def search(
    pattern: PatternCode, data: Array, starts: Array, ends: Array, chosen: Array
) -> tuple[Array, Array]:
    """For slices of bytes, all ASCII: NONE, FOUND or UNKNOWN, and the spans of the groups."""
    count = len(starts)
    found = np.empty(count, np.int8)
    spans = np.full((count, 2 * pattern.groups + 2), -1, np.int32)
    longest = int((ends - starts).max()) if count else 0
    width = min(longest, LONGEST) + 1
    seen = np.zeros(max(1, pattern.branches * width), np.int64)
    stack = np.empty(((2 * pattern.branches + 4 * pattern.groups + 8) * (width + 1), 4), np.int64)
    limit, ahead = _limit(pattern, starts, ends), _nothing_ahead()
    _search(
        pattern.code, pattern.sets, pattern.rows, pattern.lead, pattern.steps, pattern.starts,
        pattern.pair, int(pattern.is_anchored), pattern.branches, data, starts, ends, limit, ahead,
        chosen, found, spans, seen, stack, width,
    )  # fmt: skip
    return found, spans
