"""Excel's calendar on plain doubles, for generated sheet kernels: see `arithmetic`.

Dates are days of the 1900 system. The tests compare with `values.excel.functions_date`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.compiled import apart
from millstream.kernels.sheets.arithmetic import NUM, first_error

_LAST_DAY = 2958465.0
#: The day of 1 March 0000 is this many days before day 0 of the calendar as it runs on.
_SINCE_MARCH_0000 = 693899
#: No number of months that is larger in size leads to a date.
_MOST_MONTHS = 200_000.0


@apart
def civil(day: Any) -> Any:
    """Year, month and day of a whole number of days; day 60 never was, day 0 is 0 January."""
    if day == 60:
        return 1900, 2, 29
    if day == 0:
        return 1900, 1, 0
    # Years begin in March, so that a leap day is the last of its year. Divisions are of whole
    # numbers without signs by constants: products, to a processor.
    since = np.uint64(np.int64(day) + _SINCE_MARCH_0000 + (1 if day < 60 else 0))
    quarters = np.uint64(4) * since + np.uint64(3)
    century = quarters // np.uint64(146097)
    quarters = (quarters - century * np.uint64(146097)) | np.uint64(3)
    year = quarters // np.uint64(1461)
    of_year = (quarters - year * np.uint64(1461)) // np.uint64(4)
    month = (np.uint64(5) * of_year + np.uint64(2)) // np.uint64(153)
    first = (np.uint64(153) * month + np.uint64(2)) // np.uint64(5)
    is_next = np.int64(month >= np.uint64(10))
    return (
        np.int64(century * np.uint64(100) + year) + is_next,
        np.int64(month) + 3 - 12 * is_next,
        np.int64(of_year - first) + 1,
    )


@apart
def _days_to(year: Any, month: Any, day: Any) -> Any:
    """Days as the calendar runs on, without 29 February 1900."""
    y = np.uint64(year - 1 if month <= 2 else year)
    of_year = np.uint64(153 * (month - 3 if month > 2 else month + 9) + 2) // np.uint64(5)
    century = y // np.uint64(100)
    leaps = y // np.uint64(4) - century + century // np.uint64(4)
    return np.int64(np.uint64(365) * y + leaps + of_year) + day - 1 - _SINCE_MARCH_0000


@apart
def _serial(year: Any, month: Any, day: Any) -> Any:
    """The number of a day from 1900 on."""
    if year == 1900 and month == 2 and day == 29:
        return np.int64(60)
    days = _days_to(year, month, day)
    return days if days > 60 else days - 1


@apart
def _month_length(year: Any, month: Any) -> Any:
    if month == 2:
        is_leap = (year & 3 == 0 and year % 100 != 0) or year % 400 == 0 or year == 1900
        return 29 if is_leap else 28
    # Of months until July the odd ones are long, from August on the even ones.
    return 30 + ((month + (month >> 3)) & 1)


@apart
def _day_error(x: Any, s: Any) -> Any:
    """What is wrong with a date: an error, or a day that the calendar does not have."""
    if s >= 10:
        return s
    day = np.floor(x)
    return np.int64(0) if 0.0 <= day <= _LAST_DAY else np.int64(NUM)


@apart
def year_of(x: Any, s: Any) -> Any:
    error = _day_error(x, s)
    return (0.0, error) if error else (float(civil(np.int64(np.floor(x)))[0]), error)


@apart
def month_of(x: Any, s: Any) -> Any:
    error = _day_error(x, s)
    return (0.0, error) if error else (float(civil(np.int64(np.floor(x)))[1]), error)


@apart
def day_of(x: Any, s: Any) -> Any:
    error = _day_error(x, s)
    return (0.0, error) if error else (float(civil(np.int64(np.floor(x)))[2]), error)


@apart
def _seconds(x: Any, s: Any) -> Any:
    """The seconds of a day, rounded to whole ones, and what is wrong."""
    error = np.int64(s if s >= 10 else (0 if x >= 0.0 else NUM))
    # A remainder of floats would cost more than all else here.
    seconds = np.rint((x - np.floor(x)) * 86400.0 + 1e-7)
    return (seconds if error == 0 and seconds < 86400.0 else 0.0), error


@apart
def hour_of(x: Any, s: Any) -> Any:
    seconds, error = _seconds(x, s)
    return np.floor(seconds / 3600.0), error


@apart
def minute_of(x: Any, s: Any) -> Any:
    seconds, error = _seconds(x, s)
    return float(np.int64(seconds) // 60 % 60), error


@apart
def second_of(x: Any, s: Any) -> Any:
    seconds, error = _seconds(x, s)
    return float(np.int64(seconds) % 60), error


@apart
def weekday_of(x: Any, s: Any, form: Any, t: Any) -> Any:
    error = first_error(s, t)
    if error == 0:
        error = _day_error(x, s)
    if error:
        return 0.0, np.int64(error)
    kind, least, first = np.trunc(form), 1, np.int64(0)
    if kind == 2.0:
        first += 1
    elif kind == 3.0:
        first, least = first + 1, 0
    elif 11.0 <= kind <= 17.0:
        first = np.int64(kind) - 10
    elif kind != 1.0:
        return 0.0, np.int64(NUM)
    # Day 1 was a Sunday; 13 days more keep this above zero.
    return float(np.uint64(np.int64(np.floor(x)) + 13 - first) % np.uint64(7)) + least, np.int64(0)


@apart
def iso_week_of(x: Any, s: Any) -> Any:
    error = _day_error(x, s)
    if error:
        return 0.0, error
    day = np.int64(np.floor(x))
    thursday = day + 4 - ((day - 2) % 7 + 1)
    start = _serial(civil(thursday)[0], 1, 1)
    return float((thursday - start) // 7 + 1), np.int64(0)


@apart
def days_between(x: Any, s: Any, y: Any, t: Any) -> Any:
    error = first_error(s, t)
    if error == 0:
        error = _day_error(x, s)
    if error == 0:
        error = _day_error(y, t)
    return (0.0 if error else np.floor(x) - np.floor(y)), np.int64(error)


@apart
def _months_later(x: Any, s: Any, months: Any, t: Any, is_end: Any) -> Any:
    error = first_error(s, t)
    if error == 0:
        error = _day_error(x, s)
    if error == 0 and not abs(months) < _MOST_MONTHS:
        error = NUM
    if error:
        return 0.0, np.int64(error)
    year, month, day = civil(np.int64(np.floor(x)))
    total = year * 12 + month - 1 + np.int64(months)
    if total < 1900 * 12 or total >= 10000 * 12:
        return 0.0, np.int64(NUM)
    year = np.int64(np.uint64(total) // np.uint64(12))
    month = total - 12 * year + 1
    longest = _month_length(year, month)
    if is_end:
        return float(_serial(year, month, longest)), np.int64(0)
    day = min(day, longest)
    if day == 0:
        return float(_serial(year, month, 1) - 1), np.int64(0)
    return float(_serial(year, month, day)), np.int64(0)


@apart
def months_later(x: Any, s: Any, months: Any, t: Any) -> Any:
    return _months_later(x, s, months, t, False)


@apart
def month_end(x: Any, s: Any, months: Any, t: Any) -> Any:
    return _months_later(x, s, months, t, True)


@apart
def date_made(year: Any, s: Any, month: Any, t: Any, day: Any, u: Any) -> Any:
    error = first_error(first_error(s, t), u)
    y, m = np.floor(year), np.floor(month)
    y = y + 1900.0 if 0.0 <= y < 1900.0 else y
    if error == 0 and not (0.0 <= y <= 9999.0 and abs(m) < _MOST_MONTHS):
        error = NUM
    if error:
        return 0.0, np.int64(error)
    total = np.int64(y) * 12 + np.int64(m) - 1
    wanted, of_year = total // 12, total % 12 + 1
    if wanted < 1 or wanted > 9999:
        return 0.0, np.int64(NUM)
    # Before 1900 the calendar is the true one.
    first = _serial(wanted, of_year, 1) if wanted >= 1900 else _days_to(wanted, of_year, 1) - 1
    serial = float(first) + np.floor(day) - 1.0
    if 0.0 <= serial <= _LAST_DAY:
        return serial, np.int64(0)
    return 0.0, np.int64(NUM)


@apart
def time_made(hour: Any, s: Any, minute: Any, t: Any, second: Any, u: Any) -> Any:
    error = first_error(first_error(s, t), u)
    if error == 0 and max(hour, minute, second) > 32767.0:
        error = NUM
    total = np.trunc(hour) * 3600.0 + np.trunc(minute) * 60.0 + np.trunc(second)
    if error == 0 and total < 0.0:
        error = NUM
    return (0.0 if error else (total % 86400.0) / 86400.0), np.int64(error)


# --- working days -----------------------------------------------------------------------


@apart
def _is_worked(day: Any) -> Any:
    """Neither Saturday nor Sunday."""
    return 0 < (day - 1) % 7 < 6


@apart
def _free_up_to(free: Any, day: Any) -> Any:
    """How many holidays there are up to a day; they stand in order."""
    low, high = 0, free.size
    while low < high:
        middle = (low + high) // 2
        if free[middle] <= day:
            low = middle + 1
        else:
            high = middle
    return low


@apart
def _worst(first: Any, other: Any) -> Any:
    """The first of two errors."""
    return np.int64(first if first != 0 else other)


@apart
def working_days(x: Any, s: Any, y: Any, t: Any, free: Any) -> Any:
    """NETWORKDAYS; of the holidays those that are no working days anyway are left out."""
    error = _worst(first_error(s, t), _worst(_day_error(x, s), _day_error(y, t)))
    if error != 0:
        return 0.0, error
    first, last = np.int64(np.floor(x)), np.int64(np.floor(y))
    sign = 1.0
    if first > last:
        first, last, sign = last, first, -1.0
    count = last - first + 1
    worked = count // 7 * 5
    for n in range(count % 7):
        worked += _is_worked(last - n)
    worked -= _free_up_to(free, last) - _free_up_to(free, first - 1)
    return sign * worked + 0.0, np.int64(0)


@apart
def working_day(x: Any, s: Any, count: Any, t: Any, free: Any) -> Any:
    """WORKDAY: whole weeks at once, as long as work is left after them."""
    error = _worst(first_error(s, t), _day_error(x, s))
    if error != 0 or not abs(count) < _LAST_DAY + 1.0:
        return 0.0, _worst(error, NUM)
    day, left = np.int64(np.floor(x)), abs(np.int64(count))
    step = 1 if count >= 0.0 else -1
    weeks = (left - 1) // 5 if left > 1 else 0
    reached = day + 7 * step * weeks
    left -= 5 * weeks
    # What was free in these weeks is still to do.
    if step > 0:
        left += _free_up_to(free, reached) - _free_up_to(free, day)
    else:
        left += _free_up_to(free, day - 1) - _free_up_to(free, reached - 1)
    day = reached
    while left:
        day += step
        if not 0 <= day <= _LAST_DAY:
            return 0.0, np.int64(NUM)
        if _is_worked(day) and _free_up_to(free, day) == _free_up_to(free, day - 1):
            left -= 1
    return float(day), np.int64(0)
