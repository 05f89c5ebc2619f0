"""What rewrites are worth on the local engine: fusion, fission, and all of them together."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import local_threads
import millstream
from millstream import api
from millstream.calculus.graph import Operator, Program
from millstream.engine.local.run import plan_for
from millstream.kernels.build import why_not
from millstream.kernels.rounds import StepRunner
from millstream.plan.batch import Batch, Vector
from millstream.plan.steps import Plan, make_plan

Record = dict[str, Any]
ROWS = 1_000_000
CHUNK = 1 << 17
TURNS = 3
FUSED, FISSION, SLOWEST = 3.0, 1.6, 0.9

EIGHT = """
output out;
input items(a integer, b number) time at;
(q1) <- Filter[a % 101 != 1](items);
(q2) <- Map[a, b = b + 1.0](q1);
(q3) <- Filter[b > 2.0](q2);
(q4) <- Map[a = a + 1, b](q3);
(q5) <- Filter[a % 103 != 2](q4);
(q6) <- Map[a, b = b * 0.5](q5);
(q7) <- Filter[b < 1000.0](q6);
(out) <- Map[a, b = b - 1.0](q7);
"""

#: A row takes some 2 microseconds.
HEAVY_STEPS = 60


def _heavy() -> str:
    term = "b"
    for _ in range(HEAVY_STEPS):
        term = f"ln(exp({term}) + 1.0)"
    return f"""
        output out;
        input items(a integer, b number) time at;
        (worked) <- Map[a, b = {term}](items);
        (out) <- Filter[b > 9.5](worked);
    """


def _each_alone(program: Program) -> Plan:
    """A plan in which no operator is fused with another."""

    def alone(within: Program, ops: Sequence[Operator]) -> str | None:
        return "each alone" if len(ops) > 1 else why_not(within, tuple(ops))

    return make_plan(program, alone)


def _chunks(program: Program, rows: int) -> list[Batch]:
    numbers = np.random.default_rng(3)
    (one,) = program.inputs
    columns = (numbers.integers(0, 1_000_000, rows), numbers.random(rows) * 1_000)
    vectors = [Vector(f.type, v, None) for f, v in zip(one.type.schema, columns, strict=True)]
    whole = Batch(one.type, np.arange(rows), tuple(vectors), None)
    return [whole.slice(first, min(first + CHUNK, rows)) for first in range(0, rows, CHUNK)]


def _least(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    """The least of several turns; the first one compiles."""
    taken = []
    for _ in range(TURNS + 1):
        start = clock()
        work()
        taken.append(clock() - start)
    return min(taken[1:])


def _run_plan(plan: Plan, chunks: Sequence[Batch]) -> int:
    runner = StepRunner(plan)
    made = 0
    for chunk in chunks:
        for queues in runner.round({"items": chunk}, int(chunk.time[-1]), {}):
            made += len(queues["out"])
    return made


def fused_filters(scale: float) -> list[Record]:
    """Eight small filters and maps of a million rows in memory: one loop beside one loop each."""
    program = api.compile(text=EIGHT).program
    chunks = _chunks(program, max(10_000, int(ROWS * scale)))
    plans = plan_for(program), _each_alone(program)
    together, alone = (
        _least(partial(_run_plan, plan, chunks), time.process_time) for plan in plans
    )
    return [{
        "rows": sum(map(len, chunks)), "steps_fused": len(plans[0].steps),
        "steps_unfused": len(plans[1].steps), "fused_ms": round(1e3 * together, 1),
        "unfused_ms": round(1e3 * alone, 1), "ratio": round(alone / together, 2), "bar": FUSED,
        "is_met": alone >= FUSED * together,
        "is_equal": _run_plan(plans[0], chunks) == _run_plan(plans[1], chunks),
    }]  # fmt: skip


def heavy_on_threads(scale: float) -> list[Record]:
    """A stateless map of some 2 us a row, from Parquet to Parquet, on one thread and on two."""
    rows = max(300_000, int(ROWS * scale))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        numbers = np.random.default_rng(5)
        table = pa.table({
            "a": numbers.integers(0, 1_000_000, rows), "b": numbers.random(rows) * 10,
            "at": pa.array(np.arange(rows), pa.timestamp("us", "UTC")),
        })  # fmt: skip
        pq.write_table(table, place / "items.parquet", row_group_size=CHUNK)
        job = api.compile(text=_heavy())

        def run(threads: int) -> bytes:
            out = place / f"out-{threads}.parquet"
            job.run({"items": str(place / "items.parquet")}, {"out": str(out)}, threads=threads)
            return out.read_bytes()

        one, two = (_least(partial(run, n), time.perf_counter) for n in (1, 2))
        return [{
            "rows": rows, "seconds_1": round(one, 2), "seconds_2": round(two, 2),
            "ratio": round(one / two, 2), "bar": FISSION, "is_met": one >= FISSION * two,
            "is_equal": run(1) == run(2),
        }]  # fmt: skip


def as_written(scale: float) -> list[Record]:
    """Queries with all passes and with none, on one thread, by the processor."""
    rows = max(10_000, int(ROWS * scale))
    records = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        local_threads.trades(place, rows)
        for name, text in local_threads.QUERIES.items():
            query = place / "query.cql"
            query.write_text(local_threads.STREAM + text)

            def run(*, optimise: bool, query: Path = query) -> None:
                out = str(query.with_name("out.parquet"))
                millstream.compile(query).run(outputs={"out": out}, optimise=optimise, threads=1)

            with_passes, without = (
                _least(partial(run, optimise=on), time.process_time) for on in (True, False)
            )
            records.append({
                "query": name, "rows": rows, "optimised_ms": round(1e3 * with_passes),
                "as_written_ms": round(1e3 * without), "ratio": round(without / with_passes, 2),
                "bar": SLOWEST, "is_met": without >= SLOWEST * with_passes,
            })  # fmt: skip
    return records


BENCHMARKS = {
    "fused_filters": fused_filters, "heavy_on_threads": heavy_on_threads, "as_written": as_written,
}  # fmt: skip
