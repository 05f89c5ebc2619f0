"""The log of a job read again, as its batches have taken it.

Batches are not those that there were, but time passes over the same rows in the same way: where
an input had fallen silent, it does so again before the next row is read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millstream.connectors.blocks import is_ours
from millstream.connectors.location import Location, parse_location
from millstream.connectors.pieces import is_counted_in_rows, is_growable, next_piece
from millstream.engine.arrangement import FOLDER, Arrangement, path_of
from millstream.engine.history import TakenBatches, paths
from millstream.engine.inputs import anchored
from millstream.engine.job import Job
from millstream.engine.manifest import Manifest
from millstream.engine.planning import Plan, Planner, ReadingTask, file_of, most_rows
from millstream.engine.spec import InputSpec, SourceSpec
from millstream.engine.storage.files import LocalFiles

#: Of each input, how many pieces of a stretch have been read, and what is left of the next.
Cursor = dict[str, tuple[int, list[Any] | None]]


class ReadAgain:
    """Mutable: knows how far it has come. `files` are those of the checkpoint of the job."""

    def __init__(self, job: Job, files: LocalFiles, stretches: Sequence[TakenBatches]) -> None:
        self.job = job
        self.files = files
        self.stretches = stretches
        self.is_piped_out = threading.Event()
        self._planner: Rereader | None = None
        self._made: list[Path] = []

    @property
    def root(self) -> Path:
        return self.files.root

    @property
    def ends_here(self) -> bool:
        """Whether the batch that was planned last, or an earlier one, takes all that was left."""
        return self._planner is not None and self._planner.is_at_end

    def places(self) -> dict[str, Location]:
        """Where each input was read."""
        return {input_.name: self._place(input_.name) for input_ in self.job.program.inputs}

    def _place(self, name: str) -> Location:
        location = self.job.locations.get(name)
        if location is None or location.is_standard:
            return parse_location(f"parquet:{FOLDER}/{name}", self.root)
        return anchored(location)

    def locations(self, *, can_read_natives: bool) -> list[Location]:
        return list(self.places().values())

    def planner(
        self, spec: SourceSpec, files: LocalFiles, done: Callable[[], Manifest | None]
    ) -> Planner:
        self._planner = Rereader(spec, files, done=done, stretches=self.stretches)
        return self._planner

    def what_is_gone(self) -> str | None:
        """A file that was read and is not there any more, or is shorter than it was."""
        places = self.places()
        arrangement = Arrangement.of(self.files)
        for name, path, last in paths(self.stretches):
            location = places[name]
            if location.generator is not None:
                continue
            file = path_of(self.root, location, path)
            if is_ours(file) and not file.exists():
                read = arrangement.sources_of(path) or [(path, last)]
            else:
                read = [(path, last)]
            some = (self._gone(location, one, end) for one, end in read)
            gone = next(filter(None, some), None)
            if gone is not None:
                return gone
        return None

    def _gone(self, location: Location, path: str, last: int) -> str | None:
        file = path_of(self.root, location, path)
        try:
            size = file.stat().st_size
        except OSError:
            return f"the copy of its rows in {path}" if is_ours(file) else str(file)
        is_shorter = is_growable(location.of_file(file), file) and size < last
        return f"what was in {file}" if is_shorter else None

    def copy_again(self) -> None:
        """Put rows that were not in time order in order once more."""
        arrangement = Arrangement.of(self.files)
        places = self.places()
        inputs = {input_.name: input_ for input_ in self.job.program.inputs}
        for name, path, _ in paths(self.stretches):
            file = path_of(self.root, places[name], path)
            if is_ours(file) and not file.exists():
                self._made += arrangement.copy_again(inputs[name], places[name], path)

    def forget_copies(self) -> None:
        """Delete the copies that were made again."""
        for path in self._made:
            path.unlink(missing_ok=True)
        self._made = []

    def trim(self) -> None:
        """Whoever brings rows from elsewhere is told by the run itself."""


@dataclass
class Rereader(Planner):
    """Mutable: plans what has been read, in the order in which it was."""

    stretches: Sequence[TakenBatches] = field(default=(), kw_only=True)
    is_at_end: bool = False

    def tasks(self, seq: int) -> list[ReadingTask]:
        self.is_at_end = self._planned(seq)["stretch"] >= len(self.stretches)
        return super().tasks(seq)

    def is_over(self, *, is_piped_out: bool) -> bool:
        return True

    def _plan(self, seq: int) -> Plan | None:
        before = self._planned(seq - 1) if seq else None
        number = before["stretch"] if before is not None else 0
        if number >= len(self.stretches):
            self.is_at_end = True
            return None
        stretch = self.stretches[number]
        cursor: Cursor = before["cursor"] if before is not None else {}
        done = self.done() if self.done is not None else None
        plan: Plan = {
            "pieces": {}, "silent": {}, "since": "{}", "positions": {}, "base": None,
            "refused": {} if cursor else stretch.refused,
            "floor": done["mark"] if done is not None else None,
            "largest": {n: k["largest"] for n, k in done["log"].items()} if done else {},
            "is_last": False,
        }  # fmt: skip
        left: Cursor = {}
        for one in self.spec.inputs:
            name = one.name
            begun = cursor.get(name, (0, None))
            plan["pieces"][name], left[name] = self._some(one, stretch.pieces.get(name, []), begun)
            is_read = left[name][0] >= len(stretch.pieces.get(name, []))
            plan["silent"][name] = stretch.silent[name] and is_read
        is_over = all(left[n][0] >= len(pieces) for n, pieces in stretch.pieces.items())
        plan["stretch"], plan["cursor"] = (number + 1, {}) if is_over else (number, left)
        plan["refused"] = {one.name: plan["refused"].get(one.name, []) for one in self.spec.inputs}
        return plan

    def _some(
        self, one: InputSpec, pieces: list[list[Any]], begun: tuple[int, list[Any] | None]
    ) -> tuple[list[list[Any]], tuple[int, list[Any] | None]]:
        """The next pieces of an input, up to the size of a batch, and where to go on."""
        number, rest = begun
        taken: list[list[Any]] = []
        room = self.spec.batch_bytes
        while number < len(pieces):
            piece = rest or pieces[number]
            if piece[5] > room:
                first, rest = self._cut(one, piece, room) if room > 0 else (None, piece)
                if first is None and taken:
                    return taken, (number, rest)
                if first is not None and rest is not None:
                    return [*taken, first], (number, rest)
            taken.append(piece)
            room -= piece[5]
            number, rest = number + 1, None
        return taken, (number, None)

    def _cut(
        self, one: InputSpec, piece: list[Any], most: int
    ) -> tuple[list[Any] | None, list[Any] | None]:
        """The first rows of a piece, and the others; none and all if it cannot be cut."""
        path, first, last, line, next_line, size, position = piece
        file = file_of(self.spec, one, path)
        location = one.location if file is None else one.location.of_file(file)
        can_be_cut = (
            file is None or is_growable(location, file) or is_counted_in_rows(location, file)
        )
        if not can_be_cut:
            return None, piece
        some = next_piece(location, one.input, file, first, line, most, final=True)
        if some is None or some.last >= last:
            return None, piece
        after = position + most_rows(one, path, some)
        rest = [path, some.last, last, some.next_line, next_line, max(1, size - some.size), after]
        return [path, first, some.last, line, some.next_line, some.size, position], rest
