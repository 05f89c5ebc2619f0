"""Golden tables of functions by family."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from millstream.values.records.intrinsic import RecordSurroundings, Signature
from millstream.values.records.table import INTRINSICS
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
    FunctionOf,
    MapOf,
    RecordType,
)
from millstream.values.undefined import Undefined

#: Sun Nov  1 2026, 01:30:00.25 PDT: half an hour before clocks are put back.
AUTUMN = 1793521800250000
LA = "America/Los_Angeles"
TYPES: dict[type, RecordType] = {
    bool: BOOL, int: INT, float: FLOAT, str: STRING, bytes: BYTES,
}  # fmt: skip
_IN: dict[str, RecordType] = {"t": TIME, "u": UINT, "p": FINGERPRINT}


def typed(value: Any) -> tuple[RecordType, Any]:
    """A value with its type; ("t", 5) is a time."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] in _IN:
        return _IN[value[0]], value[1]
    if isinstance(value, tuple):
        return ArrayOf(typed(value[0])[0] if value else INT), value
    if isinstance(value, dict):
        return MapOf(typed(next(iter(value)))[0], typed(next(iter(value.values())))[0]), value
    if callable(value):
        return FunctionOf((INT, INT), INT), value
    return TYPES[type(value)], value


def call(name: str, *args: Any, settings: RecordSurroundings | None = None) -> Any:
    types, values = zip(*map(typed, args), strict=True) if args else ((), ())
    signature = INTRINSICS[name].rule(types)
    assert isinstance(signature, Signature), signature
    return INTRINSICS[name].bind(settings or RecordSurroundings(), signature)(*values)


def t(micros: int) -> tuple[str, int]:
    return ("t", micros)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("len", ("aü",), 2),
        ("len", ("aü".encode(),), 3),
        ("len", ({"a": 1},), 1),
        ("haskey", ({"a": 1}, "b"), False),
        ("keys", ({"b": 1, "a": 2},), ("a", "b")),
        ("lookup", ({"a": 1}, "b", 7), 7),
        ("sort", ((3, 1, 2),), (1, 2, 3)),
        ("sort", ((3, 1, 2), lambda a, b: b - a), (3, 2, 1)),
        ("sort", ((math.nan, -1.0, math.inf),), None),
        ("sortx", (("b", "a", "b"),), (1, 0, 2)),
        ("lowercase", ("ÄİΣ",), "äİσ"),
        ("uppercase", ("straße",), "STRAßE"),
        ("strfind", ("b", "abcb"), 1),
        ("strfind", ("x", "abc"), -1),
        ("strrfind", ("b", "abcb"), 3),
        ("strrfind", ("", "abc"), 3),
        ("bytesfind", (b"c", b"abc"), 2),
        ("strreplace", ("aaa", "a", "bb", True), "bbbbbb"),
        ("strreplace", ("aaa", "a", "bb", False), "bbaa"),
        ("strreplace", ("aaa", "", "b", True), "aaa"),
        ("splitcsvline", (b'a, b ,"c ""d"", e" x,,',), (b"a", b"b", b'c "d", e', b"", b"")),
        ("splitcsvline", (b"",), ()),
        ("splitcsv", (b"a,b\nc\n", (2, 1)), (b"b", b"a", b"", b"c")),
        ("tobase64", (b"\xfb\xff", False), b"+/8="),
        ("tobase64", (b"\xfb\xff", True), b"-_8"),
        ("frombase64", (b"-_8", True), b"\xfb\xff"),
        ("abs", (-(2**63),), -(2**63)),
        ("abs", (-2.5,), 2.5),
        ("min", ("b", "a"), "a"),
        ("max", (1, 2, 3), 3),
        ("ceil", (-0.5,), -0.0),
        ("round", (2.5,), 3.0),
        ("round", (-2.5,), -3.0),
        ("round", (0.49999999999999994,), 0.0),
        ("ln", (0.0,), -math.inf),
        ("sqrt", (-1.0,), math.nan),
        ("exp", (1e9,), math.inf),
        ("pow", (0.0, -1.0), math.inf),
        ("highbit", (15,), 4),
        ("highbit", (0,), 0),
        ("highbit", (-1,), 64),
        ("dayofweek", (t(0),), 4),
        ("dayofweek", (t(AUTUMN), LA), 7),
        ("dayofmonth", (t(0), LA), 31),
        ("dayofyear", (t(0),), 1),
        ("hourof", (t(AUTUMN), LA), 1),
        ("minuteof", (t(AUTUMN),), 30),
        ("secondof", (t(61_000_000),), 1),
        ("monthof", (t(0),), 1),
        ("yearof", (t(0), LA), 1969),
        ("trunctosecond", (t(AUTUMN),), AUTUMN - 250_000),
        ("trunctohour", (t(AUTUMN), LA), AUTUMN - 250_000 - 30 * 60 * 10**6),
        ("trunctoday", (t(AUTUMN), LA), AUTUMN - 250_000 - 90 * 60 * 10**6),
        ("trunctoyear", (t(AUTUMN),), 1767225600000000),
        ("addday", (t(AUTUMN), 1, LA), AUTUMN + 25 * 3600 * 10**6),
        ("addday", (t(0),), 86400 * 10**6),
        ("addweek", (t(0), -1), -7 * 86400 * 10**6),
        ("addmonth", (t(30 * 86400 * 10**6),), (59 + 2) * 86400 * 10**6),
        ("addyear", (t(0), 2), 730 * 86400 * 10**6),
        ("formattime", ("%a, %d %b %Y %H:%M:%S %Z %% %j", t(AUTUMN), LA),
         "Sun, 01 Nov 2026 01:30:00 PDT % 305"),
        ("match", (r"b+$", "abb"), True),
        ("matchstrs", (r"(a)|(b)", "xb"), ("b", "", "b")),
        ("matchposns", (r"ü(b)", "xüb"), (1, 3, 2, 3)),
        ("matchposns", (r"z", "xüb"), ()),
    ],
)  # fmt: skip
def test_functions(name: str, args: tuple[Any, ...], expected: Any) -> None:
    result = call(name, *args)
    if expected is None:
        assert repr(result) == repr((math.nan, -1.0, math.inf))
    else:
        assert repr(expected) == repr(result)


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("nrand", (0,), "must be positive"),
        ("match", ("(", "a"), "missing closing parenthesis"),
        ("frombase64", (b"*", False), "frombase64"),
        ("hourof", (t(0), "Nowhere"), "'Nowhere' is not known"),
        ("addyear", (t(0), 10**6), "out of range"),
        ("yearof", (t(2**62),), "no calendar"),
        ("splitcsv", (b"a", (0,)), "no field 0"),
        ("load", ("x",), "outside of the project"),
        ("getenv", ("HOME",), "is not set"),
        ("format", ("%d", "a"), "%d takes int or uint, got string"),
        ("format", ("%d",), "1 verb, and is given 0 values"),
        ("format", ("%n",), "is no verb"),
        ("format", ("%",), "is no verb"),
        ("format", ("%c", 0xD800), "no character"),
    ],
)
def test_what_has_no_value_says_why(name: str, args: tuple[Any, ...], reason: str) -> None:
    with pytest.raises(Undefined) as raised:
        call(name, *args)
    assert reason in raised.value.reason


@pytest.mark.parametrize(
    ("form", "args", "expected"),
    [
        ("%d|%5d|%-5d|%05d|%+d|% d", (1, 2, 3, 4, 5, 6), "1|    2|3    |00004|+5| 6"),
        ("%x %X %#x %o %#o", (255, 255, 255, 8, 8), "ff FF 0xff 10 010"),
        ("%x %u", (-1, -1), "ffffffffffffffff 18446744073709551615"),
        ("%.3d %5.3d|%.0d|", (7, -7, 0), "007  -007||"),
        ("%f %.2f %e %g %G", (1.5, 2.345, 12345.678, 1e-10, 1e20),
         "1.500000 2.35 1.234568e+04 1e-10 1E+20"),
        ("%8.2f|%-8.2f|%08.2f|%+.1f", (1.0, 2.0, -3.0, 4.0), "    1.00|2.00    |-0003.00|+4.0"),
        ("%f %F %+g", (math.inf, -math.inf, math.nan), "inf -INF +nan"),
        ("%s|%5s|%-5s|%.2s", ("a", "b", "c", "def"), "a|    b|c    |de"),
        ("%b %c %k", (True, 252, 10), "true ü '\\n'"),
        ("%q", ('a"b\n\x01ü',), '"a\\"b\\n\\x01ü"'),
        ("%p", (("p", 255),), "0x00000000000000ff"),
        ("%t", (("t", 0),), "Thu Jan  1 00:00:00 UTC 1970"),
        ("%T %T", ((1,), {"a": 1.0}), "array of int map[string] of float"),
        ("100%%", (), "100%"),
    ],
)  # fmt: skip
def test_format(form: str, args: tuple[Any, ...], expected: str) -> None:
    assert expected == call("format", form, *args)


def test_wrong_types_are_told() -> None:
    assert INTRINSICS["strfind"].rule((STRING, INT)) == (
        "expected (string, string), got (string, int)"
    )
    assert "one type that has an order" in str(INTRINSICS["min"].rule((INT, FLOAT)))
    assert INTRINSICS["abs"].rule((STRING,)) == "expected (int) or (float), got (string)"


def test_files_of_the_project_only(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "a.txt").write_bytes(b"text")
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "secret")
    settings = RecordSurroundings(folder=tmp_path / "inside")
    assert call("load", "a.txt", settings=settings) == b"text"
    for name in ("../secret", "link", str(tmp_path / "secret")):
        with pytest.raises(Undefined, match="outside"):
            call("load", name, settings=settings)


def test_fingerprints_are_stated() -> None:
    expected = {"a": 0x40F89E395B66422F}
    assert call("fingerprintof", "a") == call("fingerprintof", b"a") == expected["a"]
    assert call("fingerprintof", {"a": 1, "b": 2}) == call("fingerprintof", {"b": 2, "a": 1})
    assert call("fingerprintof", -0.0) == call("fingerprintof", 0.0)
    assert len({call("fingerprintof", v) for v in (1, 2, 1.0, (1,), ("t", 3))}) == 5
