"""What programs give to cells: numbers, texts, dates; and the times at which they do."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np

from millstream.errors import UsageError
from millstream.plan.batch import Array
from millstream.values.excel.dates import OFFSET_1904
from millstream.values.excel.values import Scalar

#: What a cell can be given: None empties it.
Given = float | int | str | bool | dt.datetime | dt.date | dt.timedelta | None


def scalar_of(value: Given, *, uses_1904: bool) -> Scalar:
    if value is None or isinstance(value, (bool, str)):
        return value
    number = number_of(value, uses_1904=uses_1904)
    if not math.isfinite(number):
        raise UsageError(f"{value!r} is no number that a cell can hold")
    return number + 0.0  # there is no minus zero


def number_of(value: float | dt.date | dt.timedelta, *, uses_1904: bool) -> float:
    """A number; a date as the days since 1900, or 1904, and a duration as days."""
    if isinstance(value, dt.timedelta):
        return value / dt.timedelta(days=1)
    if isinstance(value, dt.date):
        midnight = dt.time()
        moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, midnight)
        since = moment.replace(tzinfo=None) - dt.datetime(1899, 12, 30)  # noqa: DTZ001 - as Excel counts
        return since / dt.timedelta(days=1) - (OFFSET_1904 if uses_1904 else 0)
    return float(value)


def micros_of(time: float | dt.datetime) -> int:
    if isinstance(time, dt.datetime):
        aware = time if time.tzinfo else time.replace(tzinfo=dt.UTC)
        return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    if isinstance(time, bool) or not isinstance(time, (int, float)):
        raise UsageError(f"{time!r} is no time", hint="give microseconds, or seconds as a float")
    return time if isinstance(time, int) else round(time * 1_000_000)


def all_micros(times: Any) -> Array:
    """The same of many times, which may be an array of numpy."""
    if isinstance(times, np.ndarray):
        if times.dtype.kind == "M":
            return times.astype("datetime64[us]").astype(np.int64)
        if times.dtype.kind in "iu":
            return times.astype(np.int64)
        times = times.tolist()
    times = list(times)
    whole = times if set(map(type, times)) == {int} else [micros_of(t) for t in times]
    return np.array(whole, np.int64)
