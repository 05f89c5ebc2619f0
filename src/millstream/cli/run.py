"""`millstream run`."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from millstream import api
from millstream.calculus.text import render_duration
from millstream.cli.show import JsonWriter, NowhereWriter, TableWriter, in_words, print_warnings
from millstream.cli.views import asked_view, names_asked, rounds_asked, show_view
from millstream.connectors.address import masked
from millstream.connectors.location import Location, parse_location
from millstream.engine.job import Report, never
from millstream.errors import UsageError, listing

DEFAULT_ENGINE = "spark"
SHOWN_FAULTS = 5
#: Times further back than this are those of old data, not of a job that lags behind.
_LIVE_MICROS = 86_400_000_000


def run(arguments: argparse.Namespace) -> int:
    view = asked_view(arguments)
    if view is not None:
        inputs = named(arguments.in_, "--in")
        return show_view(view, arguments, inputs, lambda: compiled_from(arguments))
    compiled = compiled_from(arguments)
    engine = arguments.engine or default_engine(arguments)
    options = _engine_options(arguments, engine)
    if arguments.follow and engine in ("reference", "actors"):
        raise UsageError(f"the engine {engine} cannot follow", hint="use --engine local")
    outputs = _outputs(compiled, arguments)
    print_warnings(compiled.warnings(named(arguments.in_, "--in")))
    progress = Progress(arguments.progress, engine)
    finished = compiled.run(
        named(arguments.in_, "--in"),
        outputs,
        engine=engine,
        optimise=not arguments.no_optimise,
        **passes_asked(arguments),
        follow=arguments.follow,
        # Without a checkpoint nothing is won by finishing what has been begun.
        stopped=_until_interrupted() if arguments.follow or arguments.checkpoint else never,
        progress=progress,
        **options,
    )
    progress.finish(finished.report, kept=frozenset(outputs))
    if not arguments.follow:
        print_warnings(compiled.left_over(finished.report))
    return 0


def passes_asked(arguments: argparse.Namespace) -> dict[str, Any]:
    """Which passes of the optimiser are made, as options of a call."""
    only, without = (
        None if text is None else [name.strip() for name in text.split(",") if name.strip()]
        for text in (arguments.only, arguments.without)
    )
    return {"only": only, "without": without or ()}


def default_engine(arguments: argparse.Namespace) -> str:
    """Spark, unless it is not installed and nothing that only it can do is asked for."""
    if has_spark() or arguments.master or arguments.ui:
        return DEFAULT_ENGINE
    print("Spark is not installed, so this runs on --engine local; for Spark: "
          "pip install 'millstream[spark]'", file=sys.stderr)  # fmt: skip
    return "local"


def has_spark() -> bool:
    return find_spec("pyspark") is not None


def compiled_from(arguments: argparse.Namespace) -> api.Compiled:
    """The program, with what the command says about its inputs."""
    names = {**named(arguments.set, "--set"), **names_asked(arguments)}
    compiled = api.compile(arguments.file, names=names)
    for unit in arguments.unit:
        compiled = compiled.with_units(unit)
    rounds = rounds_asked(arguments)
    return compiled if rounds is None else compiled.with_rounds(rounds)


#: Which engines take an option.
_OPTIONS = {
    "master": ("spark",), "ui": ("spark",), "checkpoint": ("spark", "local"),
    "rebuild": ("spark", "local"),
}  # fmt: skip


def _engine_options(arguments: argparse.Namespace, engine: str) -> dict[str, Any]:
    """The options that not all engines have."""
    options: dict[str, Any] = {}
    if arguments.schedule:
        if engine != "reference":
            raise UsageError("only the reference has schedules", hint="add --engine reference")
        from millstream.engine.reference.run import parse_schedule

        options["schedule"] = parse_schedule(arguments.schedule)
    for name, engines in _OPTIONS.items():
        value = getattr(arguments, name)
        if value and engine not in engines:
            raise UsageError(
                f"--engine {engine} does not take --{name}",
                hint=f"it is for {listing(engines)}",
            )
        if value:
            options[name] = value
    return options


def named(given: list[str], option: str) -> dict[str, str]:
    """`NAME=PATH` pairs of an option."""
    pairs: dict[str, str] = {}
    for one in given:
        name, equals, path = one.partition("=")
        if not equals or not name or not path or "://" in name:
            raise UsageError(f'expected {option} NAME=PATH, got "{masked(one)}"')
        if name in pairs:
            raise UsageError(f"{option} {name} is given twice")
        pairs[name] = path
    return pairs


def _outputs(compiled: api.Compiled, arguments: argparse.Namespace) -> dict[str, Any]:
    """Where every output goes: as told, or to standard output if there is one such."""
    given: dict[str, Any] = dict(named(arguments.out, "--out"))
    program = compiled.program
    unasked = {q for q in compiled.aside if q not in given and q not in compiled.sinks}
    known = {*given, *compiled.sinks, *unasked}
    missing = [q for q in program.outputs if q not in known]
    if len(missing) > 1:
        raise UsageError(
            f"say where the outputs go: {listing(missing)}",
            hint=" ".join(f"--out {q}=FILE" for q in missing[:3]),
        )
    given.update(dict.fromkeys(missing, "-"))
    types = program.queue_types()
    to_terminal = [q for q, path in given.items() if path == "-"]
    if len(to_terminal) > 1:
        raise UsageError(f"only one output can be standard output, not {listing(to_terminal)}")
    outputs: dict[str, Any] = {name: NowhereWriter() for name in unasked}
    for name, path in given.items():
        chosen = arguments.format or ("table" if sys.stdout.isatty() else "csv")
        if path == "-" and name in types and chosen == "table":
            more = "; --format csv prints them"
            outputs[name] = TableWriter(name, types[name], more=more)
        elif path == "-" and name in types and chosen == "json":
            outputs[name] = JsonWriter()
        else:
            text = f"{chosen}:-" if path == "-" and chosen in ("csv", "jsonl") else path
            outputs[name] = _location(text, arguments.times)
    return outputs


def _location(text: str, times: str) -> Location:
    location = parse_location(text, Path())
    return replace(location, times="iso") if times == "iso" else location


def _until_interrupted() -> Callable[[], bool]:
    """Ctrl-C ends a run after the current round or batch; a second one stops at once."""
    stopped = False

    def stop(_signal: int, _frame: object) -> None:
        nonlocal stopped
        if stopped:
            raise KeyboardInterrupt
        stopped = True

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    return lambda: stopped


_PREPARING = {
    "spark": "starting Spark; --engine local starts at once",
    "local": "preparing; kernels that are new are compiled once",
    "reference": "running the reference",
}


class Progress:
    """Mutable: shows how a run is going, and at its end what to know about it."""

    def __init__(self, shown: str, engine: str) -> None:
        self.is_live = shown == "auto" and sys.stderr.isatty()
        self.is_json = shown == "json"
        self.started = time.perf_counter()
        self.last = 0.0
        if self.is_live:
            preparing = _PREPARING.get(engine, "preparing")
            print(preparing, end="", file=sys.stderr, flush=True)

    def __call__(self, report: Report) -> None:
        now = time.perf_counter()
        if self.is_json:
            print(json.dumps(summary(report, now - self.started)), file=sys.stderr, flush=True)
        elif self.is_live and now - self.last > 0.1:
            self.last = now
            # A line that wraps could not be taken back.
            line = self._line(report)[: shutil.get_terminal_size().columns - 1]
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)

    def finish(self, report: Report, kept: frozenset[str] = frozenset()) -> None:
        if self.is_live:
            print(f"\r{self._line(report)}\x1b[K", file=sys.stderr)
        for line in remarks(report, kept):
            print(line, file=sys.stderr)

    def _line(self, report: Report) -> str:
        parts = [f"{name} {c.read:,} rows" for name, c in report.inputs.items()]
        parts += [f"{name} {count:,} rows" for name, count in report.outputs.items()]
        parts += self._speed(report)
        late = sum(c.late for c in report.inputs.values())
        rejected = sum(c.rejected for c in report.inputs.values())
        return "  ".join([*parts, f"late {late:,}", f"rejected {rejected:,}"])

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
            lines.append(
                f"{name}: {counts.late:,} late rows were left out"
                f"{slack if counts.behind else ''}{_keep(late, kept)}"
            )
        if counts.rejected:
            hint = _keep("rejected", kept)
            lines.append(f"{name}: {counts.rejected:,} rows were rejected{hint}")
        if counts.waiting:
            lines.append(f"{name}: {counts.waiting:,} rows still wait for time to pass")
    lines += [f"    {reason}" for reason in report.first_rejections]
    for what, count in report.faults.most_common(SHOWN_FAULTS):
        lines.append(f"{count:,} values became null: {what}")
    if len(report.faults) > SHOWN_FAULTS:
        lines.append(f"... and {len(report.faults) - SHOWN_FAULTS} more kinds of nulls")
    return lines


def _keep(output: str, kept: frozenset[str]) -> str:
    return "" if output in kept else f" (--out {output}=FILE keeps them)"
