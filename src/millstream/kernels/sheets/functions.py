"""The functions of numbers that have a compiled form, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OfNumbers:
    """A compiled function: of how many numbers, and what stands for the last ones of them."""

    name: str
    count: int
    defaults: tuple[float, ...] = ()
    is_date: bool = False


_ONE = {
    "ABS": "absolute", "INT": "integer", "SIGN": "sign", "SQRT": "square_root",
    "EXP": "exponential", "LN": "natural_log", "SIN": "sine", "COS": "cosine",
    "TAN": "tangent", "ATAN": "arc_tangent",
}  # fmt: skip
_TWO = {
    "POWER": "power", "MOD": "mod", "ROUND": "rounded", "ROUNDUP": "rounded_up",
    "ROUNDDOWN": "rounded_down",
}  # fmt: skip
ROUNDINGS = {name: f"{_TWO[name]}_at" for name in ("ROUND", "ROUNDUP", "ROUNDDOWN")}

_MORE = {
    "ATAN2": OfNumbers("arc_tangent_of", 2),
    "CEILING": OfNumbers("ceiling", 2),
    "CEILING.MATH": OfNumbers("ceiling_math", 3, (1.0, 0.0)),
    "DEGREES": OfNumbers("degrees", 1),
    "EVEN": OfNumbers("even", 1),
    "FLOOR": OfNumbers("floor", 2),
    "FLOOR.MATH": OfNumbers("floor_math", 3, (1.0, 0.0)),
    "GESTEP": OfNumbers("is_at_least", 2, (0.0,)),
    "LOG": OfNumbers("logarithm", 2, (10.0,)),
    "LOG10": OfNumbers("log_ten", 1),
    "MROUND": OfNumbers("mround", 2),
    "ODD": OfNumbers("odd", 1),
    "QUOTIENT": OfNumbers("quotient", 2),
    "RADIANS": OfNumbers("radians", 1),
    "TRUNC": OfNumbers("truncated", 2, (0.0,)),
}
_DATES = {
    "DATE": OfNumbers("date_made", 3, is_date=True),
    "DAY": OfNumbers("day_of", 1, is_date=True),
    "DAYS": OfNumbers("days_between", 2, is_date=True),
    "EDATE": OfNumbers("months_later", 2, is_date=True),
    "EOMONTH": OfNumbers("month_end", 2, is_date=True),
    "HOUR": OfNumbers("hour_of", 1),
    "ISOWEEKNUM": OfNumbers("iso_week_of", 1, is_date=True),
    "MINUTE": OfNumbers("minute_of", 1),
    "MONTH": OfNumbers("month_of", 1, is_date=True),
    "SECOND": OfNumbers("second_of", 1),
    "TIME": OfNumbers("time_made", 3),
    "WEEKDAY": OfNumbers("weekday_of", 2, (1.0,), is_date=True),
    "YEAR": OfNumbers("year_of", 1, is_date=True),
}
#: Two numbers, and holidays that never change.
WORKING_DAYS = {"NETWORKDAYS": "working_days", "WORKDAY": "working_day"}
OF_NUMBERS = {
    **{name: OfNumbers(function, 1) for name, function in _ONE.items()},
    **{name: OfNumbers(function, 2) for name, function in _TWO.items()},
    **_MORE,
    **_DATES,
}
#: Which compiled functions stand in which module; the others stand in `arithmetic`.
HOMES = {
    "millstream.kernels.sheets.arithmetic_more": frozenset(f.name for f in _MORE.values()),
    "millstream.kernels.sheets.arithmetic_dates": frozenset(
        (*(f.name for f in _DATES.values()), *WORKING_DAYS.values())
    ),
}
