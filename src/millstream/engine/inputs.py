"""Where tasks read the inputs of a job: in files, be it in those of the checkpoint.

What has no file, and what a run that ends must put in time order, is copied there.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from millstream.calculus.graph import Input
from millstream.connectors.elsewhere.spool import forget_segment
from millstream.connectors.location import Location, parse_location
from millstream.engine.arrangement import DONE, FOLDER, Arrangement, Taken, path_of
from millstream.engine.job import Job
from millstream.engine.manifest import Manifest
from millstream.engine.planning import Planner, taken_so_far
from millstream.engine.spec import SourceSpec
from millstream.engine.storage.files import LocalFiles
from millstream.errors import UsageError

_PIPE_BYTES = 1 << 16


class Inputs:
    """Mutable: may have a thread that copies standard input."""

    def __init__(self, job: Job, files: LocalFiles, *, is_kept: bool) -> None:
        self.job = job
        self.files = files
        #: Whether the checkpoint will be taken up by another run.
        self.is_kept = is_kept
        #: Whether standard input has come to its end.
        self.is_piped_out = threading.Event()
        self._over: list[Path] = []

    def locations(self, *, can_read_natives: bool) -> list[Location]:
        """Where each input can be read, in time order unless it is followed."""
        arrangement = Arrangement.of(self.files)
        taken = taken_so_far(self.files)
        locations = []
        for input_ in self.job.program.inputs:
            location = self.job.locations.get(input_.name)
            if location is not None and location.native is not None and not can_read_natives:
                self.job.readers[input_.name].chunks()  # says why not
            locations.append(
                self._reachable(input_, location, arrangement, taken.get(input_.name, {}))
            )
        arrangement.save()
        return locations

    def _reachable(
        self, input_: Input, location: Location | None, arrangement: Arrangement, taken: Taken
    ) -> Location:
        is_following = self.job.is_following
        reader = self.job.readers[input_.name]
        if is_following and location is not None and location.is_standard:
            return self._piped(input_, location)
        if location is None or location.is_standard:
            arrangement.keep(input_, reader, is_following=is_following)
            return parse_location(f"parquet:{FOLDER}/{input_.name}", self.files.root)
        reader.close()
        here = anchored(location)
        is_timed = not (input_.is_read_once or input_.is_numbered)
        if location.is_at_hand and not is_following and is_timed:
            arrangement.arrange(input_, here, taken)
        return here

    def _piped(self, input_: Input, location: Location) -> Location:
        """Standard input on its way into a file, which is followed."""
        if self.is_kept:
            raise UsageError(
                "standard input cannot be followed with a checkpoint: what it has told is gone",
                hint="append it to a file, and follow that",
            )
        folder = self.files.root / FOLDER
        folder.mkdir(exist_ok=True)
        path = folder / f"{input_.name}.{location.format.value}"
        copying = threading.Thread(target=self._copy, args=(path.open("wb"),), daemon=True)
        copying.start()
        return replace(location, path=path, base=self.files.root)

    def _copy(self, file: BinaryIO) -> None:
        # Not through `sys.stdin`: a thread that waits there cannot be left behind at the end.
        last = b"\n"
        with file:
            while data := os.read(sys.stdin.fileno(), _PIPE_BYTES):
                file.write(data)
                file.flush()
                last = data[-1:]
            if last != b"\n":
                file.write(b"\n")  # nobody will end this line any more
        self.is_piped_out.set()

    @property
    def root(self) -> Path:
        """The folder of what is copied."""
        return self.files.root

    #: Whether the batch that was planned last is the end of all there is to be read.
    ends_here = False

    def planner(
        self, spec: SourceSpec, files: LocalFiles, done: Callable[[], Manifest | None]
    ) -> Planner:
        """Who says what the next batches read."""
        planner = Planner(spec, files, done=done)
        if not self.job.is_following:
            planner.freeze()
        return planner

    def forget_copies(self) -> None:
        """After a run that has come to its end."""
        Arrangement(self.files).forget_copies()
        self._over = self._taken_whole()
        self.trim()

    def trim(self) -> None:
        """Delete what was brought from elsewhere and had been taken when this was last asked.

        Spark may run the last batches again, so what has just been taken is left until the next
        time.
        """
        for path in self._over:
            forget_segment(path)
        self._over = self._taken_whole()

    def _taken_whole(self) -> list[Path]:
        """Files from elsewhere of which nothing is left to be taken."""
        places = {name: one for name, one in self.job.locations.items() if one.brought_from}
        if not places:
            return []
        arrangement, taken = Arrangement.of(self.files), taken_so_far(self.files)
        return [
            path_of(self.files.root, places[name], path)
            for name in places
            for path, place in arrangement.taken(name, taken.get(name, {})).items()
            if place == DONE
        ]


def anchored(location: Location) -> Location:
    """The same place from wherever it is looked at."""
    base, path = location.base.resolve(), location.path
    if path is not None and path.is_relative_to(location.base):
        path = base / path.relative_to(location.base)
    return replace(location, base=base, path=path)
