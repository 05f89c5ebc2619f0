"""What a terminal shows: tables that fit, and what is going on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from millstream.cli.progress import PIPE_SETTING, Compiling, Progress
from millstream.cli.show import table_lines
from millstream.engine.job import InputCounts, Report
from millstream.kernels import watch

ROW: dict[str, Any] = {
    "_time": "2026-01-05T09:30:00Z", "mmsi": 244660000, "name": "Ever Large " * 4,
    "note": "a rather long note about this vessel", "paid": 1234567.891, "is_late": None,
}  # fmt: skip


def test_a_table_without_a_width_is_shown_whole() -> None:
    assert table_lines([{"id": 244660000, "part": 0.25, "name": "a\nb", "is": True}]) == [
        "       id  part  name  is", "244660000  0.25  a\\nb  true",
    ]  # fmt: skip
    assert table_lines([]) == []


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
def test_a_table_fits_and_marks_what_is_cut(width: int) -> None:
    lines = table_lines([ROW, ROW], width)
    assert max(map(len, lines)) <= max(width, len(ROW["_time"]) + 3)
    assert len(lines) == 3
    assert ("…" in lines[1]) is (width < 150)
    assert ROW["_time"] in lines[1]


def test_numbers_are_not_cut_but_left_out() -> None:
    _, line = table_lines([{"a": 123456789, "b": 123456789, "c": 123456789}], 22)
    assert line == "123456789  …"


@contextmanager
def silent(monkeypatch: pytest.MonkeyPatch, seconds: str) -> Iterator[Progress]:
    monkeypatch.setenv(PIPE_SETTING, seconds)
    with Progress("auto", "local") as progress:
        yield progress


def test_a_pipe_is_told_what_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with silent(monkeypatch, "0.01") as progress:
        while not progress.last:
            progress._is_over.wait(0.01)
    assert capsys.readouterr().err.startswith("opening inputs, preparing what runs (")


def test_after_its_end_progress_says_nothing_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with silent(monkeypatch, "inf") as progress:
        pass
    progress._show("too late")
    assert capsys.readouterr().err == ""


def test_where_rows_are_printed_progress_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for is_alone in (True, False):
        with Progress("auto", "local", is_alone=is_alone) as progress:
            assert progress.is_live is is_alone
            assert not progress.is_piped


def test_what_is_going_on_is_the_report_or_what_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with silent(monkeypatch, "inf") as progress:
        progress._compiling.count = 3
        progress._compiling._depth = 1
        monkeypatch.setattr(watch, "here", watch.At(2, 7))
        assert progress._doing().startswith("compiling step 2 of 7: 3 loops so far (")
        monkeypatch.setattr(watch, "here", None)
        assert progress._doing().startswith("compiling: 3 loops so far (")
        progress._compiling._depth = 0
        monkeypatch.setattr(watch, "here", watch.At(2, 7))  # it runs, and nothing is compiled
        assert progress._doing().startswith("preparing; 3 loops compiled (")
        monkeypatch.setattr(watch, "aside", watch.At(3, 7))
        assert progress._doing().startswith("compiling step 3 of 7 (")
        monkeypatch.setattr(watch, "aside", None)
        progress(Report({"trades": InputCounts(7, 7)}, {"totals": 2}))
        assert progress._doing().startswith("trades 7 rows  totals 2 rows")


def test_loops_that_are_compiled_are_counted() -> None:
    import numba

    import millstream.compiled  # noqa: F401 - says where numba keeps its files

    njit: Any = numba.njit
    compiling = Compiling()
    compiling.listen()
    compiling.listen()

    def inner(x: int) -> int:
        return x + 1

    called = njit(inner)

    def outer(x: int) -> int:
        return int(called(x))

    assert njit(outer)(1) == 2
    assert (compiling.count, compiling.is_busy) == (1, False)
    compiling.close()
    assert njit(outer)(1) == 2
    assert compiling.count == 1
