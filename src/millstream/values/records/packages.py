"""Functions of messages and of compressed bytes."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

from millstream.values.records.intrinsic import Intrinsic, Signature, fixed, plain, spoken
from millstream.values.records.operators import MOST_ITEMS
from millstream.values.records.proto import ProtoTuple
from millstream.values.records.types import BOOL, BYTES, INT, RecordType, TupleOf, resolved
from millstream.values.undefined import Undefined


def fields_present(value: Any) -> int:
    """How many fields are there, in tuples and arrays of tuples inside too.

    A field that is a tuple counts for itself, and for the fields it has.
    """
    if not isinstance(value, tuple):
        return 0
    if not isinstance(value, ProtoTuple):
        return sum(map(fields_present, value))
    return sum(1 + fields_present(value[place]) for place in value.present)


def _message(args: tuple[RecordType, ...]) -> Signature | str:
    if len(args) == 1 and isinstance(of := resolved(args[0]), TupleOf) and of.is_proto:
        return Signature(args, INT)
    return f"expected a proto tuple, got ({spoken(args)})"


#: What zlib calls data with the header and footer of gzip, of its own, and without any.
_GZIP, _OWN, _BARE = 31, 15, -15


def _opened(raw: bytes, form: int, name: str, *, is_whole: bool) -> bytes:
    """What was compressed; at most as many bytes as a program can hold."""
    opener = zlib.decompressobj(form)
    try:
        made = opener.decompress(raw, MOST_ITEMS + 1)
    except zlib.error as error:
        raise Undefined(f"{name}: {error}") from None
    if len(made) > MOST_ITEMS:
        raise Undefined(f"{name}: more than {MOST_ITEMS:,} bytes")
    if not opener.eof:
        raise Undefined(f"{name}: the end is missing")
    if is_whole and opener.unused_data:
        raise Undefined(f"{name}: bytes are left over")
    return made


def zlibcompress(raw: bytes, skips_header: bool = False) -> bytes:  # noqa: FBT001, FBT002 (a value)
    squeezer = zlib.compressobj(wbits=_BARE if skips_header else _OWN)
    return squeezer.compress(raw) + squeezer.flush()


def zlibuncompress(raw: bytes, skips_header: bool = False) -> bytes:  # noqa: FBT001, FBT002
    return _opened(raw, _BARE if skips_header else _OWN, "zlibuncompress", is_whole=True)


_ZLIB = fixed(BYTES, BOOL, result=BYTES, optional=1)

PACKAGES: tuple[Intrinsic, ...] = (
    plain("inprotocount", "inprotocount(t)", _message, fields_present),
    plain("gzip", "gzip(bytes)", fixed(BYTES, result=BYTES),
          lambda raw: gzip.compress(raw, mtime=0)),
    plain("gunzip", "gunzip(bytes)", fixed(BYTES, result=BYTES),
          lambda raw: _opened(raw, _GZIP, "gunzip", is_whole=False)),
    plain("zlibcompress", "zlibcompress(bytes, skips_header)", _ZLIB, zlibcompress),
    plain("zlibuncompress", "zlibuncompress(bytes, skips_header)", _ZLIB, zlibuncompress),
)  # fmt: skip
