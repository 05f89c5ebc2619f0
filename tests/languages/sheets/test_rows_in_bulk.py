"""`set_rows`: rows in bulk for a sheet inside another program, as if they came one by one."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.errors import RunError, UsageError
from millstream.sheets import Sheet, load
from tests.languages.sheets.books import save

CELLS = {
    "C1": "=SUM(WINDOW(B1,3))", "C2": '=IF(B1>2,A1,"few")', "C3": "=PRE(B1,A1,0)+B2",
    "C4": "=COUNT(WINDOWROWS(B2,4))", "D1": 7, "C5": "=D1*2",
}  # fmt: skip
INPUTS = ["A1", "B1", "B2"]
GET = ["C1", "C2", "C3", "C4", "C5"]

ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=20
)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("bulk") / "bulk.xlsx", CELLS)


def walked(sheet: Sheet, cells: list[str], rows: list[Any], times: list[int]) -> dict[str, Any]:
    answers: dict[str, list[Any]] = {cell: [] for cell in GET}
    for row, time in zip(rows, times, strict=True):
        for cell, value in zip(cells, row, strict=True):
            sheet.set(cell, value)
        sheet.compute(time)
        for cell in GET:
            answers[cell].append(sheet.get(cell)[0])
    return answers


@settings(max_examples=25, deadline=None)
@given(ROWS, st.lists(st.integers(0, 5), max_size=6))
def test_rows_in_bulk_are_rows_one_by_one(
    book: Path, rows: list[tuple[str, int, int]], others: list[int]
) -> None:
    times, now = [], 0
    for _, _, step in rows:
        now += step * 1_000_000  # several rows may be of one time
        times.append(now)
    plain = [(text, number) for text, number, _ in rows]
    later = [now + n for n in range(len(others))]
    one_by_one, bulk = load(book, inputs=INPUTS), load(book, inputs=INPUTS)
    expected = walked(one_by_one, ["A1", "B1"], plain, times)
    assert bulk.set_rows(["A1", "B1"], plain, times, GET) == expected
    # Other cells later, in bulk and alone.
    expected = walked(one_by_one, ["B2"], [(n,) for n in others], later)
    assert bulk.set_rows(["B2"], {"B2": others}, later, GET) == expected
    for sheet in (one_by_one, bulk):
        for cell in GET:
            sheet.get(cell)
        sheet.set("B1", 4)
        sheet.compute(later[-1] + 5 if later else now)
    assert [bulk.get(c) for c in GET] == [one_by_one.get(c) for c in GET]


def test_dates_and_arrays_are_taken(tmp_path: Path) -> None:
    path = save(tmp_path / "dates.xlsx", {"B1": "=YEAR(A1)*100+MONTH(A1)", "B2": "=A2*24"})
    sheet = load(path, inputs=["A1", "A2"])
    days = [dt.date(2026, 2, 28), None, dt.datetime(2027, 1, 1, 12)]  # noqa: DTZ001 - as in cells
    lengths = [dt.timedelta(hours=3)] * 3
    times = np.array(["2026-01-01", "2026-01-02", "2026-01-03"], "datetime64[D]")
    found = sheet.set_rows(["A1", "A2"], {"A1": days, "A2": lengths}, times, ["B1", "B2"])
    assert found == {"B1": [202602.0, 190001.0, 202701.0], "B2": [3.0, 3.0, 3.0]}
    more = sheet.set_rows(["A2"], {"A2": np.array([1, 2])}, times[-1:].repeat(2), ["B2"])
    assert more == {"B2": [24.0, 48.0]}
    alone = load(path)
    alone.set("A1", dt.date(2026, 2, 28))
    alone.compute(1)
    assert alone.get("B1") == (202602.0, True)


def test_a_sheet_that_is_not_compiled_takes_rows_too(tmp_path: Path) -> None:
    path = save(tmp_path / "walked.xlsx", {"B1": '=TEXTJOIN(",",TRUE,WINDOWROWS(A1,2))'})
    found = load(path).set_rows(["A1"], [(1,), (2,), (3,)], [5, 5, 6], ["B1"])
    assert found == {"B1": ["1", "1,2", "2,3"]}


def test_what_cannot_be_is_told(book: Path) -> None:
    sheet = load(book, inputs=INPUTS)
    with pytest.raises(UsageError, match="2 times, and another number of rows"):
        sheet.set_rows(["A1", "B1"], [("a", 1)], [1, 2], ["C1"])
    with pytest.raises(UsageError, match="a value for each of the 2 cells"):
        sheet.set_rows(["A1", "B1"], [("a",)], [1], ["C1"])
    with pytest.raises(RunError, match="must not go back"):
        sheet.set_rows(["A1", "B1"], [("a", 1), ("b", 2)], [2, 1], ["C1"])
    sheet.set_rows(["A1", "B1"], [("a", 1)], [1], ["C1"])
    with pytest.raises(UsageError, match="S!C2 was not among the cells to get"):
        sheet.get("C2")
    with pytest.raises(UsageError, match="S!B1 was given a number at first, and now a text"):
        sheet.set_rows(["B1"], [("x",)], [2], ["C1"])
    with pytest.raises(UsageError, match="all numbers, texts or booleans"):
        sheet.set_rows(["B1"], [("x",), (1,)], [2, 2], ["C1"])
    begun = load(book, inputs=INPUTS)
    begun.set("B1", 1)
    begun.compute(1)
    with pytest.raises(UsageError, match="has computed already"):
        begun.set_rows(["B1"], [(1,)], [2], ["C1"])
