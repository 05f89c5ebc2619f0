# ruff: noqa: FBT001  compiled functions take plain arrays, all by position
"""Compiled parsers of whole columns of cells.

They take what is common and mark a row as not `good` when a cell is anything else; such
rows are then read by the slow and obvious functions of `values`, which also know the
reasons. So these parsers may be as narrow as they like, but must never accept what those
reject nor find another value.

A cell is the stretch [start, end) of the data and its state.
"""

from __future__ import annotations

import numpy as np

from millstream.compiled import compiled, inlined
from millstream.plan.batch import Array

#: States of a cell: absent, as it stands (a JSON number), in quotes (a JSON text), in
#: quotes with escapes inside, and the two words of JSON.
NULL, BARE, QUOTED, ESCAPED, TRUE, FALSE = range(6)

_POWERS = 10.0 ** np.arange(23)
#: Outside these bounds a decimal may overflow; it is left to the slow functions.
_SAFE_EXPONENT = 280
_EXACT_MANTISSA = 2**53
_INT64_MAX = 2**63 - 1


@compiled
def parse_integers(data: Array, starts: Array, ends: Array, states: Array, quotes_too: bool,
                   values: Array, valid: Array, good: Array) -> None:  # fmt: skip
    """`quotes_too`: whether a quoted cell may be a number, as in CSV."""
    for i in range(len(values)):
        if not good[i]:
            continue
        state = states[i]
        valid[i] = state != NULL
        if state == BARE or (quotes_too and state == QUOTED):
            values[i], good[i] = _integer(data, starts[i], ends[i])
        elif state != NULL:
            good[i] = False


@compiled
def parse_numbers(data: Array, starts: Array, ends: Array, states: Array, quotes_too: bool,
                  point: int, values: Array, valid: Array, good: Array,
                  hard: Array) -> int:  # fmt: skip
    """Numbers with too many digits for this are listed in `hard`; answers how many.

    `point` is the decimal sign.
    """
    count = 0
    for i in range(len(values)):
        if not good[i]:
            continue
        state = states[i]
        valid[i] = state != NULL
        if state == BARE or (quotes_too and state == QUOTED):
            values[i], good[i], is_hard = _number(data, starts[i], ends[i], point)
            if is_hard:
                hard[count] = i
                count += 1
        elif state != NULL:
            good[i] = False
    return count


@compiled
def parse_booleans(data: Array, starts: Array, ends: Array, states: Array, quotes_too: bool,
                   values: Array, valid: Array, good: Array) -> None:  # fmt: skip
    for i in range(len(values)):
        if not good[i]:
            continue
        state = states[i]
        valid[i] = state != NULL
        if state in (TRUE, FALSE):
            values[i] = state == TRUE
        elif quotes_too and state in (BARE, QUOTED):
            values[i], good[i] = _boolean(data, starts[i], ends[i])
        elif state != NULL:
            good[i] = False


@compiled
def parse_times(data: Array, starts: Array, ends: Array, states: Array, quotes_too: bool,
                micros: int, parts: int, has_fractions: bool, values: Array, valid: Array,
                good: Array) -> None:  # fmt: skip
    """In JSON a number counts time and a text is ISO 8601; in CSV both may be quoted.

    A number counts so many microseconds, or one in so many `parts`.
    """
    for i in range(len(values)):
        if not good[i]:
            continue
        state = states[i]
        valid[i] = state != NULL
        if state not in (NULL, BARE, QUOTED):
            good[i] = False
        elif state != NULL:
            fits = False
            if state == BARE or quotes_too:
                values[i], fits = _count(data, starts[i], ends[i], micros, parts, has_fractions)
            if not fits and (state == QUOTED or quotes_too):
                values[i], fits = _instant(data, starts[i], ends[i])
            good[i] = fits


@compiled
def gather_texts(data: Array, starts: Array, ends: Array, states: Array, is_csv: bool, quote: int,
                 offsets: Array, out: Array, valid: Array, good: Array) -> int:  # fmt: skip
    """Copy texts one after another, escapes undone; answers how many bytes there are."""
    size = 0
    for i in range(len(states)):
        offsets[i] = size
        state = states[i]
        valid[i] = good[i] and state != NULL
        if not valid[i]:
            continue
        if state == QUOTED or (is_csv and state == BARE):
            for at in range(starts[i], ends[i]):
                out[size] = data[at]
                size += 1
        elif state == ESCAPED:
            size = _unescape(data, starts[i], ends[i], is_csv, quote, out, size)
        else:
            good[i] = False
            valid[i] = False
    offsets[len(states)] = size
    return size


@inlined
def _unescape(data: Array, at: int, end: int, is_csv: bool, quote: int, out: Array,
              size: int) -> int:  # fmt: skip
    """Two bytes become one: `""` in CSV, a backslash and a letter in JSON."""
    while at < end:
        byte = data[at]
        if byte == quote and is_csv:
            at += 1
        elif byte == 92 and not is_csv:
            at += 1
            byte = _escaped(data[at])
        out[size] = byte
        size += 1
        at += 1
    return size


@inlined
def _escaped(letter: int) -> int:
    if letter == 110:  # n
        return 10
    if letter == 116:  # t
        return 9
    if letter == 114:  # r
        return 13
    if letter == 98:  # b
        return 8
    if letter == 102:  # f
        return 12
    return letter  # a quote, a backslash or a slash


@inlined
def _digit(data: Array, at: int) -> int:
    return np.int64(data[at]) - 48  # type: ignore[return-value]  # bytes have no sign


@inlined
def _integer(data: Array, at: int, end: int) -> tuple[int, bool]:
    """Up to 18 digits, which always fit."""
    negative = at < end and data[at] == 45
    if negative or (at < end and data[at] == 43):
        at += 1
    if at == end or end - at > 18:
        return 0, False
    value = 0
    for i in range(at, end):
        digit = _digit(data, i)
        if digit < 0 or digit > 9:
            return 0, False
        value = value * 10 + digit
    return -value if negative else value, True


@inlined
def _count(data: Array, at: int, end: int, micros: int, parts: int,
           has_fractions: bool) -> tuple[int, bool]:  # fmt: skip
    """A number of some unit in microseconds; a fraction only of what is not negative."""
    point = at
    while has_fractions and point < end and data[point] != 46:
        point += 1
    point = point if has_fractions else end
    value, fits = _integer(data, at, point)
    if not fits or abs(value) >= _INT64_MAX // micros:
        return 0, False
    value = value * micros // parts
    if point == end:
        return value, True
    fraction, last = _fraction(data, point, end)
    if data[at] == 45 or fraction < 0 or last != end or parts > 1:
        return 0, False
    return value + fraction * micros // 1_000_000, True


@inlined
def _number(data: Array, at: int, end: int, sign: int) -> tuple[float, bool, bool]:
    """Value, whether it is a number, whether the value must be found in another way.

    A mantissa and a power of ten that are both exact floats give the correctly rounded
    quotient or product in one operation.
    """
    negative = at < end and data[at] == 45
    if negative or (at < end and data[at] == 43):
        at += 1
    mantissa, digits, point, at = _mantissa(data, at, end, sign)
    if digits == 0:
        return 0.0, False, False
    exponent = 0
    if at < end:
        exponent, fits = _exponent(data, at, end)
        if not fits:
            return 0.0, False, False
    if abs(exponent) > _SAFE_EXPONENT or digits > _SAFE_EXPONENT - abs(exponent):
        return 0.0, False, False
    exponent -= point
    if digits > 18 or mantissa > _EXACT_MANTISSA or abs(exponent) > 22:
        return 0.0, True, True
    value = np.float64(mantissa)
    value = value * _POWERS[exponent] if exponent >= 0 else value / _POWERS[-exponent]
    return -value if negative else value, True, False


@inlined
def _mantissa(data: Array, at: int, end: int, sign: int) -> tuple[int, int, int, int]:
    """Digits without their point (if not over 18), how many, how many behind it; the end."""
    value = 0
    digits = 0
    point = -1
    while at < end:
        digit = _digit(data, at)
        if 0 <= digit <= 9:
            digits += 1
            if digits <= 18:
                value = value * 10 + digit
        elif data[at] == sign and point < 0:
            point = digits
        else:
            break
        at += 1
    return value, digits, digits - point if point >= 0 else 0, at


@inlined
def _exponent(data: Array, at: int, end: int) -> tuple[int, bool]:
    """`e-7` to the end of the cell; small ones only."""
    if data[at] not in (69, 101) or end - at > 5:
        return 0, False
    return _integer(data, at + 1, end)


@inlined
def _boolean(data: Array, at: int, end: int) -> tuple[bool, bool]:
    size = end - at
    if size not in (4, 5):
        return False, False
    word = (116, 114, 117, 101, 0) if size == 4 else (102, 97, 108, 115, 101)
    for i in range(size):
        if data[at + i] | 32 != word[i]:
            return False, False
    return size == 4, True


@inlined
def _digits(data: Array, at: int, count: int) -> int:
    """The number of so many digits, or a very negative one if they are not all digits."""
    value = 0
    for i in range(at, at + count):
        digit = _digit(data, i)
        if digit < 0 or digit > 9:
            return -1_000_000
        value = value * 10 + digit
    return value


@inlined
def _instant(data: Array, at: int, end: int) -> tuple[int, bool]:
    """`2026-01-31`, then perhaps `T12:00`, `:00`, `.000000` and `Z` or `+01:00`."""
    if end - at < 10 or data[at + 4] != 45 or data[at + 7] != 45:
        return 0, False
    days, fits = _day(_digits(data, at, 4), _digits(data, at + 5, 2), _digits(data, at + 8, 2))
    at += 10
    if not fits or at == end:
        return days * 86_400_000_000, fits
    if end - at < 6 or data[at] not in (32, 84) or data[at + 3] != 58:
        return 0, False
    hour, minute, second = _digits(data, at + 1, 2), _digits(data, at + 4, 2), 0
    at += 6
    micros = 0
    if at + 3 <= end and data[at] == 58:
        second = _digits(data, at + 1, 2)
        at += 3
        micros, at = _fraction(data, at, end)
    offset, fits = _offset(data, at, end)
    fits = fits and 0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and micros >= 0
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset
    return seconds * 1_000_000 + micros, fits


@inlined
def _day(year: int, month: int, day: int) -> tuple[int, bool]:
    """Days since 1970, and whether there is such a day."""
    if year < 1 or month < 1 or month > 12 or day < 1:
        return 0, False
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    last = 30 if month in (4, 6, 9, 11) else 31
    if month == 2:
        last = 29 if leap else 28
    # Years that begin in March have their leap day at the end.
    shifted = year - 1 if month <= 2 else year
    era, of_era = shifted // 400, shifted % 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days, day <= last


@inlined
def _fraction(data: Array, at: int, end: int) -> tuple[int, int]:
    """The microseconds after a point, and where they end; negative if it has no digits."""
    if at >= end or data[at] != 46:
        return 0, at
    at += 1
    value, scale, first = 0, 100_000, at
    while at < end and 48 <= data[at] <= 57:
        value += _digit(data, at) * scale
        scale //= 10
        at += 1
    return value if at > first else -1, at


@inlined
def _offset(data: Array, at: int, end: int) -> tuple[int, bool]:
    """Seconds east of Greenwich: nothing, `Z` or `+01:00`."""
    if at == end or (end - at == 1 and data[at] == 90):
        return 0, True
    if end - at != 6 or data[at] not in (43, 45) or data[at + 3] != 58:
        return 0, False
    hours, minutes = _digits(data, at + 1, 2), _digits(data, at + 4, 2)
    seconds = hours * 3600 + minutes * 60
    return -seconds if data[at] == 45 else seconds, 0 <= hours < 24 and 0 <= minutes < 60
