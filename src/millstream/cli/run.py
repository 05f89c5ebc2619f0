"""`millstream run`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream import api
from millstream.cli.live import LiveTable, Screen
from millstream.cli.progress import Progress
from millstream.cli.show import JsonWriter, NowhereWriter, TableWriter, print_warnings
from millstream.cli.views import (
    asked_view,
    names_asked,
    refuse_without_view,
    rounds_asked,
    show_view,
)
from millstream.connectors.address import masked
from millstream.connectors.location import Location, parse_location
from millstream.engine.given import outputs_of
from millstream.engine.job import never
from millstream.errors import UsageError, listing
from millstream.interrupts import STOPPED, say_stopped

if TYPE_CHECKING:
    from types import FrameType

    from millstream.cli.metrics import Metrics

DEFAULT_ENGINE = "spark"


def run(arguments: argparse.Namespace) -> int:
    view = asked_view(arguments)
    if view is not None:
        inputs = named(arguments.in_, "--in")
        return show_view(view, arguments, inputs, lambda: compiled_from(arguments))
    refuse_without_view(arguments)
    compiled = compiled_from(arguments)
    engine = arguments.engine or default_engine(arguments)
    options = _engine_options(arguments, engine)
    if arguments.follow and engine in ("reference", "actors"):
        raise UsageError(f"the engine {engine} cannot follow", hint="use --engine local")
    screen = Screen() if arguments.follow and sys.stdout.isatty() else None
    outputs = _outputs(compiled, arguments, screen)
    if not any(isinstance(one, LiveTable) for one in outputs.values()):
        screen = None
    print_warnings(compiled.warnings(named(arguments.in_, "--in")))
    is_alone = not _prints_rows_as_they_come(outputs)
    # Without a checkpoint nothing is won by finishing what has been begun.
    until = _Until() if arguments.follow or arguments.checkpoint else None
    with (
        _metrics(arguments.metrics) as metrics,
        Progress(arguments.progress, engine, is_alone=is_alone, screen=screen) as progress,
    ):
        finished = compiled.run(
            named(arguments.in_, "--in"),
            outputs,
            engine=engine,
            optimise=not arguments.no_optimise,
            **passes_asked(arguments),
            follow=arguments.follow,
            stopped=never if until is None else until,
            progress=progress if metrics is None else metrics.watching(progress),
            **options,
        )
    progress.finish(finished.report, kept=frozenset(outputs))
    if not arguments.follow:
        print_warnings(compiled.left_over(finished.report))
    if arguments.follow and until is not None and until.signal == signal.SIGINT:
        say_stopped()
        return STOPPED
    return 0


def _metrics(address: str | None) -> AbstractContextManager[Metrics | None]:
    if address is None:
        return nullcontext()
    from millstream.cli.metrics import Metrics

    metrics = Metrics(address)
    print(f"metrics: http://127.0.0.1:{metrics.port}/metrics", file=sys.stderr)
    return metrics


def _prints_rows_as_they_come(outputs: Mapping[str, Any]) -> bool:
    """Whether rows go to the terminal by themselves, where progress would lie between them."""
    return sys.stdout.isatty() and any(
        isinstance(one, JsonWriter) or (isinstance(one, Location) and one.is_standard)
        for one in outputs.values()
    )


def passes_asked(arguments: argparse.Namespace) -> dict[str, Any]:
    """Which passes of the optimiser are made, as options of a call."""
    only, without = (
        None if text is None else [name.strip() for name in text.split(",") if name.strip()]
        for text in (arguments.only, arguments.without)
    )
    if arguments.sample is not None and arguments.sample < 1:
        raise UsageError(f"a sample has some rows, not {arguments.sample}")
    return {"only": only, "without": without or (), "relaxed": arguments.relaxed,
            "sample": arguments.sample}  # fmt: skip


def default_engine(arguments: argparse.Namespace) -> str:
    """Spark, unless it is not installed and nothing that only it can do is asked for."""
    if has_spark() or arguments.master or arguments.ui or arguments.jars or arguments.packages:
        return DEFAULT_ENGINE
    print("Spark is not installed, so this runs on --engine local; for Spark: "
          "pip install 'millstream[spark]'", file=sys.stderr)  # fmt: skip
    return "local"


def has_spark() -> bool:
    return find_spec("pyspark") is not None


def compiled_from(arguments: argparse.Namespace) -> api.Compiled:
    """The program, with what the command says about its inputs."""
    names = {**named(arguments.set, "--set"), **names_asked(arguments)}
    asked = named(getattr(arguments, "out", []), "--out")
    compiled = api.compile(arguments.file, names=names, outputs=asked)
    for unit in arguments.unit:
        compiled = compiled.with_units(unit)
    return with_rounds_asked(with_times_asked(compiled, arguments), arguments)


def with_times_asked(compiled: api.Compiled, arguments: argparse.Namespace) -> api.Compiled:
    """How times are written: `--zone` and `--time-format`, for one input or for all."""
    for option, word in (("zone", "zone"), ("time_format", "format")):
        for one in getattr(arguments, option):
            name, equals, value = one.partition("=")
            given = (name, value) if equals else (None, one)
            compiled = compiled.with_times(given[0], **{word: given[1]})
    return compiled


def with_rounds_asked(compiled: api.Compiled, arguments: argparse.Namespace) -> api.Compiled:
    rounds = rounds_asked(arguments)
    return compiled if rounds is None else compiled.with_rounds(rounds)


#: Which engines take an option.
_OPTIONS = {
    "master": ("spark",), "ui": ("spark",), "checkpoint": ("spark", "local"),
    "rebuild": ("spark", "local"), "relayout": ("spark", "local"), "threads": ("local",),
    "jars": ("spark",), "packages": ("spark",),
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
        is_given = value is not None and value is not False and value != ""
        if is_given and engine not in engines:
            raise UsageError(
                f"--engine {engine} does not take --{name}",
                hint=f"it is for {listing(engines)}",
            )
        if is_given:
            is_list = name in ("jars", "packages")
            options[name] = [one.strip() for one in value.split(",")] if is_list else value
    if "ui" in options:
        options["ui"] = _tell_pages
    return options


def _tell_pages(address: str) -> None:
    print(f"Spark's pages: {address}", file=sys.stderr, flush=True)


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


def _outputs(
    compiled: api.Compiled, arguments: argparse.Namespace, screen: Screen | None
) -> dict[str, Any]:
    """Where every output goes: as told, or to standard output if there is one such.

    On a screen, tables are drawn as they change.
    """
    program = compiled.program
    given = outputs_of(program, named(arguments.out, "--out"))
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
        raise UsageError(
            f"only one output can be standard output, not {listing(to_terminal)}",
            hint=" ".join(f"--out {q}=FILE" for q in to_terminal[1:4]),
        )
    outputs: dict[str, Any] = {name: NowhereWriter() for name in unasked}
    for name, path in given.items():
        chosen = arguments.format or ("table" if sys.stdout.isatty() else "csv")
        if path == "-" and name in types and chosen == "table" and screen is not None:
            outputs[name] = LiveTable(name, types[name], screen)
        elif path == "-" and name in types and chosen == "table":
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


class _Until:
    """Mutable: Ctrl-C ends a run after the current round or batch; a second one stops at once.

    So does the first, as long as no round has asked whether it may begin.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._has_begun = False
        self._at_once = {n: signal.signal(n, self._stop) for n in (signal.SIGINT, signal.SIGTERM)}

    def __call__(self) -> bool:
        self._has_begun = True
        return self.signal is not None

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None and self._has_begun:
            self.signal = number
            return
        before = self._at_once[signal.Signals(number)]
        if not callable(before):
            raise KeyboardInterrupt
        before(number, frame)
