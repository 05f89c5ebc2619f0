"""Proto tuples as protocol buffers: the wire format of tags, varints, fixed and counted fields.

An `int`, `uint`, `bool`, `time` or `fingerprint` is a varint; a `float` has 8 bytes; strings, bytes
and proto tuples have their length before them. `wire` of a field names another encoding:
`zigzag`, `fixed32`, `fixed64`, `float32`. An array is a repeated field, packed or not. A field
that is not there has its default, or zero.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Self

from millstream.values.records.encodings import read_varint, unzigzag, varint, zigzag
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
    Field,
    MapOf,
    RecordType,
    TupleOf,
    resolved,
    unsigned,
    wrapped,
)
from millstream.values.undefined import Undefined

#: What the ways of travelling are called in files of messages; None is the usual way of a type.
WIRES: dict[str, str | None] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool", "double", "string", "bytes")),
    **dict.fromkeys(("sint32", "sint64", "zigzag"), "zigzag"),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("fixed64", "sfixed64"), "fixed64"),
    **dict.fromkeys(("float", "float32"), "float32"),
    "enum": None,
    "message": None,
}
_VARINT, _FIXED64, _COUNTED, _START, _END, _FIXED32 = range(6)
_INTEGERS = (INT, UINT, BOOL, TIME, FINGERPRINT)
#: Which types travel in a way that is not the usual one.
TRAVELS: dict[str | None, tuple[RecordType, ...]] = {
    "zigzag": _INTEGERS, "fixed32": _INTEGERS, "fixed64": _INTEGERS, "float32": (FLOAT,),
}  # fmt: skip


class ProtoTuple(tuple[Any, ...]):  # noqa: SLOT001 (slots cannot hold more)
    """A tuple that knows which of its fields were in the buffer, or were set since."""

    present: frozenset[int]

    def __new__(cls, values: Iterable[Any], present: Iterable[int]) -> Self:
        made = super().__new__(cls, values)
        made.present = frozenset(present)
        return made


def is_present(value: tuple[Any, ...], place: int) -> bool:
    """Whether a field is there; a tuple that was never a buffer has all of its fields."""
    return not isinstance(value, ProtoTuple) or place in value.present


def with_field(value: tuple[Any, ...], place: int, new: Any) -> tuple[Any, ...]:
    """The tuple with another value in a field, which is there from then on."""
    changed = (*value[:place], new, *value[place + 1 :])
    if not isinstance(value, ProtoTuple):
        return changed
    return ProtoTuple(changed, value.present | {place})


def without_field(value: tuple[Any, ...], place: int, type_: TupleOf) -> tuple[Any, ...]:
    """The tuple without a field, which has its default."""
    changed = (*value[:place], default_of(type_.fields[place]), *value[place + 1 :])
    present = value.present if isinstance(value, ProtoTuple) else range(len(value))
    return ProtoTuple(changed, frozenset(present) - {place})


_ZEROS: dict[RecordType, Any] = {
    INT: 0, UINT: 0, FLOAT: 0.0, STRING: "", BYTES: b"", BOOL: False, TIME: 0, FINGERPRINT: 0,
}  # fmt: skip


def zero(type_: RecordType) -> Any:
    """The value of a type in which all is zero or empty."""
    match resolved(type_):
        case ArrayOf():
            return ()
        case MapOf():
            return {}
        case TupleOf(fields, is_proto):
            values = tuple(default_of(f) for f in fields)
            return ProtoTuple(values, ()) if is_proto else values
        case basic:
            return _ZEROS[basic]


def default_of(field: Field) -> Any:
    return zero(field.type) if field.default is None else field.default


def proto_bytes(value: tuple[Any, ...], type_: TupleOf) -> bytes:
    """The buffer of a proto tuple: the fields that are there, by their tags."""
    out = bytearray()
    tagged = [(f.tag, place) for place, f in enumerate(type_.fields) if f.tag is not None]
    for tag, place in sorted(tagged):
        if is_present(value, place):
            _write(value[place], type_.fields[place], tag, out)
    return bytes(out)


def _write(value: Any, field: Field, tag: int, out: bytearray) -> None:
    type_ = resolved(field.type)
    if isinstance(type_, ArrayOf):
        element = Field(None, type_.element, tag, wire=field.wire)
        for item in value:
            _write(item, element, tag, out)
        return
    kind = _kind(type_, field.wire)
    out += varint(tag << 3 | kind)
    if kind == _COUNTED:
        raw = _counted(value, type_)
        out += varint(len(raw)) + raw
    else:
        out += _number(value, type_, field.wire, kind)


def _kind(type_: RecordType, wire: str | None) -> int:
    if wire in ("fixed32", "float32"):
        return _FIXED32
    if wire == "fixed64" or type_ == FLOAT:
        return _FIXED64
    return _VARINT if type_ in _INTEGERS else _COUNTED


def _counted(value: Any, type_: RecordType) -> bytes:
    match type_:
        case TupleOf():
            return proto_bytes(value, type_)
        case t if t == STRING:
            return str(value).encode("utf-8", "surrogatepass")
        case t if t == BYTES:
            return bytes(value)
    raise Undefined(f"a {type_} is in no protocol buffer")


def _number(value: Any, type_: RecordType, wire: str | None, kind: int) -> bytes:
    if type_ == FLOAT:
        return struct.pack("<d" if kind == _FIXED64 else "<f", value)
    if kind == _VARINT:
        return varint(zigzag(value) if wire == "zigzag" else unsigned(int(value)))
    size = 8 if kind == _FIXED64 else 4
    return (unsigned(int(value)) & (1 << 8 * size) - 1).to_bytes(size, "little")


def proto_tuple(raw: bytes, type_: TupleOf) -> ProtoTuple:
    """The proto tuple of a buffer; tags that the type does not have are left out."""
    places = {f.tag: place for place, f in enumerate(type_.fields) if f.tag is not None}
    values: dict[int, Any] = {}
    at = 0
    while at < len(raw):
        key, at = read_varint(raw, at)
        tag, kind = key >> 3, key & 7
        piece, at = _piece(raw, at, kind, tag)
        if tag in places:
            place = places[tag]
            _read(piece, kind, type_.fields[place], place, values)
    return ProtoTuple(
        (values[n] if n in values else default_of(f) for n, f in enumerate(type_.fields)), values
    )


def _piece(raw: bytes, at: int, kind: int, tag: int) -> tuple[Any, int]:
    """A number of a varint, or the bytes of anything else, and the place behind it."""
    if tag == 0:
        raise Undefined("a protocol buffer has the tag 0")
    if kind == _VARINT:
        return read_varint(raw, at)
    if kind in (_FIXED64, _FIXED32):
        end = at + (8 if kind == _FIXED64 else 4)
    elif kind == _COUNTED:
        size, at = read_varint(raw, at)
        end = at + size
    elif kind == _START:
        return _skipped(raw, at, tag)
    else:
        raise Undefined(f"a protocol buffer has a field of kind {kind}")
    if end > len(raw):
        raise Undefined("a protocol buffer ends in the middle of a field")
    return raw[at:end], end


def _skipped(raw: bytes, at: int, tag: int) -> tuple[None, int]:
    """A group is skipped up to its end."""
    while at < len(raw):
        key, at = read_varint(raw, at)
        if key & 7 == _END:
            if key >> 3 == tag:
                return None, at
            break
        _, at = _piece(raw, at, key & 7, key >> 3)
    raise Undefined("a group in a protocol buffer has no end")


def _read(piece: Any, kind: int, field: Field, place: int, values: dict[int, Any]) -> None:
    type_ = resolved(field.type)
    if not isinstance(type_, ArrayOf):
        values[place] = _value(piece, kind, type_, field.wire)
        return
    element = resolved(type_.element)
    known = values.get(place, ())
    if kind == _COUNTED and _kind(element, field.wire) != _COUNTED:
        values[place] = (*known, *_packed(piece, element, field.wire))
    else:
        values[place] = (*known, _value(piece, kind, element, field.wire))


def _packed(raw: bytes, element: RecordType, wire: str | None) -> list[Any]:
    kind = _kind(element, wire)
    items, at = [], 0
    while at < len(raw):
        piece, at = _piece(raw, at, kind, 1)
        items.append(_value(piece, kind, element, wire))
    return items


def _value(piece: Any, kind: int, type_: RecordType, wire: str | None) -> Any:
    if kind == _COUNTED:
        match type_:
            case TupleOf():
                return proto_tuple(piece, type_)
            case t if t == STRING:
                return piece.decode("utf-8", "replace")
            case t if t == BYTES:
                return piece
    if kind in (_FIXED64, _FIXED32) and type_ == FLOAT:
        return struct.unpack("<d" if kind == _FIXED64 else "<f", piece)[0]
    if kind in (_VARINT, _FIXED64, _FIXED32) and type_ in _INTEGERS:
        return _integer(piece, kind, type_, wire)
    raise Undefined(f"a field of a protocol buffer is no {type_}")


def _integer(piece: Any, kind: int, type_: RecordType, wire: str | None) -> Any:
    if kind == _VARINT:
        number = unzigzag(piece) if wire == "zigzag" else piece
    else:
        number = int.from_bytes(piece, "little", signed=type_ == INT)
    if type_ == BOOL:
        return number != 0
    return wrapped(number) if type_ in (INT, TIME) else unsigned(number)
