"""Runs that go on while a Python program looks at them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import millstream
from millstream.errors import UsageError
from millstream.live import KEPT_ROWS, LastRows
from millstream.plan.batch import batch_of

PROGRAM = """
output totals, all; input trades(k text, n integer) time at;
(a, all) <- Duplicate(trades); (held, $w) <- Latest[by k](a, $w);
(totals, $t) <- Aggregate[s = sum(n)](held, $t);
"""


def until(live: millstream.Live, rows: int) -> None:
    end = time.monotonic() + 60
    while len(live.now().rows("all")) < rows and time.monotonic() < end:
        time.sleep(0.02)


def test_what_there_is_can_be_asked_while_rows_come(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("at,k,n\n1,a,5\n2,b,1\n3,c,0\n")
    with millstream.compile(text=PROGRAM).follow({"trades": f"{tmp_path}/in/"}) as live:
        until(live, 2)
        assert [{"s": 6}] == live.now().state("totals")
        assert "running" in repr(live)
        (tmp_path / "in" / "2.csv").write_text("at,k,n\n4,a,7\n5,b,0\n")
        until(live, 4)
        assert [{"s": 8}] == live.stop().state("totals")
        assert not live.is_running
    assert "<td>8</td>" in live._repr_html_()
    assert "stopped, 5 rows read (1 waits for time to pass)" in live._repr_html_()


def test_a_run_that_fails_says_so_when_it_is_asked(tmp_path: Path) -> None:
    live = millstream.compile(text=PROGRAM).follow({"trades": "nowhere://here"})
    with pytest.raises(UsageError, match="unknown kind of address"):
        live.wait(60)
    assert "failed" in repr(live)
    with pytest.raises(UsageError, match='no output "totalz"'):
        millstream.compile(text=PROGRAM).follow({}, {"totalz": tmp_path / "x.csv"})


def test_a_notebook_shows_what_there_is_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, text: str) -> None:
            shown.append(text)

    def display(text: str, *, display_id: bool) -> Handle:
        shown.append(text)
        return Handle()

    module: Any = ModuleType("IPython.display")
    module.HTML, module.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    (tmp_path / "1.csv").write_text("at,k,n\n1,a,5\n2,a,9\n")
    with millstream.compile(text=PROGRAM).follow({"trades": f"{tmp_path}/*.csv"}) as live:
        live._ipython_display_()
        until(live, 1)
    end = time.monotonic() + 60
    while "stopped" not in shown[-1] and time.monotonic() < end:
        time.sleep(0.02)
    assert "running" in shown[0]
    assert "<td>5</td>" in shown[-1]


def test_of_a_stream_the_last_rows_are_kept_and_of_a_table_what_stands() -> None:
    types = millstream.compile(text=PROGRAM).program.queue_types()
    stream, table = LastRows(), LastRows()
    for n in range(5):
        many = KEPT_ROWS
        stream.write(batch_of(types["all"], [n] * many, [("a", n)] * many))
        table.write(batch_of(types["totals"], [n] * many, [(1,), (2,)] * (many // 2),
                             [1, -1] * (many // 2)))  # fmt: skip
    assert 4 * KEPT_ROWS >= sum(map(len, stream.batches))
    assert ("a", 4) == stream.batches[-1].rows()[-1]
    assert 2 * KEPT_ROWS + 4 >= sum(map(len, table.batches))
