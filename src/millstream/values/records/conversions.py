"""Conversions: a value of one type as a value of another, written `T(value, ...)`.

What follows the value says how: a base, an encoding, a time zone. Arrays, maps and tuples are
converted element by element, each with the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.values.records import encodings, zones
from millstream.values.records.intrinsic import RecordSurroundings, spoken
from millstream.values.records.json_rows import from_json
from millstream.values.records.keys import keys_of
from millstream.values.records.printing import enough_digits, inside
from millstream.values.records.proto import proto_bytes, proto_tuple
from millstream.values.records.types import (
    BOOL,
    BYTES,
    FINGERPRINT,
    FLOAT,
    INT,
    STRING,
    TIME,
    UINT,
    ArrayOf,
    Basic,
    Field,
    FunctionOf,
    MapOf,
    RecordType,
    TupleOf,
    resolved,
    unsigned,
    wrapped,
)
from millstream.values.undefined import Undefined

#: A function of the value and of what follows it.
_Convert = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Conversion:
    """A conversion of one type to another.

    `extra` is the type of what may follow the value; None if nothing may. `bind` gives the
    function. One that `can_fail` may be undefined.
    """

    extra: RecordType | None
    bind: Callable[[RecordSurroundings], _Convert]
    can_fail: bool = True


def _always(function: _Convert, *, can_fail: bool = False) -> Conversion:
    return Conversion(None, lambda _settings: function, can_fail)


def _told(extra: RecordType, function: _Convert) -> Conversion:
    return Conversion(extra, lambda _settings: function)


SAME = Conversion(None, lambda _settings: lambda value: value, can_fail=False)

_RANGES = {INT: (-(2**63), 2**63 - 1), UINT: (0, 2**64 - 1), FINGERPRINT: (0, 2**64 - 1)}


def _from_text(type_: Basic) -> Conversion:
    least, most = _RANGES[type_]
    what = f"{'an' if type_ == INT else 'a'} {type_}"

    def convert(text: str, base: int = 0) -> int:
        # The usual case first: digits without a leading 0.
        if base == 0 and text.isdigit() and text.isascii() and text[0] != "0" and len(text) < 19:
            return int(text)
        if type_ == FINGERPRINT:
            text = text.removesuffix("P")
        return encodings.number_of_text(text, base, least, most, what)

    return _told(INT, convert)


def _whole(hold: Callable[[int], int], low: int, high: int) -> Conversion:
    def convert(value: float) -> int:
        if not math.isfinite(value) or not low <= math.trunc(value) <= high:
            raise Undefined(f"{value:g} is out of range")
        return hold(math.trunc(value))

    return _always(convert, can_fail=True)


def _numbers_and_bytes(type_: Basic) -> dict[tuple[Basic, Basic], Conversion]:
    def to(value: int, encoding: str = "fixed64-big") -> bytes:
        return encodings.bytes_of_number(value, encoding, type_)

    least, most = _RANGES[type_]

    def back(raw: bytes, encoding: str | None = None) -> int:
        if encoding is not None:
            return encodings.number_of_bytes(raw, encoding, type_)
        # A line of text is bytes; only what is no text can be what `bytes(number)` gave.
        try:
            text = encodings.text_of_bytes(raw, "latin-1")
            return encodings.number_of_text(text, 0, least, most, f"{type_}")
        except Undefined:
            if len(raw) != 8:
                raise
            return encodings.number_of_bytes(raw, "fixed64-big", type_)

    return {(BYTES, type_): _told(STRING, to), (type_, BYTES): _told(STRING, back)}


def _fingerprint_of_bytes(raw: bytes) -> int:
    if len(raw) != 8:
        raise Undefined(f"a fingerprint has 8 bytes, not {len(raw)}")
    return int.from_bytes(raw, "big")


def _bool_of_text(text: str) -> bool:
    return text[:1] in ("t", "T")


def _zoned(function: Callable[[Any, str], Any]) -> Conversion:
    def bind(settings: RecordSurroundings) -> _Convert:
        usual = settings.timezone
        return lambda value, zone=usual: function(value, zone or usual)

    return Conversion(STRING, bind)


_BITS = (INT, UINT, TIME, FINGERPRINT)
_HOLD: dict[Basic, Callable[[int], int]] = {
    INT: wrapped, UINT: unsigned, TIME: wrapped, FINGERPRINT: unsigned,
}  # fmt: skip

#: By (to, from).
_BASIC: dict[tuple[Basic, Basic], Conversion] = {
    **{(to, of): _always(_HOLD[to]) for to in _BITS for of in _BITS if to != of},
    **{(to, BOOL): _always(int) for to in _BITS},
    **{(BOOL, of): _always(bool) for of in _BITS},
    (FLOAT, BOOL): _always(float),
    (BOOL, FLOAT): _always(lambda value: value != 0),
    **{(FLOAT, of): _always(float) for of in (INT, UINT, TIME)},
    (INT, FLOAT): _whole(wrapped, -(2**63), 2**63 - 1),
    (TIME, FLOAT): _whole(wrapped, -(2**63), 2**63 - 1),
    (UINT, FLOAT): _whole(unsigned, 0, 2**64 - 1),
    **{(to, STRING): _from_text(to) for to in (INT, UINT, FINGERPRINT)},
    (FLOAT, STRING): _always(encodings.float_of_text, can_fail=True),
    (BOOL, STRING): _always(_bool_of_text),
    (TIME, STRING): _zoned(zones.time_of_text),
    (STRING, TIME): _zoned(zones.time_text),
    (STRING, FLOAT): _always(enough_digits),
    (STRING, BOOL): _always(lambda value: "true" if value else "false"),
    (STRING, FINGERPRINT): _always(lambda value: f"0x{value:016x}P"),
    **{(STRING, of): _told(INT, lambda value, base=10: encodings.text_of_number(value, base))
       for of in (INT, UINT)},
    (BYTES, STRING): _told(
        STRING, lambda text, encoding="UTF-8": encodings.bytes_of_text(text, encoding)),
    (STRING, BYTES): _told(
        STRING, lambda raw, encoding="UTF-8": encodings.text_of_bytes(raw, encoding)),
    **_numbers_and_bytes(INT), **_numbers_and_bytes(UINT),
    (BYTES, FINGERPRINT): _always(lambda value: value.to_bytes(8, "big")),
    (FINGERPRINT, BYTES): _always(_fingerprint_of_bytes, can_fail=True),
}  # fmt: skip

#: A line of text is bytes, and what is read from it is mostly a number or a time.
_THROUGH_TEXT = (FLOAT, BOOL, TIME)


def conversion(
    target: RecordType, source: RecordType, extras: tuple[RecordType, ...] = ()
) -> Conversion | str:
    """How to convert, or a sentence on why not."""
    chosen = _conversion(resolved(target), resolved(source))
    if chosen is None:
        return f"there is no conversion from {source} to {target}"
    wanted = () if chosen.extra is None else (chosen.extra,)
    if extras and extras != wanted:
        more = f"only ({spoken(wanted)}) may follow the value" if wanted else "nothing may follow"
        return f"from {source} to {target} {more}, got ({spoken(extras)})"
    return chosen


def _conversion(target: RecordType, source: RecordType) -> Conversion | None:
    if target == source:
        return SAME
    match target, source:
        case Basic(), Basic():
            return _BASIC.get((target, source)) or _through_text(target, source)
        case Basic(), TupleOf(_, True) if target == BYTES:
            return _always(lambda value: proto_bytes(value, source), can_fail=True)
        case TupleOf(_, True), Basic() if source == BYTES:
            return _always(lambda raw: proto_tuple(raw, target), can_fail=True)
        case ((TupleOf() | ArrayOf() | MapOf()), Basic()) if source == BYTES:
            return _always(lambda raw: from_json(raw, target), can_fail=True)
        case Basic(), ArrayOf(element) if target == STRING and element == INT:
            return _told(STRING, _text_of_codes)
        case Basic(), ArrayOf() | MapOf() | TupleOf() if target == STRING:
            return _always(lambda value: inside(value, source))
        case ArrayOf(element), Basic() if source == STRING and element == INT:
            return _told(STRING, _codes_of_text)
        case ArrayOf(to), ArrayOf(of):
            return _each(to, of)
        case MapOf(), ArrayOf(of):
            return _pairs(target, of)
        case TupleOf(), ArrayOf(of):
            return _elements(target, of)
        case Basic(), FunctionOf() if target == STRING:
            return _always(lambda function: getattr(function, "__name__", "function"))
        case MapOf(), MapOf():
            return _entries(target, source)
        case TupleOf(), TupleOf():
            return _fields(target, source)
        case _:
            return None


def _through_text(target: Basic, source: Basic) -> Conversion | None:
    if source == BYTES and target in _THROUGH_TEXT:
        to, text = _BASIC[target, STRING], _BASIC[STRING, BYTES]

        def bind(settings: RecordSurroundings) -> _Convert:
            read, convert = text.bind(settings), to.bind(settings)
            return lambda raw, *extras: convert(read(raw), *extras)

        return Conversion(to.extra, bind)
    return None


def _text_of_codes(codes: tuple[int, ...], encoding: str = "") -> str:
    if encoding == "":
        return inside(codes, ArrayOf(INT))
    if encoding.lower() != "unicode":
        raise Undefined(f"there is no encoding {encoding!r} from array to string")
    if any(not 0 < code < 0x110000 or 0xD800 <= code < 0xE000 for code in codes):
        raise Undefined("a number is no character")
    return "".join(map(chr, codes))


def _codes_of_text(text: str, encoding: str = "unicode") -> tuple[int, ...]:
    if encoding.lower() != "unicode":
        raise Undefined(f"there is no encoding {encoding!r} from string to array")
    return tuple(map(ord, text))


def _each(to: RecordType, of: RecordType) -> Conversion | None:
    inner = _conversion(resolved(to), resolved(of))
    if inner is None:
        return None

    def bind(settings: RecordSurroundings) -> _Convert:
        convert = inner.bind(settings)
        return lambda items, *extras: tuple([convert(item, *extras) for item in items])

    return Conversion(inner.extra, bind, inner.can_fail)


def _pairs(target: MapOf, of: RecordType) -> Conversion | None:
    """An array of keys and values in turn, as a map."""
    keys = _conversion(resolved(target.key), resolved(of))
    values = _conversion(resolved(target.value), resolved(of))
    if keys is None or values is None:
        return None

    def bind(settings: RecordSurroundings) -> _Convert:
        key, value = keys.bind(settings), values.bind(settings)
        held = keys_of(target.key).key

        def convert(items: tuple[Any, ...]) -> dict[Any, Any]:
            if len(items) % 2:
                raise Undefined("a map needs an even number of elements")
            turns = zip(items[::2], items[1::2], strict=True)
            return {held(key(k)): value(v) for k, v in turns}

        return convert

    return Conversion(None, bind)


def _elements(target: TupleOf, of: RecordType) -> Conversion | None:
    """An array with an element for every field."""
    spread = TupleOf(tuple(Field(None, of) for _ in target.fields))
    inner = _fields(target, spread)
    if inner is None:
        return None

    def bind(settings: RecordSurroundings) -> _Convert:
        convert = inner.bind(settings)

        def checked(items: tuple[Any, ...]) -> Any:
            if len(items) != len(target.fields):
                raise Undefined(f"{len(items)} elements for {len(target.fields)} fields")
            return convert(items)

        return checked

    return Conversion(None, bind)


def _entries(target: MapOf, source: MapOf) -> Conversion | None:
    keys = _conversion(resolved(target.key), resolved(source.key))
    values = _conversion(resolved(target.value), resolved(source.value))
    if keys is None or values is None:
        return None

    def bind(settings: RecordSurroundings) -> _Convert:
        key, value = keys.bind(settings), values.bind(settings)
        return lambda entries: {key(k): value(v) for k, v in entries.items()}

    return Conversion(None, bind, keys.can_fail or values.can_fail)


def _fields(target: TupleOf, source: TupleOf) -> Conversion | None:
    if len(target.fields) != len(source.fields):
        return None
    inner = [
        _conversion(resolved(to.type), resolved(of.type))
        for to, of in zip(target.fields, source.fields, strict=True)
    ]
    known = [each for each in inner if each is not None]
    if len(known) < len(inner):
        return None

    def bind(settings: RecordSurroundings) -> _Convert:
        converts = [each.bind(settings) for each in known]
        return lambda parts: tuple(c(part) for c, part in zip(converts, parts, strict=True))

    return Conversion(None, bind, any(each.can_fail for each in known))
