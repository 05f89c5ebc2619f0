"""Aggregates of windows to the last digit: the compiled ones give what the reference gives."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from typing import Any

import pytest

from millstream.calculus.graph import Program
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.sheets.build import sheet_kernel
from millstream.plan.batch import batch_of
from tests.languages.sheets.laws import agree
from tests.languages.sheets.long_windows import KEPT, PARTS, SCANNED, digits, events, rows, sheet
from tests.languages.sheets.test_kernels import NO_TICKS
from tests.languages.sheets.test_laws import ROOT, by_python
from tests.seeds import in_turn


def is_compiled(program: Program) -> bool:
    operator, types = program.operators[0], program.queue_types()
    kernel: Any = sheet_kernel(operator.function, tuple(types[q] for q in operator.inputs), 1)  # type: ignore[arg-type]
    return "walked" not in kernel.source.splitlines()[0]


@pytest.mark.parametrize("formula", KEPT + SCANNED)
def test_an_aggregate_of_windows_is_compiled(formula: str) -> None:
    assert is_compiled(sheet([formula]))


def test_aggregates_agree_to_the_last_digit_by_python() -> None:
    """All of them, by their loops as Python runs them: to compile them takes minutes."""
    by_python(1, 1, "digits")


@pytest.mark.slow
@pytest.mark.parametrize("formulas", in_turn(PARTS), ids=lambda part: part[0])
def test_aggregates_agree_to_the_last_digit(formulas: list[str]) -> None:
    agree(sheet(formulas), events(digits()), [3, 50])


@pytest.mark.proof
def test_statements_for_a_tuple_hardly_depend_on_the_length_of_windows() -> None:
    """Windows that are sixteen times as long: those of trees have four more levels to go down."""
    command = [sys.executable, "-m", "tests.languages.sheets.count_steps", "32", "512"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stderr
    counted = [line.split("\t") for line in done.stdout.splitlines()]
    assert KEPT == [formula for formula, _, _ in counted]
    longer = {f: float(long) / float(short) for f, short, long in counted}
    assert {} == {formula: ratio for formula, ratio in longer.items() if ratio > 2.5}


@pytest.mark.proof
def test_windows_of_a_hundred_thousand_values_cost_little_more_than_of_a_thousand() -> None:
    """All aggregates together: what is not in the caches of the processor costs some more."""
    kept = [part for part in PARTS if part[0] in KEPT]
    seconds = {
        length: sum(seconds_for(formulas, length, 5_000) for formulas in kept)
        for length in (1_000, 100_000)
    }
    assert seconds[100_000] < 6 * seconds[1_000]


def seconds_for(formulas: list[str], length: int, count: int) -> float:
    """The time that the last tuples take, once the windows are full; the least of some."""
    program = sheet(formulas)
    operator, type_ = program.operators[0], program.queue_types()["In"]
    kernel: Any = sheet_kernel(operator.function, (type_,), 1)  # type: ignore[arg-type]
    start = 2 * length
    given = events(rows(3, start + 3 * count, is_tame=True), length)["In"]
    cuts = [0, start, *(start + n * count for n in (1, 2, 3))]
    found = []
    for part in itertools.starmap(slice, itertools.pairwise(cuts)):
        batch = batch_of(type_, [e.time for e in given[part]], [e.row for e in given[part]])
        before = time.thread_time()
        kernel.process((batch,), Round(0, NO_TICKS))
        found.append(time.thread_time() - before)
    return min(found[1:])
