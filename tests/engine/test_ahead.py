"""What needs no other rows runs where rows are read, and what comes of it is the same."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import millstream
from millstream.engine.ahead import joined, readings_of, released, runs_of
from millstream.engine.layout import layout_for, with_ahead
from millstream.engine.local import batches as local
from millstream.plan.batch import batch_of
from tests.engine.test_partitions import in_tasks
from tests.examples.test_examples import table

TEXT = """
    words: array of string = sawzall(string(input), `[a-z]+`);
    count: table sum[word: string] of int;
    heavy: table top(3) of word: string weight n: int;
    lines: table collection[k: string] of string;
    longest: table maximum(2) of word: string weight n: int;
    spread: table quantile(3) of int;
    emit spread <- len(words);
    when (i: each int; def(words[i])) emit count[words[i]] <- 1;
    if (len(words) > 3) emit stdout <- words[0] + words[1];
    if (len(words) > 3) emit stdout <- "second";
    emit heavy <- words[0] weight len(words);
    emit longest <- words[1] weight len(words[1]);
    emit lines[words[0]] <- words[1];
"""
WORDS = ("a", "bb", "ccc", "dd", "")


def write_lines(folder: Path, numbers: range) -> None:
    """A file for every twenty lines."""
    for first in numbers[::20]:
        words = ([WORDS[n * k % 5] for k in range(2, 2 + n % 6)] for n in range(first, first + 20))
        (folder / f"in{first:03}.txt").write_text("".join(f"{' '.join(w)}\n" for w in words))


def ran(folder: Path, engine: str, *, checkpoint: Path | None = None) -> tuple[Any, ...]:
    """The outputs, what is told of the inputs, and which records were rejected."""
    compiled = millstream.compile(folder / "words.szl")
    outputs = {q: folder / f"{q}.csv" for q in compiled.program.outputs}
    given = {"input": f"{folder}/in*.txt"}
    options: dict[str, Any] = (
        {} if checkpoint is None else {"checkpoint": checkpoint, "batch_bytes": 300}
    )
    report = compiled.run(given, outputs, engine=engine, **options).report
    told = {name: asdict(counts) for name, counts in report.inputs.items()}
    return {q: table(p) for q, p in outputs.items()}, told, dict(report.by_program)


@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_are_told_of_as_if_they_had_travelled(
    tmp_path: Path, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In several batches, also where a run is taken up after its input has grown."""
    (tmp_path / "words.szl").write_text(TEXT)
    write_lines(tmp_path, range(120))
    first = ran(tmp_path, "local")
    monkeypatch.setattr(local, "run_batches", in_tasks(partitions))
    assert first == ran(tmp_path, "local", checkpoint=tmp_path / "state")
    write_lines(tmp_path, range(120, 200))
    _, counts, rejected = ran(tmp_path, "local", checkpoint=tmp_path / "state")
    monkeypatch.undo()
    assert len(list((tmp_path / "state" / "batches").iterdir())) > 3
    _, whole_counts, whole_rejected = ran(tmp_path, "local")
    assert (whole_counts, whole_rejected) == (counts, rejected)


def test_only_what_a_script_has_made_travels(tmp_path: Path) -> None:
    (tmp_path / "words.szl").write_text(TEXT)
    program = millstream.compile(tmp_path / "words.szl").program
    with_values = with_ahead(layout_for(program, {"input": 1e9}))
    assert () == with_values.ahead
    layout = with_ahead(layout_for(_from_files(program), {"input": 1e9}))
    assert ["input"] == [one.input for one in layout.ahead]
    assert "input" not in layout.targets
    assert set(layout.ahead[0].leaving) <= set(layout.targets)


def test_a_task_sends_nothing_of_one_that_has_failed_before_it(tmp_path: Path) -> None:
    (tmp_path / "words.szl").write_text(TEXT)
    program = _from_files(millstream.compile(tmp_path / "words.szl").program)
    (reading,) = readings_of(with_ahead(layout_for(program, {"input": 1e9}))).values()
    type_ = program.inputs[0].type
    for is_taken in (True, False):
        reading.begin()
        if is_taken:
            reading.take(batch_of(type_, [1], [("aaaa bb",)]))
    assert [] == list(reading.sendable(2, 0))


def _from_files(program: Any) -> Any:
    return replace(program, inputs=tuple(replace(i, values=None) for i in program.inputs))


def test_numbers_of_rows_are_told_as_those_that_follow_each_other() -> None:
    numbers = np.array([1, 2, 3, 7, 9, 10], np.int64)
    runs = runs_of(numbers)
    assert [1, 3, 7, 7, 9, 10] == runs.tolist()
    for mark in (None, 0, 2, 7, 9, 20):
        until = 0 if mark is None else mark
        count, rest = released(joined([runs]), mark)
        assert int((numbers <= until).sum()) == count
        later, none = released(rest, 20)
        assert (len(numbers) - count, []) == (later, none.tolist())


@pytest.mark.parametrize("point", ["stage.mid-task@1", "batches.after-manifest@2"])
def test_what_a_stopped_run_has_counted_is_not_counted_again(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "words.szl").write_text(TEXT)
    write_lines(tmp_path, range(120))
    first = ran(tmp_path, "local")
    monkeypatch.setattr(local, "run_batches", in_tasks(2))
    module, _, where = point.partition(".")

    def stop(name: str, version: int) -> None:
        if f"{name}@{version}" == where:
            raise RuntimeError(where)

    with monkeypatch.context() as stopped:
        stopped.setattr(f"millstream.engine.{module}.reached", stop)
        with pytest.raises(RuntimeError, match=where):
            ran(tmp_path, "local", checkpoint=tmp_path / "state")
    assert first == ran(tmp_path, "local", checkpoint=tmp_path / "state")
