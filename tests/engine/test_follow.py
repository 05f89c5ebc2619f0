"""Runs that follow their inputs: files that come and grow, silence, and a clock."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.api import Compiled
from tests.engine.following import Following
from tests.laws.runs import Collector, Rows

Launched = dict[str, Any]

SUMS = """
output sums;
input in(k text, x integer);
variable $s(x integer = 0);
(sums, $s) <- Fold[by k; set $s.x = $s.x + x; emit k, x = $s.x](in, $s);
"""
BOTH = """
output both;
input a(x integer), b(x integer);
(both, $a, $b) <- Merge(a, b, $a, $b);
"""


def project(folder: Path, program: str, *streams: str) -> Compiled:
    """A project of one node, whose streams are given as the text of their tables."""
    (folder / "node.brook").write_text(program)
    text = "\n".join([*streams, '[node.node]\nbrook = "node.brook"'])
    (folder / "millstream.toml").write_text(text)
    return millstream.compile(folder)


def stream(name: str, source: str, more: str = "") -> str:
    columns = 'k = "text", x = "integer"' if name == "in" else 'x = "integer"'
    return f'[stream.{name}]\nsource = "{source}"\ncolumns = {{ {columns} }}\n{more}\n'


def on_local(compiled: Compiled) -> dict[str, Rows]:
    outputs = {name: Collector() for name in compiled.program.outputs}
    compiled.run(outputs=outputs, engine="local")
    return {name: one.rows for name, one in outputs.items()}


def taken_up(compiled: Compiled, launched: Launched, checkpoint: Path) -> dict[str, Rows]:
    """The end of the same job as a finite run: nothing waits any more."""
    outputs = {name: Collector() for name in compiled.program.outputs}
    compiled.run(outputs=outputs, checkpoint=checkpoint, **launched)
    return {name: one.rows for name, one in outputs.items()}


def csv_line(time: int) -> str:
    return f"{time},k{time % 3},{1000 + time}\n"


def json_line(time: int) -> str:
    return json.dumps({"_time": time, "k": f"k{time % 3}", "x": 1000 + time}) + "\n"


def lines(of: Callable[[int], str], times: Iterable[int]) -> str:
    return "".join(map(of, times))


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


@pytest.mark.parametrize(
    ("ending", "line", "cut"), [("csv", csv_line, 2), ("jsonl", json_line, 3)], ids=["csv", "jsonl"]
)
def test_new_files_and_lines_are_taken_when_they_are_whole(
    ending: str, line: Callable[[int], str], cut: int, launched: Launched, tmp_path: Path
) -> None:
    head = "_time,k,x\n" if ending == "csv" else ""
    folder = tmp_path / "in"
    folder.mkdir()
    first, second = folder / f"1.{ending}", folder / f"2.{ending}"
    # Without its end the line would be a row too, but another one.
    half, rest = line(5)[:-cut], line(5)[-cut:]
    first.write_text(head + lines(line, range(5)) + half)
    compiled = project(tmp_path, SUMS, stream("in", f"in/*.{ending}"))
    with Following(compiled, launched, tmp_path / "checkpoint") as running:
        running.wait("read", 5)
        time.sleep(1)
        assert 5 == running.count("read")
        append(first, rest + lines(line, range(6, 10)) + line(10)[:-1])
        running.wait("read", 10)
        append(first, "\n")
        running.wait("read", 11)
        draft = tmp_path / "draft"
        draft.write_text(head + lines(line, range(11, 20)))
        draft.rename(second)
        running.wait("read", 20)
        append(second, lines(line, range(20, 30)))
        running.wait("read", 30)
        running.finish()
    expected = on_local(compiled)["sums"]
    # The last instant waits: more rows of it may come.
    assert expected[:29] == running.rows("sums")
    assert expected == taken_up(compiled, launched, tmp_path / "checkpoint")["sums"]


def test_a_run_that_follows_goes_on_where_the_last_one_stopped(
    launched: Launched, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    log = tmp_path / "in" / "log.csv"
    log.write_text("_time,k,x\n" + lines(csv_line, range(10)))
    compiled = project(tmp_path, SUMS, stream("in", "in/*.csv"))
    for number in (20, 30):
        append(log, lines(csv_line, range(number - 10, number)))
        with Following(compiled, launched, tmp_path / "checkpoint") as running:
            running.wait("read", number)
            running.finish()
    assert (
        on_local(compiled)["sums"] == taken_up(compiled, launched, tmp_path / "checkpoint")["sums"]
    )


def test_a_folder_that_was_empty_is_followed_and_numbered_outputs_go_on(
    launched: Launched, tmp_path: Path
) -> None:
    """Its files tell their format when they come; what is there is not written again."""
    (tmp_path / "in").mkdir()
    compiled = project(tmp_path, SUMS, stream("in", "in/"))
    outputs: dict[str, Any] = {"sums": f"{tmp_path}/sums.csv"}
    for number in (1, 2):
        with Following(compiled, launched, tmp_path / "checkpoint", outputs=outputs) as running:
            draft = tmp_path / "draft"
            draft.write_text("_time,k,x\n" + lines(csv_line, range(10 * number - 10, 10 * number)))
            draft.rename(tmp_path / "in" / f"{number}.csv")
            running.wait("read", 10 * number)
            running.finish()
    parts = [path.read_text().splitlines()[1:] for path in sorted(tmp_path.glob("sums-*.csv"))]
    assert [9, 10] == [len(part) for part in parts]  # the last instant waits
    times_of = [int(line.partition(",")[0]) for part in parts for line in part]
    assert list(range(19)) == times_of


@pytest.mark.parametrize("more", [(), ("--checkpoint", "state")], ids=["alone", "checkpoint"])
def test_standard_input_is_followed_to_its_end_but_not_with_a_checkpoint(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    """What has come through it is gone, so nobody could take the job up."""
    (tmp_path / "job.brook").write_text(SUMS)
    command = [sys.executable, "-m", "millstream.cli.main", "run", "job.brook", "--engine", "local"]
    process = subprocess.Popen(
        [*command, "--follow", "--in", "in=csv:-", "--out", "sums=sums.csv", *more],
        cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    text = "_time,k,x\n" + lines(csv_line, range(5))
    _, told = process.communicate(text.removesuffix("\n"))
    if more:
        assert 2 == process.returncode
        assert "standard input cannot be followed with a checkpoint" in told
        return
    assert 0 == process.returncode, told
    rows = [p.read_text().splitlines()[1:] for p in sorted(tmp_path.glob("sums-*.csv"))]
    assert [csv_line(t).strip() for t in range(3)] == [row for part in rows for row in part][:3]
    assert "in: 1 row still waits for time to pass" in told


def two_inputs(folder: Path, more: str) -> Compiled:
    for name in ("a", "b"):
        (folder / name).mkdir()
    return project(folder, BOTH, stream("a", "a/*.csv"), stream("b", "b/*.csv", more))


def arrive(folder: Path, name: str, times: Iterable[int]) -> None:
    """A file that appears as a whole."""
    draft = folder / "draft"
    number = len(list((folder / name).iterdir()))
    draft.write_text("_time,x\n" + "".join(f"{t},{t}\n" for t in times))
    draft.rename(folder / name / f"{number}.csv")


def times(rows: Rows) -> list[int]:
    return [time for time, _, _ in rows]


def test_without_a_limit_a_silent_input_holds_time_back(launched: Launched, tmp_path: Path) -> None:
    compiled = two_inputs(tmp_path, "")
    with Following(compiled, launched, tmp_path / "checkpoint") as running:
        arrive(tmp_path, "a", range(10))
        running.wait("read", 10)
        time.sleep(3)
        assert (10, 0) == (running.count("waiting"), running.count("processed"))
        arrive(tmp_path, "b", [7])
        running.wait("processed", 7)  # those of a before 7
        report = running.finish()
    assert list(range(7)) == times(running.rows("both"))
    assert (3, 1) == (report.inputs["a"].waiting, report.inputs["b"].waiting)


def test_a_silent_input_is_not_waited_for_beyond_its_limit(
    launched: Launched, tmp_path: Path
) -> None:
    limit = 3
    compiled = two_inputs(tmp_path, f'idle = "{limit} s"')
    late = Collector()
    with Following(
        compiled, launched, tmp_path / "checkpoint", outputs={"late.b": late}
    ) as running:
        arrive(tmp_path, "a", range(10))
        running.wait("read", 10)
        assert 10 == running.count("waiting")
        running.wait("processed", 9)  # the last instant of a may go on
        assert running.told[-1]["seconds"] > limit
        arrive(tmp_path, "b", [3, 8, 9, 12])
        running.wait("read", 14)
        assert 2 == running.count("late")
        arrive(tmp_path, "a", [20])
        running.wait("processed", 12)
        running.finish()
    assert [*range(10), 9, 12] == times(running.rows("both"))
    assert [3, 8] == times(late.rows)


def test_a_generator_with_a_rate_follows_the_clock(launched: Launched, tmp_path: Path) -> None:
    rows, rate = 600, 200
    settings = f'rows = {rows}\nrate = {rate}\ninterval = "1 ms"'
    compiled = project(tmp_path, SUMS, stream("in", "generator", settings))
    expected = on_local(compiled)["sums"]  # and its kernels need not be made while the clock runs
    with Following(compiled, launched, tmp_path / "checkpoint") as running:
        running.wait("read", rows)
        running.finish()
    # When it started is not known to us, only how much came after the first batch.
    first = running.told[0]
    for one in running.told[1:]:
        since = one["seconds"] - first["seconds"] + first["batch_seconds"]
        assert one["read"] <= rate * since + 1
    assert len(running.told) > 2
    assert expected == taken_up(compiled, launched, tmp_path / "checkpoint")["sums"]
