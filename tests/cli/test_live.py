"""Tables that are drawn anew while a run is followed on a terminal."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest

from millstream.calculus.types import INTEGER, TEXT, QueueType, Schema
from millstream.cli import run as command
from millstream.cli.live import LiveTable, Screen
from millstream.cli.main import make_parser
from millstream.cli.progress import Progress
from millstream.cli.run import compiled_from
from millstream.engine.job import Report
from millstream.plan.batch import batch_of

RELATION = QueueType(Schema.of(k=TEXT, n=INTEGER), is_relation=True)
STREAM = QueueType(Schema.of(n=INTEGER))


@pytest.fixture(autouse=True)
def size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((40, 12)))
    monkeypatch.setattr("millstream.cli.live._SECONDS", 0.0)


def seen(text: str) -> list[str]:
    """What stands on a terminal after a text with the codes that we use."""
    lines: list[str] = []
    at = 0
    for part in re.split(r"(\x1b\[\d*[FKJ]|\r|\n)", text):
        if part.endswith("F") and part.startswith("\x1b"):
            at -= int(part[2:-1])
            assert at >= 0, "nothing above the first line is touched"
        elif part == "\x1b[K":
            continue  # lines are written from their start, and whole
        elif part == "\x1b[J":
            lines = lines[:at]
        elif part == "\n":
            at += 1
        elif part and part != "\r":
            lines[at:] = [part, *lines[at + 1 :]]
    return lines


def test_a_relation_is_shown_as_it_stands() -> None:
    out = io.StringIO()
    screen = Screen(out)
    table = LiveTable("totals", RELATION, screen)
    table.write(batch_of(RELATION, [1, 1], [("b", 10), ("a", 9)], [1, 1]))
    assert ["totals: 2 rows now", "k   n", "a   9", "b  10"] == seen(out.getvalue())
    table.write(batch_of(RELATION, [2, 2], [("b", 10), ("b", 11)], [-1, 1]))
    screen.say("in 3/s")
    assert ["totals: 2 rows now", "k   n", "a   9", "b  11", "in 3/s"] == seen(out.getvalue())
    table.write(batch_of(RELATION, [3, 3], [("b", 11), ("a", 9)], [-1, -1]))
    assert ["totals: 0 rows now", "in 3/s"] == seen(out.getvalue())


def test_of_many_rows_those_are_shown_that_changed_last() -> None:
    out = io.StringIO()
    table = LiveTable("totals", RELATION, Screen(out))
    rows = [(f"k{n}", n) for n in range(30)]
    table.write(batch_of(RELATION, [1] * 30, rows, [1] * 30))
    table.write(batch_of(RELATION, [2, 2], [("k3", 3), ("k3", 4)], [-1, 1]))
    lines = seen(out.getvalue())
    assert "... of 30 rows now, those that changed…" == lines[-1]
    assert ["k25", "k26", "k27", "k28", "k29", "k3"] == [line.split()[0] for line in lines[2:-1]]


def test_of_a_stream_the_last_rows_are_shown() -> None:
    out = io.StringIO()
    table = LiveTable("rows", STREAM, Screen(out))
    table.write(batch_of(STREAM, list(range(500)), [(n,) for n in range(500)]))
    lines = seen(out.getvalue())
    assert "rows: 500 rows" == lines[0]
    assert ["494", "495", "496", "497", "498", "499"] == [line.split()[1] for line in lines[2:-1]]
    assert all(len(line) < 40 for line in lines)


def test_progress_stands_below_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    out = io.StringIO()
    screen = Screen(out)
    table = LiveTable("rows", STREAM, screen)
    with Progress("auto", "local", screen=screen) as progress:
        table.write(batch_of(STREAM, [5], [(7,)]))
        progress.finish(Report({}, {"rows": 1}))
    lines = seen(out.getvalue())
    assert ["rows: 1 row", "_time  n", "    5  7"] == lines[:3]
    assert lines[3].startswith("rows 1 rows")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_tables_are_live_on_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    program = "output out; input in(n integer); (out) <- Filter[n > 0](in);"
    Path("t.brook").write_text(program)
    arguments = make_parser().parse_args(["run", "t.brook", "--follow", "--format", "table"])
    screen = Screen(io.StringIO()) if is_terminal else None
    outputs = command._outputs(compiled_from(arguments), arguments, screen)
    assert is_terminal == isinstance(outputs["out"], LiveTable)
