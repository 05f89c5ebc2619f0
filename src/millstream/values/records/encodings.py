"""Numbers and texts as bytes, and numbers as texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from millstream.values.records.printing import quoted_bytes
from millstream.values.records.types import INT, RecordType, unsigned, wrapped
from millstream.values.undefined import Undefined

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_SPACE = " \t\n\v\f\r"


def number_of_text(text: str, base: int, least: int, most: int, what: str) -> int:
    """As C reads an integer: `0x` means base 16 and a leading 0 base 8, if no base is asked for."""
    if base != 0 and not 2 <= base <= 36:
        raise Undefined(f"there is no base {base}")
    body = text.lstrip(_SPACE)
    negative = body.startswith("-")
    digits = body[1:] if body[:1] in ("+", "-") else body
    lowered = digits.lower()
    if base in (0, 16) and lowered.startswith("0x") and len(lowered) > 2:
        base, lowered = 16, lowered[2:]
    elif base == 0:
        base = 8 if lowered.startswith("0") and len(lowered) > 1 else 10
    allowed = _DIGITS[:base]
    if not lowered or any(c not in allowed for c in lowered):
        raise Undefined(f"{text!r} is not {what}")
    # More digits than any number of 64 bits has, even in base 2, cannot fit.
    if len(lowered.lstrip("0")) > 64:
        raise Undefined(f"{text!r} is too large for {what}")
    number = int(lowered, base)
    number = -number if negative else number
    if not least <= number <= most:
        raise Undefined(f"{text!r} is too large for {what}")
    return number


def text_of_number(value: int, base: int) -> str:
    if not 2 <= base <= 36:
        raise Undefined(f"there is no base {base}")
    if base == 10:
        return str(value)
    digits, rest = "", abs(value)
    while rest:
        rest, digit = divmod(rest, base)
        digits = _DIGITS[digit] + digits
    return ("-" if value < 0 else "") + (digits or "0")


_FLOAT = re.compile(
    r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)",
    re.IGNORECASE | re.ASCII,
)
_HEX_FLOAT = re.compile(
    r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?", re.IGNORECASE | re.ASCII
)


def float_of_text(text: str) -> float:
    """As C reads a number."""
    body = text.lstrip(_SPACE)
    if _FLOAT.fullmatch(body):
        number = float(body)
        if number in (float("inf"), float("-inf")) and "inf" not in body.lower():
            raise Undefined(f"{text!r} is too large for a float")
        return number
    if _HEX_FLOAT.fullmatch(body):
        return float.fromhex(body)
    raise Undefined(f"{text!r} is not a float")


def bytes_of_text(text: str, encoding: str) -> bytes:
    match encoding.lower():
        case "utf-8":
            return text.encode("utf-8", "surrogatepass")
        case "latin-1":
            try:
                return text.encode("latin-1")
            except UnicodeEncodeError:
                raise Undefined("a character is not in latin-1") from None
        case "hex":
            if re.fullmatch(r"(?:[0-9a-fA-F]{2})*", text) is None:
                raise Undefined(f"{text!r} is not hexadecimal")
            return bytes.fromhex(text)
    raise Undefined(f"there is no encoding {encoding!r} from string to bytes")


def text_of_bytes(raw: bytes, encoding: str) -> str:
    """What is not UTF-8 becomes U+FFFD; a byte 0 stands in no string."""
    kind = encoding.lower()
    if kind == "hex":
        return raw.hex()
    if kind == "array-literal":
        return quoted_bytes(raw)
    if kind not in ("utf-8", "latin-1"):
        raise Undefined(f"there is no encoding {encoding!r} from bytes to string")
    if 0 in raw:
        raise Undefined(f"byte {raw.index(0)} is 0")
    return raw.decode(kind, "replace")


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(raw: bytes, at: int) -> tuple[int, int]:
    """A number of at most 64 bits, and the place behind it."""
    value = 0
    for n in range(10):
        if at + n >= len(raw):
            break
        byte = raw[at + n]
        value |= (byte & 127) << 7 * n
        if byte < 128:
            return unsigned(value), at + n + 1
    raise Undefined("a varint has no end")


def zigzag(value: int) -> int:
    return unsigned(value << 1 ^ value >> 63)


def unzigzag(value: int) -> int:
    return value >> 1 ^ -(value & 1)


_FIXED = re.compile(r"fixed(32|64)-(little|big)", re.IGNORECASE)


def bytes_of_number(value: int, encoding: str, type_: RecordType) -> bytes:
    kind = encoding.lower()
    if kind == "varint":
        return varint(unsigned(value))
    if kind == "zigzag":
        return varint(zigzag(wrapped(value)))
    size, order = _fixed(encoding)
    try:
        return value.to_bytes(size, order, signed=type_ == INT)
    except OverflowError:
        raise Undefined(f"{value} does not fit into {size} bytes") from None


def _fixed(encoding: str) -> tuple[int, Literal["little", "big"]]:
    match = _FIXED.fullmatch("fixed64-big" if encoding.lower() in ("saw", "szl") else encoding)
    if match is None:
        raise Undefined(f"there is no encoding {encoding!r} of numbers")
    return int(match[1]) // 8, "big" if match[2].lower() == "big" else "little"


def number_of_bytes(raw: bytes, encoding: str, type_: RecordType) -> int:
    hold: Callable[[int], int] = wrapped if type_ == INT else unsigned
    kind = encoding.lower()
    if kind in ("varint", "zigzag"):
        value, end = read_varint(raw, 0)
        if end != len(raw):
            raise Undefined("bytes are left behind a varint")
        return hold(unzigzag(value) if kind == "zigzag" else value)
    size, order = _fixed(encoding)
    if len(raw) != size:
        raise Undefined(f"{len(raw)} bytes where {encoding} has {size}")
    return int.from_bytes(raw, order, signed=type_ == INT)
