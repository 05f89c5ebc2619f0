from __future__ import annotations

import io
from pathlib import Path

import pytest

from millstream.calculus.graph import Input
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    QueueType,
    Schema,
)
from millstream.connectors.location import parse_location
from millstream.connectors.read import open_reader
from millstream.connectors.read_jsonl import jsonl_decoder
from millstream.connectors.window import FileWindow, decoded
from millstream.errors import CheckError
from tests.connectors.inputs import TRADES, everything, read_all, read_text

KINDS = {
    "number": NUMBER, "integer": INTEGER, "boolean": BOOLEAN, "time": TIME,
    "duration": DURATION, "text": TEXT,
}  # fmt: skip


def one(type_name: str, written: str) -> tuple[list[object], list[str]]:
    """The value of a field, or why it was rejected."""
    input_ = Input("X", QueueType(Schema.of(c=KINDS[type_name])))
    rows, wrong = read_text(f'{{"_time":1,"c":{written}}}\n', "jsonl:-", input_)
    return [row[0] for row in rows], [r.reason for r in wrong]


@pytest.mark.parametrize(
    ("type_name", "written", "expected"),
    [
        ("number", "1", 1.0),
        ("number", "-1.5e3", -1500.0),
        ("number", '"Infinity"', float("inf")),
        ("number", '"-Infinity"', float("-inf")),
        ("number", "null", None),
        ("number", "0.1234567890123456789", 0.12345678901234568),
        ("integer", "9223372036854775807", 2**63 - 1),
        ("boolean", "true", True),
        ("text", '"a\\"\\\\\\/\\b\\f\\n\\r\\t"', 'a"\\/\b\f\n\r\t'),
        ("text", '"\\u00e9\\ud83d\\ude00"', "é\U0001f600"),
        ("time", "1700000000000000", 1_700_000_000_000_000),
        ("time", '"2023-11-14T22:13:20Z"', 1_700_000_000_000_000),
        ("duration", "7", 7),
        ("duration", '"5 min"', 300_000_000),
    ],
)
def test_values_that_are_accepted(type_name: str, written: str, expected: object) -> None:
    assert ([expected], []) == one(type_name, written)


@pytest.mark.parametrize(
    ("type_name", "written", "expected"),
    [
        ("number", '"abc"', 'c: expected a number, got the text "abc"'),
        ("number", '"1"', 'c: expected a number, got the text "1"'),
        ("number", "true", "c: expected a number, got true"),
        ("number", "{}", "c: expected a number, got an object"),
        ("number", "[1]", "c: expected a number, got a list"),
        ("number", "1e999999", "c: 1e999999 does not fit a 64-bit number"),
        ("number", "NaN", 'NaN is not JSON; the text "NaN" stands for it'),
        ("number", "-Infinity", '-Infinity is not JSON; the text "-Infinity" stands for it'),
        ("number", "01", "not JSON: expecting ',' delimiter at column 17"),
        ("integer", "3.0", "c: expected an integer, got 3.0"),
        ("integer", "1e3", "c: expected an integer, got 1e3"),
        ("integer", '"3"', 'c: expected an integer, got the text "3"'),
        (
            "integer",
            "9223372036854775808",
            "c: 9223372036854775808 does not fit a 64-bit integer",
        ),
        ("integer", "9" * 5000, f"c: {'9' * 40}... does not fit a 64-bit integer"),
        ("boolean", "1", "c: expected true or false, got 1"),
        ("text", "1", "c: expected a text, got 1"),
        ("text", '"\\ud800"', "c: \\ud800 alone is not a character"),
        ("text", '"a\x01"', "not JSON: invalid control character at column 18"),
        ("time", "1.5", "c: expected a time in microseconds, got 1.5"),
        ("time", '"noon"', 'c: expected a time, got "noon"'),
        ("duration", "false", "c: expected a duration, got false"),
    ],
)
def test_values_that_are_rejected(type_name: str, written: str, expected: str) -> None:
    assert ([], [expected]) == one(type_name, written)


def test_nan_can_be_written_as_a_text() -> None:
    values, wrong = one("number", '"NaN"')
    assert "nan" == str(values[0])
    assert not wrong


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"ts":1,"ts":2}', 'the key "ts" stands twice'),
        ('{"ts":1,"x":{"a":1,"a":2}}', 'the key "a" stands twice'),
        ('{"ts":1', "not JSON: expecting ',' delimiter at column 8"),
        ('{"ts":1} {}', "not JSON: extra data at column 10"),
        ("[1]", "expected a JSON object"),
        ("3", "expected a JSON object"),
        ('{"sym":"A"}', "ts: the event time is missing"),
        ('{"ts":null}', "ts: the event time is missing"),
        ("[" * 100_000, "nested more than 100 levels deep"),
        ('{"ts":' * 200_000, "longer than 1 MiB"),
        ('{"ts":1,"x":' + "[" * 101 + "]" * 101 + "}", "nested more than 100 levels deep"),
        ('{"ts":1,"x":"' + "a" * (1 << 20) + '"}', "longer than 1 MiB"),
    ],
)
def test_lines_that_are_rejected(line: str, expected: str) -> None:
    rows, wrong = read_text(f'{{"ts":1}}\n{line}\n{{"ts":2}}\n', "jsonl:-", TRADES)
    assert [(None, 1, None), (None, 2, None)] == rows
    assert [(2, expected, line[:200])] == [(r.position, r.reason, r.text) for r in wrong]


def test_nesting_in_a_field_that_is_not_wanted_is_passed_over() -> None:
    line = '{"ts":1,"x":' + "[" * 90 + "]" * 90 + ',"y":{"z":"[[[["}}'
    assert ([(None, 1, None)], []) == read_text(line, "jsonl:-", TRADES)


def test_brackets_in_texts_do_not_count_as_nesting() -> None:
    line = '{"ts":1,"sym":"' + "[{" * 500 + '"}'
    assert 1 == len(read_text(line, "jsonl:-", TRADES)[0])


def test_bytes_that_are_not_utf8_cost_one_line() -> None:
    rows, wrong = read_text(b'{"ts":1,"sym":"\xff"}\n{"ts":2}\n', "jsonl:-", TRADES)
    assert [(None, 2, None)] == rows
    assert ("not UTF-8 at byte 16", '{"ts":1,"sym":"\\xff"}') == (wrong[0].reason, wrong[0].text)


def test_blank_lines_and_line_ends_of_windows_are_fine() -> None:
    text = '\ufeff{"ts":1}\r\n\r\n   \n { "ts" : 2 } \n'
    assert ([(None, 1, None), (None, 2, None)], []) == read_text(text, "jsonl:-", TRADES)


def test_an_empty_file_has_no_rows() -> None:
    assert ([], []) == read_text("", "jsonl:-", TRADES)


def test_a_missing_weight_is_an_insertion() -> None:
    input_ = Input("R", QueueType(Schema.of(x=TEXT), is_relation=True))
    weights_written = ("", ',"_weight":-1', ',"_weight":null', ',"_weight":0')
    lines = [f'{{"_time":{i}{w}}}\n' for i, w in enumerate(weights_written, 1)]
    stdin = io.BytesIO("".join(lines).encode())
    chunks = read_all(open_reader(parse_location("jsonl:-", Path()), input_, stdin=stdin))
    (times, weights, _), wrong = everything(chunks, input_)
    assert ([1, 2, 3], [1, -1, 1]) == (times, weights)
    assert ["_weight: expected 1 or -1, got 0"] == [r.reason for r in wrong]


def test_a_missing_event_time_is_told_at_once(tmp_path: Path) -> None:
    input_ = Input("X", QueueType(Schema.of(x=TEXT)))
    (tmp_path / "x.jsonl").write_text('{"x":"a","ts":1}\n{"x":"b"}\n')
    with pytest.raises(CheckError) as caught:
        open_reader(parse_location("x.jsonl", tmp_path), input_)
    assert (
        'x.jsonl: no column "_time" for the event time of input "X"\n'
        '    say which column it is where "X" is declared: time COLUMN, in Python time="COLUMN". '
        "x.jsonl has: x, ts."
    ) == str(caught.value)


def test_one_line_with_an_event_time_is_enough() -> None:
    input_ = Input("X", QueueType(Schema.of(x=TEXT)))
    rows, wrong = read_text('{"x":"a"}\n{"_time":1,"x":"b"}\n', "jsonl:-", input_)
    assert [("b",)] == rows
    assert ["_time: the event time is missing"] == [r.reason for r in wrong]


PIECES = (
    b'{"ts":1}\r\n\n{"ts":2,"sym":"\xc3\xa9"}\n{"ts":3' + b" " * 895 + b"}\r\nbad\n"
    b'{"ts":4' + b" " * 1000 + b'}\n{"ts":5}'
)


@pytest.mark.parametrize("piece", [3, 7, 64, 901, 902, 903, 5000])
@pytest.mark.parametrize("chunk_rows", [1, 2, 1000])
def test_rows_do_not_depend_on_how_the_file_is_read(piece: int, chunk_rows: int) -> None:
    def read(piece: int, chunk_rows: int) -> object:
        window = FileWindow(io.BytesIO(PIECES).read, "x.jsonl", piece)
        chunks = list(decoded(window, jsonl_decoder(TRADES, chunk_rows, 902)(window)))
        return everything(chunks, TRADES)

    assert read(10_000, 10_000) == read(piece, chunk_rows)
