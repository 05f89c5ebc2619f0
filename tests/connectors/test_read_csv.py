from __future__ import annotations

import io
import tracemalloc
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
    Row,
    Schema,
)
from millstream.connectors.chunks import Rejected
from millstream.connectors.location import parse_location
from millstream.connectors.read import open_reader
from millstream.connectors.read_csv import csv_decoder
from millstream.connectors.window import FileWindow, decoded
from millstream.errors import CheckError, RunError
from tests.connectors.inputs import TRADES, everything, read_all, read_text

X = Input("X", QueueType(Schema.of(x=TEXT)))
OTHER = "; another encoding? Say which: ?encoding=cp1252"


def rejected(text: str | bytes, input_: Input = TRADES) -> list[tuple[int, str]]:
    return [(r.position, r.reason) for r in read_text(text, "-", input_)[1]]


def reason(cell: str, type_name: str) -> str:
    kinds = {"number": NUMBER, "integer": INTEGER, "boolean": BOOLEAN, "time": TIME,
             "duration": DURATION, "text": TEXT}  # fmt: skip
    input_ = Input("X", QueueType(Schema.of(c=kinds[type_name])))
    ((_, found),) = rejected(f"_time,c\n1,{cell}\n", input_)
    return found


def value(cell: str, type_name: str) -> object:
    kinds = {"number": NUMBER, "integer": INTEGER, "boolean": BOOLEAN, "time": TIME,
             "duration": DURATION, "text": TEXT}  # fmt: skip
    input_ = Input("X", QueueType(Schema.of(c=kinds[type_name])))
    rows, wrong = read_text(f"_time,c\n1,{cell}\n", "-", input_)
    assert not wrong, wrong
    return rows[0][0]


def check_error(text: str | bytes, input_: Input, path: Path) -> str:
    (path / "trades.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(CheckError) as caught:
        open_reader(parse_location("trades.csv", path), input_)
    return str(caught.value)


def test_columns_are_found_by_name_and_others_passed_over() -> None:
    text = "extra,price,ts,more,sym\nx,1.5,7,y,IBM\n"
    assert [("IBM", 7, 1.5)] == read_text(text, "-", TRADES)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("_time,x\n1,a\n", ["a"]),
        ("_time,x\r\n1,a\r\n", ["a"]),
        ("\ufeff_time,x\n1,a", ["a"]),
        ("\n\n_time,x\n\n1,a\n\r\n2,b\n\n", ["a", "b"]),
        ('"_time","x"\n"1","a"\n', ["a"]),
        ('_time,x\n1,""\n2,\n', ["", None]),
        ('_time,x\n1,"a,""b""\n\r\nc"\n', ['a,"b"\n\r\nc']),
        ("_time,x\n1, a \n", [" a "]),
        ("_time,x\n", []),
        ("_time,x", []),
    ],
)
def test_rfc_4180_is_followed(text: str, expected: list[str | None]) -> None:
    rows: list[Row] = [(cell,) for cell in expected]
    assert (rows, []) == read_text(text, "-", X)


@pytest.mark.parametrize(
    ("type_name", "cell", "expected"),
    [
        ("number", "1e3", 1000.0),
        ("number", "-inf", float("-inf")),
        ("number", "9007199254740993", 9007199254740992.0),
        ("number", "", None),
        ("integer", "-9223372036854775808", -(2**63)),
        ("integer", "0007", 7),
        ("boolean", "TRUE", True),
        ("boolean", "False", False),
        ("time", "1700000000000000", 1_700_000_000_000_000),
        ("time", "2023-11-14T22:13:20", 1_700_000_000_000_000),
        ("time", "2023-11-14 23:13:20.5+01:00", 1_700_000_000_500_000),
        ("time", "1969-12-31", -86_400_000_000),
        ("duration", "90", 90),
        ("duration", "5 min", 300_000_000),
        ("duration", "-1.5 s", -1_500_000),
        ("text", '"NULL"', "NULL"),
    ],
)
def test_cells_that_are_accepted(type_name: str, cell: str, expected: object) -> None:
    assert expected == value(cell, type_name)


@pytest.mark.parametrize(
    ("type_name", "cell", "expected"),
    [
        ("number", "abc", 'c: expected a number, got "abc"'),
        ("number", "1_000", 'c: expected a number, got "1_000"'),
        ("number", " 1", 'c: expected a number, got " 1"'),
        ("number", '""', 'c: expected a number, got ""'),
        ("number", "1e999999", "c: 1e999999 does not fit a 64-bit number"),
        ("integer", "3.0", 'c: expected an integer, got "3.0"'),
        (
            "integer",
            "9223372036854775808",
            "c: 9223372036854775808 does not fit a 64-bit integer",
        ),
        ("integer", "9" * 5000, f"c: {'9' * 40}... does not fit a 64-bit integer"),
        ("boolean", "1", 'c: expected true or false, got "1"'),
        ("time", "yesterday", 'c: expected a time, got "yesterday"'),
        ("time", "2023-02-29", 'c: expected a time, got "2023-02-29"'),
        ("duration", "5 parsecs", 'c: expected a duration such as 5 min, got "5 parsecs"'),
        ("duration", "0.1 us", 'c: "0.1 us" is not a whole number of microseconds'),
    ],
)
def test_cells_that_are_rejected(type_name: str, cell: str, expected: str) -> None:
    assert expected == reason(cell, type_name)


def test_bad_rows_are_rejected_with_their_line_and_the_rest_goes_on() -> None:
    text = (
        "sym,ts,price\n"
        "A,1,1.5\n"
        '"multi\nline",2,2.5\n'
        "B,3,cheap\n"
        "C,4\n"
        'D"x,5,5.5\n'
        "E,,6.5\n"
        '"F" ,7,7.5\n'
        "G,8,8.5,9\n"
        "H\r,9,1\n"
        "I,10,10.5\n"
    )
    rows, wrong = read_text(text, "-", TRADES)
    assert [("A", 1, 1.5), ("multi\nline", 2, 2.5), ("I", 10, 10.5)] == rows
    source = "standard input"
    assert [
        Rejected(source, 5, 'price: expected a number, got "cheap"', "B,3,cheap"),
        Rejected(source, 6, "expected 3 cells, got 2", "C,4"),
        Rejected(source, 7, "a quote inside an unquoted cell", 'D"x,5,5.5'),
        Rejected(source, 8, "ts: the event time is missing", "E,,6.5"),
        Rejected(
            source,
            9,
            "expected a comma or the end of the line after a closing quote",
            '"F" ,7,7.5',
        ),
        Rejected(source, 10, "expected 3 cells, got 4", "G,8,8.5,9"),
        Rejected(source, 11, "a carriage return inside an unquoted cell", "H\r,9,1"),
    ] == wrong


def test_an_open_quote_costs_one_line_and_not_the_file() -> None:
    text = 'sym,ts,price\n"A,1,1\nB,2,2\nC,3,3\n'
    rows, wrong = read_text(text, "-", TRADES)
    assert [("B", 2, 2.0), ("C", 3, 3.0)] == rows
    assert [(2, "a quote is not closed", '"A,1,1')] == [
        (r.position, r.reason, r.text) for r in wrong
    ]


def test_bytes_that_are_not_utf8_cost_one_row() -> None:
    text = b"sym,ts,price\nA\xff,1,1\nB,2,2\n\xc3,3,3\n"
    rows, wrong = read_text(text, "-", TRADES)
    assert [("B", 2, 2.0)] == rows
    assert [
        (2, f"not UTF-8 at byte 2{OTHER}", "A\\xff,1,1"),
        (4, f"not UTF-8 at byte 1{OTHER}", "\\xc3,3,3"),
    ] == [(r.position, r.reason, r.text) for r in wrong]


def test_the_text_of_a_rejected_row_is_cut() -> None:
    _, wrong = read_text(f"sym,ts,price\n{'é' * 500}\n", "-", TRADES)
    assert "é" * 200 == wrong[0].text


def test_changes_of_a_relation_need_a_weight_of_one() -> None:
    input_ = Input("R", QueueType(Schema.of(x=TEXT), is_relation=True))
    text = "_time,_weight,x\n1,1,a\n2,-1,b\n3,2,c\n4,,d\n"
    chunks = read_all(
        open_reader(parse_location("-", Path()), input_, stdin=io.BytesIO(text.encode()))
    )
    (times, weights, rows), wrong = everything(chunks, input_)
    assert ([1, 2], [1, -1], [("a",), ("b",)]) == (times, weights, rows)
    assert ["_weight: expected 1 or -1, got 2", "_weight: expected 1 or -1, got nothing"] == [
        r.reason for r in wrong
    ]


def test_a_relation_without_weights_is_all_insertions() -> None:
    input_ = Input("R", QueueType(Schema.of(x=TEXT), is_relation=True))
    stdin = io.BytesIO(b"_time,x\n1,a\n2,b\n")
    chunks = read_all(open_reader(parse_location("-", Path()), input_, stdin=stdin))
    assert [1, 1] == everything(chunks, input_)[0][1]


def test_an_event_time_that_is_not_in_the_schema_is_read_too() -> None:
    input_ = Input("X", QueueType(Schema.of(x=TEXT)), time="when")
    stdin = io.BytesIO(b"when,x\n5,a\n")
    chunks = read_all(open_reader(parse_location("-", Path()), input_, stdin=stdin))
    assert ([5], None, [("a",)]) == everything(chunks, input_)[0]


PIECES = (
    "sym,ts,price\n"
    'A,1,1\r\n\n"x\n""y""",2,2\n"open,3,3\nB,4\n\r\nC\xe9,5,5\n' + "long" * 250 + ",6,6\n"
    'D,7,7\n"' + "z\n" * 500 + '",8,8\nE,9,9'
).encode("latin-1")


@pytest.mark.parametrize("piece", [3, 7, 64, 901, 902, 903, 5000])
@pytest.mark.parametrize("chunk_rows", [1, 2, 1000])
def test_rows_do_not_depend_on_how_the_file_is_read(piece: int, chunk_rows: int) -> None:
    def read(piece: int, chunk_rows: int) -> object:
        window = FileWindow(io.BytesIO(PIECES).read, "x.csv", piece)
        chunks = list(decoded(window, csv_decoder(TRADES, chunk_rows, 900)(window)))
        assert all(c.read <= chunk_rows for c in chunks)
        return everything(chunks, TRADES)

    whole = read(10_000, 10_000)
    assert whole == read(piece, chunk_rows)


class Endless(io.RawIOBase):
    """A header, a line that is very long, and a last row; counts as one file."""

    def __init__(self, head: bytes, megabytes: int, tail: bytes) -> None:
        self._parts = iter([head, *[b"x" * (1 << 20)] * megabytes, tail])

    def readable(self) -> bool:
        return True

    def read1(self, _: int) -> bytes:
        return next(self._parts, b"")


def test_a_huge_line_is_rejected_without_being_held() -> None:
    read_text("sym,ts,price\n" + "A,1,1\n" * 100_000, "-", TRADES)  # load what will be needed
    stream = Endless(b"sym,ts,price\nA,1,1\n", 100, b"\nB,2,2\n")
    tracemalloc.start()
    try:
        reader = open_reader(parse_location("-", Path()), TRADES, stdin=stream)  # type: ignore[arg-type]
        (_, _, rows), wrong = everything(read_all(reader), TRADES)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [("A", 1, 1.0), ("B", 2, 2.0)] == rows
    assert [(3, "longer than 1 MiB", "x" * 200)] == [(r.position, r.reason, r.text) for r in wrong]
    assert peak < 16 << 20


def test_a_missing_column_is_told_with_the_header(tmp_path: Path) -> None:
    assert (
        'trades.csv:1:5: no column "price", which input "Trades" declares\n'
        "    sym,prise,ts\n"
        "        ^^^^^\n"
        '    trades.csv has: sym, prise, ts. Did you mean "prise"?'
    ) == check_error("sym,prise,ts\n", TRADES, tmp_path)


def test_all_missing_columns_are_told_at_once(tmp_path: Path) -> None:
    assert (
        'trades.csv:1:1: no column "sym", which input "Trades" declares\n'
        "    a,price\n"
        "    ^^^^^^^\n"
        "    trades.csv has: a, price.\n"
        'trades.csv:1:1: no column "ts", which input "Trades" declares\n'
        "    a,price\n"
        "    ^^^^^^^\n"
        "    trades.csv has: a, price."
    ) == check_error("a,price\n", TRADES, tmp_path)


def test_a_near_miss_in_quotes_is_pointed_at(tmp_path: Path) -> None:
    assert (
        'trades.csv:2:9: no column "price", which input "Trades" declares\n'
        '    "a""b",,"Prices",ts,sym\n'
        "            ^^^^^^^^\n"
        '    trades.csv has: a"b, , Prices, ts, sym. Did you mean "Prices"?'
    ) == check_error('\n"a""b",,"Prices",ts,sym\n', TRADES, tmp_path)


def test_a_missing_event_time_is_told(tmp_path: Path) -> None:
    assert (
        'trades.csv:1:1: no column "_time" for the event time of input "X"\n'
        "    x,ts\n"
        "    ^^^^\n"
        '    say which column it is where "X" is declared: time COLUMN, in Python time="COLUMN". '
        "trades.csv has: x, ts."
    ) == check_error("x,ts\n", X, tmp_path)


def test_a_column_that_stands_twice_is_told(tmp_path: Path) -> None:
    assert (
        'trades.csv:1:1: column "x" stands 2 times\n'
        "    x,_time,x\n"
        "    ^"
    ) == check_error("x,_time,x\n", X, tmp_path)  # fmt: skip


@pytest.mark.parametrize("text", ["", "\n\r\n", "\ufeff"])
def test_an_empty_file_is_told(text: str, tmp_path: Path) -> None:
    assert (
        "trades.csv: the file is empty, expected a header line\n"
        "    the first line names the columns, such as sym,ts,price"
    ) == check_error(text, TRADES, tmp_path)


HINT = (
    "    is this a CSV file, in UTF-8, with commas? If not, say what it is, such as "
    "trades.csv?encoding=latin-1&separator=;"
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (",".join(f"c{i}" for i in range(1_000_000)).encode(), "it has more than 16,384 columns"),
        (b"," * 16_384 + b"\n", "it has more than 16,384 columns"),
        (b"x" * 3_000_000, "longer than 1 MiB"),
        ("_time,x\n".encode("utf-16"), "not UTF-8 at byte 1"),
        (b'"_time,x\n', "a quote is not closed"),
    ],
)
def test_a_header_that_cannot_be_read_is_told(text: bytes, why: str, tmp_path: Path) -> None:
    expected = f"trades.csv:1: cannot read the header: {why}\n{HINT}"
    assert expected == check_error(text, X, tmp_path)


def test_all_files_are_checked_before_the_first_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("_time,x\n1,a\n")
    (tmp_path / "b.csv").write_text("_time,y\n1,a\n")
    with pytest.raises(CheckError, match=r"b\.csv:1:1"):
        open_reader(parse_location("*.csv", tmp_path), X)


def test_files_are_read_one_after_another_with_their_own_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("_time,x\n1,a\nbad,a\n")
    (tmp_path / "b.csv").write_text("x,_time\nb,2\nb,\n")
    chunks = read_all(open_reader(parse_location("*.csv", tmp_path), X))
    (_, _, rows), wrong = everything(chunks, X)
    assert [("a",), ("b",)] == rows
    assert [("a.csv", 3), ("b.csv", 3)] == [(r.source, r.position) for r in wrong]


def test_a_damaged_compressed_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv.gz").write_bytes(b"this is not gzip")
    with pytest.raises(RunError) as caught:
        open_reader(parse_location("x.csv.gz", tmp_path), X)
    assert "x.csv.gz: cannot be read: Not a gzipped file (b'th')" == str(caught.value)


def test_a_file_that_must_not_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.csv").touch()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(RunError) as caught:
        open_reader(parse_location("x.csv", tmp_path), X)
    assert "x.csv: cannot be read: Permission denied" == str(caught.value)


def test_an_event_time_of_a_wrong_type_is_told() -> None:
    input_ = Input("X", QueueType(Schema.of(x=TEXT)), time="x")
    with pytest.raises(CheckError) as caught:
        read_text("x\n1\n", "-", input_)
    assert 'the event time "x" of input "X" is declared as text, expected time' == str(caught.value)
