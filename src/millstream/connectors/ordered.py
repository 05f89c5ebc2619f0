"""What is there of an input, in time order: for runs that come to an end.

Files that are in order by themselves and do not overlap are only read in the order of their
times. Only what is not in order is sorted: files that overlap, together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from millstream.calculus.graph import Input
from millstream.connectors.chunks import Chunk, Reader
from millstream.connectors.location import Format, Location, matching_files
from millstream.connectors.pieces import START
from millstream.connectors.read import FilesReader, file_opener
from millstream.connectors.sorting import Sorter
from millstream.connectors.times import Spread, spreads_of
from millstream.plan.batch import empty_batch

#: A file alone that is not larger is not read twice: it is sorted in memory if need be.
SMALL_BYTES = 16 << 20
#: Likewise where times can be read without all else, which takes a tenth of the time.
_SMALL_WITH_COLUMNS = 1 << 20


@dataclass(frozen=True, slots=True)
class FileRun:
    """Files, by their numbers, that are read one after another or sorted together."""

    files: tuple[int, ...]
    is_in_order: bool


def stretches(spreads: Sequence[Spread | None], slack: int) -> list[FileRun]:
    """The order in which files are read, and which of them must be sorted for it.

    If nothing is late in the order that they have, they keep it. Files without rows come first.
    """
    numbers = range(len(spreads))
    with_rows = [(n, s) for n, s in enumerate(spreads) if s is not None]
    if _are_in_order([s for _, s in with_rows], slack):
        return [FileRun(tuple(numbers), is_in_order=True)]
    with_rows.sort(key=lambda file: (file[1].oldest, file[1].newest))
    order = [FileRun((n,), is_in_order=True) for n in numbers if spreads[n] is None]
    largest: int | None = None
    for number, spread in with_rows:
        if largest is not None and largest - spread.oldest > slack:
            order[-1] = FileRun((*order[-1].files, number), is_in_order=False)
        else:
            order.append(FileRun((number,), is_in_order=spread.behind <= slack))
        largest = spread.newest if largest is None else max(largest, spread.newest)
    return order


def _are_in_order(spreads: Sequence[Spread], slack: int) -> bool:
    largest: int | None = None
    for spread in spreads:
        if spread.behind > slack or (largest is not None and largest - spread.oldest > slack):
            return False
        largest = spread.newest if largest is None else max(largest, spread.newest)
    return True


def in_order(reader: Reader, input_: Input) -> Iterator[Chunk]:
    """The rows of a reader in time order; those that it rejects are told as they are met."""
    sorter = Sorter(input_.type, input_.waits)
    for chunk in reader.chunks():
        sorter.add(chunk.batch)
        if chunk.rejected:
            yield replace(chunk, batch=empty_batch(input_.type))
    for batch in sorter.batches():
        yield Chunk(batch)


def _is_read_at_once(location: Location, files: list[Path]) -> bool:
    """Rows that come once, and those of a small file."""
    if len(files) != 1:
        return not files
    has_columns = location.of_file(files[0]).format is Format.PARQUET
    return files[0].stat().st_size <= (_SMALL_WITH_COLUMNS if has_columns else SMALL_BYTES)


class OrderedReader:
    """Mutable: reads an input to its end before it gives the first row, if it must."""

    def __init__(self, reader: Reader, input_: Input, location: Location | None = None) -> None:
        self._reader = reader
        self._input = input_
        self._location = location

    def chunks(self) -> Iterator[Chunk]:
        location = self._location
        files = matching_files(location) if location is not None and location.is_at_hand else []
        if location is None or _is_read_at_once(location, files):
            yield from in_order(self._reader, self._input)
            return
        spreads = spreads_of(location, self._input, [(path, START) for path in files])
        for stretch in stretches(spreads, self._input.waits):
            self._reader = self._reader_of(location, [files[n] for n in stretch.files])
            is_free = stretch.is_in_order
            yield from self._reader.chunks() if is_free else in_order(self._reader, self._input)
            self.close()

    def _reader_of(self, location: Location, files: list[Path]) -> Reader:
        return FilesReader(files, file_opener(location, self._input))

    def close(self) -> None:
        self._reader.close()
