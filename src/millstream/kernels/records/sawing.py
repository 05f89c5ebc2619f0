"""Cutting the texts of columns by patterns, round by round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from millstream.calculus.scripts import Saw
from millstream.compiled import inlined, tight
from millstream.kernels.records.pattern_code import PatternCode
from millstream.kernels.records.pattern_search import search, search_on
from millstream.kernels.records.pattern_walk import FOUND, UNKNOWN
from millstream.kernels.records.slices import Slices
from millstream.kernels.runtime.hashing import frozen
from millstream.plan.batch import Array

#: Texts with more matches than this are sawn one by one.
MOST_SAWN = 256
_EVERY = frozen(np.zeros(0, np.int64))
#: How many pieces each text has, where that is not known, and the n-th piece of all.
Cut = tuple[Array, Array, Callable[[int], Slices]]


def searched(pattern: PatternCode, texts: Slices, chosen: Array) -> tuple[Array, Array, Array]:
    """Where a pattern is found, the spans of its groups, and where that is not known."""
    found, spans = search(pattern, texts.data, texts.starts, texts.ends, chosen)
    return found == FOUND, spans, found == UNKNOWN


def span(texts: Slices, spans: Array, number: int) -> Slices:
    first, last = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64)
    _span(texts.starts, spans, number, first, last)
    return Slices(texts.data, first, last)


@tight
def _span(starts: Array, spans: Array, number: int, first: Array, last: Array) -> None:
    for row in range(len(starts)):
        took_part = spans[row, 2 * number] >= 0
        first[row] = starts[row] + (spans[row, 2 * number] if took_part else 0)
        last[row] = starts[row] + spans[row, 2 * number + 1] if took_part else first[row]


def all_matches(code: PatternCode, texts: Slices, chosen: Array, times: int) -> Cut:
    """Texts sawn by one pattern: how often, where that is not known, and the n-th piece of all."""
    counts, spans = search_on(code, texts.data, texts.starts, texts.ends, chosen, times)
    return cut_at(texts, counts, spans)


def cut_at(texts: Slices, counts: Array, spans: Array) -> Cut:
    """Texts cut at spans, so many in each row; a count of -1 is not known."""
    unsure = counts < 0
    counts = np.where(unsure, 0, counts) if unsure.any() else counts
    return counts, unsure, PiecesAt(texts.data, spans, np.cumsum(counts) - counts, counts)


@dataclass(frozen=True, slots=True)
class PiecesAt:
    """The n-th piece of all rows: each has so many spans, which begin at some place."""

    data: Array
    spans: Array
    begun: Array
    counts: Array
    #: The rows that are meant, of those that `begun` is of; None for all.
    rows: Array | None = None

    def __call__(self, number: int) -> Slices:
        count, begun = len(self.counts), self.settled().begun
        first, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
        _pieces(self.spans, begun, self.counts, number, first, last)
        return Slices(self.data, first, last)

    def at(self, numbers: Array) -> tuple[Slices, Array | None]:
        """In each row another piece, and the rows that have no such one."""
        count = len(self.counts)
        first, last = np.empty(count, np.int64), np.empty(count, np.int64)
        outside = np.empty(count, np.bool_)
        rows = _EVERY if self.rows is None else frozen(self.rows)
        given = (self.spans, frozen(self.begun), frozen(self.counts), rows, frozen(numbers))
        missing = _pieces_at(*given, first, last, outside)
        return Slices(self.data, first, last), outside if missing else None

    def take(self, rows: Array) -> PiecesAt:
        """Of some rows; where their spans begin is looked up when they are asked for."""
        begun = self.begun if self.rows is None else self.begun[self.rows]
        return PiecesAt(self.data, self.spans, begun, self.counts[rows], rows)

    def settled(self) -> PiecesAt:
        if self.rows is None:
            return self
        return PiecesAt(self.data, self.spans, self.begun[self.rows], self.counts)


def fields(texts: Slices, chosen: Array) -> Cut:
    """The fields of lines between commas, without space around them, where nothing is quoted."""
    counts = np.zeros(len(texts), np.int64)
    data, starts, ends = frozen(texts.data), frozen(texts.starts), frozen(texts.ends)
    spans = np.empty((_count_fields(data, starts, ends, frozen(chosen), counts), 2), np.int64)
    _find_fields(data, starts, ends, counts, spans)
    return cut_at(texts, counts, spans)


@tight
def _count_fields(data: Array, starts: Array, ends: Array, chosen: Array, counts: Array) -> int:
    total = 0
    for row in range(len(starts)):
        if not chosen[row] or starts[row] == ends[row]:
            continue
        commas, is_quoted = 1, False
        for at in range(starts[row], ends[row]):
            commas += data[at] == 44
            is_quoted |= data[at] == 34
        counts[row] = -1 if is_quoted else commas
        total += 0 if is_quoted else commas
    return total


@inlined
def _is_space(c: int) -> bool:
    return c == 32 or 9 <= c <= 13


@tight
def _find_fields(data: Array, starts: Array, ends: Array, counts: Array, spans: Array) -> None:
    made = 0
    for row in range(len(starts)):
        at = starts[row]
        for _ in range(counts[row]):
            while at < ends[row] and _is_space(data[at]):
                at += 1
            begun, last = at, at
            while at < ends[row] and data[at] != 44:
                at += 1
                last = last if _is_space(data[at - 1]) else at
            spans[made, 0], spans[made, 1] = begun, last
            made += 1
            at += 1


@tight
def _pieces(
    spans: Array, begun: Array, counts: Array, number: int, first: Array, last: Array
) -> None:
    for row in range(len(counts)):
        if number < counts[row]:
            first[row] = spans[begun[row] + number, 0]
            last[row] = spans[begun[row] + number, 1]


@tight
def _pieces_at(
    spans: Array, begun: Array, counts: Array, rows: Array, numbers: Array, first: Array,
    last: Array, outside: Array,
) -> int:  # fmt: skip
    missing = 0
    for n in range(len(counts)):
        number = numbers[n]
        is_outside = number < 0 or number >= counts[n]
        outside[n] = is_outside
        missing += is_outside
        first[n] = last[n] = 0
        if not is_outside:
            at = begun[rows[n] if len(rows) else n] + number
            first[n], last[n] = spans[at, 0], spans[at, 1]
    return missing


class Sawing:
    """Mutable: how far the texts of a column are sawn, and the pieces so far."""

    def __init__(self, look_closer: Callable[[Array], None], texts: Slices, going: Array) -> None:
        self.look_closer = look_closer
        self.left = texts
        self.going = going
        self.parts: list[Slices] = []
        self.count = np.zeros(len(texts), np.int64)
        self.last_end = np.full(len(texts), -1, np.int64)

    def once(self, node: Saw, codes: list[PatternCode]) -> None:
        """All patterns once, each from the end of the last match on, in the rows still going."""
        before, known = self.left.starts, self.count.copy()
        for cut, code in zip(node.cuts, codes, strict=True):
            spans = self.found(code, alone=len(codes) == 1)
            groups = range(1, spans.shape[1] // 2) if cut.is_submatch else range(1)
            if not cut.is_skipped:
                for n in groups or range(1):
                    self.put(span(self.left, spans, n))
            ends = self.left.starts + spans[:, 1]
            starts = np.where(self.going, ends, self.left.starts)
            self.last_end = np.where(self.going, ends, self.last_end)
            self.left = Slices(self.left.data, starts, self.left.ends)
        if len(codes) > 1:
            stuck = self.going & (self.left.starts == before)
            self.count = np.where(stuck, known, self.count)
            self.going = self.going & ~stuck

    def found(self, code: PatternCode, *, alone: bool) -> Array:
        """The spans of the next match; rows without one go on no more."""
        found, spans, unsure = searched(code, self.left, self.going)
        self.look_closer(unsure)
        self.going = self.going & found & ~unsure
        while alone:
            # One pattern alone must get on: no second empty match at the same place.
            again = self.going & (self.left.starts + spans[:, 1] == self.last_end)
            if not again.any():
                break
            at_end = again & (self.left.starts >= self.left.ends)
            self.going = self.going & ~at_end
            again = again & ~at_end
            starts = self.left.starts + again
            self.left = Slices(self.left.data, starts, self.left.ends)
            found, new, unsure = searched(code, self.left, again)
            self.look_closer(unsure)
            self.going = self.going & ~(again & (~found | unsure))
            spans = np.where(again[:, None], new, spans)
        return spans

    def put(self, piece: Slices) -> None:
        """One piece more in the rows that are going, behind those they have."""
        if not self.going.any() and len(self.going):
            return
        places = self.count[self.going]
        if len(places) and (places != len(self.parts)).any():
            raise AssertionError("rows that are sawn have the same number of pieces")
        self.parts.append(piece)
        self.count = self.count + self.going
