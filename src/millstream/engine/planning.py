"""What the next batch takes of each input, decided before it is run and written down.

A plan lists pieces of files. What has been taken of each file is told as a list written
some batches ago and what has changed since, so that plans stay small however many files
there have been.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millstream.connectors.location import file_names_now
from millstream.connectors.pieces import (
    START,
    Piece,
    Place,
    is_counted_in_rows,
    is_growable,
    next_piece,
)
from millstream.engine.arrangement import DONE, Arrangement, name_of, path_of
from millstream.engine.manifest import Manifest, last_manifest
from millstream.engine.spec import InputSpec, SourceSpec
from millstream.engine.storage.codec import DamagedState, encode
from millstream.engine.storage.files import Files, LocalFiles
from millstream.engine.storage.records import missing, read_record, write_record
from millstream.errors import MillstreamError

#: After so many changed files a plan refers to a new list of all files.
FILES_PER_LIST = 256
_GENERATOR = "generator"
#: A part of a task's share that is not worth a piece of its own.
_SLIVER = 0.05
#: A byte of a gz file holds no more than so many.
_MOST_COMPRESSED = 1_040

Plan = dict[str, Any]


def plan_name(seq: int) -> str:
    return f"sources/{seq:09}.plan"


def planned(files: Files, seq: int) -> Plan:
    """A plan as it was written down."""
    plan: Plan = read_record(files, plan_name(seq))
    return plan


@dataclass
class Planner:
    """Mutable: remembers when an input last had rows, which only a clock can tell."""

    spec: SourceSpec
    files: LocalFiles
    clock: Callable[[], float] = time.monotonic
    #: Tells the manifest of the last batch that is over, if it is at hand.
    done: Callable[[], Manifest | None] | None = None
    there: dict[str, list[str]] | None = None
    _heard: dict[str, float] = field(default_factory=dict)
    #: Files as they were when nothing more was in them: opening each again takes long.
    _exhausted: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: Inputs that can have no more rows.
    _ended: set[str] = field(default_factory=set)
    #: The plan that was made last, and its number.
    _made: tuple[int, Plan] | None = None
    arrangement: Arrangement = field(init=False)

    def __post_init__(self) -> None:
        self.arrangement = Arrangement.of(self.files)

    def freeze(self) -> None:
        """A finite run takes what was there when it started, in time order."""
        order = self.arrangement.order
        self.there = {
            one.name: [path for path, _ in order[one.name]]
            if one.name in order
            else list(_names(one))
            for one in self.spec.inputs
        }

    def next(self, seq: int) -> int:
        """The number after the last planned batch; the next one is planned if it can be."""
        if self._is_planned(seq):
            return seq + 1
        plan = self._plan(seq)
        if plan is None:
            return seq
        self.files.note(plan_name(seq), encode(plan))
        self._made = seq, plan
        return seq + 1

    def is_over(self, *, is_piped_out: bool) -> bool:
        """Whether nothing can come any more, as far as it has been looked for."""
        return all(
            one.name in self._ended or (one.location.is_standard and is_piped_out)
            for one in self.spec.inputs
        )

    def tasks(self, seq: int) -> list[ReadingTask]:
        """The tasks of a batch that has been planned."""
        return tasks_of(self.spec, seq, self._planned(seq))

    def _is_planned(self, seq: int) -> bool:
        if self._made is not None:  # nobody else plans
            return self._made[0] >= seq
        return plan_name(seq) in {f"sources/{name}" for name in self.files.names("sources")}

    def _planned(self, seq: int) -> Plan:
        if self._made is not None and self._made[0] == seq:
            return self._made[1]
        return planned(self.files, seq)

    def _plan(self, seq: int) -> Plan | None:
        before = self._planned(seq - 1) if seq else None
        done = self.done() if self.done is not None else last_manifest(self.files)
        if done is not None and done["sources"] > seq:
            # Spark has forgotten what it has done; a new plan would do it differently.
            raise DamagedState(missing(plan_name(seq)))
        taken = _taken(self.files, before)
        there = self.there if self.there is not None else self._now(taken)
        log = done["log"] if done is not None else {}
        plan: Plan = {
            "pieces": {}, "silent": {}, "since": {}, "positions": {}, "refused": {},
            "base": before["base"] if before else None,
            "floor": done["mark"] if done is not None else None,
            "largest": {name: one["largest"] for name, one in log.items()},
        }  # fmt: skip
        for one in self.spec.inputs:
            places = self.arrangement.taken(one.name, taken.get(one.name, {}))
            self._take(one, there[one.name], places, before, plan)
        plan["is_last"] = all(plan["silent"].values()) and not self.spec.is_following
        if not self._is_worth_it(plan, before):
            return None
        self._shorten(seq, plan, taken)
        # As one text: there may be hundreds of names, and records look at every value.
        plan["since"] = json.dumps(plan["since"])
        return plan

    def _take(
        self,
        input_spec: InputSpec,
        there: list[str],
        taken: dict[str, Place],
        before: Plan | None,
        plan: Plan,
    ) -> None:
        """The next pieces of an input, up to the size of a batch."""
        position = before["positions"].get(input_spec.name, 0) if before else 0
        since = _since(before).get(input_spec.name, {})
        pieces: list[Any] = []
        size = 0
        is_finished = True
        refused: list[Any] = []
        for path, piece, place in self._pieces(input_spec, there, taken, refused):
            if piece is not None:
                if pieces and size + piece.size > self.spec.batch_bytes:
                    is_finished = False
                    break
                pieces.append([path, piece.first, piece.last, piece.line, piece.next_line,
                               piece.size, position])  # fmt: skip
                position += most_rows(input_spec, path, piece)
                size += piece.size
            since[path] = place
        plan["pieces"][input_spec.name] = pieces
        plan["refused"][input_spec.name] = refused
        plan["since"][input_spec.name] = since
        plan["positions"][input_spec.name] = position
        if input_spec.input.is_read_once or since.get(_GENERATOR) == DONE:
            self._ended.add(input_spec.name)
        is_idle = self._is_idle(input_spec, has_rows=bool(pieces))
        has_end = not self.spec.is_following or input_spec.input.is_read_once
        plan["silent"][input_spec.name] = is_finished if has_end else is_idle

    def _pieces(
        self, input_spec: InputSpec, there: list[str], taken: dict[str, Place], refused: list[Any]
    ) -> Iterator[tuple[str, Piece | None, Place]]:
        """Pieces in the order of the log, and how far a file has been taken after each.

        While following, a file that cannot be read is refused, and does not stop the others.
        """
        most = max(1, min(self.spec.batch_bytes, self.spec.piece_bytes))
        for path in there:
            first, line = taken.get(path, START)
            if first == DONE[0] or self._is_as_before(input_spec, path):
                continue
            seen = self._look_of(input_spec, path)
            # By one moment: a generator has always made some more while it is looked at.
            now = self.clock()
            try:
                while piece := self._piece(input_spec, path, (first, line), most, now):
                    first, line = piece.last, piece.next_line
                    yield path, piece, (first, line)
            except MillstreamError as fault:
                if not self.spec.is_following:
                    raise
                refused.append([path, line, fault.faults[0].message])
                yield path, None, DONE
                continue
            if self._is_complete(input_spec, path, first):
                yield path, None, DONE
            elif seen is not None:
                self._exhausted[path] = seen

    def _is_as_before(self, input_spec: InputSpec, path: str) -> bool:
        return path in self._exhausted and self._exhausted[path] == self._look_of(input_spec, path)

    def _look_of(self, input_spec: InputSpec, path: str) -> tuple[int, int] | None:
        """What changes when a file does: its size, and when it was changed."""
        file = file_of(self.spec, input_spec, path)
        try:
            status = None if file is None else file.stat()
        except OSError:
            return None  # told by whoever opens it
        return None if status is None else (status.st_size, status.st_mtime_ns)

    def _piece(
        self, input_spec: InputSpec, path: str, place: Place, most: int, now: float
    ) -> Piece | None:
        first, line = place
        if path != _GENERATOR:
            file = path_of(self.spec.checkpoint, input_spec.location, path)
            is_final = not self.spec.is_following
            location = input_spec.location.of_file(file)
            return next_piece(location, input_spec.input, file, first, line, most, final=is_final)
        piece = next_piece(
            input_spec.location, input_spec.input, None, first, line, most, final=True
        )
        settings = input_spec.location.generator
        if piece is None or settings is None or settings.rate is None:
            return piece
        due = self._rows_due(input_spec, settings.rate, first, now)
        if not due:
            return None
        last = min(piece.last, first + due)
        size = piece.size * (last - first) // max(1, piece.last - piece.first)
        return Piece(first, last, piece.line, last + 1, size)

    def _rows_due(self, input_spec: InputSpec, rate: float, taken: int, now: float) -> int:
        """How many rows a generator with a rate has made by now; it starts with the run."""
        start = self._heard.setdefault(f"{input_spec.name} since", now - taken / rate)
        return max(0, int((now - start) * rate) - taken) if self.spec.is_following else 1 << 62

    def _is_complete(self, input_spec: InputSpec, path: str, first: int) -> bool:
        if path == _GENERATOR:
            settings = input_spec.location.generator
            return settings is None or first >= settings.rows
        if is_growable(input_spec.location.of_file(Path(path)), Path(path)):
            return False
        return first > 0 or not self.spec.is_following

    def _is_idle(self, input_spec: InputSpec, *, has_rows: bool) -> bool:
        """Whether an input has been without rows for longer than its limit."""
        now = self.clock()
        heard = self._heard.setdefault(input_spec.name, now)
        if has_rows:
            self._heard[input_spec.name] = now
            return False
        return input_spec.idle is not None and (now - heard) * 1e6 >= input_spec.idle

    def _is_worth_it(self, plan: Plan, before: Plan | None) -> bool:
        if any(plan["pieces"].values()) or any(plan["refused"].values()):
            return True
        if self.spec.is_following:
            silent_before = before["silent"] if before else {}
            return any(s and not silent_before.get(n) for n, s in plan["silent"].items())
        return before is None or not before["is_last"]

    def _shorten(self, seq: int, plan: Plan, taken: dict[str, dict[str, Place]]) -> None:
        if sum(map(len, plan["since"].values())) <= FILES_PER_LIST:
            return
        everything = {n: {**taken.get(n, {}), **some} for n, some in plan["since"].items()}
        record = {"taken": json.dumps(everything)}
        write_record(self.files, f"sources/{seq:09}.taken", record)
        plan["base"], plan["since"] = seq, {}

    def _now(self, taken: dict[str, dict[str, Place]]) -> dict[str, list[str]]:
        """What a finite run has left in its order, then all others by name."""
        there: dict[str, list[str]] = {}
        for one in self.spec.inputs:
            left = self.arrangement.unfinished(one.name, taken.get(one.name, {}))
            first = [path for path, _ in left]
            there[one.name] = list(dict.fromkeys([*first, *_names(one)]))
        return there


def taken_so_far(files: LocalFiles) -> dict[str, dict[str, Place]]:
    """How far the files of each input have been taken, by all that has been planned."""
    plans = [name for name in files.names("sources") if name.endswith(".plan")]
    return _taken(files, read_record(files, f"sources/{plans[-1]}") if plans else None)


def _taken(files: LocalFiles, before: Plan | None) -> dict[str, dict[str, Place]]:
    if before is None:
        return {}
    old, since = {}, _since(before)
    if before["base"] is not None:
        stored = read_record(files, f"sources/{before['base']:09}.taken")
        old = json.loads(stored["taken"])
    merged = {n: {**old.get(n, {}), **since.get(n, {})} for n in {*old, *since}}
    return {n: {path: (first, line) for path, (first, line) in some.items()}
            for n, some in merged.items()}  # fmt: skip


def _since(plan: Plan | None) -> dict[str, dict[str, Place]]:
    """What has changed since the last list of all files."""
    if plan is None:
        return {}
    since: dict[str, dict[str, Place]] = json.loads(plan["since"])
    return since


def most_rows(input_spec: InputSpec, path: str, piece: Piece) -> int:
    """How many rows a piece has at most: positions need an order, not a count.

    Where they are the times of rows, they should be those of a run that reads everything at once.
    """
    span = piece.last - piece.first
    if path.endswith(".gz"):
        return span * _MOST_COMPRESSED
    return piece.next_line - piece.line if input_spec.input.is_numbered else span


def _names(input_spec: InputSpec) -> Iterator[str]:
    if input_spec.location.path is None:
        yield _GENERATOR
        return
    for path in file_names_now(input_spec.location):
        yield name_of(input_spec.location, path)


#: A task reads runs of pieces of inputs: (input, number of the segment, pieces).
Share = list[tuple[int, int, list[Any]]]


def shares(spec: SourceSpec, plan: Plan) -> list[Share]:
    """A plan cut into tasks: one if it is small, else about as many as there are partitions."""
    total = sum(p[5] for pieces in plan["pieces"].values() for p in pieces)
    size = total / (1 if total < spec.piece_bytes else spec.partitions)
    tasks: dict[int, Share] = {}
    done = 0
    for number, one in enumerate(spec.inputs):
        runs: dict[int, list[Any]] = {}
        for piece in _cut_to_shares(one, plan["pieces"][one.name], done, size):
            # A piece that cannot be cut goes where most of it belongs.
            runs.setdefault(int((done + piece[5] / 2) // size), []).append(piece)
            done += piece[5]
        for segment, (task, run) in enumerate(runs.items()):
            tasks.setdefault(task, []).append((number, segment, run))
    return [tasks[task] for task in sorted(tasks)] or [[]]


def _cut_to_shares(
    input_spec: InputSpec, pieces: list[Any], done: int, size: float
) -> Iterator[Any]:
    """Pieces that are counted in rows, cut where the share of a task ends."""
    for whole in _joined(input_spec, pieces):
        piece = whole
        while True:
            room = size - done % size
            if room < _SLIVER * size:
                room += size
            can_be_cut = piece[2] - piece[1] > 1 and _is_counted_in_rows(input_spec, piece[0])
            if piece[5] <= room + _SLIVER * size or not can_be_cut:
                break
            part, piece = _cut(piece, room / piece[5])
            yield part
            done += part[5]
        yield piece
        done += piece[5]


def _is_counted_in_rows(input_spec: InputSpec, path: str) -> bool:
    return is_counted_in_rows(input_spec.location, Path(path))


def _joined(input_spec: InputSpec, pieces: list[Any]) -> list[Any]:
    """Pieces of a file that follow one another as one: Parquet is decoded from a group's start."""
    joined: list[Any] = []
    for path, first, last, line, next_line, size, position in pieces:
        before = joined[-1] if joined else None
        is_next = before is not None and before[0] == path and before[2] == first
        if before is not None and is_next and _is_counted_in_rows(input_spec, path):
            joined[-1] = [*before[:2], last, before[3], next_line, before[5] + size, before[6]]
        else:
            joined.append([path, first, last, line, next_line, size, position])
    return joined


def _cut(piece: Any, share: float) -> tuple[Any, Any]:
    """A share of the rows of a piece, at least one, and the rest, at least one."""
    path, first, last, line, next_line, size, position = piece
    rows = min(max(1, round((last - first) * share)), last - first - 1)
    part = max(1, round(size * rows / (last - first)))
    return (
        [path, first, first + rows, line, line + rows, part, position],
        [path, first + rows, last, line + rows, next_line, max(1, size - part), position + rows],
    )


@dataclass(frozen=True)
class ReadingTask:
    """A task's share of a batch, and what is known before it."""

    seq: int
    #: Which task of the batch it is, and how many there are.
    number: int
    count: int
    share: Share
    #: Time has passed up to here.
    floor: int | None
    largest: dict[str, int | None]
    silent: dict[str, bool]
    #: Files that cannot be read, by input: (file, line, reason).
    refused: dict[str, list[Any]]


def tasks_of(spec: SourceSpec, seq: int, plan: Plan) -> list[ReadingTask]:
    """The tasks of a plan."""
    cut = shares(spec, plan)
    return [
        ReadingTask(seq, number, len(cut), share, plan["floor"], plan["largest"],
                    plan["silent"], {} if number else plan["refused"])
        for number, share in enumerate(cut)
    ]  # fmt: skip


def file_of(spec: SourceSpec, input_spec: InputSpec, path: str) -> Path | None:
    return None if path == _GENERATOR else path_of(spec.checkpoint, input_spec.location, path)
