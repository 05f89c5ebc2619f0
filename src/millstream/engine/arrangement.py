"""In what order the files of inputs are read, decided when a run that ends starts.

What is not in time order is copied into the checkpoint in that order, and so is what only the
driver can read. Everything is written down, so that a run that takes the job up goes on in the
same order; what has come since is arranged among itself, and comes after it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from millstream.calculus.graph import Input
from millstream.connectors.blocks import REJECTED, ROWS, is_ours, write_rejected, write_rows
from millstream.connectors.chunks import Chunk, Reader, Rejected
from millstream.connectors.location import Location, files_now
from millstream.connectors.ordered import in_order, stretches
from millstream.connectors.pieces import START, Piece, Place, is_growable, open_piece, rest_of
from millstream.connectors.times import spreads_of
from millstream.engine.storage.files import LocalFiles
from millstream.engine.storage.records import read_record, write_record
from millstream.plan.batch import Batch

FOLDER = "inputs"
_RECORD = "inputs/order"
#: The place in a file that has been taken to its end, and to which nothing can be added.
DONE: Place = (-1, 0)

#: A file and how long it was; None if it cannot grow.
Entry = tuple[str, int | None]
Taken = Mapping[str, Place]


def name_of(location: Location, path: Path | str) -> str:
    """A file as the checkpoint knows it: a job may be moved together with its input."""
    return str(path).removeprefix(f"{location.base}{os.sep}")


def path_of(checkpoint: Path, location: Location, name: str) -> Path:
    path = location.base / name
    return checkpoint / name if is_ours(path) else path


@dataclass
class Arrangement:
    """Mutable: what is written down in a checkpoint, by the names of inputs."""

    files: LocalFiles
    order: dict[str, list[Entry]] = field(default_factory=dict)
    #: How far files have been copied; what comes after that is read from them.
    copied: dict[str, dict[str, Place]] = field(default_factory=dict)
    copies: int = 0
    #: What each copy is made of: path, first, last, line, next line and size of pieces.
    sources: dict[str, list[list[Any]]] = field(default_factory=dict)

    @staticmethod
    def of(files: LocalFiles) -> Arrangement:
        if Path(_RECORD).name not in files.names(FOLDER):
            return Arrangement(files)
        stored: Any = json.loads(read_record(files, _RECORD)["order"])
        order = {name: [(p, end) for p, end in some] for name, some in stored["order"].items()}
        copied = {name: {p: (first, line) for p, (first, line) in some.items()}
                  for name, some in stored["copied"].items()}  # fmt: skip
        return Arrangement(files, order, copied, stored["copies"], stored["sources"])

    def save(self) -> None:
        if not self.order:
            return
        # As one text: there may be many names, and records look at every value.
        text = json.dumps({"order": self.order, "copied": self.copied, "copies": self.copies,
                           "sources": self.sources})  # fmt: skip
        write_record(self.files, _RECORD, {"order": text})

    def taken(self, name: str, planned: Taken) -> dict[str, Place]:
        """How far each file of an input has been taken, by plans or by copies."""
        places = dict(planned)
        for path, place in self.copied.get(name, {}).items():
            before = places.get(path, START)
            places[path] = DONE if DONE in (place, before) else max(before, place)
        return places

    def unfinished(self, name: str, planned: Taken) -> list[Entry]:
        """What of an earlier order has not been taken yet."""
        taken = self.taken(name, planned)

        def is_taken(path: str, end: int | None) -> bool:
            first, _ = taken.get(path, START)
            return first == DONE[0] or (end is not None and first >= end)

        return [(path, end) for path, end in self.order.get(name, []) if not is_taken(path, end)]

    def arrange(self, input_: Input, location: Location, planned: Taken) -> None:
        """Put the files of an input in order, after what an earlier run has not finished."""
        order = self.unfinished(input_.name, planned)
        waiting = {path for path, _ in order}
        taken = self.taken(input_.name, planned)
        files: list[tuple[Path, Place]] = []
        for path in files_now(location):
            place = taken.get(name := name_of(location, path), START)
            if name not in waiting and place != DONE and _has_more(location, path, place):
                files.append((path, place))
        spreads = spreads_of(location, input_, files)
        for stretch in stretches(spreads, input_.waits) if files else ():
            some = [files[number] for number in stretch.files]
            if stretch.is_in_order:
                order += [(name_of(location, path), _length(location, path)) for path, _ in some]
            else:
                order += self._copied(input_, location, some)
        self.order[input_.name] = order

    def _copied(
        self, input_: Input, location: Location, files: Sequence[tuple[Path, Place]]
    ) -> list[Entry]:
        """Rows of several files in one, sorted."""
        rests = _Rests(location, input_, files)
        name = self._next_name()
        entries = self._kept(input_, name, in_order(rests, input_))
        self.sources[name] = [[name_of(location, path), *astuple(p)] for path, p in rests.read]
        places = self.copied.setdefault(input_.name, {})
        places.update({name_of(location, path): place for path, place in rests.ends.items()})
        return entries

    def keep(self, input_: Input, reader: Reader, *, is_following: bool) -> None:
        """Copy rows that only this process can read; an earlier run may have done it."""
        with closing(reader):
            if input_.name not in self.order:
                chunks = reader.chunks() if is_following else in_order(reader, input_)
                self.order[input_.name] = self._kept(input_, self._next_name(), chunks)

    def sources_of(self, path: str) -> list[tuple[str, int]]:
        """The files of which a copy was made, and how far; none if it cannot be made again."""
        return [(source[0], source[2]) for source in self.sources.get(_copy_of(path), ())]

    def copy_again(self, input_: Input, location: Location, path: str) -> list[Path]:
        """Make a copy that is gone; answers the files that are there then."""
        pieces = [
            (path_of(self.files.root, location, source), Piece(*numbers))
            for source, *numbers in self.sources[_copy_of(path)]
        ]
        made = self._kept(
            input_, _copy_of(path), in_order(_Pieces(location, input_, pieces), input_)
        )
        return [self.files.root / name for name, _ in made]

    def _next_name(self) -> str:
        name = f"{FOLDER}/{self.copies:09}"
        self.copies += 1
        return name

    def _kept(self, input_: Input, name: str, chunks: Iterator[Chunk]) -> list[Entry]:
        rejected: list[Rejected] = []

        def batches() -> Iterator[Batch]:
            for chunk in chunks:
                rejected.extend(chunk.rejected)
                yield chunk.batch

        (self.files.root / FOLDER).mkdir(parents=True, exist_ok=True)
        write_rows(self.files.root / f"{name}{ROWS}", input_.type, batches())
        if not rejected:
            return [(f"{name}{ROWS}", None)]
        write_rejected(self.files.root / f"{name}{REJECTED}", rejected)
        return [(f"{name}{REJECTED}", None), (f"{name}{ROWS}", None)]

    def forget_copies(self) -> None:
        """After a run that has come to its end: nobody will ask for them again."""
        for path in (self.files.root / FOLDER).glob("*"):
            if is_ours(path):
                path.unlink()


class _Rests:
    """Mutable: reads what files hold from places on, and knows where each has ended."""

    def __init__(
        self, location: Location, input_: Input, files: Sequence[tuple[Path, Place]]
    ) -> None:
        self._location = location
        self._input = input_
        self._files = files
        self.ends: dict[Path, Place] = {}
        self.read: list[tuple[Path, Piece]] = []

    def chunks(self) -> Iterator[Chunk]:
        for path, place in self._files:
            rest = rest_of(self._location, self._input, path, place)
            can_grow = is_growable(self._location, path)
            if rest is not None:
                self.ends[path] = (rest.last, rest.next_line) if can_grow else DONE
                self.read.append((path, rest))
                with closing(open_piece(self._location, self._input, path, rest)) as reader:
                    yield from reader.chunks()

    def close(self) -> None:
        """No file stays open."""


class _Pieces:
    """What has been read of some files, once more."""

    def __init__(self, location: Location, one: Input, pieces: list[tuple[Path, Piece]]) -> None:
        self._location = location
        self._input = one
        self._pieces = pieces

    def chunks(self) -> Iterator[Chunk]:
        for path, piece in self._pieces:
            with closing(open_piece(self._location, self._input, path, piece)) as reader:
                yield from reader.chunks()

    def close(self) -> None:
        """No file stays open."""


def _copy_of(path: str) -> str:
    """The name of a copy, of which rows and those rejected are two files."""
    return path.removesuffix(ROWS).removesuffix(REJECTED)


def _has_more(location: Location, path: Path, place: Place) -> bool:
    length = _length(location, path)
    return length is None or length > place[0]


def _length(location: Location, path: Path) -> int | None:
    return path.stat().st_size if is_growable(location, path) else None
