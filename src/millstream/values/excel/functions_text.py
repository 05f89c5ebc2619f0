"""Texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from millstream.values.excel.arrays import Array, Operand
from millstream.values.excel.format_numbers import format_fixed
from millstream.values.excel.formats import formatted
from millstream.values.excel.functions_math import rounded
from millstream.values.excel.gather import Tables, scalars
from millstream.values.excel.numerals import number_in_text
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import (
    MAX_TEXT,
    NA,
    VALUE,
    ErrorValue,
    Raised,
    Scalar,
    checked,
    fail,
    fail_if,
    to_text,
)
from millstream.wildcards import excel_pattern

if TYPE_CHECKING:
    from millstream.values.excel.evaluate import Context


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else fail(VALUE)


def left(text: str, count: float = 1.0) -> str:
    return text[: int(count)] if count >= 0 else fail(VALUE)


def right(text: str, count: float = 1.0) -> str:
    fail_if(count < 0, VALUE)
    return text[-int(count) :] if int(count) else ""


def middle(text: str, start: float, count: float) -> str:
    fail_if(start < 1 or count < 0, VALUE)
    first = int(start) - 1
    return text[first : first + int(count)]


def find(wanted: str, text: str, start: float = 1.0) -> float:
    fail_if(not 1 <= start <= len(text) + 1, VALUE)
    place = text.find(wanted, int(start) - 1)
    return float(place + 1) if place >= 0 else fail(VALUE)


def search(wanted: str, text: str, start: float = 1.0) -> float:
    """Like FIND, but without regard to case and with wildcards."""
    fail_if(not 1 <= start <= len(text) + 1, VALUE)
    place = excel_pattern(wanted).find(text, int(start) - 1)
    return float(place + 1) if place >= 0 else fail(VALUE)


def substitute(text: str, old: str, new: str, which: float | None = None) -> str:
    if not old:
        return text
    if which is None:
        return _short(text.replace(old, new))
    fail_if(which < 1, VALUE)
    place = -1
    for _ in range(int(which)):
        place = text.find(old, place + 1)
        if place < 0:
            return text
    return _short(text[:place] + new + text[place + len(old) :])


def replace(text: str, start: float, count: float, new: str) -> str:
    fail_if(start < 1 or count < 0, VALUE)
    first = int(start) - 1
    return _short(text[:first] + new + text[first + int(count) :])


def trim(text: str) -> str:
    """Without blanks at the ends, and one blank where there are several inside."""
    return re.sub(" +", " ", text.strip(" "))


def clean(text: str) -> str:
    return "".join(c for c in text if ord(c) >= 32)


def upper(text: str) -> str:
    """Letter by letter: one that has no single capital stays as it is."""
    return "".join(c if len(c.upper()) > 1 else c.upper() for c in text)


def lower(text: str) -> str:
    return "".join(c if len(c.lower()) > 1 else c.lower() for c in text)


def proper(text: str) -> str:
    result = ""
    is_first = True
    for character in text:
        result += upper(character) if is_first else lower(character)
        is_first = not character.isalpha()
    return result


def repeat(text: str, count: float) -> str:
    fail_if(count < 0 or len(text) * int(count) > MAX_TEXT, VALUE)
    return text * int(count)


def concatenate(*texts: str) -> str:
    return _short("".join(texts))


def concat(*operands: Operand) -> str:
    return _short("".join(to_text(v) for o in operands for v in scalars(o)))


def text_join(delimiter: Operand, skips_empty: Scalar, *operands: Operand) -> str:
    marks = [to_text(v) for v in scalars(delimiter)] or [""]
    parts = [to_text(v) for o in operands for v in scalars(o)]
    if skips_empty:
        parts = [p for p in parts if p]
    result = ""
    for number, part in enumerate(parts):
        result += (marks[(number - 1) % len(marks)] if number else "") + part
    return _short(result)


def character(code: float) -> str:
    fail_if(not 1 <= code < 256, VALUE)
    return bytes([int(code)]).decode("cp1252", "replace")


def code(text: str) -> float:
    fail_if(not text, VALUE)
    encoded = text[0].encode("cp1252", "replace")
    return float(encoded[0])


def unicode_character(number: float) -> str:
    n = int(number)
    fail_if(not 1 <= n <= 0x10FFFF or 0xD800 <= n < 0xE000, VALUE)
    return chr(n)


def value(given: Scalar) -> float:
    if type(given) is float:
        return given
    if given is None:
        return 0.0
    if type(given) is bool:
        fail(VALUE)
    number = number_in_text(str(given))
    return number if number is not None else fail(VALUE)


def number_value(text: str, decimal: str = ".", group: str = ",") -> float:
    fail_if(not decimal or not group, VALUE)
    plain = text.replace(" ", "")
    if not plain:
        return 0.0
    head, mark, tail = plain.partition(decimal[0])
    fail_if(group[0] in tail, VALUE)
    digits = head.replace(group[0], "") + ("." + tail if mark else "")
    percents = len(digits) - len(digits.rstrip("%"))
    try:
        return float(float(digits.rstrip("%")) / 100**percents)
    except ValueError:
        raise Raised(VALUE) from None


def _places(digits: float) -> int:
    return int(digits) if digits < 128 else fail(VALUE)


def fixed(number: float, digits: float = 2.0, without_commas: Scalar = False) -> str:  # noqa: FBT002
    places = _places(digits)
    return format_fixed(rounded(number, places), max(0, places), has_commas=not without_commas)


def dollar(number: float, digits: float = 2.0) -> str:
    places = _places(digits)
    text = "$" + format_fixed(abs(rounded(number, places)), max(0, places), has_commas=True)
    return f"({text})" if number < 0 else text


def as_text(context: Context, given: Scalar, pattern: str) -> str:
    return formatted(given, pattern, uses_1904=context.uses_1904)


def text_of(given: Scalar) -> str:
    return given if type(given) is str else ""


def number_of(given: Scalar) -> float:
    if type(given) is float:
        return given
    return 1.0 if given is True else 0.0


def _pattern(marks: Operand, *, is_folded: bool) -> re.Pattern[str]:
    words = [to_text(v) for v in scalars(marks)]
    # Of two marks that begin at the same place the longer one counts.
    words = sorted(filter(None, words), key=len, reverse=True)
    flags = re.IGNORECASE if is_folded else re.NOFLAG
    return re.compile("|".join(map(re.escape, words)) or "(?!)", flags)


def _around(
    text: str, mark: Operand, which: float, mode: float, end: float
) -> tuple[str, str] | None:
    """What stands before and after an occurrence of a mark, counted from the end if negative."""
    fail_if(which == 0 or abs(which) > max(len(text), 1), VALUE)
    if all(to_text(v) == "" for v in scalars(mark)):
        return ("", text) if which > 0 else (text, "")
    spans = [m.span() for m in _pattern(mark, is_folded=bool(mode)).finditer(text)]
    if end:
        spans = [*spans, (len(text), len(text))] if which > 0 else [(0, 0), *spans]
    place = int(which) - 1 if which > 0 else len(spans) + int(which)
    if not 0 <= place < len(spans):
        return None
    return text[: spans[place][0]], text[spans[place][1] :]


def text_before(
    text: str, mark: Operand, which: float = 1.0, mode: float = 0.0, end: float = 0.0,
    otherwise: Scalar = NA,
) -> Scalar:  # fmt: skip
    around = _around(text, mark, which, mode, end)
    return around[0] if around else otherwise


def text_after(
    text: str, mark: Operand, which: float = 1.0, mode: float = 0.0, end: float = 0.0,
    otherwise: Scalar = NA,
) -> Scalar:  # fmt: skip
    around = _around(text, mark, which, mode, end)
    return around[1] if around else otherwise


def text_split(
    text: str,
    columns: Operand = None,
    rows: Operand = None,
    ignore_empty: Scalar = False,  # noqa: FBT002
    mode: float = 0.0,
    pad: Scalar = NA,
) -> Array:
    if columns is None and rows is None:
        fail(VALUE)

    def cut(whole: str, marks: Operand) -> list[str]:
        if marks is None:
            return [whole]
        words = _pattern(marks, is_folded=bool(mode)).split(whole)
        return [w for w in words if w] if ignore_empty else words

    table = [cut(line, columns) for line in cut(text, rows)]
    width = max(map(len, table), default=0)
    if not width:
        fail(ErrorValue("#CALC!"))
    return Array(tuple((*r, *[pad] * (width - len(r))) for r in table))


def exact(a: str, b: str) -> bool:
    return a == b


def phonetic(operand: Operand) -> str:
    return "".join(to_text(checked(v)) for v in scalars(operand) if type(v) is str)


def array_to_text(operand: Operand, form: float = 0.0) -> str:
    if not isinstance(operand, Tables):
        return str(operand) if type(operand) is ErrorValue else to_text(operand)
    return ", ".join(str(v) if type(v) is ErrorValue else to_text(v) for v in operand.values())


TEXT: Family = {
    "ARRAYTOTEXT": spec("r n?", array_to_text),
    "CHAR": spec("n", character),
    "CLEAN": spec("t", clean),
    "CODE": spec("t", code),
    "CONCAT": spec("r+", concat),
    "CONCATENATE": spec("t+", concatenate),
    "_LONGTEXT": spec("t+", concatenate),  # so Excel writes a text of more than 255 characters
    "DOLLAR": spec("n n?", dollar),
    "ENCODEURL": spec("t", lambda text: quote(text, safe="-_.")),
    "EXACT": spec("t t", exact),
    "FIND": spec("t t n?", find),
    "FINDB": spec("t t n?", find),
    "FIXED": spec("n n? b?", fixed),
    "LEFT": spec("t n?", left),
    "LEFTB": spec("t n?", left),
    "LEN": spec("t", lambda t: float(len(t))),
    "LENB": spec("t", lambda t: float(len(t))),
    "LOWER": spec("t", lower),
    "MID": spec("t n n", middle),
    "MIDB": spec("t n n", middle),
    "N": spec("f", number_of),
    "NUMBERVALUE": spec("t t? t?", number_value),
    "PHONETIC": spec("r", phonetic),
    "PROPER": spec("t", proper),
    "REPLACE": spec("t n n t", replace),
    "REPLACEB": spec("t n n t", replace),
    "REPT": spec("t n", repeat),
    "RIGHT": spec("t n?", right),
    "RIGHTB": spec("t n?", right),
    "SEARCH": spec("t t n?", search),
    "SEARCHB": spec("t t n?", search),
    "SUBSTITUTE": spec("t t t n?", substitute),
    "T": spec("f", text_of),
    "TEXT": spec("v t", as_text, wants_context=True),
    "TEXTAFTER": spec("t r n? n? n? e?", text_after, fills_in=True),
    "TEXTBEFORE": spec("t r n? n? n? e?", text_before, fills_in=True),
    "TEXTJOIN": spec("r b r+", text_join),
    "TEXTSPLIT": spec("t r? r? b? n? e?", text_split, fills_in=True),
    "TRIM": spec("t", trim),
    "UNICHAR": spec("n", unicode_character),
    "UNICODE": spec("t", lambda text: float(ord(text[0])) if text else fail(VALUE)),
    "UPPER": spec("t", upper),
    "USDOLLAR": spec("n n?", dollar),
    "VALUE": spec("v", value),
    "VALUETOTEXT": spec("e n?", array_to_text),
}
