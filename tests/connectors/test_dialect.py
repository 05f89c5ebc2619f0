"""CSV as people really have it: other separators, quotes, decimal signs and encodings."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream
from millstream.calculus.types import Row
from millstream.cli.main import main
from millstream.connectors.dialect import Dialect
from millstream.connectors.layout import layout_in
from millstream.connectors.location import parse_location
from millstream.connectors.pieces import next_piece, open_piece
from millstream.connectors.read import open_reader
from millstream.connectors.read_csv import CsvDecoder
from millstream.errors import CheckError, UsageError
from tests.connectors.inputs import ALL_TYPES, TRADES, everything, plain, read_all, read_text

MICROS = 1_767_225_600_000_000  # 2026-01-01


def rows_in(path: Path, dialect: str) -> list[Row]:
    location = parse_location(f"{path.name}?{dialect}", path.parent)
    (_, _, rows), rejected = everything(read_all(open_reader(location, TRADES)), TRADES)
    assert not rejected
    return rows


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("separator=;", "sym;ts;price\nA;2026-01-01;1.5\n"),
        ("separator=tab", "sym\tts\tprice\nA\t2026-01-01\t1.5\n"),
        ("separator=|&quote='", "sym|ts|price\n'A'|'2026-01-01'|1.5\n"),
        ("separator=;&decimal=,", "sym;ts;price\nA;2026-01-01;1,5\n"),
        ("decimal=,", 'sym,ts,price\nA,2026-01-01,"1,5"\n'),
        ("skip=2", "made by hand\nnot data\nsym,ts,price\nA,2026-01-01,1.5\n"),
        ("encoding=utf-16", "sym,ts,price\nA,2026-01-01,1.5\n"),
        ("encoding=cp500", "sym,ts,price\nA,2026-01-01,1.5\n"),
    ],
)
def test_a_dialect_gives_the_rows_of_the_standard(tmp_path: Path, dialect: str, text: str) -> None:
    encoding = dialect.partition("encoding=")[2] or "utf-8"
    (tmp_path / "x.csv").write_text(text, encoding=encoding)
    assert rows_in(tmp_path / "x.csv", dialect) == [("A", MICROS, 1.5)]


@pytest.mark.parametrize(
    ("dialect", "cell"),
    [
        ("decimal=,&thousands=.", '"-1.234.567,5"'),
        ("thousands=,", '"-1,234,567.5"'),
        ("thousands=space&decimal=,", '"-1 234\u00a0567,5"'),
        ("thousands=.&decimal=,", '"-1234567,5"'),
    ],
)
def test_thousands_may_be_marked(tmp_path: Path, dialect: str, cell: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"sym,ts,price\nA,1,{cell}\nB,2,7\n", encoding="utf-8")
    assert rows_in(path, dialect) == [("A", 1, -1234567.5), ("B", 2, 7.0)]
    program = path.with_name("s.cql")
    program.write_text(f"CREATE STREAM s FROM 'x.csv?{dialect}' TIME ts;\nSELECT price FROM s;")
    assert millstream.compile(program).run().rows()[0]["price"] == -1234567.5


def test_what_is_not_said_of_numbers_is_asked_for() -> None:
    text = 'sym,ts,price\nA,1,"1.234,5"\nB,2,"1,23,4"\n'
    asked = "; say ?decimal=, or ?thousands=,"
    assert [r.reason for r in read_text(text, "csv:-", TRADES)[1]] == [
        f'price: expected a number, got "1.234,5"{asked}',
        f'price: expected a number, got "1,23,4"{asked}',
    ]
    (wrong, other) = read_text(text, "csv:-?decimal=,", TRADES)[1]
    assert wrong.reason.endswith(
        'got "1.234,5"; say it if they are between thousands: ?thousands=.'
    )
    assert [r.reason for r in read_text(text, "csv:-?thousands=,", TRADES)[1]][1] == (
        f'price: expected a number, got "1,23,4"{asked}'
    )
    assert other.reason.startswith("price: expected a number")


def test_a_header_cut_at_the_wrong_places_is_told_once() -> None:
    with pytest.raises(CheckError) as told:
        read_text("sym;ts;price\nA;1;2\n", "csv:-", TRADES)
    (fault,) = told.value.faults
    assert "separated by ';'" in str(fault.hint)


def test_a_quote_of_none_is_a_letter_like_any_other() -> None:
    rows, rejected = read_text('sym,ts,price\n5" nail,1,2\n', "csv:-?quote=none", TRADES)
    assert ([('5" nail', 1, 2.0)], []) == (rows, rejected)


def test_bytes_of_another_encoding_are_its_characters(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("sym,ts,price\nMünchen €,1,2\nplain,2,3\n".encode("cp1252"))
    assert rows_in(path, "encoding=cp1252") == [("München €", 1, 2.0), ("plain", 2, 3.0)]
    path.write_bytes(b"sym,ts,price\na\x81b,1,2\n")
    _, rejected = read_text(path.read_bytes(), "csv:-?encoding=cp1252", TRADES)
    assert [r.reason for r in rejected] == ["not cp1252 at byte 2"]


def test_a_tsv_file_has_tabs(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("sym\tts\tprice\nA,B\t1\t2\n")
    location = parse_location("x.tsv", tmp_path)
    (_, _, rows), _ = everything(read_all(open_reader(location, TRADES)), TRADES)
    assert rows == [("A,B", 1, 2.0)]


CELLS = st.sampled_from(["1,5", "1.5", "-0,25", "x", "", "'a''b'", '"', ";", "2026-01-01", "é", "7",
                         "123456789012345678901,5", "1,5e3", "\t", "'", "12,34,5"])  # fmt: skip
DIALECTS = [
    Dialect(";", "'", ","), Dialect("\t", "", "."), Dialect("|", '"', ","),
    Dialect(";", "'", ",", "cp1252"), Dialect(" ", '"', ".", "iso8859-1"),
]  # fmt: skip


@given(st.lists(st.lists(CELLS, max_size=7), max_size=12), st.sampled_from(DIALECTS))
@settings(max_examples=150, deadline=None)
def test_compiled_scanners_agree_with_the_definition(
    rows: list[list[str]], dialect: Dialect
) -> None:
    header = ("n", "i", "t", "b", "at", "d", "_time")
    encoding = "utf-8" if dialect.is_utf8 else dialect.encoding
    text = "\n".join(dialect.separator.join(row) for row in rows) + "\n"
    data = text.encode(encoding)
    layout = layout_in(ALL_TYPES, header, "x")
    decoder = CsvDecoder(layout, header, "x", 100, 60, dialect)
    for final in (True, False):
        slow = decoder.slowly(data, 0, 2, final=final)
        fast = decoder.quickly(data, 0, 2, final=final)
        assert plain(slow.batch) == plain(fast.batch)
        assert (slow.rejected, slow.end, slow.lines) == (fast.rejected, fast.end, fast.lines)


@pytest.mark.parametrize("dialect", ["separator=;&quote='&skip=3", "encoding=utf-16"])
def test_pieces_of_a_file_are_the_file(tmp_path: Path, dialect: str) -> None:
    rows = "".join(f"'a;\n{n}';{n};{n}\n" for n in range(200))
    separated = f"x\ny\n\nsym;ts;price\n{rows}"
    plain_rows = "sym,ts,price\n" + "".join(f'"a;\n{n}",{n},{n}\n' for n in range(200))
    is_utf16 = "utf-16" in dialect
    path = tmp_path / "x.csv"
    path.write_text(plain_rows if is_utf16 else separated, encoding="utf-16" if is_utf16 else None)
    location = parse_location(f"x.csv?{dialect}", tmp_path)
    found, place = [], (0, 1)
    while piece := next_piece(location, TRADES, path, *place, 500, final=True):
        found += read_all(open_piece(location, TRADES, path, piece))
        place = (piece.last, piece.next_line)
    (times, _, _), rejected = everything(found, TRADES)
    assert (list(range(200)), ()) == (times, rejected)
    assert is_utf16 or all(a.batch.time[-1] < b.batch.time[0] for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("x.csv?seperator=;", 'unknown setting "seperator"'),
        ("x.csv?separator=;;", "expected one character as separator"),
        ("x.csv?separator=a", "no letter or digit"),
        ("x.csv?decimal=;", "a decimal sign is . or ,"),
        ("x.csv?thousands=.", "cannot be decimal sign and thousands"),
        ("x.csv?encoding=klingon", 'unknown encoding "klingon"'),
        ("x.csv?encoding=base64", 'unknown encoding "base64"'),
        ("x.csv?skip=many", "expected a number of lines to skip"),
        ("x.csv?separator='&quote='", "cannot be separator and quote"),
        ("x.parquet?separator=;", "parquet has no such settings"),
    ],
)
def test_a_dialect_that_cannot_be_is_refused(written: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_location(written, Path())
    assert message in caught.value.faults[0].message


def test_a_file_that_is_not_of_its_encoding_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00\xd8a\x00")
    location = parse_location("x.csv?encoding=utf-16", tmp_path)
    with pytest.raises(millstream.errors.MillstreamError, match="it is not utf-16"):
        read_all(open_reader(location, TRADES))


def test_headers_may_differ_in_case_and_blanks(tmp_path: Path) -> None:
    rows, _ = read_text(" Sym , TS,Price\nA,1,2\n", "csv:-", TRADES)
    assert rows == [("A", 1, 2.0)]
    table = pa.table({"SYM": ["A"], "Ts": pa.array([1], pa.int64()), " price ": [2.0]})
    pq.write_table(table, tmp_path / "x.parquet")
    location = parse_location("x.parquet", tmp_path)
    (_, _, rows), _ = everything(read_all(open_reader(location, TRADES)), TRADES)
    assert rows == [("A", 1, 2.0)]
    with pytest.raises(CheckError, match='no column "sym"'):
        read_text("SYM,Sym,ts,price\nA,B,1,2\n", "csv:-", TRADES)


PROGRAM = "output out; input trades(n number) time at; (out) <- Filter[n >= 0.0](trades);"


def test_a_project_says_how_its_files_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two o'clock comes twice in October and never in March."""
    (tmp_path / "job.brook").write_text(PROGRAM)
    (tmp_path / "millstream.toml").write_text(
        '[stream.trades]\nsource = "trades.csv"\n'
        'csv = { separator = ";", decimal = ",", skip = 1 }\n'
        'time = { column = "at", zone = "Europe/Amsterdam", format = "%d.%m.%Y %H:%M" }\n'
        '[node.job]\nbrook = "job.brook"\n'
    )
    (tmp_path / "trades.csv").write_text(
        "report\nAt;N\n01.07.2026 12:00;0,5\n25.10.2026 02:30;1,5\n29.03.2026 02:30;2,5\n2026;1\n"
        "2026-01-01T00:00:00Z;9\n"
    )
    assert main(["run", str(tmp_path), "--engine", "local", "--times", "iso"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "_time,n", "2026-01-01T00:00:00.000000Z,9", "2026-07-01T10:00:00.000000Z,0.5",
        "2026-10-25T00:30:00.000000Z,1.5",
    ]  # fmt: skip
    assert "there was no 2026-03-29 02:30:00 in Europe/Amsterdam" in err
    assert "expected a time such as %d.%m.%Y %H:%M" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--zone", "Europe/Amsterdamm"], 'Did you mean "Europe/Amsterdam"?'),
        (["--time-format", "%Q"], 'unknown "%Q" in the format of times'),
        (["--time-format", "x=%Y"], 'this program has no input "x"'),
    ],
)
def test_a_wrong_zone_or_format_is_told(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.brook").write_text(PROGRAM)
    assert main(["run", str(tmp_path / "job.brook"), "--engine", "local", *options]) == 2
    assert message in capsys.readouterr().err


def test_local_time_stamps_of_parquet_are_of_the_zone(tmp_path: Path) -> None:
    moments = [datetime(2026, 7, 1, 12), datetime(2026, 3, 29, 2, 30), None]  # noqa: DTZ001 - local
    pq.write_table(
        pa.table({"at": pa.array(moments), "n": [1.0, 2.0, 3.0]}), tmp_path / "t.parquet"
    )
    job = millstream.compile(text=PROGRAM).with_times(zone="Europe/Amsterdam")
    finished = job.run({"trades": tmp_path / "t.parquet"})
    noon = int(datetime(2026, 7, 1, 10, tzinfo=UTC).timestamp())
    assert [{"_time": noon * 1_000_000, "n": 1.0}] == finished.rows("out")
    assert "there was no 2026-03-29 02:30:00 in Europe/Amsterdam" in " ".join(
        finished.report.first_rejections
    )
