"""Continuous queries on the local engine, beside DuckDB that recomputes every batch.

DuckDB is asked, after every batch, what the query's relation is at the end of it; that is
less than we give, who say what it was at every instant. Both sides run in one process on
one core; where others use it too, the time that the processor gave us says more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.backends.local.run import run
from millstream.calculus.graph import Input, Program
from millstream.calculus.types import Kind
from millstream.connectors.chunks import Chunk
from millstream.engine.job import Job
from millstream.languages.cql.load import load
from millstream.optimiser.optimise import optimise
from millstream.plan.batch import Batch, Vector
from millstream.source import Source

ROWS_PER_CHUNK = 1 << 17
REPEATS = 3
STEP = 1_000  # microseconds between rows

Columns = dict[str, Any]


class Chunks:
    """A reader over batches in memory."""

    def __init__(self, batches: list[Batch]) -> None:
        self.batches = batches

    def chunks(self) -> Iterator[Chunk]:
        return (Chunk(batch) for batch in self.batches)

    def close(self) -> None:
        pass


@dataclass
class Counter:
    """A writer that counts rows."""

    rows: int = 0
    sums: dict[str, float] = field(default_factory=dict)

    def write(self, batch: Batch) -> None:
        self.rows += len(batch)

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


def batches_of(one: Input, columns: Columns, times: Any) -> list[Batch]:
    """Rows cut into chunks, as a reader would give them."""
    found = []
    for start in range(0, len(times), ROWS_PER_CHUNK):
        stop = min(start + ROWS_PER_CHUNK, len(times))
        vectors = tuple(
            Vector(f.type, columns[f.name].slice(start, stop - start))
            if f.type.kind is Kind.TEXT
            else Vector(f.type, columns[f.name][start:stop])
            for f in one.type.schema
        )
        weight = np.ones(stop - start, np.int64) if one.type.is_relation else None
        found.append(Batch(one.type, times[start:stop], vectors, weight))
    return found


def program_of(text: str) -> Program:
    return optimise(load(Source("bench.cql", text)).program)


def run_on(program: Program, data: dict[str, tuple[Columns, Any]]) -> Counter:
    (name,) = program.outputs
    readers = {one.name: Chunks(batches_of(one, *data[one.name])) for one in program.inputs}
    writer = Counter()
    run(Job(program, readers, {name: writer}))
    return writer


def best(action: Callable[[], Any]) -> tuple[float, float]:
    """The shortest of several times by the clock, and by what the processor gave us."""
    walls, cpus = [], []
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), time.process_time()
        action()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return min(walls), min(cpus)


def keys(generator: Any, count: int, rows: int) -> Any:
    names = pa.array([f"key{n:06}" for n in range(count)])
    ids = generator.integers(0, count, rows).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(ids), names)


def duckdb_rows_per_second(
    tables: dict[str, tuple[Columns, Any]], sql: str, windows: dict[str, int | None]
) -> float:
    """Ask for the relation after every batch; `windows` says how much each table keeps."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("PRAGMA threads=1")
    arrow = {
        name: pa.table({"_time": times, **{k: _plain(v) for k, v in columns.items()}})
        for name, (columns, times) in tables.items()
    }
    total = max(len(t) for t in arrow.values())
    batches = 0
    start = time.perf_counter()
    for stop in range(ROWS_PER_CHUNK, total + 1, ROWS_PER_CHUNK):
        for name, table in arrow.items():
            window = windows[name]
            first = 0 if window is None else max(0, stop - window)
            part = table if len(table) < total else table.slice(first, stop - first)
            connection.register(name, part)
        connection.sql(sql).to_arrow_table()
        batches += 1
        if time.perf_counter() - start > 5:
            break
    return batches * ROWS_PER_CHUNK / (time.perf_counter() - start)


def _plain(column: Any) -> Any:
    return column.cast(pa.string()) if isinstance(column, pa.DictionaryArray) else column


def record(
    name: str, rows: int, seconds: tuple[float, float], bar: float, oracle: float
) -> dict[str, Any]:
    wall, cpu = seconds
    return {
        "benchmark": name,
        "rows": rows,
        "rows_per_s": round(rows / wall),
        "rows_per_cpu_s": round(rows / cpu),
        "duckdb_rows_per_s": round(oracle),
        "bar_rows_per_s": round(bar),
        "is_met": bool(rows / wall >= bar),
    }


def measured(
    name: str,
    text: str,
    data: dict[str, tuple[Columns, Any]],
    bar: float,
    oracle: tuple[str, dict[str, int | None]],
) -> list[dict[str, Any]]:
    program = program_of(text)
    run_on(program, data)
    seconds = best(lambda: run_on(program, data))
    rows = sum(len(times) for name, (_, times) in data.items() if len(times) >= ROWS_PER_CHUNK)
    return [record(name, rows, seconds, bar, duckdb_rows_per_second(data, *oracle))]


# --- (a) filter and project ---------------------------------------------------------------


def filter_project(scale: float) -> list[dict[str, Any]]:
    rows = max(1, int(32 * scale)) * ROWS_PER_CHUNK
    generator = np.random.default_rng(1)
    columns = {name: generator.random(rows) for name in "abcd"}
    text = """
    CREATE STREAM s (a NUMBER, b NUMBER, c NUMBER, d NUMBER);
    SELECT a * b + c AS x, d - a * 0.5 AS y, c FROM s WHERE a > 0.25 AND b < 0.75;
    """
    sql = "SELECT a * b + c AS x, d - a * 0.5 AS y, c FROM s WHERE a > 0.25 AND b < 0.75"
    data = {"s": (columns, np.arange(rows, dtype=np.int64) * STEP)}
    return measured("(a) filter and project", text, data, 10e6, (sql, {"s": ROWS_PER_CHUNK}))


# --- (b) a grouped sum over five minutes --------------------------------------------------


def range_sum(scale: float) -> list[dict[str, Any]]:
    rows = max(4, int(16 * scale)) * ROWS_PER_CHUNK
    generator = np.random.default_rng(2)
    columns = {"k": keys(generator, 1_000, rows), "v": generator.integers(0, 1000, rows)}
    text = """
    CREATE STREAM s (k TEXT, v INTEGER);
    SELECT Istream(k, SUM(v) AS total) FROM s [Range 5 Minutes] GROUP BY k;
    """
    sql = "SELECT k, SUM(v) FROM s GROUP BY k"
    data = {"s": (columns, np.arange(rows, dtype=np.int64) * STEP)}
    name = "(b) grouped sum over [Range 5 Minutes]"
    return measured(name, text, data, 2e6, (sql, {"s": 300_000}))


# --- (c) a join with a relation -----------------------------------------------------------


def now_join(scale: float) -> list[dict[str, Any]]:
    rows = max(4, int(16 * scale)) * ROWS_PER_CHUNK
    generator = np.random.default_rng(3)
    size = 100_000
    columns = {"k": generator.integers(0, size, rows), "v": generator.integers(0, 1000, rows)}
    relation = {"k": np.arange(size, dtype=np.int64), "w": generator.integers(0, 1000, size)}
    text = """
    CREATE STREAM s (k INTEGER, v INTEGER);
    CREATE RELATION r (k INTEGER, w INTEGER);
    SELECT Istream(s.k, s.v, r.w) FROM s [Now], r WHERE s.k = r.k;
    """
    sql = "SELECT s.k, s.v, r.w FROM s, r WHERE s.k = r.k"
    data = {
        "s": (columns, np.arange(rows, dtype=np.int64) * STEP),
        "r": (relation, np.zeros(size, np.int64)),
    }
    name = "(c) [Now] join with 100,000 rows"
    windows = {"s": ROWS_PER_CHUNK, "r": None}
    return measured(name, text, data, 2e6, (sql, windows))


# --- (d) a join of two windows ------------------------------------------------------------


def window_join(scale: float) -> list[dict[str, Any]]:
    rows = max(4, int(8 * scale)) * ROWS_PER_CHUNK
    generator = np.random.default_rng(4)
    times = np.arange(rows, dtype=np.int64) * STEP
    left = {"k": generator.integers(0, 10_000, rows), "v": generator.integers(0, 1000, rows)}
    right = {"k": generator.integers(0, 10_000, rows), "w": generator.integers(0, 1000, rows)}
    text = """
    CREATE STREAM a (k INTEGER, v INTEGER);
    CREATE STREAM b (k INTEGER, w INTEGER);
    SELECT Istream(a.k, v, w) FROM a [Range 5 Seconds], b [Range 5 Seconds] WHERE a.k = b.k;
    """
    sql = "SELECT a.k, v, w FROM a, b WHERE a.k = b.k"
    data = {"a": (left, times), "b": (right, times + 1)}
    name = "(d) join of two windows by key"
    # What DuckDB must look at for all pairs of a batch: its rows and the window before.
    span = ROWS_PER_CHUNK + 5_000
    return measured(name, text, data, 1e6, (sql, {"a": span, "b": span}))


# --- (e) an average of the last rows of each key ------------------------------------------


def partition_average(scale: float) -> list[dict[str, Any]]:
    rows = max(4, int(16 * scale)) * ROWS_PER_CHUNK
    generator = np.random.default_rng(5)
    columns = {"k": keys(generator, 1_000, rows), "v": generator.integers(0, 1000, rows)}
    text = """
    CREATE STREAM s (k TEXT, v INTEGER);
    SELECT Istream(k, AVG(v) AS mean) FROM s [Partition By k Rows 10] GROUP BY k;
    """
    sql = """
    SELECT k, AVG(v) FROM (
      SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY _time DESC) AS n FROM s
    ) WHERE n <= 10 GROUP BY k
    """
    data = {"s": (columns, np.arange(rows, dtype=np.int64) * STEP)}
    name = "(e) average of [Partition By k Rows 10]"
    return measured(name, text, data, 1e6, (sql, {"s": ROWS_PER_CHUNK}))


# --- the cost of a change -----------------------------------------------------------------


def cost_per_change(scale: float) -> list[dict[str, Any]]:
    """Rows a second of the processor against relations of a thousand and a million rows."""
    rows = max(2, int(8 * scale)) * ROWS_PER_CHUNK
    generator = np.random.default_rng(6)
    text = """
    CREATE STREAM s (k INTEGER, v INTEGER);
    CREATE RELATION r (k INTEGER, w INTEGER);
    SELECT Istream(s.k, s.v, r.w) FROM s [Now], r WHERE s.k = r.k;
    """
    program = program_of(text)
    speeds: list[float] = []
    sizes = (1_000, 1_000_000)
    for size in sizes:
        # All rows of the stream are different, so that only the size of the relation is.
        columns = {"k": generator.integers(0, size, rows), "v": np.arange(rows, dtype=np.int64)}
        relation = {"k": np.arange(size, dtype=np.int64), "w": generator.integers(0, 9, size)}
        stream = (columns, np.arange(1, rows + 1, dtype=np.int64) * STEP)
        there = (relation, np.zeros(size, np.int64))
        nothing = ({n: v[:1] for n, v in columns.items()}, stream[1][:1])
        run_on(program, {"s": stream, "r": there})
        _, loading = best(lambda there=there, nothing=nothing: run_on(  # type: ignore[misc]
            program, {"s": nothing, "r": there}))  # fmt: skip
        _, seconds = best(lambda there=there, stream=stream: run_on(  # type: ignore[misc]
            program, {"s": stream, "r": there}))  # fmt: skip
        speeds.append(rows / (seconds - loading))
    ratio = speeds[0] / speeds[1]
    return [
        {
            "benchmark": "cost of a change, relations of 1,000 and 1,000,000 rows",
            "rows_per_cpu_s_small": round(speeds[0]),
            "rows_per_cpu_s_large": round(speeds[1]),
            "ratio": round(ratio, 2),
            "is_met": bool(ratio <= 1.5),
        }
    ]


BENCHMARKS = {
    "cql_filter_project": filter_project,
    "cql_range_sum": range_sum,
    "cql_now_join": now_join,
    "cql_window_join": window_join,
    "cql_partition_average": partition_average,
    "cql_cost_per_change": cost_per_change,
}
