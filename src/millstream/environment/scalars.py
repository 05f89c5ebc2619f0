"""What scalar functions compute, on Python values, one at a time."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from millstream.calculus.instants import parse_time, render_time
from millstream.calculus.terms import Call, Column, Literal, Term, VariableField, canonical
from millstream.calculus.text import render_term
from millstream.calculus.types import INT64_MAX, INT64_MIN, Kind, Type, Value
from millstream.wildcards import like_pattern

Names = Mapping[str, Value]


class ScalarFault(Exception):
    """The value cannot be computed; it becomes null and is counted."""


def evaluate(
    term: Term,
    columns: Names,
    variables: Mapping[str, Names] | None = None,
    faults: Counter[str] | None = None,
) -> Value:
    """The value of a term on one row."""
    match term:
        case Literal(value):
            return value
        case Column(name):
            return columns[name]
        case VariableField(variable, field):
            assert variables is not None
            return variables[variable][field]
        case Call(function, args) if function in _LAZY:
            return _LAZY[function](args, lambda t: evaluate(t, columns, variables, faults))
        case Call(function, args):
            values = [evaluate(a, columns, variables, faults) for a in args]
            if any(v is None for v in values):
                return None
            try:
                return _fitted(_strict(function, values, [a.type for a in args]), term.type)
            except ScalarFault as fault:
                if faults is not None:
                    faults[f"{fault} in {render_term(term)}"] += 1
                return None


def _fitted(value: Any, type_: Type) -> Value:
    if type_.kind in (Kind.INTEGER, Kind.TIME, Kind.DURATION):
        if not INT64_MIN <= value <= INT64_MAX:
            raise ScalarFault(f"{type_} overflow")
        return int(value)
    return canonical(value)


# --- functions that see nulls, or do not evaluate all their arguments -------------------

Eval = Callable[[Term], Value]


def _and(args: tuple[Term, ...], value: Eval) -> Value:
    left = value(args[0])
    if left is False:
        return False
    right = value(args[1])
    return False if right is False else (None if left is None or right is None else True)


def _or(args: tuple[Term, ...], value: Eval) -> Value:
    left = value(args[0])
    if left is True:
        return True
    right = value(args[1])
    return True if right is True else (None if left is None or right is None else False)


def _if(args: tuple[Term, ...], value: Eval) -> Value:
    return value(args[1]) if value(args[0]) is True else value(args[2])


def _coalesce(args: tuple[Term, ...], value: Eval) -> Value:
    for arg in args:
        found = value(arg)
        if found is not None:
            return found
    return None


def _extreme(is_better: Callable[[Any, Any], bool]) -> Callable[[tuple[Term, ...], Eval], Value]:
    def choose(args: tuple[Term, ...], value: Eval) -> Value:
        best: Value = None
        for found in [value(a) for a in args]:
            if found is not None and (best is None or is_better(found, best)):
                best = found
        return best

    return choose


def less(a: Any, b: Any) -> bool:
    """Numbers in order, NaN equal to itself and greater than all else."""
    if a != a:
        return False
    return b != b or bool(a < b)


def equal(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)


_LAZY: dict[str, Callable[[tuple[Term, ...], Eval], Value]] = {
    "and": _and,
    "or": _or,
    "if": _if,
    "coalesce": _coalesce,
    "is_null": lambda args, value: value(args[0]) is None,
    "least": _extreme(less),
    "greatest": _extreme(lambda a, b: less(b, a)),
}


# --- functions of values that are not null ----------------------------------------------


def _strict(function: str, values: list[Any], types: list[Type]) -> Any:
    kinds = [t.kind for t in types]
    if function in TYPE_NAMES:
        return _cast(function, values[0], kinds[0])
    if function in ("*", "/") and Kind.DURATION in kinds:
        return _scaled_duration(function, values, kinds)
    return _STRICT[function](*values)


TYPE_NAMES = frozenset({"number", "integer", "text", "boolean", "time", "duration"})


def _scaled_duration(function: str, values: list[Any], kinds: list[Kind]) -> Any:
    left, right = values
    if function == "/":
        if right == 0:
            raise ScalarFault("division by zero")
        if kinds[1] is Kind.DURATION:
            return float(left) / float(right)
        return _truncated(float(left) / right)
    if Kind.NUMBER in kinds:
        return _truncated(float(left) * float(right))
    return left * right


def _truncated(number: float) -> int:
    if not math.isfinite(number):
        raise ScalarFault("duration overflow")
    return math.trunc(number)


def _add(a: Any, b: Any) -> Any:
    return a + b


def _multiply(a: Any, b: Any) -> Any:
    return a * b


def _divide(a: float, b: float) -> float:
    if b == 0:
        raise ScalarFault("division by zero")
    return a / b


def _remainder(a: Any, b: Any) -> Any:
    if b == 0:
        raise ScalarFault("division by zero")
    if isinstance(a, float):
        return math.nan if math.isinf(a) or a != a or b != b else math.fmod(a, b)
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def _whole_division(a: int, b: int) -> int:
    if b == 0:
        raise ScalarFault("division by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _rounder(rounding: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: float(rounding(x)) if math.isfinite(x) else x


def _half_away(x: float) -> float:
    whole = math.trunc(x)
    if abs(x - whole) >= 0.5:
        whole += 1 if x > 0 else -1
    return whole


def _root(x: float) -> float:
    if x < 0:
        raise ScalarFault("square root of a negative number")
    return math.sqrt(x)


def _exponential(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _logarithm(x: float) -> float:
    if x <= 0:
        raise ScalarFault("logarithm of a number that is not positive")
    return math.log(x)


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        odd = b == math.trunc(b) and math.fmod(b, 2) != 0
        return -math.inf if a < 0 and odd else math.inf
    except ValueError:
        raise ScalarFault("power outside its domain") from None


def _substring(text: str, start: int, length: int | None = None) -> str:
    if length is None:
        return text[max(start - 1, 0) :]
    if length < 0:
        raise ScalarFault("negative length")
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def _floor_time(time: int, step: int) -> int:
    if step <= 0:
        raise ScalarFault("a step that is not positive")
    return time // step * step


_DAY = 86_400_000_000
_ERA_DAYS = 146_097  # days in 400 Gregorian years, after which the calendar repeats


def _calendar(time: int) -> tuple[int, int, int]:
    """Year, month and day of any time: whole eras are counted off first."""
    eras, day = divmod(time // _DAY, _ERA_DAYS)
    found = date.fromordinal(date(1970, 1, 1).toordinal() + day)
    return found.year + 400 * eras, found.month, found.day


_STRICT: dict[str, Callable[..., Any]] = {
    "+": _add,
    "-": lambda a, b: a - b,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "div": _whole_division,
    "neg": lambda a: -a,
    "abs": abs,
    "floor": _rounder(math.floor),
    "ceil": _rounder(math.ceil),
    "round": _rounder(_half_away),
    "sqrt": _root,
    "exp": _exponential,
    "ln": _logarithm,
    "power": _power,
    "==": equal,
    "!=": lambda a, b: not equal(a, b),
    "<": less,
    "<=": lambda a, b: not less(b, a),
    ">": lambda a, b: less(b, a),
    ">=": lambda a, b: not less(a, b),
    "not": lambda a: not a,
    "||": _add,
    "length": len,
    "upper": str.upper,
    "lower": str.lower,
    "trim": str.strip,
    "substring": _substring,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": lambda text, part: part in text,
    "position": lambda text, part: text.find(part) + 1,
    "replace": lambda text, old, new: text.replace(old, new) if old else text,
    "like": lambda text, pattern: like_pattern(pattern).matches(text),
    "seconds": lambda duration: duration / 1_000_000,
    "floor_time": _floor_time,
    "year": lambda t: _calendar(t)[0],
    "month": lambda t: _calendar(t)[1],
    "day": lambda t: _calendar(t)[2],
    "hour": lambda t: t % _DAY // 3_600_000_000,
    "minute": lambda t: t % 3_600_000_000 // 60_000_000,
    "second": lambda t: t % 60_000_000 // 1_000_000,
    "weekday": lambda t: (t // _DAY + 3) % 7 + 1,
}


# --- casts ------------------------------------------------------------------------------


def _cast(to: str, value: Any, kind: Kind) -> Any:
    match to, kind:
        case "number", Kind.TEXT:
            return _number_of_text(value)
        case "number", _:
            return float(value)
        case "integer", Kind.TEXT:
            return _integer_of_text(value)
        case "integer", Kind.NUMBER:
            if not math.isfinite(value):
                raise ScalarFault("integer overflow")
            return math.trunc(value)
        case "text", _:
            return _text_of(value, kind)
        case "boolean", Kind.TEXT:
            if value.strip().lower() not in ("true", "false"):
                raise ScalarFault("not a boolean")
            return value.strip().lower() == "true"
        case "boolean", _:
            return bool(value)
        case "time", Kind.TEXT:
            return _time_of_text(value)
        case _:
            return int(value)


def _number_of_text(text: str) -> float:
    try:
        if "_" in text:
            raise ValueError
        return float(text.strip())
    except ValueError:
        raise ScalarFault("not a number") from None


def _integer_of_text(text: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]+", text.strip()) is None:
        raise ScalarFault("not an integer")
    # Longer digits cannot fit, and Python refuses to convert thousands of them.
    if len(text.strip().lstrip("+-0")) > 19:
        raise ScalarFault("integer overflow")
    return int(text.strip())


def _time_of_text(text: str) -> int:
    moment = parse_time(text)
    if moment is None:
        raise ScalarFault("not a time")
    return moment


def _text_of(value: Any, kind: Kind) -> str:
    match kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.NUMBER:
            return repr(value)
        case Kind.DURATION:
            return f"{value}us"
        case Kind.TIME:
            text = render_time(value)
            if text is None:
                raise ScalarFault("no calendar has this time")
            return text
        case _:
            return str(value)
