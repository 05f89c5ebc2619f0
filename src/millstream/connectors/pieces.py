"""Any run of whole rows of a file, found and read on its own.

So a file can be read by several tasks, in batches smaller than itself, and while it grows.
All pieces of a file, however it is cut, give the rows and the rejected rows of the whole.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from millstream.calculus.graph import Input
from millstream.connectors.blocks import Blocks, BlocksReader, is_ours
from millstream.connectors.chunks import Chunk, Reader
from millstream.connectors.csv_rows import LONGEST_ROW
from millstream.connectors.dialect import Dialect, is_read_whole
from millstream.connectors.generate import GeneratorReader
from millstream.connectors.layout import layout_of_objects
from millstream.connectors.location import Format, Location
from millstream.connectors.numbered import numbered
from millstream.connectors.pieces_text import (
    NotYet,
    RowFinder,
    all_lines_in,
    csv_rows_in,
    has_passed_rows,
    json_rows_in,
    window_at,
)
from millstream.connectors.raw import RawReader, rows_in
from millstream.connectors.read import PARQUET_ROWS, TEXT_ROWS, file_opener
from millstream.connectors.read_csv import csv_decoder, skip_header
from millstream.connectors.read_jsonl import JsonlDecoder, jsonl_decoder
from millstream.connectors.read_lines import lines_decoder
from millstream.connectors.settings import GeneratorSettings
from millstream.connectors.window import Decoder, FileWindow, decoded, open_file, shorter

#: A position in a file, and the line that begins there.
Place = tuple[int, int]
START: Place = (0, 1)
#: More than any file has.
_ALL = 1 << 62
_HEADER_BYTES = 1 << 16
_LOOKED_AHEAD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of whole rows of one file or generator.

    [first, last) is in bytes of a text, in rows of Parquet or a generator.
    """

    first: int
    last: int
    #: The number of the first line of a text, as an editor counts; first + 1 elsewhere.
    line: int
    #: The line after the last of a text (not known, and 1, of a compressed one); last + 1
    #: elsewhere.
    next_line: int
    #: About how many bytes it takes in the file.
    size: int


def is_growable(location: Location, path: Path) -> bool:
    """Whether bytes appended to the file later are rows of it."""
    is_text = location.format in (Format.CSV, Format.JSONL, Format.LINES) and not is_ours(path)
    return is_text and not is_read_whole(path, location.dialect)


def is_counted_in_rows(location: Location, path: Path) -> bool:
    """Whether pieces are runs of rows, which can be cut anywhere."""
    return location.format in (Format.PARQUET, Format.RAW, Format.GENERATOR) or is_ours(path)


def next_piece(
    location: Location,
    input_: Input,
    path: Path | None,
    first: int,
    line: int,
    most: int,
    *,
    final: bool,
    longest: int = LONGEST_ROW,
) -> Piece | None:
    """The next rows from a place on, of about `most` bytes, but at least one row.

    None if there is no whole row there (yet). If the file is `final`, it will not grow any
    more, so its last line needs no line break; else such a line is left for later.
    """
    if path is None:
        assert location.generator is not None, location
        return _next_generated(location.generator, first, most)
    name = location.name_of(path)
    if is_ours(path):
        return _next_of_ours(path, name, first, most)
    if location.format is Format.PARQUET:
        from millstream.connectors.pieces_parquet import next_rows

        reach = next_rows(path, name, first, most, final=final)
        return None if reach is None else Piece(first, reach[0], first + 1, reach[0] + 1, reach[1])
    if location.format is Format.RAW:
        return _next_raw(location, input_, path, first, most)
    with open_file(path, name) as stream:
        if is_read_whole(path, location.dialect):
            return _whole(path, name, first)
        target = first + max(1, most)
        find_rows = _finder(location)
        try:
            window = window_at(stream, name, first, line, target, final=final)
            if location.format is Format.CSV and first == 0:
                skip_header(window, input_, longest, location.dialect)
        except NotYet:
            return None
        if not has_passed_rows(window, find_rows, target, longest):
            return None
    return Piece(first, window.position, line, window.line, window.position - first)


def _next_generated(settings: GeneratorSettings, first: int, most: int) -> Piece | None:
    if first > settings.rows:
        raise shorter("generator")
    last = min(settings.rows, first + max(1, most // max(settings.size, 1)))
    if first == last:
        return None
    return Piece(first, last, first + 1, last + 1, (last - first) * settings.size)


def _next_raw(location: Location, input_: Input, path: Path, first: int, most: int) -> Piece | None:
    width = 4 * max(len(input_.type.schema.names), 1)
    rows = rows_in(path, location.name_of(path), width // 4, location.rows)
    last = min(rows, first + max(1, most // width))
    return Piece(first, last, first + 1, last + 1, (last - first) * width) if first < last else None


def _next_of_ours(path: Path, name: str, first: int, most: int) -> Piece | None:
    rows = len(Blocks(path))
    if rows < first:
        raise shorter(name)
    if rows == first:
        return None
    width = max(1, path.stat().st_size // rows)
    last = min(rows, first + max(1, most // width))
    return Piece(first, last, first + 1, last + 1, (last - first) * width)


def _whole(path: Path, name: str, first: int) -> Piece | None:
    """All or nothing: there is no way into the middle of a compressed file."""
    size = path.stat().st_size
    if size < first:
        raise shorter(name)
    return Piece(0, size, 1, 1, size) if size and not first else None


def open_piece(
    location: Location,
    input_: Input,
    path: Path | None,
    piece: Piece,
    chunk_rows: int | None = None,
    *,
    longest: int = LONGEST_ROW,
    number: int = 1,
) -> Reader:
    """A reader of exactly these rows; those it rejects are told as by the whole file's.

    `number` is that of its first row among all of the input, if these have no times.
    """
    reader = _open_piece(location, input_, path, piece, chunk_rows, longest)
    return numbered(reader, input_, number)


def _open_piece(
    location: Location, input_: Input, path: Path | None, piece: Piece, chunk_rows: int | None,
    longest: int,
) -> Reader:  # fmt: skip
    rows = (piece.first, piece.last)
    if path is None:
        assert location.generator is not None, location
        if location.generator.rows < piece.last:
            raise shorter("generator")
        return GeneratorReader(location.generator, input_, chunk_rows or PARQUET_ROWS, rows)
    name = location.name_of(path)
    if is_ours(path):
        return BlocksReader(path, name, input_, *rows)
    if location.format is Format.PARQUET:
        from millstream.connectors.read_parquet import ParquetReader

        return ParquetReader(path, name, input_, chunk_rows or PARQUET_ROWS, rows)
    if location.format is Format.RAW:
        return RawReader(path, name, input_, chunk_rows or PARQUET_ROWS, location.rows, rows)
    if is_read_whole(path, location.dialect):
        return file_opener(location, input_, chunk_rows)(path)
    opened = _OPENERS.get(location.format, _open_jsonl)
    stream = open_file(path, name)
    try:
        if stream.seek(0, os.SEEK_END) < piece.last:
            raise shorter(name)
        window, decoder = opened(
            stream, name, input_, piece, chunk_rows or TEXT_ROWS, longest, location.dialect
        )
    except BaseException:
        stream.close()
        raise
    return TextPieceReader(stream, window, decoder)


def rest_of(location: Location, input_: Input, path: Path, place: Place) -> Piece | None:
    """All that a file holds from a place on; None if that is nothing."""
    return next_piece(location, input_, path, *place, _ALL, final=True)


def _open_csv(
    stream: BinaryIO, name: str, input_: Input, piece: Piece, chunk_rows: int, longest: int,
    dialect: Dialect,
) -> tuple[FileWindow, Decoder]:  # fmt: skip
    """What a broken row is may depend on what comes after the piece.

    But a piece whose last line has no break was the end of the file, and stays as it was.
    """
    decoder_of = csv_decoder(input_, chunk_rows, longest, dialect)
    stream.seek(0)
    decoder = decoder_of(FileWindow(stream.read, name, _HEADER_BYTES)) if piece.first else None
    read = _reading(stream, piece, _LOOKED_AHEAD_BYTES if _ends_line(stream, piece) else 0)
    window = FileWindow(read, name, offset=piece.first, line=piece.line, last=piece.last)
    return window, decoder_of(window) if decoder is None else decoder


def _ends_line(stream: BinaryIO, piece: Piece) -> bool:
    stream.seek(piece.last - 1)
    return stream.read(1) == b"\n"


def _open_jsonl(
    stream: BinaryIO, name: str, input_: Input, piece: Piece, chunk_rows: int, longest: int,
    dialect: Dialect,
) -> tuple[FileWindow, Decoder]:  # fmt: skip
    """Whether a file has times at all is seen at its beginning, not in the middle."""
    stream.seek(0)
    if piece.first == 0:
        jsonl_decoder(input_, chunk_rows, longest)(FileWindow(stream.read, name, _HEADER_BYTES))
    window = FileWindow(_reading(stream, piece, 0), name, offset=piece.first, line=piece.line)
    return window, JsonlDecoder(layout_of_objects(input_), name, chunk_rows, longest)


def _open_lines(
    stream: BinaryIO, name: str, input_: Input, piece: Piece, chunk_rows: int, longest: int,
    dialect: Dialect,
) -> tuple[FileWindow, Decoder]:  # fmt: skip
    window = FileWindow(_reading(stream, piece, 0), name, offset=piece.first, line=piece.line)
    return window, lines_decoder(input_, chunk_rows, longest)(window)


def _finder(location: Location) -> RowFinder:
    """What finds whole rows."""
    if location.format is Format.CSV:
        return functools.partial(csv_rows_in, dialect=location.dialect)
    return all_lines_in if location.format is Format.LINES else json_rows_in


#: What opens a piece of texts that are no JSON Lines.
_OPENERS = {Format.CSV: _open_csv, Format.LINES: _open_lines}


def _reading(stream: BinaryIO, piece: Piece, ahead: int) -> Callable[[int], bytes]:
    """Reads a piece, then bit by bit what comes after it if it is asked for more."""
    at = stream.seek(piece.first)

    def read(most: int) -> bytes:
        nonlocal at
        data = stream.read(min(most, piece.last - at) if at < piece.last else ahead)
        at += len(data)
        return data

    return read


class TextPieceReader:
    """Mutable: an open file, of which a piece is read."""

    def __init__(self, stream: BinaryIO, window: FileWindow, decoder: Decoder) -> None:
        self._stream = stream
        self._window = window
        self._decoder = decoder

    def chunks(self) -> Iterator[Chunk]:
        return decoded(self._window, self._decoder)

    def close(self) -> None:
        self._stream.close()
