"""What functions over many values have in common: which values count, and criteria.

A number written as an argument is coerced from text and boolean; in a reference or an
array texts, booleans and empty cells are passed over. Errors always matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from millstream.values.excel.arrays import Area, Array, Operand, Union
from millstream.values.excel.numerals import number_in_text
from millstream.values.excel.rounding import same_number, shown_number
from millstream.values.excel.values import (
    ERRORS_BY_NAME,
    VALUE,
    ErrorValue,
    Raised,
    Scalar,
    compare,
    fail,
    folded,
    to_number,
)
from millstream.wildcards import excel_pattern

Tables = (Array, Area, Union)


def numbers(*operands: Operand) -> list[float]:
    """The numbers of some arguments, as SUM sees them."""
    values: list[float] = []
    for operand in operands:
        if isinstance(operand, Tables):
            for value in operand.given():
                if type(value) is float:
                    values.append(value)
                elif type(value) is ErrorValue:
                    raise Raised(value)
        else:
            values.append(to_number(operand))
    return values


def plain_numbers(*operands: Operand) -> list[float]:
    """The numbers of some arguments, as MODE sees them: a single value must be a number."""
    values: list[float] = []
    for operand in operands:
        if isinstance(operand, Tables) and not (isinstance(operand, Area) and operand.is_cell):
            values += numbers(operand)
            continue
        value = operand.at(0, 0) if isinstance(operand, Area) else operand
        if type(value) is ErrorValue:
            raise Raised(value)
        values.append(value if type(value) is float else fail(VALUE))
    return values


def has_window(*operands: Operand) -> bool:
    return any(isinstance(o, Array) and o.is_window for o in operands)


def numbers_and_more(*operands: Operand) -> list[float]:
    """The numbers as AVERAGEA sees them: texts in cells are zero, booleans zero or one."""
    values: list[float] = []
    for operand in operands:
        if not isinstance(operand, Tables):
            values.append(to_number(operand))
            continue
        for value in operand.given():
            if type(value) is str:
                values.append(0.0)
            else:
                values.append(to_number(value))
    return values


def scalars(operand: Operand) -> Iterator[Scalar]:
    """All values of an argument, empty ones too."""
    if isinstance(operand, Tables):
        yield from operand.values()
    else:
        yield operand


def given(*operands: Operand) -> Iterator[Scalar]:
    """The values of some arguments that are not empty cells."""
    for operand in operands:
        if isinstance(operand, Tables):
            yield from operand.given()
        else:
            yield operand


# --- wildcards --------------------------------------------------------------------------


def has_wildcards(text: str) -> bool:
    return any(c in text for c in "*?~")


# --- criteria ---------------------------------------------------------------------------

Matcher = Callable[[Scalar], bool]

_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "<": lambda c: c < 0,
    ">": lambda c: c > 0,
    "<=": lambda c: c <= 0,
    ">=": lambda c: c >= 0,
}

#: The same for two numbers, of which most are far apart.
_OF_NUMBERS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b and not same_number(a, b),
    ">": lambda a, b: a > b and not same_number(a, b),
    "<=": lambda a, b: a <= b or same_number(a, b),
    ">=": lambda a, b: a >= b or same_number(a, b),
}
_CRITERION = re.compile(r"(<>|<=|>=|=|<|>)?(.*)", re.DOTALL)


def criterion(value: Scalar) -> Matcher:
    """What COUNTIF and its family look for."""
    if type(value) is ErrorValue:
        return lambda v: type(v) is ErrorValue and v == value
    if value is None:
        return _equal(0.0)
    return _criterion_in(value) if type(value) is str else _equal(value)


@lru_cache(maxsize=1024)
def _criterion_in(value: str) -> Matcher:
    """Of a text, which often comes again."""
    match = _CRITERION.match(value)
    assert match is not None
    operator, rest = match[1] or "", match[2]
    if operator in ("", "=", "<>"):
        matches = _matching_text(rest, is_plain=operator == "")
        if operator != "<>":
            return matches
        if type(typed(rest)) is float:
            # A text that reads like the number meets both "=1" and "<>1".
            return lambda v: type(v) is str or not matches(v)
        return lambda v: not matches(v)
    wanted = typed(rest)
    if rest == "":
        return lambda _value: False
    if type(wanted) is float:
        is_met = _OF_NUMBERS[operator]
        return lambda v: type(v) is float and is_met(v, wanted)
    kind, holds = type(wanted), _COMPARISONS[operator]
    return lambda v: type(v) is kind and holds(compare(v, wanted))


def equality_key(value: Scalar) -> object:
    """What a cell that meets a criterion has among its `value_keys`; None if it asks for more."""
    if value is None:
        value = 0.0
    return _key_in(value) if type(value) is str else _key_of(value)


@lru_cache(maxsize=1024)
def _key_in(value: str) -> object:
    text = value.removeprefix("=")
    if not text or text[0] in "<>=" or has_wildcards(text):
        return None
    return _key_of(typed(text))


def _key_of(value: Scalar) -> object:
    if type(value) is float:
        return _number_key(value)
    if type(value) is str:
        return folded(value)
    return value if type(value) is bool else None


def looks_for_itself(text: str) -> bool:
    """Does a text, as a criterion, look for cells with this text and for nothing else?"""
    is_written = text[:1] not in ("", "<", ">", "=") and not has_wildcards(text)
    return is_written and type(typed(text)) is str


def value_keys(value: Scalar) -> list[object]:
    """How a value in a cell can be asked for by a criterion of equality."""
    if type(value) is float:
        return [_number_key(value)]
    if type(value) is not str:
        return [value] if type(value) is bool else []
    number = number_in_text(value)
    return [folded(value)] if number is None else [folded(value), _number_key(number)]


def _number_key(number: float) -> tuple[str, float]:
    return "number", shown_number(number)


def typed(text: str) -> Scalar:
    """What is written in a criterion: a boolean, an error, a number, or else a text."""
    if text.upper() in ("TRUE", "FALSE"):
        return text.upper() == "TRUE"
    error = ERRORS_BY_NAME.get(text.upper())
    if error is not None:
        return error
    number = number_in_text(text)
    return text if number is None else number


def _equal(wanted: Scalar) -> Matcher:
    if type(wanted) is float:
        return lambda v: _number_is(v, wanted)
    return lambda v: type(v) is type(wanted) and v == wanted


def _number_is(value: Scalar, wanted: float) -> bool:
    number = number_in_text(value) if type(value) is str else value
    return type(number) is float and same_number(number, wanted)


def _matching_text(text: str, *, is_plain: bool) -> Matcher:
    if text == "":
        if is_plain:
            return lambda v: v is None or v == ""
        return lambda v: v is None
    wanted = typed(text)
    if type(wanted) is not str:
        return _equal(wanted)
    if has_wildcards(text):
        pattern = excel_pattern(text)
        return lambda v: type(v) is str and pattern.matches(v)
    lowered = folded(text)
    return lambda v: type(v) is str and folded(v) == lowered
