"""Functions of strings and bytes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from millstream.values.records.intrinsic import Intrinsic, fixed, plain
from millstream.values.records.types import BOOL, BYTES, INT, STRING, ArrayOf
from millstream.values.undefined import Undefined


def _changed(case: Callable[[str], str], text: str) -> str:
    """Character by character: one that would become several stays as it is."""
    changed = case(text)
    if text.isascii():
        return changed
    return "".join(new if len(new := case(c)) == 1 else c for c in text)


def lowercase(text: str) -> str:
    return _changed(str.lower, text)


def uppercase(text: str) -> str:
    return _changed(str.upper, text)


def strreplace(text: str, old: str, new: str, every: bool) -> str:  # noqa: FBT001 (a value)
    return text.replace(old, new, -1 if every else 1) if old else text


def bytesreplace(text: bytes, old: bytes, new: bytes, every: bool) -> bytes:  # noqa: FBT001
    return text.replace(old, new, -1 if every else 1) if old else text


_SPACE = b" \t\n\v\f\r"


def splitcsvline(line: bytes) -> tuple[bytes, ...]:
    """The fields between commas, without the space around them; `""` in quotes is a quote."""
    fields = []
    at = 0
    while at < len(line):
        while at < len(line) and line[at] in _SPACE:
            at += 1
        if line[at : at + 1] == b'"':
            field, at = _quoted(line, at + 1)
        else:
            end = line.find(b",", at)
            end = len(line) if end < 0 else end
            field, at = line[at:end].rstrip(_SPACE), end
        fields.append(field)
        if at == len(line) - 1:
            # A comma at the end has an empty field behind it.
            fields.append(b"")
        at += 1
    return tuple(fields)


def _quoted(line: bytes, at: int) -> tuple[bytes, int]:
    """What stands in quotes, and the place of the next comma; what is between is dropped."""
    field = bytearray()
    while at < len(line):
        if line[at] == ord('"'):
            at += 1
            if line[at : at + 1] != b'"':
                break
        field.append(line[at])
        at += 1
    comma = line.find(b",", at)
    return bytes(field), len(line) if comma < 0 else comma


def splitcsv(text: bytes, fields: tuple[int, ...]) -> tuple[bytes, ...]:
    """Of every line the fields with these numbers, from 1; one that is not there is empty."""
    chosen = []
    lines = text.split(b"\n")
    for line in lines if lines[-1] else lines[:-1]:
        parts = splitcsvline(line)
        for number in fields:
            if number < 1:
                raise Undefined(f"splitcsv: there is no field {number}")
            chosen.append(parts[number - 1] if number <= len(parts) else b"")
    return tuple(chosen)


def tobase64(raw: bytes, websafe: bool = False) -> bytes:  # noqa: FBT001, FBT002 (a value)
    if websafe:
        return base64.urlsafe_b64encode(raw).rstrip(b"=")
    return base64.b64encode(raw)


def frombase64(text: bytes, websafe: bool = False) -> bytes:  # noqa: FBT001, FBT002 (a value)
    bare = text.rstrip(b"=") if websafe else text
    padded = bare + b"=" * (-len(bare) % 4) if websafe else bare
    try:
        return base64.b64decode(padded, b"-_" if websafe else None, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Undefined(f"frombase64: {error}") from None


_STRINGS = fixed(STRING, STRING, result=INT)
_BYTES = fixed(BYTES, BYTES, result=INT)

TEXTS: tuple[Intrinsic, ...] = (
    plain("lowercase", "lowercase(text)", fixed(STRING, result=STRING), lowercase),
    plain("uppercase", "uppercase(text)", fixed(STRING, result=STRING), uppercase),
    plain("strfind", "strfind(part, text)", _STRINGS, lambda part, text: text.find(part)),
    plain("strrfind", "strrfind(part, text)", _STRINGS, lambda part, text: text.rfind(part)),
    plain("strreplace", "strreplace(text, old, new, every)",
          fixed(STRING, STRING, STRING, BOOL, result=STRING), strreplace),
    plain("bytesfind", "bytesfind(part, text)", _BYTES, lambda part, text: text.find(part)),
    plain("bytesrfind", "bytesrfind(part, text)", _BYTES, lambda part, text: text.rfind(part)),
    plain("bytesreplace", "bytesreplace(text, old, new, every)",
          fixed(BYTES, BYTES, BYTES, BOOL, result=BYTES), bytesreplace),
    plain("splitcsvline", "splitcsvline(line)",
          fixed(BYTES, result=ArrayOf(BYTES)), splitcsvline),
    plain("splitcsv", "splitcsv(lines, fields)",
          fixed(BYTES, ArrayOf(INT), result=ArrayOf(BYTES)), splitcsv),
    plain("tobase64", "tobase64(bytes, websafe)",
          fixed(BYTES, BOOL, result=BYTES, optional=1), tobase64),
    plain("frombase64", "frombase64(bytes, websafe)",
          fixed(BYTES, BOOL, result=BYTES, optional=1), frombase64),
)  # fmt: skip
