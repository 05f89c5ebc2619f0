"""Where records come from: several files are one input, and what is rejected is kept."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import millstream

PROGRAM = """
n: table sum[k: string] of int;
s: string = input;
emit stdout <- s;
assert(len(s) == 2, "too long");
emit n[s[0:1]] <- int(s[1:$]);
"""


@pytest.mark.parametrize("engine", ["reference", "local", "checkpoint"])
def test_several_files_are_one_input(tmp_path: Path, engine: str) -> None:
    program = tmp_path / "program.szl"
    program.write_text(PROGRAM)
    (tmp_path / "a.txt").write_text("a1\na2\nbad\na3\n")
    (tmp_path / "b.txt").write_text("b1\nworse\nb2\nb3")
    shown, kept = tmp_path / "shown.csv", tmp_path / "rejected.csv"
    # One row a batch: files and pieces of them begin in the middle of the input.
    options: dict[str, Any] = {"checkpoint": str(tmp_path / "kept"), "batch_bytes": 4}
    finished = millstream.compile(program).run(
        {"input": str(tmp_path / "?.txt")},
        {"printed": str(shown), "n": str(tmp_path / "n.csv"), "rejected": str(kept)},
        engine="local" if engine == "checkpoint" else engine,
        **(options if engine == "checkpoint" else {}),
    )
    counts = finished.report.inputs["input"]
    assert (8, 6, 2, 0) == (counts.read, counts.processed, counts.rejected, counts.late)
    rows = rows_of(shown)
    assert ["a1", "a2", "a3", "b1", "b2", "b3", "n[a] = 6", "n[b] = 6"] == [
        row["line"].strip() for row in rows
    ]
    assert [1, 2, 4, 5, 7, 8] == [int(row["_time"]) for row in rows[:6]]
    reason = f"{program}:5:1: assertion failed: too long"
    texts = [(row["_reason"], row["_text"]) for row in rows_of(kept)]
    assert [(reason, "bad"), (reason, "worse")] == sorted(texts)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.txt"])
def test_a_column_that_is_called_line_is_a_column(tmp_path: Path, engine: str, name: str) -> None:
    """Asked for by its name it is one; of a text it is each line."""
    program = tmp_path / "program.szl"
    program.write_text(
        "r: {line: string} = input; o: table collection of string; emit o <- r.line;"
    )
    rows = ["a", "b c"]
    (tmp_path / name).write_text("\n".join(["line"] * name.endswith("csv") + rows) + "\n")
    out = tmp_path / "o.csv"
    millstream.compile(program).run({"input": str(tmp_path / name)}, {"o": str(out)}, engine=engine)
    assert rows == [row["value"] for row in rows_of(out)]
