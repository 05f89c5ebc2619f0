"""Cubes of uniform sales on their kernel alone: what a row costs, what cells and questions do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cql import Columns, batches_of
from millstream.calculus.aggregation import Aggregation
from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.grains import Grain
from millstream.calculus.graph import Input
from millstream.calculus.lattice import Lattice
from millstream.calculus.terms import Column
from millstream.calculus.types import NUMBER, TEXT, QueueType, Schema
from millstream.kernels.cube.cube import CubeKernel
from millstream.kernels.runtime.kernel import Round
from millstream.olap.answer import answer
from millstream.olap.groups import Limits
from millstream.olap.program import ServedCube
from millstream.olap.question import read_question
from millstream.olap.store import CubeStore

SECOND, SECONDS, REPEATS = 1_000_000, 600, 3
_UNBOUNDED = Limits(groups=10**8, cells=10**8, seconds=3600)
Names = tuple[str, ...]


@dataclass(frozen=True)
class Filled:
    """Microseconds of a processor for each row, and megabytes of all cells."""

    micros: float
    megabytes: float


def _sales(sizes: dict[str, int], rows: int) -> tuple[Columns, Any]:
    chance = np.random.default_rng(6)
    columns: Columns = {}
    for name, size in sizes.items():
        names = pa.array([f"{name}#{n:06d}" for n in range(size)])
        columns[name] = names.take(pa.array(chance.integers(0, size, rows)))
    columns["amount"] = chance.integers(1, 4000, rows) / 4
    return columns, np.sort(chance.integers(0, SECONDS * SECOND, rows))


def _cube(sizes: dict[str, int], kept: list[Names], outputs: list[Names], window: int) -> Cubify:
    grain = Grain(SECOND)
    return Cubify(
        tuple((name,) for name in sizes), (Aggregation("total", "sum", Column("amount", NUMBER)),),
        grain, window, tuple(Vertex(v, grain) for v in kept),
        tuple(Vertex(v, grain) for v in outputs),
    )  # fmt: skip


def _least(action: Callable[[], Any]) -> tuple[float, Any]:
    best, made = float("inf"), None
    for _ in range(REPEATS):
        given = time.process_time()
        made = action()
        best = min(best, time.process_time() - given)
    return best, made


def filled(
    sizes: dict[str, int], kept: list[Names], outputs: list[Names], window: int, rows: int
) -> Filled:
    """What rows cost, in the best of some runs."""
    schema = Schema.of(**dict.fromkeys(sizes, TEXT), amount=NUMBER)
    given = QueueType(schema)
    batches = batches_of(Input("sales", given), *_sales(sizes, rows))

    def feed() -> CubeKernel:
        kernel = CubeKernel(_cube(sizes, kept, outputs, window), (given,), len(outputs))
        for batch in batches:
            kernel.process((batch,), Round(int(batch.time[-1]), np.unique(batch.time)))
        return kernel

    feed()
    seconds, kernel = _least(feed)
    cells = sum(one.partitions.bytes for one in kernel.kept)
    return Filled(round(1e6 * seconds / rows, 3), round(cells / 1e6, 2))


def questions(sizes: dict[str, int], kept: list[Names], window: int, rows: int) -> dict[int, float]:
    """Milliseconds of a processor for a question to each vertex, by its number."""
    schema = Schema.of(**dict.fromkeys(sizes, TEXT), amount=NUMBER)
    cube = ServedCube("c", _cube(sizes, kept, [], window), schema, "c.rows")
    store = CubeStore(cube)
    for batch in batches_of(Input("sales", QueueType(schema)), *_sales(sizes, rows)):
        store.write(batch)
    lattice = Lattice((1,) * len(sizes))
    made = {}
    for number in range(len(lattice)):
        levels = zip(sizes, lattice.vertex(number), strict=True)
        rows_asked = [name for name, level in levels if level is not None]
        question = read_question({"rows": rows_asked}, cube.function, schema)
        answer(store.version, question, _UNBOUNDED)
        seconds, _ = _least(lambda q=question: answer(store.version, q, _UNBOUNDED))
        made[number] = round(1e3 * seconds, 3)
    return made
