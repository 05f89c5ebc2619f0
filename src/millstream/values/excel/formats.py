"""Number formats, as TEXT knows them: `#,##0.00`, `0.0%`, `yyyy-mm-dd`, `[h]:mm`, `# ?/?`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from millstream.values.excel.dates import LAST_DAY, OFFSET_1904, date_of, weekday_of
from millstream.values.excel.format_numbers import (
    FormatPart,
    fraction,
    general_format,
    is_fraction,
    literal,
    plain_number,
    scientific,
)
from millstream.values.excel.numerals import DAYS, MONTHS, number_in_text
from millstream.values.excel.rounding import shown_number
from millstream.values.excel.values import VALUE, Raised, Scalar, checked

_PART = re.compile(
    r"""
    (?P<literal>"[^"]*"|\\.|!.)
  | (?P<skip>_.|\*.)
  | (?P<elapsed>\[(?:[hH]+|[mM]+|[sS]+)\](?:\.0+)?)
  | (?P<bracket>\[[^\]]*\])
  | (?P<general>[Gg]eneral)
  | (?P<half>AM/PM|am/pm|A/P|a/p)
  | (?P<exponent>[eE][+-])
  | (?P<date>[yY]+|[mM]+|[dD]+|[hH]+|[sS]+(?:\.0+)?|[eE]+|[bB]{2,4})
  | (?P<digit>[0#?])
  | (?P<point>\.)
  | (?P<comma>,)
  | (?P<percent>%)
  | (?P<slash>/)
  | (?P<text>@)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

#: As long as Excel takes a format.
_LONGEST = 255


def formatted(value: Scalar, pattern: str, *, uses_1904: bool = False) -> str:
    """A value in a number format."""
    checked(value)
    if len(pattern) > _LONGEST:
        raise Raised(VALUE)
    sections = sections_of(pattern)
    if type(value) is bool:
        return _text_section("TRUE" if value else "FALSE", sections)
    if type(value) is str:
        number = number_in_text(value)
        if number is None:
            return _text_section(value, sections)
        value = number
    number = 0.0 if value is None else float(value)
    parts, number, shows_sign = _section(sections, number)
    if not pattern:
        return ""
    is_moment = any(p.kind in _MOMENTS for p in parts)
    if shows_sign and is_moment and not uses_1904:
        raise Raised(VALUE)
    text = _moment(parts, number, uses_1904=uses_1904) if is_moment else _render(parts, number)
    return f"-{text}" if shows_sign else text


@lru_cache(maxsize=1024)
def sections_of(pattern: str) -> list[list[FormatPart]]:
    """The parts of a format, for each of its sections."""
    sections: list[list[FormatPart]] = [[]]
    for match in _PART.finditer(pattern):
        kind = match.lastgroup
        assert kind is not None
        if kind == "other" and match[0] == ";":
            sections.append([])
        else:
            sections[-1].append(FormatPart(kind, match[0]))
    return sections


def _text_section(text: str, sections: list[list[FormatPart]]) -> str:
    if len(sections) >= 4:
        parts = sections[3]
    else:
        parts = next((s for s in sections if any(p.kind == "text" for p in s)), [])
        if not parts:
            return text
    return "".join(text if p.kind == "text" else literal(p) for p in parts)


CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=) *(-?[\d.]+)\]")
_GENERAL = [FormatPart("general", "General")]
_MOMENTS = ("date", "half", "elapsed")


def _section(
    sections: list[list[FormatPart]], number: float
) -> tuple[list[FormatPart], float, bool]:
    """The section for a number, what to show, and whether a minus is still to be shown."""
    conditions = [_condition(s) for s in sections[:3]]
    if any(conditions):
        for section, condition in zip(sections, conditions, strict=False):
            if condition is None or _holds(condition, number):
                shows_sign = condition is None or len(sections) == 1
                return section, abs(number), number < 0 and shows_sign
        return _GENERAL if len(sections) == 1 else sections[-1], abs(number), number < 0
    if number > 0 or len(sections) == 1:
        return sections[0], abs(number), number < 0
    if number < 0:
        return sections[1], -number, False
    return sections[2 if len(sections) > 2 else 0], 0.0, False


def _condition(section: list[FormatPart]) -> tuple[str, float] | None:
    for part in section:
        match = CONDITION.fullmatch(part.text) if part.kind == "bracket" else None
        if match:
            return match[1], float(match[2])
    return None


def _holds(condition: tuple[str, float], number: float) -> bool:
    operator, limit = condition
    return {
        "<": number < limit, ">": number > limit, "<=": number <= limit,
        ">=": number >= limit, "=": number == limit, "<>": number != limit,
    }[operator]  # fmt: skip


def _render(parts: list[FormatPart], number: float) -> str:
    kinds = {p.kind for p in parts}
    if "general" in kinds or kinds == {"text"}:
        return "".join(
            general_format(number) if p.kind in ("general", "text") else literal(p) for p in parts
        )
    if is_fraction(parts):
        return fraction(parts, number)
    if "exponent" in kinds:
        return scientific(parts, number)
    return plain_number(parts, number)


# --- dates and times --------------------------------------------------------------------


def _moment(parts: list[FormatPart], serial: float, *, uses_1904: bool) -> str:
    elapsed = "".join({p.text[1].lower() for p in parts if p.kind == "elapsed"})
    if uses_1904 and not elapsed:
        serial += OFFSET_1904
    if serial < 0 or serial >= LAST_DAY + 1:
        raise Raised(VALUE)
    decimals = max(
        (len(p.text.partition(".")[2]) for p in parts if p.kind in ("date", "elapsed")), default=0
    )
    ticks = round(shown_number(serial) * 86400 * 10**decimals)
    seconds, below = divmod(ticks, 10**decimals)
    day, second = divmod(seconds, 86400)
    has_half = any(p.kind == "half" for p in parts)
    clock = _Clock(day, second, below, decimals, seconds, elapsed, has_half)
    kinds = [_code(p) for p in parts]
    result = ""
    for n, part in enumerate(parts):
        if part.kind == "date":
            result += _date_part(part.text, clock, is_minute=_is_minute(kinds, n, elapsed))
        elif part.kind == "half":
            result += _half(part.text, is_late=second >= 43200)
        elif part.kind == "elapsed":
            inner, _, _ = part.text[1:].partition("]")
            result += _passed(inner, clock) + _below(part.text, clock)
        elif part.kind == "digit":
            result += "0" if part.text == "0" else ""
        else:
            result += literal(part)
    return result


def _half(code: str, *, is_late: bool) -> str:
    if code.upper() == "AM/PM":
        return "PM" if is_late else "AM"
    return code[2] if is_late else code[0]


@dataclass(frozen=True, slots=True)
class _Clock:
    day: int
    second: int
    fraction: int
    decimals: int
    seconds: int
    elapsed: str
    has_half: bool


def _code(part: FormatPart) -> str:
    if part.kind == "elapsed":
        return part.text[1].lower()
    return part.text[:1].lower() if part.kind == "date" else ""


def _is_minute(kinds: list[str], n: int, elapsed: str) -> bool:
    """An `m` right after hours or right before seconds is minutes, else months."""
    if kinds[n] != "m":
        return False
    if elapsed:
        return True
    before = next((k for k in reversed(kinds[:n]) if k), "")
    after = next((k for k in kinds[n + 1 :] if k), "")
    return before == "h" or after == "s"


def _date_part(code: str, clock: _Clock, *, is_minute: bool) -> str:
    letter, length = code[0].lower(), len(code.partition(".")[0])
    hour, minute, second = clock.second // 3600, clock.second // 60 % 60, clock.second % 60
    if letter == clock.elapsed:
        return _passed(code.partition(".")[0], clock) + _below(code, clock)
    if letter == "h":
        return _padded((hour % 12 or 12) if clock.has_half else hour, min(length, 2))
    if letter == "s":
        return _padded(second, min(length, 2)) + _below(code, clock)
    if is_minute:
        return _padded(minute, min(length, 2))
    year, month, day = date_of(float(clock.day))
    if letter == "y":
        return f"{year % 100:02d}" if length <= 2 else f"{year:04d}"
    if letter == "m":
        name = MONTHS[month - 1].capitalize()
        return {1: str(month), 2: f"{month:02d}", 3: name[:3], 5: name[0]}.get(length, name)
    if letter == "d":
        name = DAYS[weekday_of(clock.day)].capitalize()
        return {1: str(day), 2: f"{day:02d}", 3: name[:3]}.get(length, name)
    return str(year)


def _padded(number: int, length: int) -> str:
    return f"{number:0{length}d}"


def _passed(code: str, clock: _Clock) -> str:
    """Hours, minutes or seconds that have passed in all."""
    unit = {"h": 3600, "m": 60, "s": 1}[code[0].lower()]
    return _padded(clock.seconds // unit, len(code))


def _below(code: str, clock: _Clock) -> str:
    """The decimals of seconds, if they are asked for."""
    return f".{clock.fraction:0{clock.decimals}d}" if "." in code else ""
