from __future__ import annotations

import os
from pathlib import Path

from millstream.calculus.graph import Input
from millstream.calculus.types import TEXT, QueueType, Row, Schema
from millstream.connectors.chunks import Chunk
from millstream.connectors.location import parse_location
from millstream.connectors.watch import Watcher
from tests.connectors.inputs import everything

X = Input("X", QueueType(Schema.of(x=TEXT)))
NOW = 1_000_000.0


def put(path: Path, *cells: str, age: float = 0.0) -> None:
    """A file that was changed so many seconds ago."""
    path.write_text("_time,x\n" + "".join(f"1,{cell}\n" for cell in cells))
    os.utime(path, (NOW - age, NOW - age))


def watcher(folder: Path, **options: object) -> Watcher:
    location = parse_location("*.csv", folder)
    return Watcher(location, X, clock=lambda: NOW, **options)  # type: ignore[arg-type]


def seen(chunks: list[Chunk]) -> list[Row]:
    return everything(chunks, X)[0][2]


def reasons(chunks: list[Chunk]) -> list[tuple[str, str]]:
    return [(r.source, r.reason) for r in everything(chunks, X)[1]]


def test_a_file_is_taken_when_it_has_stopped_growing(tmp_path: Path) -> None:
    watch = watcher(tmp_path)
    put(tmp_path / "a.csv", "1")
    assert [] == list(watch.poll())
    put(tmp_path / "a.csv", "1", "2")
    assert [] == list(watch.poll())
    assert [("1",), ("2",)] == seen(list(watch.poll()))
    assert [] == list(watch.poll())


def test_a_file_that_has_not_changed_for_a_while_is_taken_at_once(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", "1", age=5)
    assert [("1",)] == seen(list(watcher(tmp_path).poll()))


def test_files_are_taken_in_order_of_change_and_name(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", "3", age=5)
    put(tmp_path / "c.csv", "1", age=9)
    put(tmp_path / "b.csv", "2", age=9)
    watch = watcher(tmp_path)
    assert [("2",), ("1",), ("3",)] == seen(list(watch.poll()))
    assert ["b.csv", "c.csv", "a.csv"] == [p.name for p in watch.taken]


def test_files_of_an_earlier_run_are_not_taken_again(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", "1", age=5)
    put(tmp_path / "b.csv", "2", age=5)
    assert [("2",)] == seen(list(watcher(tmp_path, taken=[tmp_path / "a.csv"]).poll()))


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    put(tmp_path / "a.csv.tmp", "1", age=5)
    put(tmp_path / ".a.csv", "1", age=5)
    assert [] == list(watcher(tmp_path).poll())


def test_a_file_that_is_changed_after_it_was_taken_is_told_once(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", "1", age=5)
    watch = watcher(tmp_path)
    list(watch.poll())
    put(tmp_path / "a.csv", "1", "2", age=3)
    expected = [("a.csv", "changed after it was read; write to a new file")]
    assert expected == reasons(list(watch.poll()))
    assert [] == list(watch.poll())


def test_a_file_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("_time,y\n")
    os.utime(tmp_path / "a.csv", (NOW - 9, NOW - 9))
    put(tmp_path / "b.csv", "2", age=5)
    chunks = list(watcher(tmp_path).poll())
    assert [("2",)] == seen(chunks)
    assert [("a.csv", 'no column "x", which input "X" declares')] == reasons(chunks)


def test_it_looks_again_until_it_is_stopped(tmp_path: Path) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        put(tmp_path / f"{len(slept)}.csv", str(len(slept)), age=5)

    watch = watcher(tmp_path, sleep=sleep, interval=2.5, stopped=lambda: len(slept) == 3)
    assert [("1",), ("2",)] == seen(list(watch.chunks()))
    assert [2.5, 2.5, 2.5] == slept


def test_a_folder_can_be_watched_before_anything_is_in_it(tmp_path: Path) -> None:
    watch = Watcher(parse_location("csv:in", tmp_path), X, clock=lambda: NOW)
    assert [] == list(watch.poll())
    (tmp_path / "in").mkdir()
    put(tmp_path / "in" / "a.csv", "1", age=5)
    assert [("1",)] == seen(list(watch.poll()))


def test_closing_in_the_middle_of_a_file_is_fine(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", "1", "2", age=5)
    watch = watcher(tmp_path, chunk_rows=1)
    chunks = watch.poll()
    assert [("1",)] == seen([next(chunks)])
    watch.close()
