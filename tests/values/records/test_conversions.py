"""Golden tables of conversions, and that what is converted forth comes back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.values.records.conversions import Conversion, conversion
from millstream.values.records.intrinsic import RecordSurroundings
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
    FunctionOf,
    MapOf,
    RecordType,
    TupleOf,
)
from millstream.values.undefined import Undefined

NOON = 1770753600000000  # Tue Feb 10 12:00:00 PST 2026
ROW = TupleOf((Field("query", STRING), Field("lat", FLOAT), Field("hits", ArrayOf(INT))))


def convert(target: RecordType, source: RecordType, value: Any, *extras: Any) -> Any:
    types = tuple(STRING if isinstance(extra, str) else INT for extra in extras)
    found = conversion(target, source, types)
    assert isinstance(found, Conversion), found
    return found.bind(RecordSurroundings())(value, *extras)


@pytest.mark.parametrize(
    ("target", "source", "args", "expected"),
    [
        (INT, STRING, ("42",), 42),
        (INT, STRING, (" -0x1F",), -31),
        (INT, STRING, ("017",), 15),
        (INT, STRING, ("017", 10), 17),
        (INT, STRING, ("zz", 36), 1295),
        (INT, STRING, ("0x1f", 16), 31),
        (UINT, STRING, ("18446744073709551615",), 2**64 - 1),
        (FINGERPRINT, STRING, ("0x00000000000000ffP",), 255),
        (INT, FLOAT, (-2.9,), -2),
        (UINT, INT, (-1,), 2**64 - 1),
        (INT, UINT, (2**64 - 1,), -1),
        (BOOL, INT, (7,), True),
        (INT, BOOL, (True,), 1),
        (BOOL, STRING, ("true",), True),
        (BOOL, STRING, ("no",), False),
        (FLOAT, STRING, ("1e3",), 1000.0),
        (FLOAT, INT, (3,), 3.0),
        (FLOAT, BYTES, (b"2.5",), 2.5),
        (STRING, INT, (-255, 16), "-ff"),
        (STRING, FLOAT, (2.0,), "2"),
        (STRING, FLOAT, (1234567.0,), "1234567"),
        (STRING, FLOAT, (0.1,), "0.1"),
        (STRING, BOOL, (True,), "true"),
        (STRING, FINGERPRINT, (255,), "0x00000000000000ffP"),
        (STRING, BYTES, (b"\xc3\xbc",), "ü"),
        (STRING, BYTES, (b"\xfc", "latin-1"), "ü"),
        (STRING, BYTES, (b"a\xff",), "a\ufffd"),
        (STRING, BYTES, (b"\x00\xff", "hex"), "00ff"),
        (BYTES, STRING, ("0aFF", "hex"), b"\x0a\xff"),
        (BYTES, STRING, ("ü",), b"\xc3\xbc"),
        (BYTES, INT, (258,), b"\0\0\0\0\0\0\1\2"),
        (BYTES, INT, (-1, "fixed32-little"), b"\xff\xff\xff\xff"),
        (BYTES, INT, (300, "varint"), b"\xac\x02"),
        (BYTES, INT, (-2, "zigzag"), b"\x03"),
        (INT, BYTES, (b"\xac\x02", "varint"), 300),
        (INT, BYTES, (b"123",), 123),
        (INT, BYTES, (b"12345678",), 12345678),
        (FINGERPRINT, BYTES, (b"\0\0\0\0\0\0\1\2",), 258),
        (STRING, TIME, (NOON, "PST8PDT"), "Tue Feb 10 12:00:00 PST 2026"),
        (STRING, TIME, (NOON,), "Tue Feb 10 20:00:00 UTC 2026"),
        (TIME, STRING, ("Tue Feb 10 12:00:00 PST 2026",), NOON),
        (TIME, STRING, ("Tue Feb 10 12:00:00 2026", "America/Los_Angeles"), NOON),
        (TIME, STRING, ("10/Feb/2026:12:00:00 -0800",), NOON),
        (TIME, STRING, ("Tue, 10 Feb 2026 20:00:00 GMT",), NOON),
        (TIME, STRING, ("2026-02-10T20:00:00.5Z",), NOON + 500_000),
        (TIME, STRING, ("2026/02/10 20:00:00",), NOON),
        (TIME, STRING, ("2026-02-10",), NOON - 20 * 3600 * 10**6),
        (TIME, INT, (5,), 5),
        (ArrayOf(INT), ArrayOf(STRING), (("ff", "10"), 16), (255, 16)),
        (ArrayOf(INT), STRING, ("aü",), (97, 252)),
        (STRING, ArrayOf(INT), ((97, 252), "unicode"), "aü"),
        (STRING, ArrayOf(INT), ((97, 252),), "{ 97, 252 }"),
        (STRING, ArrayOf(STRING), (("a", 'b"'),), '{ "a", "b\\"" }'),
        (MapOf(STRING, INT), ArrayOf(STRING), (("a", "1", "b", "2"),), {"a": 1, "b": 2}),
        (MapOf(INT, FLOAT), MapOf(STRING, INT), ({"1": 2},), {1: 2.0}),
        (TupleOf((Field("a", INT), Field("b", STRING))),
         TupleOf((Field("x", STRING), Field("y", FLOAT))), (("7", 1.5),), (7, "1.5")),
        (TupleOf((Field("i", INT), Field("s", STRING))), ArrayOf(STRING), (("7", "x"),), (7, "x")),
        (ROW, BYTES, (b'{"lat": 3, "query": "q", "x": null, "hits": [1]}',), ("q", 3.0, (1,))),
    ],
)  # fmt: skip
def test_conversions(
    target: RecordType, source: RecordType, args: tuple[Any, ...], expected: Any
) -> None:
    result = convert(target, source, *args)
    assert (expected, type(expected)) == (result, type(result))


@pytest.mark.parametrize(
    ("target", "source", "args", "reason"),
    [
        (INT, STRING, ("",), "is not an int"),
        (INT, STRING, ("12 ",), "is not an int"),
        (INT, STRING, ("089",), "is not an int"),
        (INT, STRING, ("9223372036854775808",), "too large"),
        (UINT, STRING, ("-1",), "too large"),
        (INT, FLOAT, (1e30,), "out of range"),
        (FLOAT, STRING, ("x",), "is not a float"),
        (FLOAT, STRING, ("1e999",), "too large"),
        (STRING, BYTES, (b"a\0b",), "byte 1 is 0"),
        (STRING, BYTES, (b"a", "ebcdic"), "no encoding 'ebcdic'"),
        (BYTES, STRING, ("Ω", "latin-1"), "not in latin-1"),
        (BYTES, STRING, ("0g", "hex"), "not hexadecimal"),
        (BYTES, INT, (2**40, "fixed32-big"), "does not fit"),
        (INT, BYTES, (b"\x80", "varint"), "no end"),
        (TIME, STRING, ("tomorrow",), "is not a time"),
        (TIME, STRING, ("2026-02-30",), "is not a time"),
        (STRING, TIME, (0, "Nowhere/Land"), "'Nowhere/Land' is not known"),
        (MapOf(STRING, STRING), ArrayOf(STRING), (("a",),), "even number"),
        (TupleOf((Field("i", INT),)), ArrayOf(STRING), ((),), "0 elements for 1 fields"),
        (ROW, BYTES, (b'{"lat": 3}',), "no column 'query'"),
        (ROW, BYTES, (b'{"query": 3}',), "column 'query' has 3, which is no string"),
        (ROW, BYTES, (b"no",), "not JSON"),
    ],
)
def test_what_cannot_be_converted_says_why(
    target: RecordType, source: RecordType, args: tuple[Any, ...], reason: str
) -> None:
    with pytest.raises(Undefined) as raised:
        convert(target, source, *args)
    assert reason in raised.value.reason


@pytest.mark.parametrize(
    ("target", "source", "extras", "expected"),
    [
        (INT, FunctionOf((), INT), (), "no conversion from function(): int to int"),
        (INT, ArrayOf(INT), (), "no conversion"),
        (ArrayOf(INT), ArrayOf(ArrayOf(INT)), (), "no conversion"),
        (INT, FLOAT, (INT,), "nothing may follow"),
        (INT, STRING, (STRING,), "only (int) may follow"),
    ],
)
def test_types_that_do_not_fit_are_told(
    target: RecordType, source: RecordType, extras: tuple[RecordType, ...], expected: str
) -> None:
    found = conversion(target, source, extras)
    assert isinstance(found, str) and expected in found


@given(st.integers(-(2**63), 2**63 - 1), st.integers(2, 36))
def test_integers_come_back_in_every_base(value: int, base: int) -> None:
    assert value == convert(INT, STRING, convert(STRING, INT, value, base), base)


@given(st.integers(-(2**63), 2**63 - 1),
       st.sampled_from(["varint", "zigzag", "fixed64-big", "fixed64-little", "szl"]))  # fmt: skip
def test_integers_come_back_from_bytes(value: int, encoding: str) -> None:
    assert value == convert(INT, BYTES, convert(BYTES, INT, value, encoding), encoding)


@given(st.floats(allow_nan=False))
def test_floats_come_back_from_texts(value: float) -> None:
    assert value == convert(FLOAT, STRING, convert(STRING, FLOAT, value))


@given(st.integers(0, 4 * 10**9), st.sampled_from(["UTC", "Asia/Tokyo", "+0530"]))
def test_times_come_back_from_texts(seconds: int, zone: str) -> None:
    text = convert(STRING, TIME, seconds * 10**6, zone)
    assert seconds * 10**6 == convert(TIME, STRING, text, zone)
