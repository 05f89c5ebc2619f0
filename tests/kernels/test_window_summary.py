"""What walked sheets keep of a window is what looking at all of it gives."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from millstream.kernels.sheets.summary import WindowSummary
from millstream.values.excel.arrays import window_of
from millstream.values.excel.functions_statistics import STATISTICS
from millstream.values.excel.values import NUM, Raised, Scalar

SPREADS = ("VAR", "VAR.S", "VARP", "VAR.P", "STDEV", "STDEV.S", "STDEVP", "STDEV.P")
NUMBERS = (0.1, 0.2, 1e16, -1e-20, 3.25, 3.25, 5e-324, -(2.0**449), 2.0**450, 1e300, 0.0)


def kept(summary: WindowSummary, function: str) -> tuple[Scalar] | None:
    aggregate = summary.aggregate(function, 0)
    assert aggregate is not None
    return aggregate()


def outcome(call: Any) -> object:
    try:
        return call()
    except Raised as raised:
        return raised.error


@pytest.mark.parametrize("function", SPREADS)
def test_spreads_agree_to_the_last_digit_as_values_come_and_go(function: str) -> None:
    generator = random.Random(2)
    values: list[Scalar] = []
    summary = WindowSummary([], 0)
    for number in range(400):
        kind = generator.randrange(5)
        value: Scalar = generator.choice(NUMBERS) if kind == 0 else generator.gauss(1e6, 1e-3)
        value = generator.choice((None, "x", True)) if kind == 1 else value
        values.append(value)
        summary.enter(value)
        if len(values) > number % 30:
            del values[0]
            summary.leave()
        expected = outcome(lambda: STATISTICS[function].call(window_of(tuple(values))))
        found = outcome(lambda: kept(summary, function))
        assert (expected,) == (found if isinstance(found, tuple) else (found,))


def test_a_number_too_large_for_a_square_leaves_no_trace() -> None:
    summary = WindowSummary([1e300, 1.0, 2.0], 0)
    assert NUM == outcome(lambda: kept(summary, "VAR"))
    summary.leave()
    assert (0.5,) == kept(summary, "VAR")


def test_a_spread_costs_the_same_however_long_a_window_is() -> None:
    seconds = []
    for length in (100, 20_000):
        summary = WindowSummary([float(n) for n in range(length)], 0)
        kept(summary, "STDEV")
        start = time.process_time()
        for n in range(300):
            summary.enter(float(n))
            summary.leave()
            kept(summary, "STDEV")
        seconds.append(time.process_time() - start)
    assert seconds[1] < 10 * seconds[0]
