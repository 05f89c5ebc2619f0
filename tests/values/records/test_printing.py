"""Values as they are shown, and as a program writes them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from millstream.values.records.printing import shown, source_text
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
)

PAIR = TupleOf((Field("a", FLOAT), Field("b", STRING)))


@pytest.mark.parametrize(
    ("type_", "value", "as_shown", "as_source"),
    [
        (INT, -3, "-3", "-3"),
        (UINT, 3, "3U", "3U"),
        (FLOAT, 2.0, "2", "2.0"),
        (FLOAT, 1 / 3, "0.333333", "0.3333333333333333"),
        (FLOAT, 1e20, "1e+20", "1e+20"),
        (FLOAT, math.inf, "inf", "inf"),
        (BOOL, True, "true", "true"),
        (STRING, 'a"b', 'a"b', '"a\\"b"'),
        (BYTES, b"a\n", 'B"a\\n"', 'B"a\\n"'),
        (BYTES, b"\x00\xff", 'X"00ff"', 'X"00ff"'),
        (TIME, 0, "Thu Jan  1 00:00:00 UTC 1970", "0T"),
        (FINGERPRINT, 255, "0x00000000000000ffP", "0x00000000000000ffP"),
        (ArrayOf(STRING), ("a", "b"), '{ "a", "b" }', '{ "a", "b" }'),
        (ArrayOf(INT), (), "{}", "{}"),
        (MapOf(STRING, FLOAT), {"b": 1.0, "a": 0.5}, '{ "a": 0.5, "b": 1 }',
         '{ "a": 0.5, "b": 1.0 }'),
        (MapOf(STRING, FLOAT), {}, "{:}", "{:}"),
        (PAIR, (1.5, "x"), '{ 1.5, "x" }', '{ 1.5, "x" }'),
        (ArrayOf(PAIR), ((1.5, "x"),), '{ { 1.5, "x" } }', '{ { 1.5, "x" } }'),
    ],
)  # fmt: skip
def test_values(type_: RecordType, value: Any, as_shown: str, as_source: str) -> None:
    assert as_shown == shown(value, type_)
    assert as_source == source_text(value, type_)
