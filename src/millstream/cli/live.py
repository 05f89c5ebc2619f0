"""A run that is watched on a terminal: tables that are drawn anew as rows come.

Of a relation the table is what stands, of a stream its last rows. Below it stands how the run is
going. What is drawn takes the place of what was drawn before it, so nothing scrolls by.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import threading
import time
from collections import deque
from typing import Any, TextIO

from millstream.calculus.terms import canonical
from millstream.calculus.types import TIME_COLUMN, WEIGHT_COLUMN, QueueType
from millstream.cli.show import cut, records_of, table_lines
from millstream.plan.batch import Batch

#: Not more often than an eye can follow.
_SECONDS = 0.1
#: The title, the head of the table, what is left out, and how the run is going.
_STATUS_LINES = 2
_OTHER_LINES = 4 + _STATUS_LINES
_FEWEST_ROWS = 3
_MOST_ROWS = 200

Record = dict[str, Any]


class LiveTable:
    """Mutable: the rows of an output that are worth looking at now; a writer for engines."""

    def __init__(self, name: str, type_: QueueType, screen: Screen) -> None:
        self.name = name
        self.is_relation = type_.is_relation
        self.count = 0
        self._screen = screen
        #: Rows that stand and how often, those that have changed last at the end.
        self._standing: dict[tuple[Any, ...], tuple[int, Record]] = {}
        self._last: deque[Record] = deque(maxlen=_MOST_ROWS)
        screen.tables.append(self)

    def write(self, batch: Batch) -> None:
        if not len(batch):
            return
        with self._screen.changing():
            if self.is_relation:
                self._change(batch)
            else:
                self.count += len(batch)
                few = batch.slice(max(0, len(batch) - _MOST_ROWS), len(batch))
                self._last.extend(records_of(few, is_readable=True))

    def _change(self, batch: Batch) -> None:
        assert batch.weight is not None
        records = records_of(batch, is_readable=True)
        for row, weight, record in zip(batch.rows(), batch.weight.tolist(), records, strict=True):
            key = tuple(map(canonical, row))
            before, _ = self._standing.pop(key, (0, None))
            self.count += weight
            if before + weight:
                shown = {n: v for n, v in record.items() if n not in (TIME_COLUMN, WEIGHT_COLUMN)}
                self._standing[key] = (before + weight, shown)

    def lines(self, width: int, height: int) -> list[str]:
        """The table in so many lines at most."""
        most = max(_FEWEST_ROWS, height)
        records = self._shown(most)
        word = "row" if self.count == 1 else "rows"
        word = f"{word} now" if self.is_relation else word
        lines = [cut(f"{self.name}: {self.count:,} {word}", width)]
        lines += [cut(line, width) for line in table_lines(records, width)]
        if self.count > len(records):
            which = "those that changed last" if self.is_relation else "the last ones"
            lines.append(cut(f"... of {self.count:,} {word}, {which}", width))
        return lines

    def _shown(self, most: int) -> list[Record]:
        if not self.is_relation:
            return list(self._last)[-most:]
        chosen = list(self._standing.items())[-most:]
        chosen.sort(key=lambda one: [(v is not None, 0 if v is None else v) for v in one[0]])
        rows = [record for _, (count, record) in chosen for _ in range(min(count, most))]
        return rows[:most]

    def close(self) -> None:
        """What stands at the end stays on the terminal."""

    def abort(self) -> None:
        """So does what stood before a failure."""


class Screen:
    """Mutable: what is drawn on a terminal. It may be changed by several threads."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.tables: list[LiveTable] = []
        self._out = out or sys.stdout
        self._status = ""
        self._drawn = 0
        self._last = 0.0
        self._is_stale = False
        self._lock = threading.RLock()

    def changing(self) -> _Changing:
        """While rows change nothing is drawn; afterwards it is time to."""
        return _Changing(self, self._lock)

    def say(self, status: str) -> None:
        """How the run is going."""
        with self._lock:
            self._status = status
            self._is_stale = True
            self.draw()

    def draw(self, *, at_once: bool = False) -> None:
        with self._lock:
            now = time.perf_counter()
            if not self._is_stale or (now - self._last < _SECONDS and not at_once):
                return
            self._last, self._is_stale = now, False
            lines = self._lines()
            back = f"\x1b[{self._drawn}F" if self._drawn else "\r"
            text = "".join(f"{line}\x1b[K\n" for line in lines)
            self._out.write(f"{back}{text}\x1b[J")
            self._out.flush()
            self._drawn = len(lines)

    def _lines(self) -> list[str]:
        size = shutil.get_terminal_size()
        width = max(20, size.columns - 1)
        height = (size.lines - _OTHER_LINES) // max(1, len(self.tables))
        lines = [line for table in self.tables for line in table.lines(width, height)]
        return [*lines, *textwrap.wrap(self._status, width, max_lines=_STATUS_LINES)]

    def stale(self) -> None:
        self._is_stale = True

    def close(self) -> None:
        """The last state, which stays."""
        with self._lock:
            self._is_stale = True
            self.draw(at_once=True)
            self.tables.clear()


class _Changing:
    def __init__(self, screen: Screen, lock: threading.RLock) -> None:
        self._screen = screen
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._screen.stale()
        self._screen.draw()
        self._lock.release()
