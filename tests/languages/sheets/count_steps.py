"""How many statements the loop of a sheet runs for a tuple, with windows of several lengths.

    python -m tests.languages.sheets.count_steps SHORT LONG

Time depends on the machine and on who else works on it, statements do not. The loop is run by
Python, which counts its lines; for each aggregate one line is printed: its formula, and the
average for both lengths.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"

from millstream.kernels.runtime.kernel import Round
from millstream.kernels.sheets.build import sheet_kernel
from millstream.plan.batch import Batch, batch_of
from tests.languages.sheets.as_python import run_by_python
from tests.languages.sheets.long_windows import KEPT, Row, events, rows, sheet
from tests.languages.sheets.test_kernels import NO_TICKS

_COUNTED = ("<string>", "loops_")


class Steps:
    """Mutable: counts the lines of compiled loops while it is on."""

    def __init__(self) -> None:
        self.count = 0

    def call(self, frame: FrameType, event: str, argument: Any) -> Any:
        is_counted = any(part in frame.f_code.co_filename for part in _COUNTED)
        return self.line if is_counted else None

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.count += 1
        return self.line


def average(formula: str, length: int, measured: int) -> float:
    """Per tuple, once the window is full."""
    program = sheet([formula])
    operator, types = program.operators[0], program.queue_types()
    kernel: Any = sheet_kernel(operator.function, tuple(types[q] for q in operator.inputs), 1)  # type: ignore[arg-type]
    found = rows(3, 2 * length + measured, is_tame=True)
    batches = list(_batches(types["In"], found, length, 2 * length))
    kernel.process((batches[0],), Round(0, NO_TICKS))
    steps = Steps()
    sys.settrace(steps.call)
    kernel.process((batches[1],), Round(0, NO_TICKS))
    sys.settrace(None)
    return steps.count / measured


def _batches(type_: Any, found: list[Row], length: int, cut: int) -> Iterator[Batch]:
    given = events(found, length)["In"]
    for some in (given[:cut], given[cut:]):
        yield batch_of(type_, [e.time for e in some], [e.row for e in some])


def main(short: int, long: int) -> None:
    run_by_python()
    for formula in KEPT:
        found = [average(formula, length, long) for length in (short, long)]
        print(formula, *(round(f, 1) for f in found), sep="\t")  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
