"""The local engine beside hand-written NumPy and numba, in one run.

Each benchmark runs both sides several times and takes the best of each, and checks that
both give the same answer.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from millstream.calculus.graph import Program
from millstream.connectors.chunks import Chunk
from millstream.engine.job import Job
from millstream.engine.local.run import run
from millstream.languages.brook.load import load
from millstream.plan.batch import Batch, Vector
from millstream.source import Source

ROWS_PER_CHUNK = 1 << 18
REPEATS = 3


class Chunks:
    """A reader over batches in memory, repeated with times moved on."""

    def __init__(self, batch: Batch, repeats: int) -> None:
        self.batch = batch
        self.repeats = repeats

    def chunks(self) -> Iterator[Chunk]:
        step = int(self.batch.time[-1] - self.batch.time[0]) + 1
        for number in range(self.repeats):
            time_ = self.batch.time + number * step
            yield Chunk(Batch(self.batch.type, time_, self.batch.columns))

    def close(self) -> None:
        pass


class LastValues:
    """A writer that counts rows and keeps a check sum of each number column."""

    def __init__(self) -> None:
        self.rows = 0
        self.sums: dict[str, float] = {}

    def write(self, batch: Batch) -> None:
        self.rows += len(batch)
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if not column.is_text and len(column):
                self.sums[field.name] = self.sums.get(field.name, 0.0) + float(column.values.sum())

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


def best(action: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest of several times, and the last answer."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        answer = action()
        times.append(time.perf_counter() - start)
    return min(times), answer


def program_of(text: str) -> Program:
    return load(Source("bench.brook", text))


def run_on(program: Program, batch: Batch, repeats: int) -> LastValues:
    (name,) = program.outputs
    writer = LastValues()
    run(Job(program, {program.inputs[0].name: Chunks(batch, repeats)}, {name: writer}), threads=1)
    return writer


def record(
    name: str, rows: int, ours: float, theirs: float, bar: float, *, is_equal: bool
) -> dict[str, Any]:
    return {
        "benchmark": name,
        "rows": rows,
        "rows_per_s": round(rows / ours),
        "hand_written_rows_per_s": round(rows / theirs),
        "ratio": round(theirs / ours, 3),
        "bar_rows_per_s": round(bar),
        "is_met": bool(rows / ours >= bar),
        "is_equal": is_equal,
    }


# --- a stateless filter and map over five numeric columns ---------------------------------

FILTER_MAP = """
output out;
input in(a number, b number, c number, d number, e number);
(kept) <- Filter[a > 0.25 and b < 0.75](in);
(out)  <- Map[x = a * b + c, y = d - e * 0.5, z = c](kept);
"""


@njit(cache=True)
def filter_map_by_hand(
    time: Any, a: Any, b: Any, c: Any, d: Any, e: Any, t: Any, x: Any, y: Any, z: Any
) -> int:
    count = 0
    for i in range(len(a)):
        if a[i] > 0.25 and b[i] < 0.75:
            t[count] = time[i]
            x[count] = a[i] * b[i] + c[i]
            y[count] = d[i] - e[i] * 0.5
            z[count] = c[i]
            count += 1
    return count


def filter_map(scale: float) -> list[dict[str, Any]]:
    program = program_of(FILTER_MAP)
    generator = np.random.default_rng(1)
    arrays = [generator.random(ROWS_PER_CHUNK) for _ in range(5)]
    type_ = program.inputs[0].type
    columns = tuple(Vector(f.type, a) for f, a in zip(type_.schema, arrays, strict=True))
    batch = Batch(type_, np.arange(ROWS_PER_CHUNK, dtype=np.int64), columns)
    repeats = max(2, int(80 * scale))

    def by_hand() -> tuple[int, float]:
        rows, total = 0, 0.0
        for number in range(repeats):
            # An output row has its time, as ours does.
            times = batch.time + number * ROWS_PER_CHUNK
            out_time = np.empty(ROWS_PER_CHUNK, np.int64)
            out = [np.empty(ROWS_PER_CHUNK) for _ in range(3)]
            count = filter_map_by_hand(times, *arrays, out_time, *out)
            rows += count
            total += sum(float(o[:count].sum()) for o in out)
        return rows, total

    run_on(program, batch, 2)
    ours, writer = best(lambda: run_on(program, batch, repeats))
    by_hand()
    theirs, (rows, total) = best(by_hand)
    is_equal = writer.rows == rows and np.isclose(sum(writer.sums.values()), total)
    total_rows = ROWS_PER_CHUNK * repeats
    return [
        record("filter+map, 5 columns", total_rows, ours, theirs, 20e6, is_equal=bool(is_equal))
    ]


# --- a keyed running aggregate with a result for every row --------------------------------

RUNNING_FOLD = """
output out;
input in(key text, value number);
variable $sums(total number = 0.0, count integer = 0);
(out, $sums) <- Fold[by key; set $sums.total = $sums.total + value, $sums.count = $sums.count + 1;
                     emit key, total = $sums.total, count = $sums.count](in, $sums);
"""

RUNNING_AGGREGATE = """
output out;
input in(key text, value number);
(all, $all)   <- Range[unbounded](in, $all);
(sums, $sums) <- Aggregate[by key; total = sum(value), count = count()](all, $sums);
(out, $old)   <- Istream(sums, $old);
"""

KEYS = 1_000


@njit(cache=True)
def running_by_hand(ids: Any, values: Any, total: Any, count: Any, out_t: Any, out_c: Any) -> None:
    for i in range(len(ids)):
        k = ids[i]
        total[k] += values[i]
        count[k] += 1
        out_t[i] = total[k]
        out_c[i] = count[k]


def running(name: str, text: str) -> Callable[[float], list[dict[str, Any]]]:
    def benchmark(scale: float) -> list[dict[str, Any]]:
        program = program_of(text)
        generator = np.random.default_rng(2)
        ids = generator.integers(0, KEYS, ROWS_PER_CHUNK).astype(np.int32)
        values = generator.integers(0, 1000, ROWS_PER_CHUNK).astype(np.float64)
        names = pa.array([f"key{n:04}" for n in range(KEYS)])
        keys = names.take(pa.array(ids))
        type_ = program.inputs[0].type
        key, value = type_.schema.fields
        columns = (Vector(key.type, keys), Vector(value.type, values))
        batch = Batch(type_, np.arange(ROWS_PER_CHUNK, dtype=np.int64), columns)
        repeats = max(2, int(16 * scale))

        def by_hand() -> tuple[float, float]:
            total, count = np.zeros(KEYS), np.zeros(KEYS, np.int64)
            known: dict[str, int] = {}
            totals = counts = 0.0
            for _ in range(repeats):
                coded = keys.dictionary_encode()
                places = [known.setdefault(k, len(known)) for k in coded.dictionary.to_pylist()]
                numbers = np.array(places, np.int64)[coded.indices.to_numpy()]
                out_t, out_c = np.empty(ROWS_PER_CHUNK), np.empty(ROWS_PER_CHUNK, np.int64)
                running_by_hand(numbers, values, total, count, out_t, out_c)
                totals += float(out_t.sum())
                counts += float(out_c.sum())
            return totals, counts

        run_on(program, batch, 2)
        ours, writer = best(lambda: run_on(program, batch, repeats))
        by_hand()
        theirs, (totals, counts) = best(by_hand)
        is_equal = writer.sums["total"] == totals and writer.sums["count"] == counts
        rows = ROWS_PER_CHUNK * repeats
        return [record(name, rows, ours, theirs, 5e6, is_equal=is_equal)]

    return benchmark


# --- memory over many rows ----------------------------------------------------------------


def memory(scale: float) -> list[dict[str, Any]]:
    """The resident size after a tenth of the rows and after all of them."""
    program = program_of(RUNNING_FOLD)
    generator = np.random.default_rng(3)
    ids = generator.integers(0, KEYS, ROWS_PER_CHUNK).astype(np.int32)
    keys = pa.DictionaryArray.from_arrays(
        pa.array(ids), pa.array([f"key{n:04}" for n in range(KEYS)])
    )
    type_ = program.inputs[0].type
    key, value = type_.schema.fields
    columns = (Vector(key.type, keys), Vector(value.type, generator.random(ROWS_PER_CHUNK)))
    batch = Batch(type_, np.arange(ROWS_PER_CHUNK, dtype=np.int64), columns)
    repeats = max(20, int(100e6 * scale / ROWS_PER_CHUNK))
    run_on(program, batch, repeats // 10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run_on(program, batch, repeats)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return [
        {
            "benchmark": "memory, keyed fold",
            "rows": repeats * ROWS_PER_CHUNK,
            "peak_mb_at_a_tenth": round(before / 1024),
            "peak_mb_at_the_end": round(after / 1024),
            "is_flat": bool(after <= before * 1.05),
        }
    ]


BENCHMARKS = {
    "filter_map": filter_map,
    "running_fold": running("keyed running fold, 1,000 keys", RUNNING_FOLD),
    "running_aggregate": running("keyed running aggregate, 1,000 keys", RUNNING_AGGREGATE),
    "memory": memory,
}
