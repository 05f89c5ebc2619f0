"""Searches of long columns through an index find what looking at every cell finds."""

from __future__ import annotations

import pytest

from millstream.values.excel.gather import criterion
from millstream.values.excel.indexes import Indexes
from millstream.values.excel.recalculate import Recalculation
from tests.languages.sheets.books import workbook

VALUES = [1.0, 2, "a", "A", "b*", True, "TRUE", "1", "1.0", None, 0.1 + 0.2, 0.3, "", "a~", -0.0,
          1e15, 1e15 + 0.5, "#N/A", 1 + 2.0**-52, "0", "2%", 0.02]  # fmt: skip
CRITERIA = [1.0, "1", "=1", "a", "=a", "A", "a*", "b~*", "", "=", "<>", "<>a", ">0", True, "TRUE",
            0.3, "0.3", None, 0.0, "0", 1e15, "zz", "<b", "=TRUE", "2%"]  # fmt: skip
CELLS = {f"A{n}": v for n, v in enumerate(VALUES * 4, 1) if v is not None}
LAST = len(VALUES) * 4


def counted(formula: str, wanted: object) -> object:
    """What a formula gives; `C1` in it stands for what is wanted."""
    is_text = isinstance(wanted, str)
    cells = {**CELLS, "D1": formula.replace("C1", f'"{wanted}"') if is_text else formula}
    if wanted is not None and not is_text:
        cells["C1"] = wanted
    return Recalculation(workbook(cells)).read("S", 1, 4)


@pytest.mark.parametrize("wanted", CRITERIA)
def test_a_criterion_finds_the_same_with_and_without_an_index(wanted: object) -> None:
    matches = criterion(wanted)  # type: ignore[arg-type]
    expected = float(sum(1 for v in VALUES * 4 if matches(None if v is None else _cell(v))))
    assert expected == counted(f"=COUNTIF(A1:A{LAST},C1)", wanted)
    assert expected == counted(f'=COUNTIFS(A1:A{LAST},C1,B1:B{LAST},"")', wanted)


def _cell(value: object) -> float | str | bool:
    if isinstance(value, (bool, str)):
        return value
    assert isinstance(value, (int, float))
    return float(value)


@pytest.mark.parametrize("first", range(1, 30))
def test_the_first_place_is_the_same_with_and_without_an_index(first: int) -> None:
    wanted = VALUES[first % len(VALUES)]
    short = counted(f"=MATCH(C1,A1:A{min(64, LAST)},0)", wanted)
    assert short == counted(f"=MATCH(C1,A1:A{LAST},0)", wanted)


def test_an_area_that_is_only_walked_through_is_kept_from_the_second_time_on() -> None:
    cells = {f"A{n}": n for n in range(1, 100)}
    static = Recalculation(workbook({**cells, "B1": "=SUM(A1:A99)", "B2": "=MAX(A1:A99)"}))
    assert (4950.0, 99.0) == (static.read("S", 1, 2), static.read("S", 2, 2))
    assert 1 == len(static.indexes._found)
    assert isinstance(static.indexes, Indexes)
