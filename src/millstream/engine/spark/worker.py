"""A stage as Spark's tasks run it: messages in and out as rows, and which buckets it takes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

from millstream.engine.clock import SeenOfInput
from millstream.engine.layout import Description
from millstream.engine.points import reached
from millstream.engine.spark.claims import Claims
from millstream.engine.spark.wire import Wire, message_of, record_batch, rows_of, wired
from millstream.engine.stage import StageTask, Turn
from millstream.engine.state import WorkerMemory
from millstream.engine.storage.files import LocalFiles

#: The properties of a Spark job that tell its turn, and the number of the plan of what it reads.
TURN = "millstream.turn"
PLAN = "millstream.plan"


def written(turn: Turn) -> str:
    return json.dumps([turn.version, [astuple(one) for one in turn.known], turn.is_kept])


def _turn_in(text: str) -> Turn:
    version, known, is_kept = json.loads(text)
    return Turn(version, tuple(SeenOfInput(*one) for one in known), is_kept)


def rows_from(
    memory: WorkerMemory, stage: int, turn: Turn, partition: int, rows: Iterable[Wire]
) -> Iterator[Wire]:
    """What a task makes of its rows; those for others pass through."""
    mine: list[Wire] = []
    for row in rows:
        if row[0] == stage:
            mine.append(row)
        else:
            yield row
    task = StageTask(memory, stage, turn, _group(memory, stage, turn.version, partition))
    sent = task.run([message_of(data) for _, _, data in mine])
    yield from wired(sent, memory.layout.driver, memory.description.partitions)


def _group(memory: WorkerMemory, stage: int, version: int, partition: int) -> int:
    """A group that this worker has at hand, if no other task has taken it."""
    claims = Claims(
        Path(memory.description.checkpoint) / "claims",
        version,
        stage,
        memory.description.partitions,
    )
    return claims.take(partition, lambda group: memory.has_at_hand(stage, group, version))


def files_of(description: Description) -> LocalFiles:
    """Where a task writes; what goes with the run need not be durable."""
    return LocalFiles(Path(description.checkpoint), is_durable=description.is_lasting)


_memory: dict[str, WorkerMemory] = {}


def memory_for(description: Description) -> WorkerMemory:
    """The memory of a job; only one job is kept per process."""
    name = f"{description.checkpoint}|{description.run}"
    if name not in _memory:
        _memory.clear()
        layout = description.layout()
        files = files_of(description)
        types = layout.plan.program.queue_types()
        _memory[name] = WorkerMemory(description, layout, files, types)
    return _memory[name]


def turn_of_task() -> Turn:
    """The turn of the task that this process runs."""
    turn = _turn_in(_property(TURN))
    reached("before-tasks", turn.version)
    return turn


def plan_of_task() -> int:
    """The number of the plan that says what the task that this process runs reads."""
    return int(_property(PLAN))


def _property(name: str) -> str:
    """A property of the job of the task that this process runs, the same for all of its tasks."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    text = context.getLocalProperty(name)
    assert text is not None
    return text


def run_stage(description: Any, stage: int) -> Any:
    """What Spark's `mapInArrow` calls for a stage; the description is a broadcast.

    Which batch it is, is a property of the job, so that the plan is the same for all batches.
    """

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        turn = turn_of_task()
        rows = (row for batch in batches for row in rows_of(batch))
        memory = memory_for(description.value)
        yield record_batch(rows_from(memory, stage, turn, context.partitionId(), rows))

    return run
