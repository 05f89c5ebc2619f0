"""What batches have taken of the log, in few words, so that it can be read again as it was.

Plans are deleted a few batches later. Before that they are put together: batches that follow each
other are one stretch where nothing but the log decided on what became of their rows. A stretch
ends where an input fell silent and then went on: how far time had come by then is not in the log,
and what came afterwards may be late by it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.files import LocalFiles
from millstream.engine.storage.records import read_record, write_record

FOLDER = "sources"
HISTORY = ".history"
#: So many pieces are written again with every addition.
PIECES_PER_FILE = 256


@dataclass(frozen=True, slots=True)
class TakenBatches:
    """What batches that follow each other took of each input, and which are silent after it."""

    #: Pieces as plans have them: path, first, last, line, next line, size, position.
    pieces: dict[str, list[list[Any]]]
    #: Files that could not be read: path, line, reason.
    refused: dict[str, list[Any]]
    silent: dict[str, bool]

    def with_next(self, later: TakenBatches) -> TakenBatches | None:
        """Both as one, if nothing between them has to be known."""
        for name, is_silent in self.silent.items():
            is_taken = later.pieces.get(name) or later.refused.get(name)
            if is_silent and (is_taken or not later.silent.get(name)):
                return None
        names = {**self.pieces, **later.pieces}
        return TakenBatches(
            {n: _joined(self.pieces.get(n, []), later.pieces.get(n, [])) for n in names},
            {n: [*self.refused.get(n, []), *later.refused.get(n, [])] for n in names},
            later.silent,
        )


def _joined(some: list[list[Any]], more: list[list[Any]]) -> list[list[Any]]:
    """Pieces one after another; of a file that has grown there is one."""
    joined = list(some)
    for path, first, last, line, next_line, size, position in more:
        before = joined[-1] if joined else None
        if before is not None and before[0] == path and before[2] == first:
            joined[-1] = [path, before[1], last, before[3], next_line, before[5] + size, before[6]]
        else:
            joined.append([path, first, last, line, next_line, size, position])
    return joined


def together(stretches: Sequence[TakenBatches]) -> list[TakenBatches]:
    made: list[TakenBatches] = []
    for stretch in stretches:
        both = made[-1].with_next(stretch) if made else None
        if both is None:
            made.append(stretch)
        else:
            made[-1] = both
    return made


def fold(files: LocalFiles, until: int) -> None:
    """Put plans before a number together, so that they may be deleted."""
    done, begun, stretches = 0, 0, list[TakenBatches]()
    if chunks := _chunks(files):
        done, name = chunks[-1]
        record = read_record(files, name)
        if sum(len(p) for s in _stretches(record) for p in s.pieces.values()) < PIECES_PER_FILE:
            begun, stretches = record["from"], _stretches(record)
        else:
            begun = done
    gaps = set(range(done, until)) - _plans(files)
    if gaps:
        # Whoever reads this sees that it does not begin where the one before ends.
        done = begun = max(gaps) + 1
        stretches = []
    if done >= until:
        return
    stretches += (_of_plan(files, number) for number in range(done, until))
    text = json.dumps([asdict(one) for one in together(stretches)])
    write_record(files, f"{FOLDER}/{until:09}{HISTORY}", {"from": begun, "stretches": text})
    # Mostly the last; more where a run was stopped here. All others would be read in vain.
    for _, old in reversed(chunks):
        if read_record(files, old)["from"] != begun:
            break
        files.delete(old)


def history(files: LocalFiles, until: int) -> list[TakenBatches] | None:
    """What the batches before a number have taken; None if that is not known any more."""
    taken: list[TakenBatches] = []
    reached = 0
    try:
        # What was written again holds all of what it was to replace, which may still be there.
        records = [(number, read_record(files, name)) for number, name in _chunks(files)]
        for begun, (number, record) in {r["from"]: (n, r) for n, r in records}.items():
            if begun == reached:
                taken += _stretches(record)
                reached = number
        there = _plans(files)
        for number in range(reached, until):
            if number not in there:
                return None
            taken.append(_of_plan(files, number))
    except DamagedState:
        return None
    return together(taken)


def _chunks(files: LocalFiles) -> list[tuple[int, str]]:
    """The files there are, with the number of the first plan that is not in each."""
    names = [n for n in files.names(FOLDER) if n.endswith(HISTORY)]
    return [(int(name.partition(".")[0]), f"{FOLDER}/{name}") for name in names]


def _plans(files: LocalFiles) -> set[int]:
    return {int(n.partition(".")[0]) for n in files.names(FOLDER) if n.endswith(".plan")}


def _stretches(record: dict[str, Any]) -> list[TakenBatches]:
    return [TakenBatches(**one) for one in json.loads(record["stretches"])]


def _of_plan(files: LocalFiles, number: int) -> TakenBatches:
    plan = read_record(files, f"{FOLDER}/{number:09}.plan")
    return TakenBatches(plan["pieces"], plan["refused"], plan["silent"])


def paths(stretches: Sequence[TakenBatches]) -> Iterator[tuple[str, str, int]]:
    """Every file that something was taken of: its input, its name, and how far."""
    furthest: dict[tuple[str, str], int] = {}
    for stretch in stretches:
        for name, pieces in stretch.pieces.items():
            for path, _, last, *_ in pieces:
                furthest[name, path] = max(furthest.get((name, path), 0), last)
    for (name, path), last in furthest.items():
        yield name, path, last
