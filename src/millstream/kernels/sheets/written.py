"""Numbers and dates as texts, many at once: what TEXT with common formats and `&` write.

They follow `values.excel.format_numbers`, `formats` and `values.general` to the letter; what
they cannot write they mark as left out.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.compiled import lent, tight
from millstream.kernels.sheets.arithmetic_dates import civil
from millstream.plan.batch import Array
from millstream.values.excel import rounding
from millstream.values.excel.format_numbers import FormatPart, literal
from millstream.values.excel.formats import CONDITION, sections_of
from millstream.values.excel.numerals import DAYS, MONTHS

_fifteen_digits: Any = lent(rounding.fifteen_digits)
_shown_number: Any = lent(rounding.shown_number)
_LEAST, _MOST = 1e-9, 1e15
_LONGEST_FORMAT = 255
#: No number takes more bytes than this.
_WIDTH = 48
_FIXED = re.compile(r"(?P<whole>#,##0|0{1,9})(?:\.(?P<places>0{1,9}))?(?P<percent>%?)")
_MOMENT = re.compile(r"y+|m+|d+|h+|s+|[-/:., T]")
#: What a piece of a date is; letters that stand for themselves are their own codes.
_YEAR, _YEAR_2, _MONTH, _MONTH_2, _DAY, _DAY_2, _HOUR, _HOUR_2, _MINUTE, _MINUTE_2, _SECOND_2 = (
    range(1, 12)
)  # fmt: skip
_MONTH_3, _MONTH_NAME, _DAY_3, _DAY_NAME = range(12, 16)
_CODES = {
    "yyyy": _YEAR, "yy": _YEAR_2, "m": _MONTH, "mm": _MONTH_2, "mmm": _MONTH_3,
    "mmmm": _MONTH_NAME, "d": _DAY, "dd": _DAY_2, "ddd": _DAY_3, "dddd": _DAY_NAME,
    "h": _HOUR, "hh": _HOUR_2, "ss": _SECOND_2,
}  # fmt: skip
#: The names of months, then of days from Sunday on: letters, and how many.
_NAMES = [name.capitalize() for name in (*MONTHS, *DAYS)]
_LONGEST = max(map(len, _NAMES))
_LETTERS = np.array([list(name.ljust(_LONGEST).encode()) for name in _NAMES], np.uint8)
_LENGTHS = np.array(list(map(len, _NAMES)), np.int64)
#: What stands in a format for itself.
_LITERAL = frozenset({"literal", "skip", "bracket", "other"})
_DIGITS = frozenset({"digit", "point", "comma", "percent"})


class FixedFormat:
    """`0.00`, `#,##0.0`, `0%` and the like."""

    def __init__(self, places: int, shift: int, least: int, *, has_commas: bool) -> None:
        self.shape = (places, shift, least, has_commas)

    def write(self, numbers: Array, left_out: Array) -> Any:
        return _written(numbers, left_out, _WIDTH, _write_fixed, *self.shape)


class SectionedFormat:
    """`+0.0;-0.0;0.0`, `$#,##0.00` and the like: texts around numbers, by their signs."""

    def __init__(self, sections: list[tuple[str, FixedFormat, str]]) -> None:
        self.sections = sections

    def write(self, numbers: Array, left_out: Array) -> Any:
        count = len(self.sections)
        of_zero = 2 if count > 2 else 0
        which = np.where(numbers > 0, 0, np.where(numbers < 0, min(1, count - 1), of_zero))
        order, made, at = np.empty(len(numbers), np.int64), [], 0
        for number, (before, format_, after) in enumerate(self.sections):
            places = np.flatnonzero(which == number)
            order[places] = at + np.arange(len(places))
            at += len(places)
            some, odd = numbers.take(places), left_out.take(places)
            texts = format_.write(np.abs(some), odd)
            left_out[places] = odd
            # A minus comes first where the only section does not say how it is shown.
            head: Any = pa.scalar(before)
            if count == 1:
                head = pc.if_else(pa.array(some < 0), f"-{before}", before)
            made.append(pc.binary_join_element_wise(head, texts, after, ""))
        return pa.concat_arrays(made).take(pa.array(order))


class MomentFormat:
    """`yyyy-mm-dd hh:mm` and the like."""

    def __init__(self, codes: list[int]) -> None:
        self.codes = np.array(codes, np.int64)

    def write(self, numbers: Array, left_out: Array) -> Any:
        return _written(numbers, left_out, _LONGEST * len(self.codes), _write_moments, self.codes)


class GeneralFormat:
    """As `&` writes numbers."""

    def write(self, numbers: Array, left_out: Array) -> Any:
        return _written(numbers, left_out, _WIDTH, _write_general)


Format = FixedFormat | SectionedFormat | MomentFormat | GeneralFormat


def format_of(pattern: str) -> Format | None:
    """A format that can be written here."""
    fixed = _fixed(pattern)
    if fixed is not None:
        return fixed
    sections = [_section(parts) for parts in sections_of(pattern)]
    known = [section for section in sections if section is not None]
    if len(known) == len(sections) <= 3 and len(pattern) <= _LONGEST_FORMAT:
        return SectionedFormat(known)
    return _moment(pattern)


def _fixed(pattern: str) -> FixedFormat | None:
    fixed = _FIXED.fullmatch(pattern)
    if fixed is None:
        return None
    has_commas = fixed["whole"].startswith("#")
    least = 1 if has_commas else len(fixed["whole"])
    shift = 2 if fixed["percent"] else 0
    return FixedFormat(len(fixed["places"] or ""), shift, least, has_commas=has_commas)


def _section(parts: list[FormatPart]) -> tuple[str, FixedFormat, str] | None:
    """A number, and what stands before and after it."""
    digits = [n for n, part in enumerate(parts) if part.kind in _DIGITS]
    if not digits:
        return None
    first, last = digits[0], digits[-1] + 1
    around = parts[:first] + parts[last:]
    fixed = _fixed("".join(part.text for part in parts[first:last]))
    is_plain = all(p.kind in _LITERAL and CONDITION.fullmatch(p.text) is None for p in around)
    if fixed is None or not is_plain:
        return None
    return ("".join(map(literal, parts[:first])), fixed, "".join(map(literal, parts[last:])))


def _moment(pattern: str) -> MomentFormat | None:
    pieces = _MOMENT.findall(pattern)
    letters = [p for p in pieces if p.isalpha() and p != "T"]
    if "".join(pieces) != pattern or not letters or not all(p in _CODES for p in letters):
        return None
    codes = []
    seen = 0
    for piece in pieces:
        code = _CODES.get(piece, ord(piece[0]))
        if piece in _CODES:
            before = letters[seen - 1] if seen else ""
            after = letters[seen + 1] if seen + 1 < len(letters) else ""
            if piece in ("m", "mm") and (before[:1] == "h" or after[:1] == "s"):
                code = _MINUTE if piece == "m" else _MINUTE_2
            seen += 1
        codes.append(code)
    return MomentFormat(codes)


def _written(numbers: Array, left_out: Array, width: int, write: Any, *more: Any) -> Any:
    data = np.empty(width * len(numbers) + 1, np.uint8)
    ends = np.zeros(len(numbers) + 1, np.int32)
    write(np.ascontiguousarray(numbers, np.float64), left_out, data, ends, *more)
    used = data[: int(ends[-1])].copy()
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(ends), pa.py_buffer(used))


@tight
def _digits(number: Any, least: int, has_commas: Any, data: Array, at: Any) -> Any:
    """Write a whole number with at least so many digits; where the text ends."""
    count, rest = 1, number // 10
    while rest > 0:
        count += 1
        rest //= 10
    count = max(count, least)
    end = at + count + ((count - 1) // 3 if has_commas else 0)
    place = end
    for n in range(count):
        if has_commas and n and n % 3 == 0:
            place -= 1
            data[place] = 44
        place -= 1
        data[place] = 48 + number % 10
        number //= 10
    return end


@tight
def _again(data: Array, start: Any, end: Any) -> Any:
    """Write what was written last once more: numbers often stay for a while. Where it ends."""
    for place in range(end - start):
        data[end + place] = data[start + place]
    return end + end - start


@tight
def _write_fixed(
    numbers: Array, left_out: Array, data: Array, ends: Array, places: int, shift: int, least: int,
    has_commas: Any,
) -> None:  # fmt: skip
    at, unit = 0, np.int64(10) ** places
    for n in range(numbers.size):
        x = numbers[n]
        if n and x == numbers[n - 1] and ends[n] > ends[n - 1]:
            ends[n + 1] = at = _again(data, ends[n - 1], ends[n])
            continue
        size, scaled = abs(x), np.int64(0)
        if size != 0.0:
            if not _LEAST < size < _MOST:
                left_out[n] = True
                ends[n + 1] = at
                continue
            digits, tens = _fifteen_digits(size)
            power, scaled = places + shift - tens, np.int64(digits)
            if power > 3:
                left_out[n] = True
                ends[n + 1] = at
                continue
            if power >= 0:
                scaled *= np.int64(10) ** power
            elif power < -16:
                scaled = np.int64(0)
            else:
                divisor = np.int64(10) ** (-power)
                rest = scaled % divisor
                scaled = scaled // divisor + (1 if 2 * rest >= divisor else 0)
        if x < 0.0:
            data[at] = 45
            at += 1
        at = _digits(scaled // unit, least, has_commas, data, at)
        if places:
            data[at] = 46
            at = _digits(scaled % unit, places, False, data, at + 1)
        if shift:
            data[at] = 37
            at += 1
        ends[n + 1] = at


@tight
def _write_general(numbers: Array, left_out: Array, data: Array, ends: Array) -> None:
    at = 0
    for n in range(numbers.size):
        x = numbers[n]
        if n and x == numbers[n - 1] and ends[n] > ends[n - 1]:
            ends[n + 1] = at = _again(data, ends[n - 1], ends[n])
            continue
        size = abs(x)
        is_whole = size < _MOST and size == np.floor(size)
        if not (is_whole or _LEAST < size < _MOST):
            left_out[n] = True
            ends[n + 1] = at
            continue
        if x < 0.0:
            data[at] = 45
            at += 1
        if is_whole:
            ends[n + 1] = at = _digits(np.int64(size), 1, False, data, at)
            continue
        digits, tens = _fifteen_digits(size)
        scaled = np.int64(digits)
        while scaled % 10 == 0:
            scaled //= 10
            tens -= 1
        if tens <= 0:
            at = _digits(scaled * np.int64(10) ** (-tens), 1, False, data, at)
        elif tens > 18:
            at = _digits(np.int64(0), 1, False, data, at)
            data[at] = 46
            at = _digits(scaled, tens, False, data, at + 1)
        else:
            unit = np.int64(10) ** tens
            at = _digits(scaled // unit, 1, False, data, at)
            data[at] = 46
            at = _digits(scaled % unit, tens, False, data, at + 1)
        ends[n + 1] = at


@tight
def _write_moments(numbers: Array, left_out: Array, data: Array, ends: Array, codes: Array) -> None:
    at = 0
    for n in range(numbers.size):
        serial = numbers[n]
        if n and serial == numbers[n - 1] and ends[n] > ends[n - 1]:
            ends[n + 1] = at = _again(data, ends[n - 1], ends[n])
            continue
        if not 0.0 <= serial < 2958465.0:
            left_out[n] = True
            ends[n + 1] = at
            continue
        seconds = np.int64(np.rint(_shown_number(serial) * 86400.0))
        second = seconds % 86400
        year, month, day = civil(seconds // 86400)
        for code in codes:
            number, least = np.int64(0), 2
            if code == _YEAR:
                number, least = year, 4
            elif code == _YEAR_2:
                number = year % 100
            elif code in (_MONTH, _MONTH_2):
                number, least = month, code - _MONTH + 1
            elif code in (_DAY, _DAY_2):
                number, least = day, code - _DAY + 1
            elif code in (_HOUR, _HOUR_2):
                number, least = second // 3600, code - _HOUR + 1
            elif code in (_MINUTE, _MINUTE_2):
                number, least = second // 60 % 60, code - _MINUTE + 1
            elif code == _SECOND_2:
                number = second % 60
            elif _MONTH_3 <= code <= _DAY_NAME:
                name = month - 1 if code <= _MONTH_NAME else 12 + (seconds // 86400 - 1) % 7
                is_short = code in (_MONTH_3, _DAY_3)
                for place in range(3 if is_short else _LENGTHS[name]):
                    data[at] = _LETTERS[name, place]
                    at += 1
                continue
            else:
                data[at] = code
                at += 1
                continue
            at = _digits(number, least, False, data, at)
        ends[n + 1] = at
