"""Excel's values and how they are coerced and compared.

A scalar is a float, a text, a boolean, an error or None for an empty cell. Errors are
values; inside functions they travel as `Raised`, so that bodies need not test for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

from millstream.values.excel.numerals import number_in_text
from millstream.values.excel.rounding import HUGE, TINY, fifteen_digits, same_number


class ErrorValue(str):
    """An error as Excel shows it, such as `#DIV/0!`; not to be taken for a text."""

    __slots__ = ()


DIV0 = ErrorValue("#DIV/0!")
CALC = ErrorValue("#CALC!")
NA = ErrorValue("#N/A")
NAME = ErrorValue("#NAME?")
NULL = ErrorValue("#NULL!")
NUM = ErrorValue("#NUM!")
REF = ErrorValue("#REF!")
VALUE = ErrorValue("#VALUE!")

#: In the order of ERROR.TYPE, which starts at 1.
ERRORS: tuple[ErrorValue, ...] = (NULL, DIV0, VALUE, REF, NAME, NUM, NA)
ERRORS_BY_NAME = {str(e): e for e in ERRORS}

Scalar = float | str | bool | None

MAX_TEXT = 32_767

_Record = TypeVar("_Record")


def exact(record: type[_Record]) -> type[_Record]:
    """A record that holds scalars, told from others by the types of these too.

    Python takes TRUE for 1, and an error for its text.
    """
    are_alike = record.__eq__
    names: tuple[str, ...] = record.__match_args__  # type: ignore[attr-defined]

    def is_same(self: object, other: object) -> bool:
        return are_alike(self, other) is True and all(
            _types(getattr(self, name)) == _types(getattr(other, name)) for name in names
        )

    record.__eq__ = is_same  # type: ignore[method-assign]
    return record


def _types(value: object) -> object:
    return tuple(map(_types, value)) if type(value) is tuple else type(value)


class Raised(Exception):
    """An error on its way out of a function."""

    def __init__(self, error: ErrorValue) -> None:
        super().__init__(str(error))
        self.error = error


def fail(error: ErrorValue) -> NoReturn:
    raise Raised(error)


def fail_if(is_bad: object, error: ErrorValue | None = None) -> None:
    """An error, `#NUM!` unless another is said, where something is so that has no value."""
    if is_bad:
        raise Raised(NUM if error is None else error)


def is_number(value: object) -> bool:
    return type(value) is float


def is_text(value: object) -> bool:
    return type(value) is str


def checked(value: Scalar) -> Scalar:
    """The value itself; an error is raised."""
    if type(value) is ErrorValue:
        raise Raised(value)
    return value


def finite(value: float) -> float:
    """A number as Excel can hold it: there are no infinities, and no minus zero."""
    if not math.isfinite(value):
        raise Raised(NUM)
    return value + 0.0


def to_number(value: Scalar) -> float:
    kind = type(value)
    if kind is float:
        return value  # type: ignore[return-value]
    if value is None:
        return 0.0
    if kind is bool:
        return 1.0 if value else 0.0
    if kind is str:
        number = number_in_text(value)  # type: ignore[arg-type]
        if number is None:
            raise Raised(VALUE)
        return number
    checked(value)
    return float(value) if isinstance(value, int) else fail(VALUE)


def to_text(value: Scalar) -> str:
    kind = type(value)
    if kind is str:
        return value  # type: ignore[return-value]
    if kind is float:
        return general(value)  # type: ignore[arg-type]
    if value is None:
        return ""
    if kind is bool:
        return "TRUE" if value else "FALSE"
    checked(value)
    return str(value) if isinstance(value, int) else fail(VALUE)


def to_boolean(value: Scalar) -> bool:
    kind = type(value)
    if kind is bool:
        return value  # type: ignore[return-value]
    if kind is float:
        return value != 0.0
    if value is None:
        return False
    if kind is str:
        word = value.upper()  # type: ignore[union-attr]
        if word in ("TRUE", "FALSE"):
            return word == "TRUE"
        raise Raised(VALUE)
    checked(value)
    return bool(value) if isinstance(value, int) else fail(VALUE)


def general(number: float) -> str:
    """A number as text, as `&` makes it: at most 15 digits, in the General format."""
    if abs(number) < 1e15 and number == int(number):
        return str(int(number))
    if not TINY < abs(number) < HUGE:
        return repr(number).upper()
    sign = "-" if number < 0 else ""
    whole, tens = fifteen_digits(abs(number))
    digits, power = str(int(whole)), 14 - tens
    if 15 <= power < 21:
        return f"{sign}{digits}{'0' * -tens}"
    if -10 < power < 15:
        first, rest = (digits[: power + 1], digits[power + 1 :]) if power >= 0 else (
            "0", "0" * (-power - 1) + digits)  # fmt: skip
        return f"{sign}{first}.{rest}".rstrip("0").rstrip(".")
    mantissa = f"{digits[0]}.{digits[1:]}".rstrip("0").rstrip(".")
    return f"{sign}{mantissa}E{'+' if power > 0 else '-'}{abs(power):02d}"


_RANKS = {float: 0, str: 1, bool: 2}


def compare(a: Scalar, b: Scalar) -> int:
    """-1, 0 or 1, as operators and criteria have it: numbers with the same digits are equal."""
    if type(a) is float and type(b) is float and same_number(a, b):
        return 0
    return order_of(a, b)


def order_of(a: Scalar, b: Scalar) -> int:
    """-1, 0 or 1: numbers before texts before booleans; an empty cell is like the other.

    So lookups and sorts see values, with all digits of numbers.
    """
    a, b = _filled(a, b), _filled(b, a)
    checked(a)
    checked(b)
    kind = type(a)
    if kind not in _RANKS or type(b) not in _RANKS:
        fail(VALUE)  # a function is neither less nor more
    if kind is not type(b):
        return -1 if _RANKS[kind] < _RANKS[type(b)] else 1
    if kind is str:
        a, b = folded(a), folded(b)  # type: ignore[arg-type]
    if a == b:
        return 0
    return -1 if a < b else 1  # type: ignore[operator]


def order_keys(values: Sequence[Scalar]) -> Sequence[Any]:
    """What values that are not empty are sorted by, so that they stand as `order_of` has it."""
    if len(values) < 2 or set(map(type, values)) == {float}:
        return values
    keys = []
    for value in values:
        kind = type(checked(value))
        if kind not in _RANKS:
            fail(VALUE)
        keys.append((_RANKS[kind], folded(value) if type(value) is str else value))
    return keys


def folded(text: str) -> str:
    """Text without regard to case."""
    return text.casefold() if text.isascii() else text.upper().casefold()


def folded_all(texts: Sequence[str]) -> list[str]:
    """The same of many."""
    if "".join(texts).isascii():
        return list(map(str.casefold, texts))
    return list(map(folded, texts))


def _filled(value: Scalar, other: Scalar) -> Scalar:
    if value is not None:
        return value
    kind = type(other)
    if kind is str:
        return ""
    if kind is bool:
        return False
    return 0.0
