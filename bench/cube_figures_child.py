"""One run of a cube for the figures of its paper, in a process of its own.

    python bench/cube_figures_child.py FOLDER one|query

`one` has query and cube in one program; `query` sends its rows to another process, which has the
`cube`. What was measured is told as JSON on standard output; of two processes the sum.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cql import batches_of
from millstream import api
from millstream.calculus.graph import Input, Program
from millstream.connectors.chunks import Chunk
from millstream.engine.job import Job
from millstream.engine.local.run import run
from millstream.plan.batch import Batch


class Total:
    """Mutable: a sink that knows the sum of a relation."""

    def __init__(self) -> None:
        self.total = 0.0

    def write(self, batch: Batch) -> None:
        assert batch.weight is not None
        self.total += float(np.dot(np.asarray(batch.column("total").values), batch.weight))

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


class Sending:
    """Mutable: a sink that sends rows as an Arrow stream."""

    def __init__(self, place: Any) -> None:
        self.place = place
        self.stream: Any = None

    def write(self, batch: Batch) -> None:
        columns = {f.name: batch.column(f.name).to_arrow() for f in batch.type.schema}
        plain = {
            name: c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c
            for name, c in columns.items()
        }
        table = pa.record_batch({**plain, "_time": pa.array(batch.time)})
        self.stream = self.stream or pa.ipc.new_stream(self.place, table.schema)
        self.stream.write_batch(table)

    def close(self) -> None:
        if self.stream is not None:
            self.stream.close()
        self.place.close()

    def abort(self) -> None:
        self.place.close()


class Received:
    """A reader of rows that another process sends."""

    def __init__(self, one: Input, place: Any) -> None:
        self.one = one
        self.place = place

    def chunks(self) -> Iterator[Chunk]:
        for given in pa.ipc.open_stream(self.place):
            columns = {
                name: c if pa.types.is_string(c.type) else c.to_numpy(zero_copy_only=False)
                for name, c in zip(given.schema.names, given.columns, strict=True)
            }
            for batch in batches_of(self.one, columns, columns["_time"]):
                yield Chunk(batch)

    def close(self) -> None:
        self.place.close()


def cubed(program: Program, place: Any) -> float:
    """A cube of what is received; the sum of its apex."""
    total = Total()
    (one,) = program.inputs
    run(Job(program, {one.name: Received(one, place)}, {program.outputs[0]: total}))
    return total.total


class Measured:
    """Mutable: what the time since it began has cost."""

    def __init__(self) -> None:
        self.bytes, self.seconds = _peak(), time.process_time()

    def told(self, total: float) -> dict[str, float]:
        used = time.process_time() - self.seconds
        return {"seconds": used, "bytes": _peak(), "total": total}


def _peak() -> int:
    """The most memory that this process has had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def main(folder: Path, side: str) -> dict[str, float]:
    compiled = api.compile(folder / f"{side}.cql")
    program = compiled.program
    if side == "cube":
        cubed(program, (folder / "warm" / "sent").open("rb"))
        measured = Measured()
        return measured.told(cubed(program, sys.stdin.buffer))
    (output,) = program.outputs

    def ran(place: Path, sink: Any) -> None:
        inputs = {one.name: place / f"{one.name}.parquet" for one in program.inputs}
        compiled.run(inputs, {output: sink}, engine="local")

    # What is compiled and loaded once is not measured.
    ran(folder / "warm", Total() if side == "one" else Sending((folder / "warm/sent").open("wb")))
    if side == "one":
        measured, total = Measured(), Total()
        ran(folder, total)
        return measured.told(total.total)
    command = [sys.executable, __file__, str(folder), "cube"]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
    measured = Measured()
    ran(folder, Sending(other.stdin))
    mine = measured.told(0.0)
    assert other.stdout is not None
    theirs = json.loads(other.stdout.read())
    assert other.wait() == 0
    return {name: mine[name] + theirs[name] for name in mine}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
