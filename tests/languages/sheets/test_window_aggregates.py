"""Aggregates of windows to the last digit: the compiled ones give what the reference gives."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import pytest

from millstream.backends.reference.feed import Event
from millstream.calculus.graph import Program
from millstream.calculus.types import NUMBER, TEXT, Schema
from millstream.kernels.sheet_build import sheet_kernel
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from tests.languages.sheets.books import workbook
from tests.languages.sheets.laws import agree

COLUMNS = Schema.of(x=NUMBER, y=NUMBER, s=TEXT)
_WINDOWS = re.compile(r"\b[XYS]\b")
Row = tuple[float | None, float | None, str | None]


def sheet(formulas: Sequence[str], window: str = "WINDOW({},0.00004)", **cells: Any) -> Program:
    """One row of cells; X, Y and S stand for the windows of the columns."""
    windows = {f"G{n}": "=" + window.format(c) for n, c in enumerate(("A1", "B1", "C1"), 1)}
    shown = {f"D{n}": f for n, f in enumerate(formulas, 1)}
    named = {cell: _WINDOWS.sub(lambda m: f"G{'XYS'.index(m[0]) + 1}", f)
             for cell, f in shown.items()}  # fmt: skip
    bindings = Bindings(
        (InputBinding("In", (Binding("x", "A1"), Binding("y", "B1"), Binding("s", "C1")),
                      columns=COLUMNS),),
        (OutputBinding("Out", tuple(Binding(f"o{n}", cell) for n, cell in enumerate(shown))),),
    )  # fmt: skip
    return translate_workbook(workbook({**windows, **named, **cells}), bindings)


def events(rows: Sequence[Row], step: int = 1) -> dict[str, list[Event]]:
    return {"In": [Event(n * step, row, 1) for n, row in enumerate(rows)]}


def is_compiled(program: Program) -> bool:
    operator, types = program.operators[0], program.queue_types()
    kernel: Any = sheet_kernel(operator.function, tuple(types[q] for q in operator.inputs), 1)  # type: ignore[arg-type]
    return "walked" not in kernel.source.splitlines()[0]


SPREADS = ["=STDEV(X)", "=STDEVP(X)", "=VAR(X)", "=VAR.P(X)", "=SUM(X)", "=SUMSQ(X)"]


@pytest.mark.slow
def test_spreads_agree_to_the_last_digit() -> None:
    """Also of percentages (a case that was found), of constants, and where nearly all cancels."""
    program = sheet(SPREADS)
    assert is_compiled(program)
    found: list[Row] = [(v, None, None) for v in (-0.02, -0.01, None, -0.02)]
    generator = random.Random(5)
    for mean, spread in ((0.0, 1.0), (1e9, 1e-3), (3.25, 0.0), (1e-200, 1e-201), (1e8, 1.0)):
        values = [mean + generator.gauss(0, spread) for _ in range(60)]
        values[30] = generator.choice([1e-300, 1e100, 1e150, 2.0**449, -(2.0**450)])
        found += [(v, None, None) for v in values]
    found += [(generator.choice([0.1, 0.2, 100.3, 1e16, 1e-20]), None, None) for _ in range(60)]
    agree(program, events(found), [3, 50])
