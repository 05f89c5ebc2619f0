"""Plain data as bytes and back: None, bool, int, float, str, bytes, tuple, list, dict.

Equal data have equal bytes, whatever was put in first, so that bytes can be compared and hashed.
"""

from __future__ import annotations

import math
import struct
from typing import Any

_FLOAT = struct.Struct("<d")


def packed(data: Any) -> bytes:
    if type(data) is str:
        raw = data.encode("utf-8", "surrogatepass")
        if len(raw) < 128:
            return b"s" + bytes((len(raw),)) + raw
    out = bytearray()
    _pack(data, out)
    return bytes(out)


def unpacked(raw: bytes) -> Any:
    data, end = _unpack(raw, 0)
    assert end == len(raw), "bytes are left over"
    return data


def _counted(tag: bytes, count: int, out: bytearray) -> None:
    out += tag
    while count > 127:
        out.append(count & 127 | 128)
        count >>= 7
    out.append(count)


def _pack(data: Any, out: bytearray) -> None:
    match data:
        case None:
            out += b"N"
        case bool():
            out += b"T" if data else b"F"
        case int():
            raw = data.to_bytes(data.bit_length() // 8 + 1, "little", signed=True)
            _counted(b"i", len(raw), out)
            out += raw
        case float():
            out += b"f" + _FLOAT.pack(data if data == data else math.nan)
        case str():
            raw = data.encode("utf-8", "surrogatepass")
            _counted(b"s", len(raw), out)
            out += raw
        case bytes():
            _counted(b"b", len(data), out)
            out += data
        case tuple() | list():
            _counted(b"t" if isinstance(data, tuple) else b"l", len(data), out)
            for item in data:
                _pack(item, out)
        case dict():
            _counted(b"d", len(data), out)
            for key, value in sorted((packed(k), v) for k, v in data.items()):
                out += key
                _pack(value, out)
        case _:
            raise TypeError(f"not plain data: {type(data).__name__}")


def _count(raw: bytes, at: int) -> tuple[int, int]:
    count = shift = 0
    while True:
        byte = raw[at]
        at += 1
        count |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return count, at


_CONSTANTS: dict[int, Any] = {ord("N"): None, ord("T"): True, ord("F"): False}


def _unpack(raw: bytes, at: int) -> tuple[Any, int]:
    tag = raw[at]
    at += 1
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at
    if tag == ord("f"):
        number = _FLOAT.unpack_from(raw, at)[0]
        # One NaN for all, so that it can be a key.
        return (number if number == number else math.nan), at + 8
    count, at = _count(raw, at)
    match chr(tag):
        case "i":
            return int.from_bytes(raw[at : at + count], "little", signed=True), at + count
        case "s":
            return raw[at : at + count].decode("utf-8", "surrogatepass"), at + count
        case "b":
            return raw[at : at + count], at + count
        case "d":
            entries = {}
            for _ in range(count):
                key, at = _unpack(raw, at)
                entries[key], at = _unpack(raw, at)
            return entries, at
    items = []
    for _ in range(count):
        item, at = _unpack(raw, at)
        items.append(item)
    return (tuple(items) if tag == ord("t") else items), at
