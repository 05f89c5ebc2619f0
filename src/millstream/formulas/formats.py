"""Number formats, as TEXT knows them: `#,##0.00`, `0.0%`, `yyyy-mm-dd`, `[h]:mm`, `# ?/?`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from millstream.formulas.dates import LAST_DAY, OFFSET_1904, date_of, weekday_of
from millstream.formulas.numerals import DAYS, MONTHS, number_in_text
from millstream.formulas.values import VALUE, Raised, Scalar, checked, round_to_15

_PART = re.compile(
    r"""
    (?P<literal>"[^"]*"|\\.|!.)
  | (?P<skip>_.|\*.)
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
_WIDE = Context(prec=400)


@dataclass(frozen=True, slots=True)
class Part:
    kind: str
    text: str


def formatted(value: Scalar, pattern: str, *, uses_1904: bool = False) -> str:
    """A value in a number format."""
    checked(value)
    if type(value) is bool:
        return "TRUE" if value else "FALSE"
    sections = _sections(pattern)
    if type(value) is str:
        number = number_in_text(value)
        if number is None:
            return _text_section(value, sections)
        value = number
    number = 0.0 if value is None else float(value)
    parts, number, shows_sign = _section(sections, number)
    if not pattern:
        return ""
    text = _render(parts, number, uses_1904=uses_1904)
    if shows_sign and any(p.kind == "date" for p in parts):
        raise Raised(VALUE)
    return f"-{text}" if shows_sign else text


def _sections(pattern: str) -> list[list[Part]]:
    sections: list[list[Part]] = [[]]
    for found in _PART.finditer(pattern):
        kind = found.lastgroup
        assert kind is not None
        if kind == "other" and found[0] == ";":
            sections.append([])
        else:
            sections[-1].append(Part(kind, found[0]))
    return sections


def _text_section(text: str, sections: list[list[Part]]) -> str:
    if len(sections) >= 4:
        parts = sections[3]
    else:
        parts = next((s for s in sections if any(p.kind == "text" for p in s)), [])
        if not parts:
            return text
    return "".join(text if p.kind == "text" else _literal(p) for p in parts)


_CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)(-?[\d.]+)\]")


def _section(sections: list[list[Part]], number: float) -> tuple[list[Part], float, bool]:
    """The section for a number, what to show, and whether a minus is still to be shown."""
    conditions = [_condition(s) for s in sections[:3]]
    if any(conditions):
        for section, condition in zip(sections, conditions, strict=False):
            if condition is None or _holds(condition, number):
                return section, abs(number), number < 0 and condition is None
        return sections[-1], abs(number), number < 0
    if number > 0 or len(sections) == 1:
        return sections[0], abs(number), number < 0
    if number < 0:
        return sections[1], -number, False
    return sections[2 if len(sections) > 2 else 0], 0.0, False


def _condition(section: list[Part]) -> tuple[str, float] | None:
    for part in section:
        found = _CONDITION.fullmatch(part.text) if part.kind == "bracket" else None
        if found:
            return found[1], float(found[2])
    return None


def _holds(condition: tuple[str, float], number: float) -> bool:
    operator, limit = condition
    return {
        "<": number < limit, ">": number > limit, "<=": number <= limit,
        ">=": number >= limit, "=": number == limit, "<>": number != limit,
    }[operator]  # fmt: skip


def _literal(part: Part) -> str:
    match part.kind:
        case "literal":
            return part.text[1:-1] if part.text.startswith('"') else part.text[1:]
        case "skip":
            return " " if part.text.startswith("_") else ""
        case "bracket":
            currency = re.fullmatch(r"\[\$([^-\]]*)(?:-[^\]]*)?\]", part.text)
            return currency[1] if currency else ""
        case _:
            return part.text


def _render(parts: list[Part], number: float, *, uses_1904: bool) -> str:
    kinds = {p.kind for p in parts}
    is_elapsed = any(
        p.kind == "bracket" and re.fullmatch(r"\[(h+|m+|s+)\]", p.text, re.IGNORECASE)
        for p in parts
    )
    if "date" in kinds or "half" in kinds or is_elapsed:
        return _moment(parts, number + (OFFSET_1904 if uses_1904 else 0))
    if "general" in kinds or kinds == {"text"}:
        return "".join(
            general_format(number) if p.kind in ("general", "text") else _literal(p) for p in parts
        )
    if "slash" in kinds and "digit" in kinds:
        return _fraction(parts, number)
    if "exponent" in kinds:
        return _scientific(parts, number)
    return _number(parts, number)


# --- numbers ----------------------------------------------------------------------------


def general_format(number: float) -> str:
    """A number in the General format of a wide cell: it has room for eleven characters."""
    sign, size = ("-", -number) if number < 0 else ("", number)
    power = int(f"{size:.14e}".partition("e")[2]) if size else 0
    places = 9 if -5 < power < 0 else 12
    text = _short(format_fixed(size, places, has_commas=False)) if abs(power) <= 10 else ""
    if power >= 0 and len(text) > 11:
        text = _short(format_fixed(size, max(0, 9 - power), has_commas=False))
    if text and len(text) <= 11:
        return sign + text
    digits, _, exponent = f"{size:.5e}".partition("e")
    return f"{sign}{_short(digits)}E{exponent}"


def _short(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def format_fixed(number: float, places: int, *, has_commas: bool) -> str:
    exact = Decimal(repr(round_to_15(number))).quantize(
        Decimal(1).scaleb(-places), ROUND_HALF_UP, _WIDE
    )
    return f"{exact:,f}" if has_commas else f"{exact:f}"


def _number(parts: list[Part], number: float) -> str:
    digits = [n for n, p in enumerate(parts) if p.kind == "digit"]
    number *= 100 ** sum(p.kind == "percent" for p in parts)
    if not digits:
        return "".join(_literal(p) for p in parts if p.kind not in ("point", "comma"))
    point = next((n for n, p in enumerate(parts) if p.kind == "point"), None)
    whole = [n for n in digits if point is None or n < point]
    decimals = [n for n in digits if point is not None and n > point]
    last = whole[-1] if whole else -1
    # Commas between digits group; those after the last digit each divide by a thousand.
    commas = [n for n, p in enumerate(parts) if p.kind == "comma"]
    groups = any(whole and whole[0] < n < last for n in commas)
    scaling = [
        n for n in commas
        if n > (digits[-1] if point is None or not decimals else last) or (decimals and n > last)
    ]  # fmt: skip
    number /= 1000.0 ** len([n for n in scaling if whole or decimals])
    text = format_fixed(number, len(decimals), has_commas=False)
    head, _, tail = text.partition(".")
    shown = _whole_digits(parts, whole, "" if head == "0" else head, groups=groups)
    shown |= _decimal_digits(parts, decimals, tail)
    result = ""
    for n, part in enumerate(parts):
        if n in shown:
            result += shown[n]
        elif part.kind == "point":
            result += (head if not whole and head != "0" else "") + "."
        elif part.kind != "comma" or (n not in commas):
            result += _literal(part)
    return result


def _whole_digits(
    parts: list[Part], places: list[int], head: str, *, groups: bool
) -> dict[int, str]:
    """What each place before the point shows; the leftmost takes all that is left."""
    shown: dict[int, str] = {}
    for k, n in enumerate(reversed(places)):
        digit = head[-1 - k] if k < len(head) else {"0": "0", "?": " ", "#": ""}[parts[n].text]
        text = _grouped(digit, k, groups=groups)
        if n == places[0]:
            for j in range(k + 1, len(head)):
                text = _grouped(head[-1 - j], j, groups=groups) + text
        shown[n] = text
    return shown


def _grouped(digit: str, place: int, *, groups: bool) -> str:
    """A digit with the separator that stands between it and the next three."""
    is_left_of_comma = groups and place and place % 3 == 0 and digit.isdigit()
    return f"{digit}," if is_left_of_comma else digit


def _decimal_digits(parts: list[Part], places: list[int], tail: str) -> dict[int, str]:
    shown: dict[int, str] = {}
    is_needed = False
    for n, digit in zip(reversed(places), reversed(tail), strict=True):
        kind = parts[n].text
        is_needed = is_needed or digit != "0" or kind == "0"
        shown[n] = digit if is_needed else {"?": " ", "#": ""}[kind]
    return shown


def _scientific(parts: list[Part], number: float) -> str:
    mark = next(n for n, p in enumerate(parts) if p.kind == "exponent")
    head, tail = parts[:mark], parts[mark + 1 :]
    before = [p for p in head if p.kind == "digit"]
    point = next((n for n, p in enumerate(head) if p.kind == "point"), None)
    decimals = sum(p.kind == "digit" for p in head[point:]) if point is not None else 0
    wide = max(1, len(before) - decimals)
    power = 0
    if number:
        power = int(f"{number:.14e}".partition("e")[2])
        power -= (power % wide) if wide > 1 else 0
        mantissa = float(Decimal(repr(round_to_15(number))).scaleb(-power))
        if float(format_fixed(mantissa, decimals, has_commas=False)) >= 10**wide:
            power += wide
    mantissa = float(Decimal(repr(round_to_15(number))).scaleb(-power))
    sign = "-" if power < 0 else ("+" if parts[mark].text.endswith("+") else "")
    exponent = _number([p for p in tail if p.kind == "digit"] or [Part("digit", "0")],
                       float(abs(power)))  # fmt: skip
    rest = "".join(_literal(p) for p in tail if p.kind != "digit")
    return f"{_number(head, mantissa)}{parts[mark].text[0]}{sign}{exponent}{rest}"


def _fraction(parts: list[Part], number: float) -> str:
    slash = next(n for n, p in enumerate(parts) if p.kind == "slash")
    under = [p for p in parts[slash + 1 :] if p.kind == "digit"]
    fixed = "".join(p.text for p in parts[slash + 1 :] if p.kind == "other" and p.text.isdigit())
    start = slash
    while start > 0 and parts[start - 1].kind == "digit":
        start -= 1
    has_whole = any(p.kind == "digit" for p in parts[:start])
    whole = int(number) if has_whole else 0
    rest = Fraction(number) - whole
    limit = int(fixed) if fixed else 10 ** max(1, len(under)) - 1
    near = Fraction(round(rest * limit), limit) if fixed else rest.limit_denominator(limit)
    if near == 1 and has_whole:
        whole, near = whole + 1, Fraction(0)
    if has_whole and near == 0:
        return f"{whole}" + " " * (2 + (slash - start) + len(under))
    over = near.numerator * (limit // near.denominator) if fixed else near.numerator
    down = limit if fixed else near.denominator
    text = f"{str(over).rjust(slash - start)}/{str(down).ljust(max(len(under), 1))}"
    return f"{whole or ''} {text}" if has_whole else text


# --- dates and times --------------------------------------------------------------------


def _moment(parts: list[Part], serial: float) -> str:
    if serial < 0 or serial >= LAST_DAY + 1:
        raise Raised(VALUE)
    has_half = any(p.kind == "half" for p in parts)
    decimals = max((len(p.text.partition(".")[2]) for p in parts if p.kind == "date"), default=0)
    scale = 10**decimals
    ticks = round(round_to_15(serial) * 86400 * scale)
    seconds, fraction = divmod(ticks, scale)
    day, second = divmod(seconds, 86400)
    clock = _Clock(day, second, fraction, decimals, seconds)
    kinds = [_code(p) for p in parts]
    result = ""
    for n, part in enumerate(parts):
        if part.kind == "date":
            result += _date_part(part.text, clock, _is_minute(kinds, n), has_half=has_half)
        elif part.kind == "half":
            word = ("AM", "PM")[second >= 43200]
            result += word if part.text.upper() == "AM/PM" else word[0]
        elif part.kind == "bracket":
            result += _elapsed(part.text, clock)
        elif part.kind == "digit":
            result += "0" if part.text == "0" else ""
        else:
            result += _literal(part)
    return result


@dataclass(frozen=True, slots=True)
class _Clock:
    day: int
    second: int
    fraction: int
    decimals: int
    seconds: int


def _code(part: Part) -> str:
    if part.kind == "bracket":
        return part.text[1:2].lower()
    return part.text[:1].lower() if part.kind == "date" else ""


def _is_minute(kinds: list[str], n: int) -> bool:
    """An `m` right after hours or right before seconds is minutes, else months."""
    if kinds[n] != "m":
        return False
    before = next((k for k in reversed(kinds[:n]) if k), "")
    after = next((k for k in kinds[n + 1 :] if k), "")
    return before == "h" or after == "s"


def _date_part(code: str, clock: _Clock, is_minute: bool, *, has_half: bool) -> str:  # noqa: FBT001
    letter, length = code[0].lower(), len(code.partition(".")[0])
    hour, minute, second = clock.second // 3600, clock.second // 60 % 60, clock.second % 60
    if letter == "h":
        return _padded((hour % 12 or 12) if has_half else hour, min(length, 2))
    if letter == "s":
        text = _padded(second, min(length, 2))
        return text + (f".{clock.fraction:0{clock.decimals}d}" if "." in code else "")
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


def _elapsed(bracket: str, clock: _Clock) -> str:
    inner = bracket[1:-1].lower()
    if inner and set(inner) <= {"h"}:
        return _padded(clock.seconds // 3600, len(inner))
    if inner and set(inner) <= {"m"}:
        return _padded(clock.seconds // 60, len(inner))
    if inner and set(inner) <= {"s"}:
        return _padded(clock.seconds, len(inner))
    return _literal(Part("bracket", bracket))
