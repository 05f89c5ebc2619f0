"""How a run is going, for people who watch it; and at its end what to know about it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from millstream.calculus.text import render_duration
from millstream.cli.live import Screen
from millstream.cli.show import in_words
from millstream.engine.job import Report

SHOWN_FAULTS = 5
#: Times further back than this are those of old data, not of a job that lags behind.
_LIVE_MICROS = 86_400_000_000
#: After so many seconds without news a terminal says what is going on.
_SILENCE = 1.0
#: The setting: how often that is said where nobody watches, as in a log; in seconds.
PIPE_SETTING = "MILLSTREAM_PROGRESS_SECONDS"
_PIPE_SECONDS = 10.0

_PREPARING = {
    "spark": "starting Spark, and the first batch; --engine local starts at once",
    "local": "opening inputs, preparing what runs",
    "reference": "running the reference",
}


class Progress:
    """Mutable: shows how a run is going. Used as a context, it is quiet afterwards."""

    def __init__(
        self, shown: str, engine: str, *, is_alone: bool = True, screen: Screen | None = None
    ) -> None:
        #: Where rows are drawn as they come, how it is going stands below them.
        self.screen = screen
        #: Where rows are printed as they come, nothing else is.
        self.is_live = shown == "auto" and sys.stderr.isatty() and is_alone
        self.is_piped = shown == "auto" and not sys.stderr.isatty()
        self.is_json = shown == "json"
        self.started = time.perf_counter()
        self.last = 0.0
        self.report: Report | None = None
        self._told: list[str] = []
        self._preparing = _PREPARING.get(engine, "preparing")
        self._compiling = Compiling()
        self._is_over = threading.Event()
        self._writing = threading.Lock()
        if self.is_live or self.is_piped:
            threading.Thread(target=self._watch, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def __call__(self, report: Report) -> None:
        now = time.perf_counter()
        self.report = report
        self._tell(report)
        if self.is_json:
            if report.is_taken_up:
                return  # no batch of this run
            print(json.dumps(summary(report, now - self.started)), file=sys.stderr, flush=True)
        elif self.is_live and now - self.last > 0.1:
            self._show(self._line(report))

    def _tell(self, report: Report) -> None:
        """What is to be known is told once."""
        for note in report.notes:
            if note not in self._told:
                self._told.append(note)
                begin = "\r\x1b[K" if self.is_live and self.last else ""
                with self._writing:
                    print(f"{begin}{note}", file=sys.stderr, flush=True)

    def finish(self, report: Report, kept: frozenset[str] = frozenset()) -> None:
        self._tell(report)
        self._end()
        if self.screen is not None:
            self.screen.say(self._line(report))
            self.screen.close()
        elif self.is_live:
            print(f"\r{self._line(report)}\x1b[K", file=sys.stderr)
        for line in remarks(report, kept):
            print(line, file=sys.stderr)

    def _end(self) -> None:
        with self._writing:
            if self.is_live and self.last and not self._is_over.is_set():
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_over.set()
        self._compiling.close()

    def _watch(self) -> None:
        """Say what takes so long, from another thread."""
        often = float(os.environ.get(PIPE_SETTING, _PIPE_SECONDS))
        silence = _SILENCE if self.is_live else often
        while not self._is_over.wait(min(_SILENCE / 2, silence)):
            self._compiling.listen()
            if self.screen is not None:
                self.screen.draw()
            if time.perf_counter() - max(self.last, self.started) >= silence:
                self._show(self._doing())

    def _doing(self) -> str:
        seconds = time.perf_counter() - self.started
        behind = step_words("aside")
        if self._compiling.is_busy or self.report is None:
            # At which step a run is says what is being compiled only while something is.
            here = self._compiling.words() if self._compiling.is_busy else None
            return (
                f"{here or behind or self._compiling.so_far() or self._preparing} ({seconds:.0f} s)"
            )
        return f"{self._line(self.report)} ({seconds:.0f} s)"

    def _show(self, line: str) -> None:
        with self._writing:
            if self._is_over.is_set():
                return
            self.last = time.perf_counter()
            if self.screen is not None and not self.is_piped:
                self.screen.say(line)
                return
            if self.is_piped:
                print(line, file=sys.stderr, flush=True)
                return
            # A line that wraps could not be taken back.
            line = line[: shutil.get_terminal_size().columns - 1]
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)

    def _line(self, report: Report) -> str:
        parts = [f"{name} {c.read:,} rows" for name, c in report.inputs.items()]
        parts += [f"{name} {count:,} rows" for name, count in report.outputs.items()]
        parts += self._speed(report)
        late = sum(c.late for c in report.inputs.values())
        rejected = sum(c.rejected for c in report.inputs.values())
        behind = step_words("aside")
        parts += [f"late {late:,}", f"rejected {rejected:,}", *([behind] if behind else ())]
        return "  ".join(parts)

    def _speed(self, report: Report) -> list[str]:
        """Of the last batch, or of the whole run where there are no batches."""
        batch = report.batch
        if batch is None:
            seconds = time.perf_counter() - self.started
            read = sum(c.read for c in report.inputs.values())
            return [f"{in_words(read / max(seconds, 1e-9))} rows/s"]
        seconds = max(batch.seconds, 1e-9)
        parts = [
            f"in {in_words(batch.read / seconds)}/s", f"out {in_words(batch.written / seconds)}/s",
            f"batch {batch.seconds:.2f} s",
        ]  # fmt: skip
        lag = lag_seconds(report)
        if lag is not None:
            parts.append(f"lag {lag:.1f} s")
        if report.state_bytes:
            parts.append(f"state {in_words(report.state_bytes)}B")
        return parts


class Compiling:
    """Mutable: how many loops this process has compiled, from when it is first asked on."""

    def __init__(self) -> None:
        self.count = 0
        self._depth = 0
        self._stop: Callable[[], None] | None = None

    @property
    def is_busy(self) -> bool:
        return self._depth > 0

    def words(self) -> str | None:
        """What is being compiled at this moment."""
        return (
            f"{step_words('here') or 'compiling'}: {self._loops()} so far" if self.count else None
        )

    def so_far(self) -> str | None:
        """What has been compiled, where it is something else that takes long."""
        return f"preparing; {self._loops()} compiled" if self.count else None

    def _loops(self) -> str:
        return f"{self.count} loop{'s' if self.count > 1 else ''}"

    def listen(self) -> None:
        """Be told by numba, once it has been loaded; loading it is not for us to do."""
        events: Any = sys.modules.get("numba.core.event")
        if self._stop is not None or not hasattr(events, "unregister"):
            return
        compiling = self

        class Listener(events.Listener):  # type: ignore[misc]
            def on_start(self, event: Any) -> None:
                compiling._depth += 1
                compiling.count += compiling._depth == 1  # others are parts of the first

            def on_end(self, event: Any) -> None:
                compiling._depth = max(0, compiling._depth - 1)

        listener = Listener()
        events.register("numba:compile", listener)
        self._stop = lambda: events.unregister("numba:compile", listener)

    def close(self) -> None:
        if self._stop is not None:
            self._stop()
            self._stop = None


def step_words(where: str) -> str | None:
    """What is being compiled, in this process (`here`) or in the one beside it (`aside`)."""
    watch: Any = sys.modules.get("millstream.kernels.watch")
    at = None if watch is None else getattr(watch, where)
    return None if at is None else f"compiling step {at.step} of {at.steps}"


def lag_seconds(report: Report) -> float | None:
    """How far results are behind the clock, if the data is that of today."""
    if report.mark is None:
        return None
    lag = time.time() * 1e6 - report.mark
    return lag / 1e6 if abs(lag) < _LIVE_MICROS else None


def summary(report: Report, seconds: float) -> dict[str, Any]:
    """The conservation line: read = processed + waiting + late + rejected."""
    totals = {
        key: sum(getattr(c, key) for c in report.inputs.values())
        for key in ("read", "processed", "waiting", "late", "rejected")
    }
    fields: dict[str, Any] = {
        "seconds": round(seconds, 3),
        **totals,
        "written": sum(report.outputs.values()),
        "time": report.mark,
        "conserved": all(c.is_conserved for c in report.inputs.values()),
    }
    batch = report.batch
    if batch is not None:
        lag = lag_seconds(report)
        fields |= {
            "batch": batch.number, "batch_seconds": round(batch.seconds, 3),
            "batch_read": batch.read, "batch_written": batch.written,
            "state_bytes": report.state_bytes, "lag": None if lag is None else round(lag, 3),
        }  # fmt: skip
    return fields


def remarks(report: Report, kept: frozenset[str] = frozenset()) -> list[str]:
    """What a person should know: rows that were not processed, values that became null."""
    lines: list[str] = []
    for name, counts in report.inputs.items():
        late = "late" if len(report.inputs) == 1 else f"late.{name}"
        if counts.late:
            slack = f"; a slack of {render_duration(counts.behind)} would have kept them"
            rows = "row was" if counts.late == 1 else "rows were"
            lines.append(
                f"{name}: {counts.late:,} late {rows} left out"
                f"{slack if counts.behind else ''}{_keep(late, kept)}"
            )
        if counts.rejected:
            hint = _keep("rejected", kept)
            rows = "row was" if counts.rejected == 1 else "rows were"
            lines.append(f"{name}: {counts.rejected:,} {rows} rejected{hint}")
        if counts.waiting:
            rows = "row still waits" if counts.waiting == 1 else "rows still wait"
            lines.append(f"{name}: {counts.waiting:,} {rows} for time to pass")
    lines += [f"    {reason}" for reason in report.first_rejections]
    for what, count in report.faults.most_common(SHOWN_FAULTS):
        lines.append(f"{count:,} value{'s' * (count != 1)} became null: {what}")
    if len(report.faults) > SHOWN_FAULTS:
        lines.append(f"... and {len(report.faults) - SHOWN_FAULTS} more kinds of nulls")
    return lines


def _keep(output: str, kept: frozenset[str]) -> str:
    return "" if output in kept else f" (--out {output}=FILE keeps them)"
