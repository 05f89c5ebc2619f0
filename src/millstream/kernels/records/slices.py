"""Columns of texts as slices of bytes: loops that read, compare and gather them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.compiled import tight
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.interning_text import text_array, text_column
from millstream.kernels.runtime.utf8 import SPARE, put_text
from millstream.plan.batch import Array

GOOD, BAD, UNKNOWN = 0, 1, 2
_ALL = frozen(np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class Slices:
    """Texts as slices of one array of bytes."""

    data: Array
    starts: Array
    ends: Array

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, rows: Array) -> Slices:
        return Slices(self.data, self.starts[rows], self.ends[rows])

    def lengths(self) -> Array:
        return self.ends - self.starts

    def cut(self, low: Any, high: Any) -> Slices:
        """From one character to another, as far as there are so many."""
        lengths = self.lengths()
        first = np.clip(low, 0, lengths)
        last = np.maximum(np.clip(high, 0, lengths), first)
        return Slices(self.data, self.starts + first, self.starts + last)

    def arrow(self, chosen: Array | None) -> Any:
        """Some of them as an Arrow array, or all."""
        rows = _ALL if chosen is None else frozen(chosen)
        offsets = np.empty((len(self) if chosen is None else len(rows)) + 1, np.int32)
        starts, ends = frozen(self.starts), frozen(self.ends)
        data = np.empty(_measure(starts, ends, rows, offsets) + SPARE, np.uint8)
        _gather(frozen(self.data), starts, ends, rows, offsets, data)
        return text_array(offsets, data, np.zeros(0, np.bool_))

    def texts(self, chosen: Array) -> list[str]:
        raw = self.data.tobytes()
        pairs = zip(self.starts[chosen].tolist(), self.ends[chosen].tolist(), strict=True)
        return [raw[start:end].decode("ascii") for start, end in pairs]


def slices_of(column: Any) -> tuple[Slices, Array]:
    """The texts of an Arrow array, and which of them are not plain.

    These are null, or have a byte that is 0 or beyond ASCII.
    """
    parts = text_column(column)
    offsets = parts.offsets.astype(np.int64)
    slices = Slices(parts.data, offsets[:-1], offsets[1:])
    odd = np.zeros(len(slices), np.bool_)
    # What lies behind the last text is not to be looked at.
    used = parts.data[: int(offsets[-1])]
    # With a sign, bytes beyond ASCII are negative.
    if len(used) and int(used.view(np.int8).min()) <= 0:
        _find_odd(parts.data, slices.starts, slices.ends, odd)
    if len(parts.valid):
        odd |= ~parts.valid
    return slices, odd


@dataclass(slots=True)
class HeldTexts:
    """Mutable: a column of texts as it came, which is cut into slices when they are asked for.

    Texts that are not plain are noted in `odd` then; to be sent on they need not be.
    """

    column: Any
    odd: Array
    _slices: Slices | None = None

    def slices(self) -> Slices:
        if self._slices is None:
            self._slices, odd = slices_of(self.column.to_arrow())
            self.odd |= odd
        return self._slices


def one_text(text: str, count: int) -> Slices:
    """The same text for every row."""
    raw = text.encode("ascii")
    data = np.frombuffer(raw or b"\0", np.uint8)
    return Slices(data, np.zeros(count, np.int64), np.full(count, len(raw), np.int64))


@tight
def _find_odd(data: Array, starts: Array, ends: Array, odd: Array) -> None:
    for row in range(len(starts)):
        is_odd = False
        for at in range(starts[row], ends[row]):
            is_odd |= data[at] == 0 or data[at] >= 128
        odd[row] = is_odd


@tight
def _measure(starts: Array, ends: Array, rows: Array, offsets: Array) -> int:
    """Where texts begin that are laid end to end; none chosen stands for all of them."""
    total = 0
    for n in range(len(offsets) - 1):
        row = rows[n] if len(rows) else n
        offsets[n] = total
        total += ends[row] - starts[row]
    offsets[len(offsets) - 1] = total
    return total


@tight
def _gather(
    data: Array, starts: Array, ends: Array, rows: Array, offsets: Array, out: Array
) -> None:
    """Lay texts end to end; `out` has SPARE bytes more than they need."""
    for n in range(len(offsets) - 1):
        row = rows[n] if len(rows) else n
        start, end, at = starts[row], ends[row], np.int64(offsets[n])
        if end + SPARE <= data.size:
            put_text(out, at, data, start, end)
        else:
            for j in range(end - start):
                out[at + j] = data[start + j]


@tight
def _compare(
    data: Array, starts: Array, ends: Array, others: Array, other_starts: Array, other_ends: Array,
    order: Array,
) -> None:  # fmt: skip
    for row in range(len(starts)):
        a, b = starts[row], other_starts[row]
        while a < ends[row] and b < other_ends[row] and data[a] == others[b]:
            a += 1
            b += 1
        if a == ends[row] or b == other_ends[row]:
            order[row] = int(a < ends[row]) - int(b < other_ends[row])
        else:
            order[row] = -1 if data[a] < others[b] else 1


def compared(a: Slices, b: Slices) -> Array:
    """-1, 0 or 1, as the texts of one column come before those of another."""
    order = np.zeros(len(a), np.int64)
    _compare(a.data, a.starts, a.ends, b.data, b.starts, b.ends, order)
    return order


@tight
def _integers(
    data: Array, starts: Array, ends: Array, zeros: int, values: Array, status: Array
) -> None:
    """Plain decimal numbers of at most 18 digits; all else has to be looked at with care."""
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        is_negative = at < end and data[at] == 45
        if is_negative:
            at += 1
        size = end - at
        if size < 1 or size > 18 or (data[at] == 48 and size > 1 and not zeros):
            status[row] = UNKNOWN
            continue
        value = 0
        while at < end and 48 <= data[at] <= 57:
            value = 10 * value + (data[at] - 48)
            at += 1
        values[row] = -value if is_negative else value
        status[row] = GOOD if at == end else UNKNOWN


def integers(texts: Slices, *, leading_zeros: bool) -> tuple[Array, Array]:
    values, status = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int8)
    _integers(texts.data, texts.starts, texts.ends, int(leading_zeros), values, status)
    return values, status


_TENS = 10.0 ** np.arange(23)


@tight
def _floats(
    data: Array, starts: Array, ends: Array, tens: Array, values: Array, status: Array
) -> None:
    """Digits with a point, at most 15 of them: what they come to is rounded once, and rightly."""
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        is_negative = at < end and data[at] == 45
        if is_negative:
            at += 1
        digits, behind, value, has_point = 0, 0, 0, False
        while at < end and (48 <= data[at] <= 57 or (data[at] == 46 and not has_point)):
            if data[at] == 46:
                has_point = True
            else:
                value = 10 * value + (data[at] - 48)
                digits += 1
                behind += int(has_point)
            at += 1
            if digits > 15:
                break
        if at < end or digits == 0 or digits > 15:
            status[row] = UNKNOWN
            continue
        number = value / tens[behind]
        values[row] = -number if is_negative else number


def floats(texts: Slices) -> tuple[Array, Array]:
    values, status = np.zeros(len(texts), np.float64), np.zeros(len(texts), np.int8)
    _floats(texts.data, texts.starts, texts.ends, _TENS, values, status)
    return values, status


@tight
def _find(
    data: Array, starts: Array, ends: Array, part: Array, part_starts: Array, part_ends: Array,
    places: Array,
) -> None:  # fmt: skip
    for row in range(len(starts)):
        size = part_ends[row] - part_starts[row]
        places[row] = -1
        for at in range(starts[row], ends[row] - size + 1):
            n = 0
            while n < size and data[at + n] == part[part_starts[row] + n]:
                n += 1
            if n == size:
                places[row] = at - starts[row]
                break


def places_of(parts: Slices, texts: Slices) -> Array:
    """Where each part is first found in its text, or -1."""
    places = np.zeros(len(texts), np.int64)
    _find(texts.data, texts.starts, texts.ends, parts.data, parts.starts, parts.ends, places)
    return places


@tight
def _recase(data: Array, low: int, high: int, out: Array) -> None:
    for at in range(len(data)):
        c = data[at]
        out[at] = c ^ 32 if low <= c <= high else c


def recased(texts: Slices, *, upper: bool) -> Slices:
    """In capitals or in small letters."""
    data = np.empty(len(texts.data), np.uint8)
    _recase(frozen(texts.data), *((97, 122) if upper else (65, 90)), data)
    return Slices(frozen(data), texts.starts, texts.ends)


@tight
def _order(rows: Array, places: Array, order: Array) -> None:
    for n in range(len(rows)):
        places[rows[n] + 1] += 1
    for row in range(1, len(places)):
        places[row] += places[row - 1]
    for n in range(len(rows)):
        order[places[rows[n]]] = n
        places[rows[n]] += 1


def in_order_of_rows(rows: Array, count: int) -> Array:
    """What sorts numbers below `count` and keeps the order of equal ones."""
    order = np.empty(len(rows), np.int64)
    _order(rows, np.zeros(count + 1, np.int64), order)
    return order
