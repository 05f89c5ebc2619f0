"""Of groups in order only those rows are told that are asked for; the answers are the same."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import millstream
from millstream.engine.local.run import plan_for
from millstream.kernels.build import build_kernel
from millstream.kernels.relational.ordered import OrderedKernel

PROGRAM = """
output answer;
input rows(k text, v integer, t text) time at;
(held, $w) <- Range[40 us](rows, $w);
(placed, $o) <- Ordered[by k; on v; EMIT](held, $o);
(answer) <- Filter[WHERE](placed);
"""
EMIT = 'emit n = row_number(), c = count(v, "range * *")'
JOINED = EMIT + ', j = join(t, "range * *", "-")'
MEDIAN = "n == integer(floor(number(c) * 0.5)) + 1 or n == integer(ceil(number(c) * 0.5)) + 1"

ASKED = (
    (EMIT, MEDIAN),
    (EMIT, "c - 1 == n"),
    (EMIT, "n == 1 or n == 2 or n == c"),
    (JOINED, "n == 1"),
)
#: What may be any row, or may fail.
NOT_ASKED = (
    (EMIT, "n <= 2"),
    (EMIT, "n == v"),
    (EMIT, "n == 1 or v == 2"),
    (EMIT, "n == integer(number(c) * 1e300)"),
    (EMIT + ', b = count(v, "rows -1 0")', "n == 1"),
)
RANDOM = Random(7)
ROWS = [
    {"at": 3 * (n // 2), "k": RANDOM.choice("ab"), "v": RANDOM.choice([None, 1, 2, 2, 5, 9]),
     "t": RANDOM.choice([None, "x", "y"])}
    for n in range(120)
]  # fmt: skip


def job_of(emit: str, condition: str) -> Any:
    return millstream.compile(text=PROGRAM.replace("EMIT", emit).replace("WHERE", condition))


def kernel_of(job: Any) -> OrderedKernel:
    plan = plan_for(job.program)
    (step,) = (s for s in plan.steps if s.operators[0].function.name == "Ordered")
    kernel = build_kernel(plan, step)
    assert isinstance(kernel, OrderedKernel)
    return kernel


@pytest.mark.parametrize(("emit", "condition"), ASKED)
def test_rows_that_are_asked_for_are_told(
    emit: str, condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLSTREAM_SMALL", "0")
    job = job_of(emit, condition)
    assert kernel_of(job).asked is not None
    expected = job.run({"rows": ROWS}, engine="reference").rows("answer")
    assert expected
    assert job.run({"rows": ROWS}, engine="local").rows("answer") == expected


@pytest.mark.parametrize(("emit", "condition"), NOT_ASKED)
def test_where_any_row_may_be_asked_for_all_are_told(emit: str, condition: str) -> None:
    assert kernel_of(job_of(emit, condition)).asked is None


def test_what_is_kept_tells_the_same_again() -> None:
    kernel = kernel_of(job_of(EMIT, MEDIAN))
    for row in [("a", 3, "x"), ("a", None, "y"), ("a", 3, "x"), ("b", 1, None)]:
        kernel._changed(row[:1], _counter(row))
    again = kernel_of(job_of(EMIT, MEDIAN))
    again.restore(kernel.snapshot())
    row = ("a", 4, "x")
    told = kernel._changed(("a",), _counter(row))
    assert told
    assert told == again._changed(("a",), _counter(row))


def _counter(row: tuple[Any, ...]) -> Counter[Any]:
    return Counter({row: 1})
