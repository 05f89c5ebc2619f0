"""Rows of which few are strange: what a division by zero, or a null, costs those beside it.

A batch of a million rows of two columns, through quotients and remainders of integers and of
numbers, as CQL, rules and requirements have them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from millstream.calculus.graph import in_dependency_order
from millstream.kernels.loop.rows import RowKernel
from millstream.kernels.runtime.kernel import Round
from millstream.languages.brook.load import load
from millstream.plan.batch import DTYPES, Batch, Vector
from millstream.source import Source

ROUND = Round(10**9, np.zeros(0, np.int64))
ROWS = 1_000_000
REPEATS = 15
#: At most so much longer than without anything strange, for one row in a million that is.
BAR = 1.25
PROGRAMS = {
    "integers": "output out; input in(x integer, y integer);"
    "(out) <- Map[q = div(x, y), r = x % y, s = x + y](in);",
    "numbers": "output out; input in(x number, y number);(out) <- Map[q = x / y, s = x + y](in);",
}


def kernel_of(text: str) -> RowKernel:
    program = load(Source("bench.brook", text))
    inputs = tuple((i.name, i.type) for i in program.inputs)
    return RowKernel(in_dependency_order(program), inputs, program.outputs, program.variables)


def rows_of(kernel: RowKernel, strange: int, what: str) -> Batch:
    """Whole numbers from 1 on, but for the strange rows."""
    (type_,) = kernel.trace.inputs
    chance = np.random.default_rng(7)
    dividend, divisor = chance.integers(1, 100, (2, ROWS))
    places, valid = chance.choice(ROWS, strange, replace=False), None
    if what == "null" and strange:
        valid = np.ones(ROWS, np.bool_)
        valid[places] = False
    else:
        divisor[places] = 0
    width = DTYPES[type_.schema.fields[0].type.kind]
    columns = zip(type_.schema, (dividend, divisor), (None, valid), strict=True)
    vectors = tuple(Vector(f.type, values.astype(width), there) for f, values, there in columns)
    return Batch(type_, np.arange(ROWS), vectors)


def took(kernel: RowKernel, batch: Batch) -> float:
    """The shortest of several times, in processor time."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        kernel.process((batch,), ROUND)
        times.append(time.process_time() - start)
    return min(times)


def faults(_: float) -> list[dict[str, Any]]:
    """A million rows of which none, one, a hundred or all are strange."""
    records = []
    for name, text in PROGRAMS.items():
        kernel = kernel_of(text)
        plain = took(kernel, rows_of(kernel, 0, ""))
        for what in ("zero", "null"):
            for strange in (1, 100, ROWS):
                seconds = took(kernel, rows_of(kernel, strange, what))
                records.append({
                    "benchmark": f"{name}, {what} in {strange:,} of {ROWS:,} rows",
                    "rows_per_s": round(ROWS / seconds),
                    "times_as_long": round(seconds / plain, 2),
                    "is_met": strange > 1 or seconds <= BAR * plain,
                })  # fmt: skip
    return records


BENCHMARKS = {"faults": faults}
