"""Kills a process with -9 before each of its steps in turn, and lets the work be done again.

A step is a call of one of some functions. `python -m tests.connectors.killed KIND PLACE` runs
in a process of its own, because a child is forked for every step and other threads would
not survive that.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from millstream.calculus.types import INTEGER, TEXT, QueueType, Schema
from millstream.connectors.chunks import BatchWriter
from millstream.connectors.folder import FolderWriter
from millstream.connectors.location import Location, parse_location
from millstream.plan.batch import Batch, batch_of

TYPE = QueueType(Schema.of(x=INTEGER, word=TEXT))
OLD, NEW = "old", "new"
BATCHES = 3
#: (owner, name of a function) of every step.
Steps = list[tuple[Any, str]]


def batch(job: str, number: int) -> Batch:
    """Batch 1 of the new job is empty; old batches are told by their words."""
    rows = 0 if (job, number) == (NEW, 1) else 3
    return batch_of(TYPE, [number] * rows, [(10 * number + i, job) for i in range(rows)])


def expected_rows(job: str) -> list[int]:
    return [v for n in range(BATCHES) for v in batch(job, n).columns[0].to_list()]  # type: ignore[misc]


def deliver(writer: BatchWriter, job: str, *, fresh: bool) -> None:
    """As an engine does after a crash: everything again, whatever the sink has."""
    writer.open(job, fresh=fresh)
    for number in range(BATCHES):
        writer.write_batch(number, batch(job, number))
    writer.close()


def deliver_new(writer: BatchWriter) -> None:
    deliver(writer, NEW, fresh=True)


def killed_before(step: int, steps: Steps, work: Callable[[], None]) -> bool:
    """Run work in a child that is killed before that step; false if it came to its end."""
    child = os.fork()
    if child == 0:
        count = 0

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **named: Any) -> Any:
                nonlocal count
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1
                return function(*arguments, **named)

            return call

        for owner, name in steps:
            setattr(owner, name, counted(getattr(owner, name)))
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - a forked child must not go on
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0, step
    return os.WIFSIGNALED(status)


def kill_folders(folder: Path) -> None:
    """One folder for each step, as the killed process has left it."""
    steps: Steps = [(os, "fsync"), (Path, "replace"), (Path, "unlink"), (Path, "open")]
    old = folder / "old"
    deliver(FolderWriter(parse_location(f"csv:{old}/", Path()), TYPE), OLD, fresh=True)
    step, is_killed = 0, True
    while is_killed:
        place = parse_location(f"csv:{folder}/{step:03}/", Path())
        shutil.copytree(old, folder / f"{step:03}")
        is_killed = killed_before(step, steps, lambda: deliver_new(FolderWriter(place, TYPE)))  # noqa: B023
        step += 1
    shutil.rmtree(old)


def kill_tables(address: str) -> None:
    """One table for each step."""
    import psycopg

    from millstream.connectors.postgres import PostgresWriter

    steps: Steps = [
        (psycopg.Connection, "execute"), (psycopg.Cursor, "execute"), (psycopg.Cursor, "copy"),
        (psycopg.Copy, "write"), (psycopg.Copy, "__exit__"), (psycopg.Transaction, "__exit__"),
        (psycopg.Connection, "close"),
    ]  # fmt: skip

    def location(step: int) -> Location:
        found = parse_location(address, Path())
        assert found.database is not None
        return replace(found, database=replace(found.database, table=f"killed_{step:03}"))

    step, is_killed = 0, True
    while is_killed:
        place = location(step)
        deliver(PostgresWriter(place, "out", TYPE), OLD, fresh=True)
        is_killed = killed_before(
            step, steps, lambda: deliver_new(PostgresWriter(place, "out", TYPE))  # noqa: B023
        )  # fmt: skip
        step += 1


def main() -> None:
    kind, place = sys.argv[1:]
    if kind == "folder":
        kill_folders(Path(place))
    else:
        kill_tables(place)
    sys.stdout.write(json.dumps("done"))


if __name__ == "__main__":
    main()
