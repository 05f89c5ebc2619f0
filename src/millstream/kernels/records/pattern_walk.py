"""The machine that walks the instructions of a pattern through a text.

Ways are tried in order, as Perl does, and a way from a place where it has failed before is never
tried again: the time is bounded by the length of the text times that of the pattern.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.compiled import inlined
from millstream.kernels.records.pattern_scan import run_end
from millstream.plan.batch import Array
from millstream.words64 import load64

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
def _is_new(seen: Array, mark: int, stamp: int) -> Any:
    """Whether a way has not been tried from a place before; from now on it has."""
    is_new = seen[mark] != stamp
    seen[mark] = stamp
    return is_new


@inlined
def _fitting(sets: Array, of: int, data: Array, at: int, low: int, end: int) -> int:
    """The last place not below `low` where a character of a set follows, if any is asked for."""
    if of >= 0:
        while at >= low and (at >= end or not sets[of, data[at]]):
            at -= 1
    return at


@inlined
def _back(
    code: Array, sets: Array, data: Array, start: int, end: int, stamp: int, width: int,
    seen: Array, stack: Array, depth: int, places: Array,
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
        low = stack[depth, 2]
        at = _fitting(sets, code[first, 5], data, stack[depth, 3], low, end)
        at = _unseen(seen, code[first, 4] * width - start, at, low, stamp)
        if at >= low:
            if at > low:
                depth = _pushed(stack, depth, _RUN, first, low, at - 1)
            return first + 1, at, depth
    return -1, 0, 0


@inlined
def _put(place: int, at: int, stack: Array, depth: int, places: Array) -> int:
    """Note a place; what is left to try knows what it was."""
    if depth:
        depth = _pushed(stack, depth, _OLD, place, places[place], 0)
    places[place] = at
    return depth


@inlined
def _noted(
    code: Array, pc: int, at: int, stack: Array, depth: int, places: Array
) -> int:  # fmt: skip
    """Note the places that an instruction has to."""
    for n in range(6, 8):
        place = code[pc, n]
        if place < 0:
            break
        depth = _put(place, at, stack, depth, places)
    return depth


@inlined
def _are_next(
    code: Array, pc: int, rows: Array, sets: Array, data: Array, at: int, end: int
) -> Any:  # fmt: skip
    """Whether the next characters are of several sets; as one word if that tells."""
    first, count, word, mask = code[pc, 1], code[pc, 2], code[pc, 3], code[pc, 4]
    if at + count > end:
        return False
    if mask != 0 and at + 8 <= data.size:
        return (load64(data, at) ^ np.uint64(word)) & np.uint64(mask) == 0
    n = 0
    while n < count and sets[rows[first + n], data[at + n]]:
        n += 1
    return n == count


@inlined
def _can_be(sets: Array, of: int, data: Array, at: int, end: int) -> bool:
    """Whether the next character is of a set, if any is asked for."""
    return of < 0 or (at < end and sets[of, data[at]])


@inlined
def _run(
    code: Array, pc: int, sets: Array, ranges: Array, data: Array, start: int, at: int, end: int,
    stamp: int, width: int, seen: Array,
) -> Any:  # fmt: skip
    """The furthest end of a run from which the rest may fit and has not failed yet."""
    low, branch = at + code[pc, 2], code[pc, 4]
    at = run_end(sets, ranges, code[pc, 1], data, at, min(end, at + code[pc, 3]))
    if branch < 0:
        return at
    at = _fitting(sets, code[pc, 5], data, at, low, end)
    return _unseen(seen, branch * width - start, at, low, stamp)


@inlined
def _until(code: Array, pc: int, sets: Array, ranges: Array, data: Array, at: int, end: int) -> Any:
    """Where what follows may begin next, or -1."""
    if code[pc, 4] >= 0:
        at = run_end(sets, ranges, code[pc, 2], data, at, end)
    return at if _can_be(sets, code[pc, 4], data, at, end) else -1


@inlined
def attempt(
    code: Array, sets: Array, ranges: Array, rows: Array, data: Array, start: int, at: int,
    end: int, stamp: int, width: int, seen: Array, stack: Array, places: Array,
) -> int:  # fmt: skip
    """A match that begins here; `places` has where its groups lie."""
    pc, depth, most = 0, 0, len(stack) - 2
    while pc >= 0:
        kind, first, goes_on = code[pc, 0], code[pc, 1], True
        depth = _noted(code, pc, at - start, stack, depth, places)
        if kind == 0:  # one
            goes_on = at < end and sets[first, data[at]]
            at += 1
        elif kind == 7:  # row
            goes_on = _are_next(code, pc, rows, sets, data, at, end)
            at += code[pc, 2]
        elif kind == 5:  # run
            low = at + code[pc, 2]
            at = _run(code, pc, sets, ranges, data, start, at, end, stamp, width, seen)
            if code[pc, 4] >= 0 and at > low:
                depth = _pushed(stack, depth, _RUN, pc, low, at - 1)
            goes_on = at >= low
        elif kind == 3:  # note
            depth = _put(first, at - start, stack, depth, places)
        elif kind == 1:  # try
            is_other = _can_be(sets, code[pc, 5], data, at, end)
            if not _can_be(sets, code[pc, 4], data, at, end):
                goes_on, first = is_other, code[pc, 2]
            elif is_other:
                goes_on = _is_new(seen, code[pc, 3] * width + at - start, stamp)
                depth = _pushed(stack, depth, _WAY, code[pc, 2], at, 0) if goes_on else depth
            pc = first - 1
        elif kind == 8:  # until
            at = _until(code, pc, sets, ranges, data, at, end)
            branch = code[pc, 3]
            goes_on = at >= 0 and (branch < 0 or _is_new(seen, branch * width + at - start, stamp))
            if goes_on and branch >= 0 and at < end and sets[first, data[at]]:
                depth = _pushed(stack, depth, _WAY, pc, at + 1, 0)
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
            pc, at, depth = _back(
                code, sets, data, start, end, stamp, width, seen, stack, depth, places
            )
    return NONE


@inlined
def straight(
    code: Array, sets: Array, ranges: Array, rows: Array, data: Array, start: int, at: int,
    end: int, places: Array,
) -> int:  # fmt: skip
    """As `attempt`, of a pattern where what comes next tells which way to go."""
    pc, goes_on = 0, True
    while goes_on:
        kind, first = code[pc, 0], code[pc, 1]
        for n in range(6, 8):
            if code[pc, n] >= 0:
                places[code[pc, n]] = at - start
        if kind == 5:  # run
            low = at + code[pc, 2]
            at = run_end(sets, ranges, first, data, at, min(end, at + code[pc, 3]))
            goes_on = at >= low
        elif kind == 7:  # row
            goes_on = _are_next(code, pc, rows, sets, data, at, end)
            at += code[pc, 2]
        elif kind == 0:  # one
            goes_on = at < end and sets[first, data[at]]
            at += 1
        elif kind == 3:  # note
            places[first] = at - start
        elif kind == 4:  # be
            goes_on = _is_here(first, at, start, end, data)
        elif kind == 1:  # try
            goes_on = _can_be(sets, code[pc, 4], data, at, end)
            if not goes_on:
                goes_on, first = _can_be(sets, code[pc, 5], data, at, end), code[pc, 2]
            pc = first - 1
        elif kind == 2:  # go
            pc = first - 1
        elif kind == 8:  # until
            at = _until(code, pc, sets, ranges, data, at, end)
            goes_on = at >= 0
        else:
            return FOUND
        pc += 1
    return NONE
