"""`millstream run --watch`: a worksheet in the terminal, with the live values of one key.

The rows of that key run through the sheet in order of time; cells that have just changed are
highlighted, and a window is shown as its size and a small curve. What else stands in the
worksheet, which the program does not need, is read from the workbook again. With `--follow` it
goes on with what comes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.live import Live

from millstream import api
from millstream.calculus.functions import Duplicate, Map
from millstream.calculus.graph import Operator, Program
from millstream.calculus.sheets import Address, Sheet
from millstream.calculus.types import QueueType
from millstream.engine.job import never
from millstream.errors import UsageError
from millstream.languages.sheets.dates import dates_in
from millstream.languages.sheets.read import read_workbook
from millstream.languages.sheets.watch_drawn import View
from millstream.meaning.sheet_values import to_cell
from millstream.plan.batch import Batch
from millstream.values.excel.values import Scalar
from millstream.values.excel.workbook import place_of

_FRAMES_PER_SECOND = 10


def view(
    arguments: argparse.Namespace, inputs: Mapping[str, str], compiled: Callable[[], api.Compiled]
) -> None:
    replay(compiled(), inputs, arguments.key, follow=arguments.follow)


def replay(
    compiled: api.Compiled,
    inputs: Mapping[str, api.InputGiven],
    key: str | None,
    *,
    follow: bool = False,
    stopped: Callable[[], bool] = never,
) -> None:
    """Show the inputs of one key running through the first sheet that reads streams directly."""
    op, names = _sheet(compiled.program)
    assert isinstance(op.function, Sheet)
    types = {one.name: one.type for one in compiled.program.inputs}
    of_inputs = tuple(types[name] for name in names)
    drawn = View(op.function, names, _written(op), dates_in(op.function, of_inputs))
    console = Console()
    screen = Live(console=console, refresh_per_second=_FRAMES_PER_SECOND)
    with screen if console.is_terminal else nullcontext():
        shown = _Shown(drawn, of_inputs, key, console, screen if console.is_terminal else None)
        _run(compiled, inputs, names, shown, follow=follow, stopped=stopped)
        if drawn.rows:
            shown.draw()
    if not drawn.rows:
        of_key = f' of the key "{key}"' if key else ""
        raise UsageError(f"there are no rows{of_key} to watch")
    if not console.is_terminal:
        console.print(drawn.drawn(shown.key, console.width, 10_000))


def _run(
    compiled: api.Compiled,
    inputs: Mapping[str, api.InputGiven],
    names: tuple[str, ...],
    shown: _Shown,
    *,
    follow: bool,
    stopped: Callable[[], bool],
) -> None:
    """Let the inputs come as in a run, by a program that only hands them on."""
    wanted = tuple(dict.fromkeys(names))
    handing_on = Program(
        tuple(one for one in compiled.program.inputs if one.name in wanted), wanted, ()
    )
    given = {name: place for name, place in inputs.items() if name in wanted}
    sources = {name: place for name, place in compiled.sources.items() if name in wanted}
    job = replace(compiled, program=handing_on, sources=sources, sinks={}, aside=())
    writers = {
        name: _Arrivals(shown, [n for n, one in enumerate(names) if one == name])
        for name in wanted
    }  # fmt: skip
    try:
        job.run(
            given, writers, engine="local", follow=follow, stopped=stopped,
            progress=lambda _: shown.fire(),
        )  # fmt: skip
    except KeyboardInterrupt:
        if not follow:
            raise
    shown.fire()


def _sheet(program: Program) -> tuple[Operator, tuple[str, ...]]:
    """The first sheet whose inputs are inputs of the program, and their names."""
    for op in program.operators:
        if isinstance(op.function, Sheet):
            sources = [_source(program, queue) for queue in op.inputs]
            if all(s is not None for s in sources):
                return op, tuple(s for s in sources if s is not None)
    raise UsageError("there is no sheet to watch", hint="--watch shows a sheet that reads streams")


def _written(op: Operator) -> dict[Address, Scalar]:
    """What stands in the workbook that a sheet was made of, if it is still there."""
    if op.origin is None or not Path(op.origin.source.name).is_file():
        return {}
    workbook = read_workbook(Path(op.origin.source.name))
    return {
        (name, *place_of(key)): value
        for name, sheet in workbook.sheets.items()
        for key, value in sheet.constants.items()
        if value is not None
    }


def _source(program: Program, queue: str) -> str | None:
    producers = program.producers()
    while queue in producers:
        op = producers[queue]
        if not isinstance(op.function, (Duplicate, Map)):
            return None
        queue = op.inputs[0]
    return queue


@dataclass
class _Arrivals:
    """Mutable: a writer that hands the rows of an input to those that are to be shown."""

    shown: _Shown
    numbers: list[int]

    def write(self, batch: Batch) -> None:
        for number in self.numbers:
            self.shown.take(number, batch)

    def close(self) -> None:
        """Nothing is held."""

    abort = close


@dataclass
class _Shown:
    """Mutable: rows that have come and not been shown yet, and where they are shown."""

    view: View
    inputs: tuple[QueueType, ...]
    key: str | None
    console: Console
    screen: Live | None
    arrived: list[tuple[int, int, dict[Address, Scalar]]] = field(default_factory=list)
    drawn_at: float = 0.0

    def take(self, number: int, batch: Batch) -> None:
        self.arrived += ((when, number, given) for when, given in self._of_key(number, batch))

    def _of_key(self, number: int, batch: Batch) -> Iterator[tuple[int, dict[Address, Scalar]]]:
        """What arrives in the cells of the key that is watched."""
        sheet, schema = self.view.sheet, batch.schema
        fed = sheet.fed(number)
        for when, row in zip(batch.time.tolist(), batch.rows(), strict=True):
            values = dict(zip(schema.names, row, strict=True))
            if sheet.keys:
                row_key = str(values[sheet.keys[number]])
                if self.key is None:
                    self.key = row_key
                if row_key != self.key:
                    continue
            yield (
                when,
                {
                    address: to_cell(values[column], schema[column], uses_1904=sheet.uses_1904)
                    for address, column in fed
                },
            )

    def fire(self) -> None:
        """Show what has come, in order."""
        arrived, self.arrived = sorted(self.arrived, key=lambda a: a[:2]), []
        for when, _, given in arrived:
            self.view.fire(when, given)
            if time.monotonic() - self.drawn_at > 1 / _FRAMES_PER_SECOND:
                self.draw()

    def draw(self) -> None:
        if self.screen is not None:
            self.drawn_at = time.monotonic()
            size = self.console.size
            self.screen.update(self.view.drawn(self.key, size.width, size.height))
