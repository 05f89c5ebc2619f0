"""Cubes on the local engine, beside a hand-written loop, and DuckDB and Polars that recompute.

A million sales in 600 seconds, of 3,000 customers, 2,000 parts, 200 suppliers and 50 stores, all
skewed; a window of 60 seconds. Kept are the finest vertex, supplier with store, and the four
singles; what is told is the vertex of suppliers. All sides read the same texts and must give the
same sums. Beside what the clock says stands what the processor gave: on a busy machine that says
more.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from numba import njit

from cql import Chunks, Columns, batches_of
from millstream.calculus.aggregation import Aggregation
from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.grains import Grain
from millstream.calculus.graph import Input, Operator, Program
from millstream.calculus.lattice import Lattice
from millstream.calculus.terms import Column
from millstream.calculus.types import NUMBER, TEXT, QueueType, Schema
from millstream.calculus.verify import verified
from millstream.engine.job import Job
from millstream.engine.local.run import run
from millstream.kernels.cube.cube import CubeKernel
from millstream.kernels.runtime.kernel import Round
from millstream.plan.batch import Batch

SIZES = {"customer": 3000, "part": 2000, "supplier": 200, "store": 50}
SCHEMA = Schema.of(customer=TEXT, part=TEXT, supplier=TEXT, store=TEXT, amount=NUMBER)
SECOND, SECONDS, WINDOW, ROWS = 1_000_000, 600, 60, 1_000_000
REPEATS = 3
Sums = dict[str, float]


def sales(rows: int) -> tuple[Columns, Any]:
    """Texts and amounts in dyadic steps, so that sums are exact in any order."""
    chance = np.random.default_rng(1)
    columns: Columns = {}
    for name, size in SIZES.items():
        share = 1 / np.arange(1, size + 1)
        codes = chance.choice(size, rows, p=share / share.sum())
        columns[name] = pa.array([f"{name}#{n:06d}" for n in range(size)]).take(pa.array(codes))
    columns["amount"] = chance.integers(1, 4000, rows) / 4
    return columns, np.sort(chance.integers(0, SECONDS * SECOND, rows))


@dataclass
class Present:
    """A writer that knows what is in a relation of suppliers."""

    sums: Sums = field(default_factory=dict)
    parts: list[Batch] = field(default_factory=list)

    def write(self, batch: Batch) -> None:
        self.parts.append(batch)

    def total(self) -> Sums:
        for part in self.parts:
            assert part.weight is not None
            signed = part.column("total").values * part.weight
            names = part.column("supplier").to_list()
            for name, value in zip(names, signed.tolist(), strict=True):
                self.sums[str(name)] = self.sums.get(str(name), 0.0) + value
        return {name: value for name, value in self.sums.items() if value}

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


def program() -> Program:
    grain = Grain(SECOND)
    amount = Column("amount", NUMBER)
    kept = [tuple(SIZES), ("supplier", "store"), *((name,) for name in SIZES)]
    cube = Cubify(
        tuple((name,) for name in SIZES),
        (Aggregation("total", "sum", amount), Aggregation("n", "count")),
        grain, WINDOW, tuple(Vertex(v, grain) for v in kept), (Vertex(("supplier",), grain),),
    )  # fmt: skip
    state = tuple(f"v{n}" for n in range(len(kept)))
    inputs = (Input("sales", QueueType(SCHEMA)),)
    return verified(
        Program(inputs, ("out",), (Operator(cube, ("sales",), ("out",), state, state),))
    )


#: Seconds by the clock, and those that the processor gave.
Taken = tuple[float, float]


def timed(action: Callable[[], Any]) -> tuple[Taken, Any]:
    wall, given = time.perf_counter(), time.process_time()
    result = action()
    return (time.perf_counter() - wall, time.process_time() - given), result


def ours(columns: Columns, times: Any) -> tuple[Taken, Sums]:
    made = program()
    batches = batches_of(made.inputs[0], columns, times)
    writer = Present()
    job = Job(made, {"sales": Chunks(batches)}, {"out": writer})
    taken, _ = timed(lambda: run(job, threads=1))
    return taken, writer.total()


@njit(cache=False)
def _second(codes: Any, amount: Any, widths: Any, slots: Any, cells: Any, dense: Any) -> int:
    """The cells of a second: the finest by a table of its own, the others in dense arrays."""
    mask = slots.shape[0] - 1
    count = 0
    for i in range(amount.size):
        c, p, s, t = codes[i, 0], codes[i, 1], codes[i, 2], codes[i, 3]
        key = ((c * widths[1] + p) * widths[2] + s) * widths[3] + t + 1
        place = (key * 0x9E3779B97F4A7C1 >> 20) & mask
        while slots[place, 0] != 0 and slots[place, 0] != key:
            place = (place + 1) & mask
        if slots[place, 0] == 0:
            slots[place, 0], slots[place, 1] = key, count
            cells[count, 0], cells[count, 1] = 0.0, 0.0
            count += 1
        cell = slots[place, 1]
        cells[cell, 0] += amount[i]
        cells[cell, 1] += 1
        first = 0
        for d in range(4):
            dense[first + codes[i, d], 0] += amount[i]
            dense[first + codes[i, d], 1] += 1
            first += widths[d]
        dense[first + s * widths[3] + t, 0] += amount[i]
        dense[first + s * widths[3] + t, 1] += 1
    return count


def loop(columns: Columns, times: Any) -> tuple[Taken, Sums]:
    """What one would write by hand: codes, then a loop for every second, kept for a minute."""
    taken, (encoded, widths, kept) = timed(lambda: _by_hand(columns, times))
    # The last second is still active when the last sale has come.
    first = int(widths[0] + widths[1])
    dense = sum(d for _, d in kept[:-1])[first : first + int(widths[2])]
    names = encoded[2].dictionary.to_pylist()
    return taken, {n: float(v) for n, v in zip(names, dense[:, 0], strict=True) if v}


def _by_hand(columns: Columns, times: Any) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    encoded = [columns[name].dictionary_encode() for name in SIZES]
    codes = np.stack([e.indices.to_numpy().astype(np.int64) for e in encoded], axis=1)
    widths = np.array([len(e.dictionary) for e in encoded], np.int64)
    edges = np.searchsorted(times, np.arange(SECONDS + 1) * SECOND)
    kept: list[tuple[Any, Any]] = []
    size = int(widths.sum() + widths[2] * widths[3])
    most = 1 << int(2 * np.diff(edges).max()).bit_length()
    for a, b in itertools.pairwise(edges.tolist()):
        slots, cells = np.zeros((most, 2), np.int64), np.empty((b - a, 2))
        dense = np.zeros((size, 2))
        count = _second(codes[a:b], columns["amount"][a:b], widths, slots, cells, dense)
        kept.append((cells[:count].copy(), dense))
        kept = kept[-WINDOW - 1 :]
    return encoded, widths, kept


#: Those who recompute are asked for some of the seconds, which stand for all.
ASKED = range(SECONDS // 2, SECONDS // 2 + 5)
KEPT = [tuple(SIZES), ("supplier", "store"), *((name,) for name in SIZES)]


def _of_all(taken: Taken) -> Taken:
    return taken[0] * SECONDS / len(ASKED), taken[1] * SECONDS / len(ASKED)


def duckdb_each_second(columns: Columns, times: Any) -> tuple[Taken, Sums]:
    """DuckDB groups the last minute by the kept vertices after every second."""
    table = pa.table({**columns, "t": times})
    connection = duckdb.connect(config={"threads": 1})
    connection.register("given", table)
    connection.execute("CREATE TABLE sales AS SELECT * FROM given")

    def ask(second: int, by: tuple[str, ...], part: str) -> Any:
        return connection.sql(
            f"SELECT {', '.join(by)}{part}, sum(amount), count(*) FROM sales "  # noqa: S608
            f"WHERE t >= {(second - WINDOW) * SECOND} AND t < {second * SECOND} GROUP BY ALL"
        ).to_arrow_table()

    part = f", t // {SECOND}"
    taken, _ = timed(lambda: [ask(second, by, part) for second in ASKED for by in KEPT])
    answer = ask(SECONDS - 1, ("supplier",), "")
    return _of_all(taken), dict(zip(*(c.to_pylist() for c in answer.columns[:2]), strict=True))


def polars_each_second(columns: Columns, times: Any) -> tuple[Taken, Sums]:
    """Polars does the same, on a table that is in order of time."""
    table: Any = pl.from_arrow(pa.table({**columns, "t": times}))
    table = table.with_columns(second=pl.col("t") // SECOND)

    def ask(second: int, by: tuple[str, ...]) -> Any:
        a, b = np.searchsorted(times, [(second - WINDOW) * SECOND, second * SECOND])
        sums = pl.col("amount").sum(), pl.len()
        return table.slice(int(a), int(b - a)).group_by(by).agg(sums)

    taken, _ = timed(lambda: [ask(second, (*by, "second")) for second in ASKED for by in KEPT])
    answer = ask(SECONDS - 1, ("supplier",))
    return _of_all(taken), dict(zip(answer["supplier"], answer["amount"], strict=True))


def ingest(scale: float) -> list[dict[str, Any]]:
    """One process, one core; the best of three runs; who recomputes by five seconds out of 600."""
    rows = max(int(ROWS * scale), 20_000)
    columns, times = sales(rows)
    sides: dict[str, Callable[[Columns, Any], tuple[Taken, Sums]]] = {
        "Millstream": ours, "numba by hand": loop, "DuckDB, every second": duckdb_each_second,
        "Polars, every second": polars_each_second,
    }  # fmt: skip
    best: dict[str, Taken] = {}
    answers: dict[str, Sums] = {}
    for _ in range(REPEATS):
        for name, side in sides.items():
            taken, answers[name] = side(columns, times)
            before = best.get(name, taken)
            best[name] = min(before[0], taken[0]), min(before[1], taken[1])
    assert all(answer == answers["Millstream"] for answer in answers.values())
    wall, given = best["Millstream"]
    return [
        {
            "who": name, "rows/s": int(rows / taken[0]), "of ours": round(wall / taken[0], 2),
            "rows/s of processor": int(rows / taken[1]), "of that": round(given / taken[1], 2),
        }
        for name, taken in best.items()
    ]  # fmt: skip


def shapes(scale: float) -> list[dict[str, Any]]:
    """What more vertices and longer windows cost: processor time, the best of three runs.

    Six dimensions of 300, 200, 100, 50, 20 and 10 members; all but one vertex are kept by
    choice, and `all` leaves.
    """
    rows = max(int(300_000 * scale), 20_000)
    chance = np.random.default_rng(2)
    sizes = {f"d{n}": size for n, size in enumerate((300, 200, 100, 50, 20, 10))}
    columns: Columns = {}
    for name, size in sizes.items():
        share = 1 / np.arange(1, size + 1)
        codes = chance.choice(size, rows, p=share / share.sum())
        columns[name] = pa.array([f"{name}#{n:04d}" for n in range(size)]).take(pa.array(codes))
    columns["amount"] = chance.integers(1, 4000, rows) / 4
    lattice = Lattice((1,) * len(sizes))
    vertices = [
        tuple(name for name, level in zip(sizes, lattice.vertex(n), strict=True) if level == 0)
        for n in reversed(range(len(lattice)))
    ]
    spaced = vertices[:1] + vertices[1 : len(vertices) : 2]
    four = tuple(sizes)[:4]
    result = []
    for what, by, kept, window, seconds in (
        ("6 vertices", tuple(sizes), vertices[:1] + vertices[-6:-1], 60, 300),
        ("30 vertices", tuple(sizes), spaced[:30], 60, 300),
        ("c-window of 60 s", four, [four, ("d0",)], 60, 7200),
        ("c-window of 3,600 s", four, [four, ("d0",)], 3600, 7200),
    ):
        times = np.sort(chance.integers(0, seconds * SECOND, rows))
        taken, kernel = min((_shape(by, kept, window, columns, times) for _ in range(REPEATS)),
                            key=lambda one: one[0])  # fmt: skip
        finest = kernel.kept[0].partitions
        result.append({
            "shape": what, "rows/s of processor": int(rows / taken),
            "cells": sum(len(one.partitions) for one in kernel.kept),
            "bytes a cell of v0": round(finest.bytes / max(len(finest), 1), 1),
        })  # fmt: skip
    return result


def _shape(
    by: tuple[str, ...], kept: list[tuple[str, ...]], window: int, columns: Columns, times: Any
) -> tuple[float, CubeKernel]:
    grain = Grain(SECOND)
    schema = Schema.of(**dict.fromkeys(by, TEXT), amount=NUMBER)
    measures = (Aggregation("total", "sum", Column("amount", NUMBER)), Aggregation("n", "count"))
    cube = Cubify(
        tuple((name,) for name in by), measures, grain, window,
        tuple(Vertex(v, grain) for v in kept), (Vertex((), grain),),
    )  # fmt: skip
    given = QueueType(schema)
    kernel = CubeKernel(cube, (given,), 1)
    batches = batches_of(Input("sales", given), columns, times)

    def feed() -> None:
        for batch in batches:
            kernel.process((batch,), Round(int(batch.time[-1]), np.unique(batch.time)))

    (_, taken), _ = timed(feed)
    return taken, kernel


BENCHMARKS = {"cube_ingest": ingest, "cube_shapes": shapes}
