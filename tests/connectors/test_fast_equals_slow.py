"""The compiled readers accept, reject and find exactly what the obvious ones do."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.calculus.graph import Input
from millstream.connectors.layout import layout_in, layout_of_objects
from millstream.connectors.read_csv import CsvDecoder
from millstream.connectors.read_jsonl import JsonlDecoder
from millstream.connectors.window import DecodedStep
from tests.connectors.inputs import ALL_CHANGES, ALL_TYPES, TRADES, plain

CAREFUL = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NUMBERS = [
    "0", "-0", "+1", "1.5", "-1.", ".5", ".", "1e5", "1E-7", "1e22", "1e23", "1e308", "1e309",
    "1e-400", "9007199254740993", "0.1234567890123456789", "123456789012345678901234567890",
    "1e999999", "1_0", "0x1F", "nan", "NaN", "-inf", "Infinity", "1e", "1e+", "--1", "5e-324",
    "1.7976931348623157e308", "2.2250738585072011e-308", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "00012",
    "999999999999999999", "1000000000000000000", "٣", "",
]  # fmt: skip
TIMES = [
    "2024-02-29", "2023-02-29", "2024-02-29T12:30", "2024-02-29 12:30:59.5Z", "1969-12-31T23:59:59",
    "2024-01-01T24:00:00", "2024-01-01T00:00:60", "2024-01-01T00:00:00.1234567", "2024-13-01",
    "2024-01-01T00:00:00.", "2024-01-01T00:00:00+05:30", "2024-01-01T00:00:00-23:59",
    "2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00+0530", "0001-01-01", "0000-01-01",
    "9999-12-31T23:59:59.999999Z", "20240101", "2024-W01-1", "2024-01-01t00:00:00z",
    "2024-01-01T00:00:00 Z", " 2024-01-01", "2024-1-1", "2024-01-01T1:00", "1900-02-29",
    "2000-02-29", "2024-01-01T00:00:00,5", "2024-01-01T00",
]  # fmt: skip
WORDS = ["true", "FALSE", "True", "tru", "null", "5 min", "1.5 s", "0.1 us", "3 parsecs", "1"]
ANY_CELL = st.one_of(
    st.sampled_from(NUMBERS + TIMES + WORDS),
    st.integers(-(2**64), 2**64).map(str),
    st.floats().map(repr),
    st.datetimes().map(lambda t: t.isoformat()),
    st.text(max_size=4),
)


def same(fast: DecodedStep, slow: DecodedStep) -> None:
    assert plain(slow.batch) == plain(fast.batch)
    assert slow.rejected == fast.rejected
    assert (slow.end, slow.lines) == (fast.end, fast.lines)


def compare_csv(data: bytes, input_: Input, header: tuple[str, ...], longest: int = 1000,
                rows: int = 1000) -> None:  # fmt: skip
    decoder = CsvDecoder(layout_in(input_, header, "x.csv"), header, "x.csv", rows, longest)
    for final in (True, False):
        slow = decoder.slowly(data, 0, 2, final=final)
        same(decoder.quickly(data, 0, 2, final=final), slow)


def compare_jsonl(data: bytes, input_: Input, longest: int = 1000, rows: int = 1000) -> None:
    decoder = JsonlDecoder(layout_of_objects(input_), "x.jsonl", rows, longest)
    for final in (True, False):
        slow = decoder.slowly(data, 0, 1, final=final)
        same(decoder.quickly(data, 0, 1, final=final), slow)


def test_every_nasty_cell_in_every_csv_column() -> None:
    header = ("_time", "n", "i", "t", "b", "at", "d")
    lines = []
    for cell in NUMBERS + TIMES + WORDS:
        for column in range(len(header)):
            for written in (cell, f'"{cell}"'):
                cells = ["1"] + [""] * 6
                cells[column] = written
                lines.append(",".join(cells))
    compare_csv("\n".join(lines).encode(), ALL_TYPES, header, rows=10_000)


def test_every_nasty_value_in_every_json_field() -> None:
    names = ("_time", "_weight", "n", "i", "t", "b", "at", "d")
    lines = []
    for cell in [*NUMBERS, *TIMES, *WORDS, "[]", "{}", "[1,[2]]", '"\\ud800"', '"\\u0041"']:
        for name in names:
            for written in (cell, json.dumps(cell)):
                others = "" if name == "_time" else '"_time":1,'
                lines.append(f'{{{others}"{name}":{written}}}')
    compare_jsonl("\n".join(lines).encode(), ALL_CHANGES, rows=10_000)


@CAREFUL
@given(st.lists(st.sampled_from([b'"', b'"', b",", b",", b"\n", b"\r", b"\r\n", b"1", b"a",
                                 b"\xc3\xa9", b"\xff", b"\0", b"2024-01-01"]), max_size=60),
       st.sampled_from([3, 10, 1000]), st.sampled_from([1, 3, 1000]))  # fmt: skip
def test_any_bytes_as_csv(parts: list[bytes], longest: int, rows: int) -> None:
    compare_csv(b"".join(parts), TRADES, ("sym", "ts", "price"), longest, rows)


@CAREFUL
@given(st.lists(st.lists(ANY_CELL, min_size=7, max_size=7), max_size=5), st.booleans())
def test_any_cells_as_csv(rows: list[list[str]], quoted: bool) -> None:
    header = ("x", "_time", "n", "i", "t", "b", "d", "at")

    def written(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if quoted else cell

    text = "".join("," + ",".join(map(written, row)) + "\n" for row in rows)
    compare_csv(text.encode("utf-8", "surrogatepass"), ALL_TYPES, header)


JSON_PIECES = [
    "{", "}", "[", "]", ":", ",", '"', '"ts"', '"sym"', '"price"', '"x"', '"ts":1', '"sym":"a"',
    '"price":1.5', "{}", "1", "-", ".5", "1e5", "true", "null", "\\", "\\n", "\\u00e9", "é", " ",
    "\t", "\r", "\n", "\n", '{"ts":1}', '{"ts":1,"sym":"a","price":2}\n', "\x01", "NaN",
]  # fmt: skip


@CAREFUL
@given(st.lists(st.sampled_from(JSON_PIECES), max_size=25), st.sampled_from([20, 1000]),
       st.sampled_from([1, 3, 1000]))  # fmt: skip
def test_any_pieces_as_json_lines(parts: list[str], longest: int, rows: int) -> None:
    compare_jsonl("".join(parts).encode(), TRADES, longest, rows)


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_CELL,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner,
                                                              max_size=2),
    max_leaves=3,
)  # fmt: skip
KEYS = st.sampled_from(["_time", "_weight", "n", "i", "t", "b", "at", "d", "x", "é"])


@CAREFUL
@given(st.lists(st.lists(st.tuples(KEYS, JSON_VALUES), max_size=8), max_size=5), st.booleans())
def test_any_objects_as_json_lines(objects: list[list[tuple[str, Any]]], ascii_only: bool) -> None:
    def written(value: object) -> str:
        return json.dumps(value, ensure_ascii=ascii_only)

    lines = ["{" + ", ".join(f"{written(k)}: {written(v)}" for k, v in o) + "}" for o in objects]
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    compare_jsonl(data, ALL_CHANGES, longest=10_000)


def test_many_different_keys_are_told_apart() -> None:
    lines = [
        json.dumps({"ts": i} | {f"k{j}": j for j in range(i, i + 50)} | {"sym": "a"})
        for i in range(100)
    ]
    compare_jsonl("\n".join(lines).encode(), TRADES, longest=10_000)
