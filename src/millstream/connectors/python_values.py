"""Values of a Python program as rows hold them: moments, numbers of NumPy, gaps of pandas."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from millstream.calculus.types import Kind, Type
from millstream.connectors.time_style import PLAIN, TimeStyle
from millstream.connectors.values import duration_of, time_of
from millstream.values.instants import micros_in, micros_of

_AS_THEY_ARE = frozenset((bool, int, str, type(None)))
#: What pandas has where there is nothing; it need not be installed.
_MISSING = frozenset(("NAType", "NaTType"))


def held(value: Any, type_: Type, style: TimeStyle = PLAIN) -> Any:
    """The value as `fitted` takes it, or as it is if nobody can tell what it means.

    Raises `Unfit` for a text that is no time.
    """
    kind = type_.kind
    if kind is Kind.TIME:
        return _moment(value, style)
    if kind is Kind.DURATION:
        return _length(value)
    if type(value) in _AS_THEY_ARE:
        return value
    plain: Any = _without_numpy(value)
    if kind is Kind.NUMBER:
        return float(plain) if isinstance(plain, Decimal) else plain
    if isinstance(plain, Decimal):
        is_whole = plain.is_finite() and plain == plain.to_integral_value()
        return int(plain) if is_whole and kind is Kind.INTEGER else plain
    return plain if kind is Kind.TEXT and plain == plain else _whole(plain)


def _moment(value: Any, style: TimeStyle) -> Any:
    if type(value).__module__ == "numpy" and hasattr(value, "astype"):
        is_moment = type(value).__name__ == "datetime64"
        value = (value.astype("datetime64[us]") if is_moment else value).item()
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, date):
        if not isinstance(value, datetime):
            value = datetime.combine(value, time())
        if value.tzinfo is None and style.zone is not None:
            value = value.replace(tzinfo=ZoneInfo(style.zone))
        return micros_of(value)
    is_count = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(value, str) or (is_count and style.unit is not None):
        return time_of(str(value), style)
    return _whole(value)


def _length(value: Any) -> Any:
    if type(value).__module__ == "numpy" and hasattr(value, "astype"):
        is_length = type(value).__name__ == "timedelta64"
        value = (value.astype("timedelta64[us]") if is_length else value).item()
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, timedelta):
        return micros_in(value)
    return duration_of(value) if isinstance(value, str) else _whole(value)


def _whole(value: Any) -> Any:
    """An integer may come as a float; NaN is how pandas keeps nothing in such a column."""
    if not isinstance(value, float):
        return value
    if value != value:
        return None
    return int(value) if value.is_integer() else value


def _without_numpy(value: Any) -> Any:
    if type(value).__name__ in _MISSING:
        return None
    is_scalar = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
    return value.item() if is_scalar else value
