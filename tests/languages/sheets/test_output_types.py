"""The type of an output attribute: found from its cell, or said, so that times pass a sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.errors import CheckError
from tests.languages.sheets.books import save

HEADS = ("stream", "direction", "attribute", "cell", "type", "role")
NOON = 1_700_049_600_000_000  # 2023-11-15 12:00
HOUR = 3_600_000_000
TIMES = (NOON + 1, NOON + 123_457, 7, 2_500_000_000_000_003, 631_152_000_000_001)


def bound(folder: Path, cells: dict[str, Any], *outputs: tuple[str, str, str]) -> Path:
    rows = [
        HEADS,
        ("In", "input", "at", "A1", "time", "time"),
        ("In", "input", "took", "B1", "duration", ""),
        ("In", "input", "n", "C1", "number", ""),
        *(("Out", "output", name, cell, type_, "") for name, cell, type_ in outputs),
    ]
    streams = {
        f"streams!{letter}{number}": value
        for number, row in enumerate(rows, 1)
        for letter, value in zip("ABCDEF", row, strict=True)
    }
    return save(folder / "typed.xlsx", cells | streams)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_numbers_leave_as_times_durations_and_integers(tmp_path: Path, engine: str) -> None:
    cells = {"D1": "=A1+1/24", "D2": "=B1*2", "D3": "=C1*2", "D4": '=IF(C1>2,"many",C1)',
             "D5": '=TEXT(C1,"0")&"!"', "D6": "=1/(C1-3)"}  # fmt: skip
    path = bound(
        tmp_path, cells, ("at", "A1", "time"), ("later", "D1", "Timestamp"),
        ("took", "B1", "duration"), ("twice", "D2", "duration"), ("whole", "D3", "integer"),
        ("few", "D4", "integer"), ("shown", "D3", "text"), ("made", "D5", "text"),
        ("seen", "D4", ""), ("odd", "D6", "integer"),
    )  # fmt: skip
    rows = [{"at": t, "took": 90_000_000 + t % 7, "n": n}
            for t, n in zip(sorted(TIMES), (1, 1.25, 3, 2, 1.5), strict=True)]  # fmt: skip
    result = millstream.compile(path).run({"In": rows}, engine=engine)
    found: list[dict[str, Any]] = list(result.rows("Out"))
    assert [r["at"] for r in found] == sorted(TIMES)
    # A day has 2^37 parts in a cell, so that what is computed may be off by a microsecond.
    assert all(abs(r["later"] - r["at"] - HOUR) <= 1 for r in found)
    assert [r["took"] for r in found] == [r["took"] for r in rows]
    assert [r["twice"] for r in found] == [2 * r["took"] for r in rows]
    assert [r["whole"] for r in found] == [2, None, 6, 4, 3]
    assert [r["few"] for r in found] == [1, None, None, 2, None]
    assert [r["shown"] for r in found] == ["2", "2.5", "6", "4", "3"]
    assert [r["made"] for r in found] == ["1!", "1!", "3!", "2!", "2!"]
    assert [r["seen"] for r in found] == ["1", "1.25", "many", "2", "1.5"]
    assert [r["odd"] for r in found] == [None, None, None, -1, None]
    assert all(type(r["whole"]) is int for r in found if r["whole"] is not None)


def test_what_does_not_fit_is_counted_alike(tmp_path: Path) -> None:
    cells = {"D1": "=C1/2", "D2": '=IF(C1>2,"many",C1)'}
    path = bound(tmp_path, cells, ("half", "D1", "integer"), ("few", "D2", "integer"))
    rows = [{"at": n, "took": 1, "n": n} for n in (1, 2, 3, 4, 5)]
    job = millstream.compile(path)
    faults = [dict(job.run({"In": rows}, engine=e).report.faults) for e in ("reference", "local")]
    assert faults[0] == faults[1]
    assert sorted(faults[0].values()) == [3, 3]


def test_a_type_that_a_cell_never_holds_is_told(tmp_path: Path) -> None:
    path = bound(tmp_path, {"D1": '="n"&C1'}, ("n", "D1", "time"))
    with pytest.raises(CheckError, match=r"Out.n is to be a time, but S!D1 never holds one"):
        millstream.compile(path)


def test_an_unknown_type_is_told(tmp_path: Path) -> None:
    path = bound(tmp_path, {"D1": "=C1"}, ("n", "D1", "moment"))
    with pytest.raises(CheckError, match='"n" of Out has no type "moment"'):
        millstream.compile(path)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_project_says_types_too(tmp_path: Path, engine: str) -> None:
    save(tmp_path / "book.xlsx", {"B1": "=A1+0.5"})
    (tmp_path / "millstream.toml").write_text("""
[stream.In]
source = "in.csv"
columns = { at = "time" }
time = "at"
[node.n]
sheet = "book.xlsx"
inputs.In = { A1 = "at" }
outputs.Out = { at = { cell = "A1", type = "time" }, noon = { cell = "B1", type = "time" } }
""")
    found = millstream.compile(tmp_path).run({"In": [{"at": NOON}]}, engine=engine).rows("Out")
    assert [(NOON, NOON + 12 * HOUR)] == [(r["at"], r["noon"]) for r in found]
