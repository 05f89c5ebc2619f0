"""Numerals: Roman ones, those of other bases, and their bits."""

from __future__ import annotations

from collections.abc import Callable

from millstream.values.excel.functions_math import whole
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import (
    NUM,
    VALUE,
    Raised,
    Scalar,
    fail,
    fail_if,
    to_number,
)

_ROMAN = ((1000, "M"), (500, "D"), (100, "C"), (50, "L"), (10, "X"), (5, "V"), (1, "I"))


def roman(x: float, form: Scalar = 0.0) -> str:
    n = whole(x)
    fail_if(not 0 <= n < 4000, VALUE)
    steps = (0 if form else 4) if type(form) is bool else whole(to_number(form))
    fail_if(not 0 <= steps <= 4, VALUE)
    text = ""
    for place in range(0, len(_ROMAN), 2):
        unit, letter = _ROMAN[place]
        digit = n // unit
        if digit % 5 == 4:
            # Four or nine: a smaller letter before a larger one. The form says how many
            # letters further down the smaller one may be taken from, if enough is left.
            larger = place - 1 if digit == 4 else place - 2
            smaller = place
            limit = min(place + steps, len(_ROMAN) - 1)
            while smaller < limit and _ROMAN[larger][0] - _ROMAN[smaller + 1][0] <= n:
                smaller += 1
            text += _ROMAN[smaller][1] + _ROMAN[larger][1]
            n += _ROMAN[smaller][0] - _ROMAN[larger][0]
        else:
            text += (_ROMAN[place - 1][1] if digit > 4 else "") + letter * (digit % 5)
            n %= unit
    return text


def arabic(text: str) -> float:
    letters = text.strip().upper()
    sign = -1 if letters.startswith("-") else 1
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    digits = [values[c] if c in values else fail(VALUE) for c in letters.removeprefix("-")]
    following = [*digits[1:], 0][: len(digits)]
    result = sum(-a if a < b else a for a, b in zip(digits, following, strict=True))
    return float(sign * result)


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def digits_of(n: int, radix: int) -> str:
    text = ""
    while n:
        n, digit = divmod(n, radix)
        text = _DIGITS[digit] + text
    return text or "0"


def base(x: float, radix: float, length: float = 0.0) -> str:
    fail_if(x < 0 or x >= 2**53 or not 2 <= whole(radix) <= 36 or not 0 <= length < 256)
    return digits_of(whole(x), whole(radix)).rjust(whole(length), "0")


def decimal(text: str, radix: float) -> float:
    fail_if(not 2 <= whole(radix) <= 36)
    try:
        return float(int(text.strip() or "0", whole(radix)))
    except ValueError:
        raise Raised(NUM) from None


def from_radix(radix: int) -> Callable[[Scalar], float]:
    """BIN2DEC and its kin: ten digits, of which the first may be a sign."""

    def convert(value: Scalar) -> float:
        text = _digits_given(value)
        fail_if(len(text) > 10 or not (text or "0").isalnum())
        try:
            n = int(text or "0", radix)
        except ValueError:
            raise Raised(NUM) from None
        limit = radix**10 if radix != 2 else 2**10
        return float(n - limit if len(text) == 10 and n >= limit // 2 else n)

    return convert


def _digits_given(value: Scalar) -> str:
    if type(value) is bool:
        fail(VALUE)
    if type(value) is float:
        fail_if(value != whole(value) or value < 0)
        return str(whole(value))
    return "" if value is None else str(value).strip()


def to_radix(radix: int) -> Callable[..., str]:
    half = (radix**10 if radix != 2 else 2**10) // 2

    def convert(value: Scalar, places: float | None = None) -> str:
        if places is not None and not 1 <= whole(places) <= 10:
            fail(NUM)  # whatever the number is
        n = whole(to_number(value))
        fail_if(not -half <= n < half)
        if n < 0:
            return digits_of(n + 2 * half, radix).rjust(10, "0")
        text = digits_of(n, radix)
        if places is None:
            return text
        fail_if(whole(places) < len(text))
        return text.rjust(whole(places), "0")

    return convert


def _between(source: int, target: int) -> Callable[..., str]:
    read, write = from_radix(source), to_radix(target)

    def convert(value: Scalar, places: float | None = None) -> str:
        return write(read(value), places)

    return convert


def _bits(function: Callable[[int, int], int]) -> Callable[[float, float], float]:
    def apply(a: float, b: float) -> float:
        fail_if(min(a, b) < 0 or max(a, b) >= 2**48 or a != whole(a) or b != whole(b))
        return float(function(whole(a), whole(b)))

    return apply


def _shift(a: float, by: float) -> float:
    fail_if(a < 0 or a >= 2**48 or abs(by) > 53)
    n = whole(a) << whole(by) if by >= 0 else whole(a) >> -whole(by)
    return float(n) if n < 2**48 else fail(NUM)


BASES: Family = {
    "ARABIC": spec("t", arabic),
    "BASE": spec("n n n?", base),
    "BIN2DEC": spec("v", from_radix(2)),
    "BIN2HEX": spec("v n?", _between(2, 16)),
    "BIN2OCT": spec("v n?", _between(2, 8)),
    "BITAND": spec("n n", _bits(lambda a, b: a & b)),
    "BITLSHIFT": spec("n n", _shift),
    "BITOR": spec("n n", _bits(lambda a, b: a | b)),
    "BITRSHIFT": spec("n n", lambda a, by: _shift(a, -by)),
    "BITXOR": spec("n n", _bits(lambda a, b: a ^ b)),
    "DEC2BIN": spec("v n?", to_radix(2)),
    "DEC2HEX": spec("v n?", to_radix(16)),
    "DEC2OCT": spec("v n?", to_radix(8)),
    "DECIMAL": spec("t n", decimal),
    "HEX2BIN": spec("v n?", _between(16, 2)),
    "HEX2DEC": spec("v", from_radix(16)),
    "HEX2OCT": spec("v n?", _between(16, 8)),
    "OCT2BIN": spec("v n?", _between(8, 2)),
    "OCT2DEC": spec("v", from_radix(8)),
    "OCT2HEX": spec("v n?", _between(8, 16)),
    "ROMAN": spec("n v?", roman),
}
