"""Dates and times."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from functools import partial

from millstream.values.excel.arrays import Operand
from millstream.values.excel.dates import (
    LAST_DAY,
    add_months,
    clock_of,
    date_of,
    days_in_month,
    is_leap,
    serial_of,
    weekday_of,
)
from millstream.values.excel.gather import scalars
from millstream.values.excel.numerals import date_in_text, moment_in_text, time_in_text
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import NUM, VALUE, Scalar, checked, fail, fail_if, to_number


def day_number(serial: float) -> float:
    """A date that the calendar has, without its time of day."""
    day = math.floor(serial)
    return float(day) if 0 <= day <= LAST_DAY else fail(NUM)


def date(year: float, month: float, day: float) -> float:
    """Months and days may be too many or too few, and then count on."""
    y = math.floor(year)
    if 0 <= y < 1900:
        y += 1900
    fail_if(not 0 <= y <= 9999)
    y, m = add_months(y, 1, math.floor(month) - 1)
    if not 1900 <= y <= 9999:
        return _before_1900(y, m, day)
    return day_number(serial_of(y, m, 1) + math.floor(day) - 1)


def _before_1900(year: int, month: int, day: float) -> float:
    fail_if(not 1 <= year <= 9999)
    first = dt.date(year, month, 1).toordinal() - dt.date(1899, 12, 31).toordinal()
    return day_number(first + math.floor(day) - 1)


def time(hour: float, minute: float, second: float) -> float:
    fail_if(max(hour, minute, second) > 32767)
    total = int(hour) * 3600 + int(minute) * 60 + int(second)
    return (total % 86400) / 86400 if total >= 0 else fail(NUM)


def _date_part(serial: float, part: int) -> float:
    return float(date_of(day_number(serial))[part])


def _clock_part(serial: float, part: int) -> float:
    return float(clock_of(serial)[part]) if serial >= 0 else fail(NUM)


def weekday(serial: float, form: float = 1.0) -> float:
    sunday_first = weekday_of(day_number(serial))
    kind = int(form)
    if kind == 1:
        return float(sunday_first + 1)
    if kind == 2:
        return float((sunday_first - 1) % 7 + 1)
    if kind == 3:
        return float((sunday_first - 1) % 7)
    if 11 <= kind <= 17:
        return float((sunday_first - (kind - 10)) % 7 + 1)
    fail(NUM)


def week_number(serial: float, form: float = 1.0) -> float:
    kind = int(form)
    if kind == 21:
        return iso_week(serial)
    first_days = {1: 0, 2: 1, 11: 1, 12: 2, 13: 3, 14: 4, 15: 5, 16: 6, 17: 0}
    fail_if(kind not in first_days)
    day = day_number(serial)
    start = serial_of(date_of(day)[0], 1, 1)
    offset = (weekday_of(start) - first_days[kind]) % 7
    return float((day - start + offset) // 7 + 1)


def iso_week(serial: float) -> float:
    day = day_number(serial)
    thursday = day + 4 - ((weekday_of(day) - 1) % 7 + 1)
    start = serial_of(date_of(thursday)[0], 1, 1)
    return float((thursday - start) // 7 + 1)


def months_later(serial: float, months: float, *, is_end: bool = False) -> float:
    """The same day of another month, or its last one."""
    year, month, day = date_of(day_number(serial))
    year, month = add_months(year, month, int(months))
    fail_if(not 1900 <= year <= 9999)
    longest = days_in_month(year, month)
    return serial_of(year, month, longest if is_end else min(day, longest))


def days(end: float, start: float) -> float:
    return day_number(end) - day_number(start)


def days_360(start: float, end: float, is_european: Scalar = False) -> float:  # noqa: FBT002
    y1, m1, d1 = date_of(day_number(start))
    y2, m2, d2 = date_of(day_number(end))
    if is_european:
        d1, d2 = min(d1, 30), min(d2, 30)
    else:
        if d1 == days_in_month(y1, m1):
            d1 = 30
        if d2 == 31:
            if d1 < 30:
                y2, m2 = add_months(y2, m2, 1)
                d2 = 1
            else:
                d2 = 30
    return float((y2 - y1) * 360 + (m2 - m1) * 30 + d2 - d1)


def date_difference(start: float, end: float, unit: str) -> float:
    """DATEDIF: whole years, months or days."""
    start, end = day_number(start), day_number(end)
    fail_if(start > end)
    y1, m1, d1 = date_of(start)
    y2, m2, d2 = date_of(end)
    months = (y2 - y1) * 12 + m2 - m1 - (d2 < d1)
    match unit.upper():
        case "Y":
            return float(months // 12)
        case "M":
            return float(months)
        case "D":
            return end - start
        case "YM":
            return float(months % 12)
        case "MD":
            year, month = (y2, m2) if d2 >= d1 else add_months(y2, m2, -1)
            return end - (serial_of(year, month, 1) + d1 - 1)
        case "YD":
            year = y2 if (m2, d2) >= (m1, d1) else y2 - 1
            return end - serial_of(year, m1, min(d1, days_in_month(year, m1)))
        case _:
            fail(NUM)


def year_fraction(start: float, end: float, basis: float = 0.0) -> float:
    first, last = sorted((day_number(start), day_number(end)))
    match int(basis):
        case 0:
            return _nasd_360(first, last) / 360
        case 1:
            return _actual_years(first, last)
        case 2:
            return (last - first) / 360
        case 3:
            return (last - first) / 365
        case 4:
            return days_360(first, last, is_european=True) / 360
        case _:
            fail(NUM)


def _nasd_360(first: float, last: float) -> float:
    y1, m1, d1 = date_of(first)
    y2, m2, d2 = date_of(last)
    start_is_last_of_february = m1 == 2 and d1 == days_in_month(y1, m1)
    if start_is_last_of_february:
        if m2 == 2 and d2 == days_in_month(y2, m2):
            d2 = 30
        d1 = 30
    if d2 == 31 and d1 >= 30:
        d2 = 30
    d1 = min(d1, 30)
    return (y2 - y1) * 360 + (m2 - m1) * 30 + d2 - d1


def _actual_years(first: float, last: float) -> float:
    y1, m1, d1 = date_of(first)
    y2, m2, d2 = date_of(last)
    is_within_a_year = y1 == y2 or (y2 == y1 + 1 and (m1, d1) >= (m2, d2))
    if not is_within_a_year:
        years = range(y1, y2 + 1)
        return (last - first) / (sum(366 if is_leap(y) else 365 for y in years) / len(years))
    if y1 == y2:
        return (last - first) / (366 if is_leap(y1) else 365)
    has_leap_day = (is_leap(y1) and (m1, d1) <= (2, 29)) or (is_leap(y2) and (m2, d2) >= (2, 29))
    return (last - first) / (366 if has_leap_day else 365)


# --- working days -----------------------------------------------------------------------

_WEEKENDS = {
    1: (6, 0), 2: (0, 1), 3: (1, 2), 4: (2, 3), 5: (3, 4), 6: (4, 5), 7: (5, 6), 11: (0,),
    12: (1,), 13: (2,), 14: (3,), 15: (4,), 16: (5,), 17: (6,),
}  # fmt: skip


def _weekend(given: Scalar) -> frozenset[int]:
    """The days off, Sunday being 0, from a number or a text such as "0000011"."""
    if type(given) is str:
        fail_if(len(given) != 7 or set(given) - {"0", "1"}, VALUE)
        return frozenset((n + 1) % 7 for n, mark in enumerate(given) if mark == "1")
    number = 1 if given is None else int(to_number(given))
    return frozenset(_WEEKENDS[number]) if number in _WEEKENDS else fail(NUM)


def _holidays(operand: Operand) -> frozenset[int]:
    return frozenset(
        math.floor(to_number(checked(v))) for v in scalars(operand) if v is not None and v != ""
    )


def network_days_intl(
    start: float, end: float, weekend: Scalar = 1.0, holidays: Operand = None
) -> float:
    off, free = _weekend(weekend), _holidays(holidays)
    first, last = int(day_number(start)), int(day_number(end))
    sign = 1
    if first > last:
        first, last, sign = last, first, -1
    weeks, rest = divmod(last - first + 1, 7)
    worked = weeks * (7 - len(off))
    worked += sum(weekday_of(last - n) not in off for n in range(rest))
    worked -= sum(first <= day <= last and weekday_of(day) not in off for day in free)
    return float(sign * worked)


def work_day_intl(
    start: float, count: float, weekend: Scalar = 1.0, holidays: Operand = None
) -> float:
    off, free = _weekend(weekend), _holidays(holidays)
    fail_if(len(off) == 7, VALUE)
    day, left = int(day_number(start)), abs(int(count))
    fail_if(left > LAST_DAY)
    step = 1 if count >= 0 else -1
    # Whole weeks at once, as long as work is left after them; what was free in them is still to do.
    weeks = max(0, left - 1) // (7 - len(off))
    reached = day + 7 * step * weeks
    left -= weeks * (7 - len(off))
    left += sum(
        0 < (holiday - day) * step <= 7 * weeks and weekday_of(holiday) not in off
        for holiday in free
    )
    day = reached
    while left:
        day += step
        fail_if(not 0 <= day <= LAST_DAY)
        left -= weekday_of(day) not in off and day not in free
    return float(day)


def _on_weekdays(function: Callable[..., float]) -> Callable[..., float]:
    """With Saturday and Sunday off."""

    def apply(start: float, other: float, holidays: Operand = None) -> float:
        return function(start, other, 1.0, holidays)

    return apply


def date_value(text: str) -> float:
    moment = moment_in_text(text.strip())
    if moment is None or (date_in_text(text.strip()) is None and moment < 1):
        fail(VALUE)
    return float(math.floor(moment))


def time_value(text: str) -> float:
    moment = moment_in_text(text.strip())
    if moment is None:
        moment = time_in_text(text.strip())
    return moment % 1 if moment is not None else fail(VALUE)


DATES: Family = {
    "DATE": spec("n n n", date, gives_date=True),
    "DATEDIF": spec("d d t", date_difference),
    "DATEVALUE": spec("t", date_value, gives_date=True),
    "DAY": spec("d", lambda s: _date_part(s, 2)),
    "DAYS": spec("d d", days),
    "DAYS360": spec("d d b?", days_360),
    "EDATE": spec("d n", months_later, gives_date=True),
    "EOMONTH": spec("d n", partial(months_later, is_end=True), gives_date=True),
    "HOUR": spec("n", lambda s: _clock_part(s, 0)),
    "ISOWEEKNUM": spec("d", iso_week),
    "MINUTE": spec("n", lambda s: _clock_part(s, 1)),
    "MONTH": spec("d", lambda s: _date_part(s, 1)),
    "NETWORKDAYS": spec("d d r?", _on_weekdays(network_days_intl)),
    "NETWORKDAYS.INTL": spec("d d v? r?", network_days_intl),
    "SECOND": spec("n", lambda s: _clock_part(s, 2)),
    "TIME": spec("n n n", time),
    "TIMEVALUE": spec("t", time_value),
    "WEEKDAY": spec("d n?", weekday),
    "WEEKNUM": spec("d n?", week_number),
    "WORKDAY": spec("d n r?", _on_weekdays(work_day_intl), gives_date=True),
    "WORKDAY.INTL": spec("d n v? r?", work_day_intl, gives_date=True),
    "YEAR": spec("d", lambda s: _date_part(s, 0)),
    "YEARFRAC": spec("d d n?", year_fraction),
}
