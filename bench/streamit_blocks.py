"""When filters in blocks on several tasks are worth their way: the same work in one place, and cut.

The tasks that Spark would run are run here one after another, without a JVM. What counts is the
longest way through them, by processor time: the slowest task of each stage, stage after stage.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from millstream import api
from millstream.engine.batches import Batches
from millstream.engine.job import Job, Progress, Report
from millstream.engine.local import batches as local
from millstream.engine.planning import Planner
from millstream.engine.reading import ShareTask
from millstream.engine.scratch import checkpoint_folder
from millstream.engine.settings import Settings
from millstream.engine.spark.wire import Wire, message_of, wired
from millstream.engine.spark.worker import rows_from
from millstream.engine.spec import SourceSpec
from millstream.plan import net_blocks
from streamit_spark_data import Items

FILES, ROWS_PER_FILE = 4, 160_000
TAPS = (64, 256, 512, 1024, 2048)
CORES = (2, 8)
RUNS = 3
#: As many as there were for each input when the blocks were first measured.
_BUCKETS = 16
_TAPPED = """float->float filter Tapped {{
    float[{taps}] h;
    init {{ for (int i = 0; i < {taps}; i++) h[i] = 1.0 / (i + 1); }}
    work push 1 pop 1 peek {taps} {{
        float sum = 0;
        for (int i = 0; i < {taps}; i++) sum += peek(i) * h[i];
        push(sum);
        pop();
    }}
}}
float->float pipeline Main {{ add Tapped; }}
"""


class Timed(local.LocalBatches):
    """Every stage as several tasks; how long the longest way took is kept."""

    seconds = 0.0

    def _run(self, spec: SourceSpec, planner: Planner, seq: int) -> None:
        turn, partitions = self.batches.turn(), self.batches.description.partitions
        rows: list[Wire] = []
        spent = [0.0]
        for task in planner.tasks(seq):
            with _clocked(spent):
                sent = ShareTask(spec, self.files, task).run()
                rows += wired(sent, self.layout.driver, partitions)
        longest = max(spent)
        for stage in range(self.layout.driver):
            given: list[Wire] = []
            spent = [0.0]
            for partition in range(partitions):
                mine = [row for row in rows if row[1] == partition]
                with _clocked(spent):
                    given += rows_from(self.memory, stage, turn, partition, mine)
            rows = given
            longest += max(spent)
        Timed.seconds += longest
        self.batches.finish(-1, [message_of(row[2]) for row in rows])


@contextmanager
def _clocked(spent: list[float]) -> Iterator[None]:
    begun = time.process_time()
    yield
    spent.append(time.process_time() - begun)


def _seconds(taps: int, cores: int, folder: Path, *, in_blocks: bool) -> float:
    """Of the longest way, the least of several runs; the first one compiles."""
    program = api.compile(text=_TAPPED.format(taps=taps), language="streamit")

    def run(job: Job, progress: Progress, checkpoint: Path, settings: Settings) -> Report:
        spread = replace(settings, partitions=cores, buckets=_BUCKETS, is_together=False)
        with checkpoint_folder(checkpoint) as place:
            return Timed(Batches(job, progress, place, spread)).to_the_end()

    best = float("inf")
    usual = local.run_batches, net_blocks.WORTH_IT
    local.run_batches, net_blocks.WORTH_IT = run, 0 if in_blocks else 1 << 40
    try:
        for _ in range(RUNS + 1):
            Timed.seconds = 0.0
            with tempfile.TemporaryDirectory() as place:
                program.run({"items": f"{folder}/*.parquet"}, {"out": f"{place}/out/"},
                            engine="local", checkpoint=Path(place) / "state")  # fmt: skip
            best = min(best, Timed.seconds)
    finally:
        local.run_batches, net_blocks.WORTH_IT = usual
    return best


def streamit_blocks(scale: float) -> list[dict[str, Any]]:
    """Filters that look at ever more items a row, in one place and in blocks; 640,000 items."""
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        items = Items(FILES, max(20_000, round(ROWS_PER_FILE * scale)))
        for number in range(FILES):
            pq.write_table(items.table(number), f"{place}/{number}.parquet")
        for taps in TAPS:
            together = _seconds(taps, 1, Path(place), in_blocks=False)
            record: dict[str, Any] = {
                "looked_at": taps + 1,
                "in_one_place_ms": round(1e3 * together),
            }
            for cores in CORES:
                blocks = _seconds(taps, cores, Path(place), in_blocks=True)
                record[f"blocks_on_{cores}_ms"] = round(1e3 * blocks)
                record[f"gain_on_{cores}"] = round(together / blocks, 2)
            records.append(record)
    return records


BENCHMARKS = {"streamit_blocks": streamit_blocks}
