"""Readers: rows in, from files one after another, standard input or a generator."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from millstream.calculus.graph import Input
from millstream.connectors.chunks import Chunk, Reader
from millstream.connectors.dialect import recoded
from millstream.connectors.generate import GeneratorReader
from millstream.connectors.keys import check_keys
from millstream.connectors.location import Format, Location, matching_files
from millstream.connectors.native import SparkOnly
from millstream.connectors.numbered import numbered
from millstream.connectors.read_csv import csv_decoder
from millstream.connectors.read_jsonl import jsonl_decoder
from millstream.connectors.read_lines import lines_decoder
from millstream.connectors.window import TextReader, open_file
from millstream.errors import UsageError

TEXT_ROWS = 65_536
PARQUET_ROWS = 262_144

OpenFile = Callable[[Path], Reader]


def open_reader(
    location: Location,
    input_: Input,
    *,
    chunk_rows: int | None = None,
    stdin: BinaryIO | None = None,
) -> Reader:
    """A reader whose columns have been checked: a file that does not fit is told at once."""
    if location.format is Format.GENERATOR:
        assert location.generator is not None
        return GeneratorReader(location.generator, input_, chunk_rows or PARQUET_ROWS)
    if location.format is Format.SPARK:
        return SparkOnly(location.text)
    if location.path is None:
        if location.format is Format.RAW:
            raise UsageError("raw items cannot be read from standard input", place=location.text)
        if stdin is None:
            return StandardInput(location, input_, chunk_rows)
        text = _open_text(stdin, "standard input", location, input_, chunk_rows)
        return numbered(text, input_)
    files = matching_files(location)
    open_one = file_opener(location, input_, chunk_rows)
    for path in files:
        open_one(path).close()
        if location.format is Format.JSONL:
            name = location.name_of(path)
            with open_file(path, name) as stream:
                check_keys(stream, name, input_)
    return numbered(FilesReader(files, open_one), input_)


def file_opener(location: Location, input_: Input, chunk_rows: int | None = None) -> OpenFile:
    """What opens one file of a location and checks its columns."""

    def open_one(path: Path) -> Reader:
        name = location.name_of(path)
        if location.format is Format.PARQUET:
            from millstream.connectors.read_parquet import ParquetReader

            return ParquetReader(path, name, input_, chunk_rows or PARQUET_ROWS)
        if location.format is Format.RAW:
            from millstream.connectors.raw import RawReader

            return RawReader(path, name, input_, chunk_rows or PARQUET_ROWS, location.rows)
        return _open_text(open_file(path, name), name, location, input_, chunk_rows)

    return open_one


def _open_text(
    stream: BinaryIO, name: str, location: Location, input_: Input, chunk_rows: int | None
) -> Reader:
    rows = chunk_rows or TEXT_ROWS
    if location.format is Format.LINES:
        return TextReader(stream, name, lines_decoder(input_, rows))
    is_csv = location.format is Format.CSV
    if is_csv:
        stream = recoded(stream, location.dialect)
        return TextReader(stream, name, csv_decoder(input_, rows, dialect=location.dialect))
    return TextReader(stream, name, jsonl_decoder(input_, rows))


class StandardInput:
    """Opened when its rows are asked for: whoever copies it needs its first byte, too."""

    def __init__(self, location: Location, input_: Input, chunk_rows: int | None) -> None:
        self._given = location, input_, chunk_rows

    def chunks(self) -> Iterator[Chunk]:
        location, input_, chunk_rows = self._given
        return open_reader(location, input_, chunk_rows=chunk_rows, stdin=sys.stdin.buffer).chunks()

    def close(self) -> None:
        """Standard input belongs to the process and stays open."""


class FilesReader:
    """Mutable: reads files one after another, with one open at a time."""

    def __init__(self, files: Sequence[Path], open_one: OpenFile) -> None:
        self._files = files
        self._open_one = open_one
        self._current: Reader | None = None

    def chunks(self) -> Iterator[Chunk]:
        for path in self._files:
            self._current = self._open_one(path)
            yield from self._current.chunks()
            self.close()

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
            self._current = None
