"""However a file is cut into pieces, they give what the whole file gives."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from millstream.calculus.graph import Input
from millstream.connectors.chunks import Chunk
from millstream.connectors.location import Format, Location, parse_location
from millstream.connectors.pieces import START, Piece, is_growable, next_piece, open_piece
from millstream.connectors.pieces_text import csv_rows_quickly, csv_rows_slowly
from millstream.connectors.read import file_opener, open_reader
from millstream.connectors.read_csv import csv_decoder
from millstream.connectors.read_jsonl import jsonl_decoder
from millstream.connectors.settings import settings_in, settings_of
from millstream.connectors.window import FileWindow, TextReader, decoded
from millstream.errors import CheckError, RunError, UsageError
from tests.connectors.inputs import ALL_TYPES, TRADES, everything, read_all

CAREFUL = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
LONGEST = 40


def pieces_of(
    location: Location, path: Path | None, most: int | Callable[[], int], *,
    final: bool = True, place: tuple[int, int] = START, longest: int = LONGEST,
    input_: Input = TRADES,
) -> Iterator[Piece]:  # fmt: skip
    first, line = place
    while True:
        size = most if isinstance(most, int) else most()
        piece = next_piece(location, input_, path, first, line, size, final=final, longest=longest)
        if piece is None:
            return
        assert first == piece.first < piece.last
        assert line == piece.line
        assert line < piece.next_line or (path is not None and path.suffix == ".gz")
        yield piece
        first, line = piece.last, piece.next_line


def read_pieces(location: Location, path: Path | None, pieces: list[Piece],
                chunk_rows: int | None = None, input_: Input = TRADES) -> list[Chunk]:  # fmt: skip
    return [
        chunk
        for piece in pieces
        for chunk in read_all(
            open_piece(location, input_, path, piece, chunk_rows, longest=LONGEST)
        )
    ]


def whole(data: bytes, location: Location, name: str, longest: int = LONGEST) -> list[Chunk]:
    decoder_of: Any = csv_decoder if location.format is Format.CSV else jsonl_decoder
    return read_all(TextReader(io.BytesIO(data), name, decoder_of(TRADES, 1000, longest)))


CSV_PARTS = st.sampled_from([
    b"a,1,2\n", b"b,2,3.5\r\n", b'"x\ny",3,1\n', b'"x""y",4,\r\n', b"\n", b"\r\n", b'"', b'""',
    b"\r", b",", b"a", b'"q,5,1\n', b'a"b,6,1\n', b'"a"b,7,1\n', b"only\n", b"\xff,8,1\n",
    b"\xef\xbb\xbf", b"z" * 45, b"z" * 39, b'"' + b"l\n" * 25, b" \n", b'c,9,"1"\n', b'"\n',
    b"\xc3\xa4,10,1\n", b"x" * 41 + b"\n", b'"' + b"w" * 36 + b'"\n',
])  # fmt: skip
CSV_HEADERS = st.sampled_from([
    b"sym,ts,price\n", b"sym,ts,price\r\n", b'\n\r\n"sym",ts,"price"\n',
    b"\xef\xbb\xbfsym,ts,price\n", b'ts,"o\nther",price,sym\n',
])  # fmt: skip
JSON_PARTS = st.sampled_from([
    b'{"sym":"a","ts":1}\n', b'{"ts":2,"price":1.5}\r\n', b'{"sym":"\\n\\"","ts":3}\n', b"\n",
    b"\r\n", b" \t \n", b"{", b'{"ts":4}', b"[1]\n", b"x" * 45, b" " * 45, b'{"ts":"\xff"}\n',
    b'{"sym":"' + b"y" * 30 + b'","ts":5}\n', b"\r", b"\xef\xbb\xbf", b'{"sym":"c"}\n', b'"\n',
])  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pieces")


def check_text(data: bytes, path: Path, sizes: list[int]) -> None:
    path.write_bytes(data)
    location = parse_location(path.name, path.parent)
    expected = everything(whole(data, location, path.name), TRADES)
    cycle = iter(sizes * (len(data) + 2))
    pieces = list(pieces_of(location, path, lambda: next(cycle)))
    assert expected == everything(read_pieces(location, path, pieces), TRADES)
    assert [p.size for p in pieces] == [p.last - p.first for p in pieces]


SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=4)


CSV_TEXTS = st.builds(lambda head, rows: head + b"".join(rows), CSV_HEADERS,
                      st.lists(CSV_PARTS, max_size=12))  # fmt: skip
JSON_TEXTS = st.builds(lambda mark, rows: mark + b"".join(rows),
                       st.sampled_from([b'{"ts":0}\n', b'\xef\xbb\xbf{"ts":0}\n']),
                       st.lists(JSON_PARTS, max_size=12))  # fmt: skip


@CAREFUL
@given(CSV_TEXTS, SIZES)
@example(b'sym,ts,price\n"abc\ndef"x\n"abc\n\n"\n', [1])
@example(b'sym,ts,price\n"l\nl\n' + b"x" * 39 + b'\n",1,2\n', [5])
def test_pieces_of_csv_are_the_whole(folder: Path, data: bytes, sizes: list[int]) -> None:
    check_text(data, folder / "x.csv", sizes)


@CAREFUL
@given(JSON_TEXTS, SIZES)
def test_pieces_of_json_lines_are_the_whole(folder: Path, data: bytes, sizes: list[int]) -> None:
    check_text(data, folder / "x.jsonl", sizes)


def check_growing(data: bytes, path: Path, cuts: list[int], most: int) -> None:
    """Pieces found while a file grows stay what they are, read at once or later."""
    location = parse_location(path.name, path.parent)
    place = START
    pieces: list[Piece] = []
    at_once: list[Chunk] = []
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        path.write_bytes(data[:cut])
        for final in (False, True) if cut == len(data) else (False,):
            found = list(pieces_of(location, path, most, final=final, place=place))
            at_once += read_pieces(location, path, found)
            pieces += found
            place = (found[-1].last, found[-1].next_line) if found else place
    expected = everything(whole(data, location, path.name), TRADES)
    assert expected == everything(at_once, TRADES)
    assert expected == everything(read_pieces(location, path, pieces), TRADES)


CUTS = st.lists(st.integers(0, 500), max_size=5)


@CAREFUL
@given(CSV_TEXTS, CUTS, st.integers(1, 80))
def test_a_csv_file_that_grows(folder: Path, data: bytes, cuts: list[int], most: int) -> None:
    check_growing(data, folder / "g.csv", cuts, most)


@CAREFUL
@given(JSON_TEXTS, CUTS, st.integers(1, 80))
def test_json_lines_that_grow(folder: Path, data: bytes, cuts: list[int], most: int) -> None:
    check_growing(data, folder / "g.jsonl", cuts, most)


@pytest.mark.proof
@settings(CAREFUL, max_examples=500)
@given(CSV_TEXTS, SIZES, CUTS)
def test_many_csv_files(folder: Path, data: bytes, sizes: list[int], cuts: list[int]) -> None:
    check_text(data, folder / "many.csv", sizes)
    check_growing(data, folder / "many.csv", cuts, sizes[0])


@pytest.mark.proof
@settings(CAREFUL, max_examples=500)
@given(JSON_TEXTS, SIZES, CUTS)
def test_many_json_lines(folder: Path, data: bytes, sizes: list[int], cuts: list[int]) -> None:
    check_text(data, folder / "many.jsonl", sizes)
    check_growing(data, folder / "many.jsonl", cuts, sizes[0])


@CAREFUL
@given(st.lists(CSV_PARTS, max_size=12).map(b"".join), st.booleans(), st.booleans())
def test_the_compiled_search_for_rows_is_the_obvious_one(
    data: bytes, final: bool, just_one: bool
) -> None:
    window = FileWindow(io.BytesIO(data).read, "x.csv")
    window.final = final
    slow = csv_rows_slowly(window, LONGEST, just_one=just_one)
    assert slow == csv_rows_quickly(window, LONGEST, just_one=just_one)


def test_a_piece_ends_with_a_row_and_knows_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'sym,ts,price\na,1,2\n\nb,2,3\n"c\n",3,4\nd,4,5')
    location = parse_location("x.csv", tmp_path)
    expected = [
        Piece(0, 19, 1, 3, 19),
        Piece(19, 26, 3, 5, 7),
        Piece(26, 35, 5, 7, 9),
        Piece(35, 40, 7, 8, 5),
    ]
    assert expected == list(pieces_of(location, path, 1))
    assert expected[:3] == list(pieces_of(location, path, 1, final=False))
    assert [Piece(0, 40, 1, 8, 40)] == list(pieces_of(location, path, 1000))


def test_a_file_without_rows_has_no_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    location = parse_location("x.csv", tmp_path)
    for text in ("sym,ts,price\n", "sym,ts,price", "sym,ts,price\n\n\r\n"):
        path.write_text(text)
        assert [] == list(pieces_of(location, path, 10))


def test_a_header_is_waited_for_and_then_must_be_sound(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    location = parse_location("x.csv", tmp_path)
    for text in ("", "sym,ts", '"sym\n,ts', "sym,ts,price\na,1"):
        path.write_text(text)
        assert [] == list(pieces_of(location, path, 10, final=False))
    path.write_text('sym"x,ts\n')
    for final in (True, False):
        with pytest.raises(CheckError, match="cannot read the header: a quote inside"):
            list(pieces_of(location, path, 10, final=final))
    path.write_text("")
    with pytest.raises(CheckError, match="the file is empty, expected a header line"):
        list(pieces_of(location, path, 10))


def test_columns_are_checked_when_any_piece_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("sym,ts,prise\na,1,2\nb,2,3\n")
    location = parse_location("x.csv", tmp_path)
    for piece in pieces_of(location, path, 1):
        with pytest.raises(CheckError, match='no column "price"'):
            open_piece(location, TRADES, path, piece)


def test_json_lines_are_checked_for_times_at_the_beginning_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    location = parse_location("x.jsonl", tmp_path)
    path.write_text('{"n":1}\n{"_time":1,"n":1}\n{"n":2}\n')
    pieces = list(pieces_of(location, path, 1, input_=ALL_TYPES))
    chunks = read_pieces(location, path, pieces, input_=ALL_TYPES)
    assert [1, 3] == [r.position for r in everything(chunks, ALL_TYPES)[1]]
    path.write_text('{"n":1}\n{"n":1}\n{"n":2}\n')
    with pytest.raises(CheckError, match='no column "_time"'):
        open_piece(location, ALL_TYPES, path, pieces[0])


def test_an_overlong_line_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"sym,ts,price\n" + b"x" * (3 << 20) + b"\na,1,2\n" + b'"' * (3 << 20))
    location = parse_location("x.csv", tmp_path)
    expected = read_all(file_opener(location, TRADES)(path))
    pieces = list(pieces_of(location, path, 100, longest=1 << 20))
    found = [c for p in pieces for c in read_all(open_piece(location, TRADES, path, p))]
    assert everything(expected, TRADES) == everything(found, TRADES)
    assert 3 == len(pieces)
    assert 2 == len(list(pieces_of(location, path, 100, longest=1 << 20, final=False)))


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_windows_of_any_size_see_the_same_rows(name: str) -> None:
    """A line of blanks is blank however long it is."""
    location = parse_location(name, Path())
    data = b"sym,ts,price\na,1,2\n" if name == "x.csv" else b'{"ts":1}\n'
    data += b" " * 3000 + b"\n" + b" " * 3000 + b"x\n" + b" \n" + b"\r" * 3000 + b"\n" + b" " * 3000
    decoder_of: Any = csv_decoder if name == "x.csv" else jsonl_decoder
    expected = everything(whole(data, location, name, 1000), TRADES)
    for piece in (7, 500, 1500, 2000):
        window = FileWindow(io.BytesIO(data).read, name, piece)
        decoder = decoder_of(TRADES, 1000, 1000)(window)
        assert expected == everything(list(decoded(window, decoder)), TRADES)


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.csv.gz", "x.parquet"])
def test_a_file_that_has_become_shorter_is_told(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_trades(path, 10)
    location = parse_location(name, tmp_path)
    piece = list(pieces_of(location, path, 1))[-1]
    write_trades(path, 2)
    with pytest.raises(RunError) as caught:
        next_piece(location, TRADES, path, piece.last, piece.next_line, 1, final=False)
    assert f"{name}: has become shorter since it was read" == str(caught.value)
    if name != "x.csv.gz":
        with pytest.raises(RunError, match="has become shorter since it was read"):
            read_pieces(location, path, [piece])


def write_trades(path: Path, rows: int) -> None:
    values = [(f"s{i % 3}", i, i / 4) for i in range(rows)]
    if path.suffix == ".parquet":
        sym, ts, price = zip(*values, strict=True)
        pq.write_table(pa.table({"sym": sym, "ts": ts, "price": price}), path)
    elif path.suffix == ".jsonl":
        lines = (f'{{"sym":"{s}","ts":{t},"price":{p}}}\n' for s, t, p in values)
        path.write_text("".join(lines))
    else:
        text = "sym,ts,price\n" + "".join(f"{s},{t},{p}\n" for s, t, p in values)
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@pytest.mark.parametrize("end", ["3", '"3', "3,", "\r"])
def test_a_last_line_without_a_break_stays_what_it_was(tmp_path: Path, end: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text("sym,ts,price\na,1,2\nb,2," + end, newline="")
    location = parse_location("x.csv", tmp_path)
    pieces = list(pieces_of(location, path, 100))
    expected = everything(read_pieces(location, path, pieces), TRADES)
    with path.open("a") as file:
        file.write('"\nc,3,4\n')
    assert expected == everything(read_pieces(location, path, pieces), TRADES)


def test_a_final_file_whose_last_row_has_grown_after_all_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('sym,ts,price\na,1,2\nb,2,"3\n')
    location = parse_location("x.csv", tmp_path)
    pieces = list(pieces_of(location, path, 100))
    path.write_text('sym,ts,price\na,1,2\nb,2,"3\n"\n')
    with pytest.raises(RunError, match=r"x.csv: has changed since it was read"):
        read_pieces(location, path, pieces)


def test_a_compressed_file_is_one_piece(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    write_trades(path, 1000)
    location = parse_location("x.csv.gz", tmp_path)
    size = path.stat().st_size
    pieces = [next_piece(location, TRADES, path, first, 1, 1, final=True) for first in (0, size)]
    assert [Piece(0, size, 1, 1, size), None] == pieces
    assert 1000 == sum(c.read for c in read_pieces(location, path, [Piece(0, size, 1, 1, size)]))


def test_which_files_can_grow(tmp_path: Path) -> None:
    expected = {"x.csv": True, "x.jsonl": True, "x.ndjson": True, "csv:x": True,
                "x.csv.gz": False, "x.jsonl.gz": False, "x.parquet": False}  # fmt: skip
    for name, can_grow in expected.items():
        location = parse_location(name, tmp_path)
        assert location.path is not None
        assert can_grow == is_growable(location, location.path)


NASTY = pa.table({
    "sym": pa.array([None if i % 7 == 0 else f"s{i % 5}" for i in range(100)]),
    "ts": pa.array([None if i % 11 == 3 else i for i in range(100)], pa.int64()),
    "price": pa.array([None if i % 3 == 0 else i / 8 for i in range(100)]),
})  # fmt: skip


@pytest.mark.parametrize(
    ("most", "groups", "chunk_rows"),
    [(1, 7, 1000), (100, 64, 3), (700, 7, 3), (700, 1000, 1000), (1500, 64, 7), (10_000, 7, 1000)],
)
def test_pieces_of_parquet_are_the_whole(
    tmp_path: Path, most: int, groups: int, chunk_rows: int
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(NASTY, path, row_group_size=groups)
    location = parse_location("x.parquet", tmp_path)
    expected = everything(read_all(file_opener(location, TRADES)(path)), TRADES)
    pieces = list(pieces_of(location, path, most))
    assert expected == everything(read_pieces(location, path, pieces, chunk_rows), TRADES)
    assert abs(sum(p.size for p in pieces) - path.stat().st_size) <= len(pieces)
    assert [(p.first + 1, p.last + 1) for p in pieces] == [(p.line, p.next_line) for p in pieces]


def test_every_type_of_parquet_can_be_read_from_the_middle(tmp_path: Path) -> None:
    """Bits and dictionaries do not begin where an array does."""
    rows = 50
    table = pa.table({
        "_time": range(rows), "n": [i / 4 for i in range(rows)], "i": range(rows),
        "t": pa.array([f"t{i % 3}" for i in range(rows)]).dictionary_encode(),
        "b": [[True, None, False][i % 3] for i in range(rows)],
        "at": pa.array(range(rows), pa.timestamp("ms")),
        "d": pa.array(range(rows), pa.duration("s")),
    })  # fmt: skip
    path = tmp_path / "x.parquet"
    pq.write_table(table, path)
    location = parse_location("x.parquet", tmp_path)
    expected = everything(read_all(file_opener(location, ALL_TYPES)(path)), ALL_TYPES)
    for cut in (1, 7, 8, 15, 16, 17, 31, 49):
        pieces = [Piece(0, cut, 1, cut + 1, 1), Piece(cut, rows, cut + 1, rows + 1, 1)]
        chunks = read_pieces(location, path, pieces, 16, ALL_TYPES)
        assert expected == everything(chunks, ALL_TYPES)


def test_row_groups_stay_whole_if_they_fit(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(NASTY, path, row_group_size=25)
    location = parse_location("x.parquet", tmp_path)
    size = path.stat().st_size
    assert [50, 100] == [p.last for p in pieces_of(location, path, int(size * 0.7))]
    assert [25, 50, 75, 100] == [p.last for p in pieces_of(location, path, int(size * 0.3))]
    parts = [p.last for p in pieces_of(location, path, size // 8)]
    assert {25, 50, 75, 100} < set(parts)
    assert 8 <= len(parts) <= 12


def test_half_a_parquet_file_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(NASTY, path)
    location = parse_location("x.parquet", tmp_path)
    data = path.read_bytes()
    for length in (0, 3, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        assert next_piece(location, TRADES, path, 0, 1, 100, final=False) is None
        with pytest.raises(RunError, match="not a readable Parquet file"):
            next_piece(location, TRADES, path, 0, 1, 100, final=True)
    path.write_bytes(data)
    assert next_piece(location, TRADES, path, 0, 1, 100, final=False) is not None


def generator(**options: object) -> Location:
    return Location(Format.GENERATOR, generator=settings_of(options))


@pytest.mark.parametrize("most", [1, 64 * 7, 64 * 1000])
def test_pieces_of_a_generator_are_the_whole(most: int) -> None:
    columns = {"n": {"walk": 0.1, "max": 100.2}, "t": {"values": ["x", "y"], "weights": [1, 3]}}
    location = generator(rows=50, seed=5, interval=10, columns=columns)
    expected = everything(read_all(open_reader(location, ALL_TYPES)), ALL_TYPES)
    pieces = list(pieces_of(location, None, most))
    chunks = read_pieces(location, None, pieces, 4, ALL_TYPES)
    assert expected == everything(chunks, ALL_TYPES)
    assert 50 * 64 == sum(p.size for p in pieces)


def test_a_generator_with_fewer_rows_than_were_read_is_told() -> None:
    with pytest.raises(RunError, match="generator: has become shorter since it was read"):
        next_piece(generator(rows=5), TRADES, None, 6, 7, 1, final=True)
    with pytest.raises(RunError, match="generator: has become shorter since it was read"):
        open_piece(generator(rows=5), TRADES, None, Piece(4, 6, 5, 7, 1))


@pytest.mark.parametrize(("text", "rate"), [("", None), ("rate=1000", 1000.0), ("rate=0.5", 0.5)])
def test_the_rate_of_a_generator(text: str, rate: float | None) -> None:
    assert rate == settings_in(text).rate


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf"])
def test_a_rate_that_cannot_be_is_told(rate: str) -> None:
    with pytest.raises(UsageError, match='"rate" must be a positive number of rows per second'):
        settings_of({"rate": rate})
    with pytest.raises(UsageError, match='the generator\'s "rate": expected a number, got "fast"'):
        settings_of({"rate": "fast"})


def test_a_finite_run_does_not_wait_for_the_rate_of_a_generator() -> None:
    location = parse_location("generator:rows=3,rate=0.001", Path())
    assert 3 == sum(c.read for c in read_all(open_reader(location, TRADES)))
