"""Numbers in number formats: `#,##0.00`, `0.0%`, `0.00E+00`, `# ?/?`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from millstream.values.excel.rounding import shown_number

#: Enough for the largest number with as many `%` and decimals as a format has room for.
_WIDE = Context(prec=2_000)


@dataclass(frozen=True, slots=True)
class FormatPart:
    kind: str
    text: str


def literal(part: FormatPart) -> str:
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


def format_fixed(number: float, places: int, *, has_commas: bool, shift: int = 0) -> str:
    """A number with some decimals, its point moved to the right by `shift`."""
    exact = Decimal(repr(shown_number(number))).scaleb(shift, _WIDE)
    rounded = exact.quantize(Decimal(1).scaleb(-places, _WIDE), ROUND_HALF_UP, _WIDE)
    return f"{rounded:,f}" if has_commas else f"{rounded:f}"


def plain_number(parts: list[FormatPart], number: float) -> str:
    digits = [n for n, p in enumerate(parts) if p.kind == "digit"]
    percents = sum(p.kind == "percent" for p in parts)
    if not digits:
        return "".join(literal(p) for p in parts if p.kind not in ("point", "comma"))
    point = next((n for n, p in enumerate(parts) if p.kind == "point"), None)
    whole = [n for n in digits if point is None or n < point]
    decimals = [n for n in digits if point is not None and n > point]
    last = whole[-1] if whole else -1
    # Commas between digits group; those after the last digit each divide by a thousand.
    commas = [n for n, p in enumerate(parts) if p.kind == "comma" and n > digits[0]]
    groups = any(whole and whole[0] < n < last for n in commas)
    scaling = [
        n for n in commas
        if n > (digits[-1] if point is None or not decimals else last) or (decimals and n > last)
    ]  # fmt: skip
    shift = 2 * percents - 3 * len(scaling)
    text = format_fixed(number, len(decimals), has_commas=False, shift=shift)
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
            result += literal(part)
    return result


def _whole_digits(
    parts: list[FormatPart], places: list[int], head: str, *, groups: bool
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
    """A digit with the separator that stands between it and the next three.

    Next to a digit that is only shown as a space the separator is one too.
    """
    if not groups or not digit or place == 0 or place % 3:
        return digit
    return digit + ("," if digit.isdigit() else " ")


def _decimal_digits(parts: list[FormatPart], places: list[int], tail: str) -> dict[int, str]:
    shown: dict[int, str] = {}
    is_needed = False
    for n, digit in zip(reversed(places), reversed(tail), strict=True):
        kind = parts[n].text
        is_needed = is_needed or digit != "0" or kind == "0"
        shown[n] = digit if is_needed else {"?": " ", "#": ""}[kind]
    return shown


def scientific(parts: list[FormatPart], number: float) -> str:
    """Neither `%` nor commas change a number here; the sign comes right before the exponent."""
    mark = next(n for n, p in enumerate(parts) if p.kind == "exponent")
    last = max((n for n in range(mark) if parts[n].kind == "digit"), default=0)
    head = [_as_shown(p) for n, p in enumerate(parts[:mark]) if p.kind != "comma" or n < last]
    tail = [p for p in parts[mark + 1 :] if p.kind != "comma"]
    point = next((n for n, p in enumerate(head) if p.kind == "point"), len(head))
    wide = max(1, sum(p.kind == "digit" for p in head[:point]))
    decimals = sum(p.kind == "digit" for p in head[point:])
    mantissa, power = _mantissa(number, wide, decimals)
    sign = "-" if power < 0 else ("+" if parts[mark].text.endswith("+") else "")
    if number == 0:
        head = [
            FormatPart(p.kind, "0") if _is_whole_digit(p, n, point) else p
            for n, p in enumerate(head)
        ]
    places = [n for n, p in enumerate(tail) if p.kind == "digit"]
    shown = _placed(tail, places, str(abs(power)))
    text = "".join(
        (sign if places and n == places[0] else "") + shown.get(n, literal(p))
        for n, p in enumerate(tail)
    )
    return f"{plain_number(head, mantissa)}{parts[mark].text[0]}{text}"


def _as_shown(part: FormatPart) -> FormatPart:
    return FormatPart("literal", "\\%") if part.kind == "percent" else part


def _is_whole_digit(part: FormatPart, place: int, point: int) -> bool:
    return part.kind == "digit" and place < point


def _mantissa(number: float, wide: int, decimals: int) -> tuple[float, int]:
    """A number as at most `wide` digits before the point, and a power of ten."""
    exact = Decimal(repr(shown_number(number)))
    if not number:
        return 0.0, 0
    power = int(f"{number:.14e}".partition("e")[2])
    power -= power % wide
    shown = format_fixed(float(exact.scaleb(-power)), decimals, has_commas=False)
    if float(shown) >= 10**wide:
        power += wide
    return float(exact.scaleb(-power)), power


# --- fractions --------------------------------------------------------------------------


def is_fraction(parts: list[FormatPart]) -> bool:
    """Is there a slash with digits on both sides?"""
    slash = next((n for n, p in enumerate(parts) if p.kind == "slash"), None)
    if slash is None:
        return False
    layout = _laid_out(parts)
    return bool(layout.over and layout.under)


def fraction(parts: list[FormatPart], number: float) -> str:
    layout = _laid_out(parts)
    limit = layout.fixed or 10 ** max(1, len(layout.under)) - 1
    whole = int(number) if layout.whole else 0
    rest = Fraction(number) - whole
    near = Fraction(round(rest * limit), limit) if layout.fixed else rest.limit_denominator(limit)
    if near == 1 and layout.whole:
        whole, near = whole + 1, Fraction(0)
    over, down = near.numerator, near.denominator
    if layout.fixed:
        over, down = over * (limit // down), limit
    texts = {n: literal(p) for n, p in enumerate(parts)}
    texts |= _placed(parts, layout.over, str(over)) | _under(parts, layout, down)
    if layout.whole:
        texts |= _whole_part(parts, layout, whole, is_exact=near == 0)
    return "".join(texts[n] for n in range(len(parts)))


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the digits of a fraction stand, and its denominator if the format gives it."""

    whole: list[int]
    over: list[int]
    under: list[int]
    fixed: int


def _laid_out(parts: list[FormatPart]) -> _Layout:
    slash = next(n for n, p in enumerate(parts) if p.kind == "slash")
    before = [n for n in range(slash) if parts[n].kind == "digit"]
    over: list[int] = []
    while before and (not over or before[-1] == over[0] - 1):
        over.insert(0, before.pop())
    after = range(slash + 1, len(parts))
    under: list[int] = []
    for n in after:
        if parts[n].text.isdigit() or parts[n].kind == "digit":
            under.append(n)
        elif under:
            break
    text = "".join(parts[n].text for n in under)
    is_fixed = text.isdigit() and text[0] != "0"
    return _Layout(before, over, under, int(text) if is_fixed else 0)


def _placed(parts: list[FormatPart], places: list[int], digits: str) -> dict[int, str]:
    """A whole number in its places, to the right; the leftmost takes all that is left."""
    shown: dict[int, str] = {}
    for k, n in enumerate(reversed(places)):
        shown[n] = digits[-1 - k] if k < len(digits) else _EMPTY[parts[n].text]
    if places and len(digits) > len(places):
        shown[places[0]] = digits[: len(digits) - len(places) + 1]
    return shown


_EMPTY = {"0": "0", "?": " ", "#": ""}


def _under(parts: list[FormatPart], layout: _Layout, down: int) -> dict[int, str]:
    """A denominator stands to the left of its places, unless they ask for zeros."""
    digits = str(down)
    if any(parts[n].text == "0" for n in layout.under):
        return _placed(parts, layout.under, digits)
    shown = {n: " " if parts[n].text == "?" else "" for n in layout.under}
    return shown | dict(zip(layout.under, digits, strict=False))


def _whole_part(
    parts: list[FormatPart], layout: _Layout, whole: int, *, is_exact: bool
) -> dict[int, str]:
    """The whole number before a fraction, and what is left out if one of them is zero."""
    marks = {name: {parts[n].text for n in places} for name, places in
             (("whole", layout.whole), ("over", layout.over), ("under", layout.under))}  # fmt: skip
    between = range(layout.whole[-1] + 1, layout.over[0])
    if is_exact and "0" not in marks["over"]:
        texts = _placed(parts, layout.whole, str(whole))
        has_spaces = "?" in marks["whole"] | marks["over"] | marks["under"]
        for n in range(between.start, layout.under[-1] + 1):
            width = 1 if parts[n].kind == "digit" else len(literal(parts[n]))
            texts[n] = " " * width if has_spaces else ""
        return texts
    if whole == 0 and not (is_exact and marks["whole"] != {"#"}):
        texts = _placed(parts, layout.whole, "")
        if "0" not in marks["whole"]:
            has_spaces = "?" in marks["whole"] | marks["over"]
            texts |= {n: " " * len(literal(parts[n])) if has_spaces else "" for n in between}
        return texts
    return _placed(parts, layout.whole, str(whole))
