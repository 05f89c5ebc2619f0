"""The paper's table 3, ours: sheets on the local engine beside hand-written numba loops.

Each sheet runs through the whole local engine, reading batches from memory and counting what
it sends; the loop gets the same columns as arrays and writes the numbers it sends. Both take
the best of several runs, after one that compiles. Sheets without a hand-written loop are
listed with their speed only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

import millstream
from millstream.backends.job import Job
from millstream.backends.local.run import run
from millstream.calculus.types import Kind, QueueType
from millstream.connectors.chunks import Chunk
from millstream.plan.batch import Batch, Vector

ROOT = Path(__file__).parents[1] / "examples" / "sheets"
REPEATS = 3
CHUNK = 1 << 18
SYMBOLS = 1000


class Chunks:
    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def chunks(self) -> Iterator[Chunk]:
        for start in range(0, len(self.batch), CHUNK):
            yield Chunk(self.batch.slice(start, min(start + CHUNK, len(self.batch))))

    def close(self) -> None:
        pass


class Counter:
    def __init__(self) -> None:
        self.rows = 0
        self.total = 0.0

    def write(self, batch: Batch) -> None:
        self.rows += len(batch)
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if field.type.kind is Kind.NUMBER:
                self.total += float(np.nansum(np.where(column.mask(), column.values, 0.0)))

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


def column(type_: Any, random: Any, rows: int, name: str) -> Vector:
    """Values fit for any of the sheets."""
    if type_.kind is Kind.TEXT:
        words = pa.array([f"{name}{n}" for n in range(SYMBOLS)])
        codes = pa.array(random.integers(0, SYMBOLS, rows).astype(np.int32))
        return Vector(type_, pa.DictionaryArray.from_arrays(codes, words))
    if type_.kind is Kind.INTEGER:
        return Vector(type_, random.integers(0, SYMBOLS, rows))
    return Vector(type_, random.integers(1, 4096, rows) / 16)


def batch(type_: QueueType, rows: int, seed: int) -> Batch:
    """An event a millisecond on average."""
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, rows * 1000, rows))
    columns = tuple(column(f.type, random, rows, f.name) for f in type_.schema)
    return Batch(type_, times, columns)


def best(action: Callable[[], Any]) -> tuple[float, Any]:
    result = action()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def sheet(name: str, rows: int) -> dict[str, Any]:
    program = millstream.compile(ROOT / name).program
    inputs = {
        one.name: batch(one.type, rows // len(program.inputs), n)
        for n, one in enumerate(program.inputs)
    }

    def once() -> Counter:
        writers = {q: Counter() for q in program.outputs}
        run(Job(program, {q: Chunks(b) for q, b in inputs.items()}, writers))
        return next(iter(writers.values()))

    seconds, counter = best(once)
    count = sum(len(b) for b in inputs.values())
    record = {"sheet": name, "rows": count, "sheet rows/s": round(count / seconds),
              "loop rows/s": None, "ratio": None}  # fmt: skip
    loop = LOOPS.get(name)
    if loop is not None:
        loop_seconds, columns = best(lambda: loop(inputs))
        total = sum(float(np.nansum(c)) for c in columns)
        assert np.isclose(total, counter.total, rtol=1e-9), (name, total, counter.total)
        record |= {"loop rows/s": round(count / loop_seconds),
                   "ratio": round(loop_seconds / seconds, 2)}  # fmt: skip
    return record


# --- by hand ----------------------------------------------------------------------------


@njit(cache=True)
def kalman_loop(targets: Any, positions: Any, count: int) -> Any:
    estimate, uncertainty = np.zeros(count), np.ones(count)
    sent = np.empty((3, targets.size))
    for n in range(targets.size):
        k = targets[n]
        predicted, p = estimate[k], uncertainty[k] + 0.01
        gain = p / (p + 0.25)
        estimate[k] = predicted + gain * (positions[n] - predicted)
        uncertainty[k] = (1 - gain) * p
        sent[0, n], sent[1, n], sent[2, n] = k, estimate[k], uncertainty[k]
    return sent


def kalman(inputs: dict[str, Batch]) -> Any:
    found = inputs["Measurements"]
    return kalman_loop(found.column("target").values, found.column("position").values, SYMBOLS)


@njit(cache=True)
def vwap_loop(
    times: Any, keys: Any, prices: Any, volumes: Any, other_times: Any, others: Any, count: int
) -> Any:
    """Positions of each key's trades in a chain; what is older than five minutes is taken off."""
    following = np.full(times.size, -1, np.int64)
    oldest, newest = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    money, volume, vwap = np.zeros(count), np.zeros(count), np.full(count, np.nan)
    sent = np.empty((1, times.size + other_times.size))
    i = j = 0
    while i < times.size or j < other_times.size:
        if j < other_times.size and (i >= times.size or other_times[j] < times[i]):
            sent[0, i + j] = vwap[others[j]]
            j += 1
            continue
        k = keys[i]
        if oldest[k] < 0:
            oldest[k] = i
        else:
            following[newest[k]] = i
        newest[k] = i
        money[k] += prices[i] * volumes[i]
        volume[k] += volumes[i]
        while times[oldest[k]] <= times[i] - 300_000_000:
            first = oldest[k]
            money[k] -= prices[first] * volumes[first]
            volume[k] -= volumes[first]
            oldest[k] = following[first]
        vwap[k] = money[k] / volume[k]
        sent[0, i + j] = vwap[k]
        i += 1
    return sent


def codes(found: Batch, name: str) -> Any:
    return found.column(name).values.indices.to_numpy()


def vwap(inputs: dict[str, Batch]) -> Any:
    trades, quotes = inputs["Trades"], inputs["Quotes"]
    return vwap_loop(
        trades.time, codes(trades, "sym"), trades.column("price").values,
        trades.column("vol").values, quotes.time, codes(quotes, "sym"), SYMBOLS,
    )  # fmt: skip


@njit(cache=True)
def average_loop(values: Any) -> Any:
    history = np.zeros(6)
    sent = np.empty((3, values.size))
    for n in range(values.size):
        for k in range(5, 0, -1):
            history[k] = history[k - 1]
        history[0] = values[n]
        weighted = plain = 0.0
        for k in range(6):
            weighted += history[k] * (6 - k)
            plain += history[k]
        sent[0, n], sent[1, n] = weighted / 21, plain / 6
        sent[2, n] = (history[0] - history[5]) / 5
    return sent


def average(inputs: dict[str, Batch]) -> Any:
    return average_loop(inputs["Readings"].column("value").values)


LOOPS: dict[str, Callable[[dict[str, Batch]], Any]] = {
    "vwap": vwap, "kalman": kalman, "average": average,
}  # fmt: skip
ROWS = {"vwap": 4_000_000, "twitter": 20_000, "mandelbrot": 2_000}
NAMES = ("vwap", "twitter", "linearroad", "average", "kalman", "tax", "pong", "forecast",
         "mandelbrot")  # fmt: skip


def sheets(scale: float) -> list[dict[str, Any]]:
    return [sheet(name, max(1000, int(ROWS.get(name, 2_000_000) * scale))) for name in NAMES]


BENCHMARKS = {"sheets": sheets}
