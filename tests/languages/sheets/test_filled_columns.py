"""Formulas filled down a column, compiled as loops over rows, give what walking them gives."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.calculus.sheets import Sheet
from millstream.calculus.types import NUMBER, QueueType, Schema
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.sheets.compiled import CompiledSheetKernel
from millstream.kernels.sheets.walked import SheetKernel
from millstream.languages.sheets.bindings import (
    Binding,
    Bindings,
    InputBinding,
    OutputBinding,
)
from millstream.languages.sheets.translate import translate_workbook
from millstream.plan.batch import batch_of
from tests.languages.sheets.books import workbook
from tests.seeds import in_turn

ROWS = range(3, 183)
LAST = ROWS[-1]
FIRST = {"A2": "=A1", "B2": "=B1", "D2": "=A1"}
#: The formulas of a row, `u` being the row above, and what leaves.
SHEETS: dict[str, tuple[dict[str, str], str]] = {
    # Once the condition is met, all cells stay what they were.
    "stays": (
        {"A": "=IF(B{u}>50,A{u},A{u}+1)", "B": "=IF(B{u}>50,B{u},B{u}*1.03+$B$1)"},
        f"=A{LAST}*1000+B{LAST}",
    ),
    "stays, and all rows are read": (
        {"A": "=IF(B{u}>50,A{u},A{u}+1)", "B": "=IF(B{u}>50,B{u},B{u}*1.03+$B$1)"},
        f"=SUM(A2:A{LAST})+B20",
    ),
    # Each has a condition of its own, one of them of this row.
    "stays in parts": (
        {"A": "=IF(B{u}>50,A{u},A{u}+1)", "B": "=IF(A{r}>20,B{u},B{u}*1.03+$B$1)"},
        f"=A{LAST}*1000+B{LAST}",
    ),
    # 1 and TRUE are equal in Python, but a number is not equal to TRUE.
    "conditions that look alike": (
        {"A": "=IF((B{u}>50)=TRUE,A{u},A{u}+1)", "B": "=IF((B{u}>50)=FALSE,B{u},B{u}-1)"},
        f"=A{LAST}*1000+B{LAST}",
    ),
    "columns change places": (
        {"A": "=B{u}", "B": "=A{u}", "C": "=B{u}", "D": "=D{u}*0.5+A{r}*2-B{u}*3"},
        f"=A{LAST}*1000+B{LAST}+C{LAST}*7+D{LAST}",
    ),
    "comes to rest": (
        {"A": "=(A{u}+$B$1/A{u})/2", "B": "=A{r}-A{u}"},
        f"=A{LAST}+B{LAST}+A5",
    ),
}
VALUES = [
    (1.0, 1.0),
    (0.5, 60.0),
    (3.0, -7.0),
    (0.0, 0.0),
    (1e300, 1e10),
    (2.0, 49.99),
    (-0.0, 50.0),
]


def sheet(formulas: dict[str, str], leaves: str, more: dict[str, str] | None = None) -> Sheet:
    cells = {**FIRST, "E1": leaves, **(more or {})}
    for row in ROWS:
        for column, formula in formulas.items():
            cells[f"{column}{row}"] = formula.format(u=row - 1, r=row)
    bindings = Bindings(
        (InputBinding("In", (Binding("x", "A1"), Binding("y", "B1")),
                      columns=Schema.of(x=NUMBER, y=NUMBER)),),
        (OutputBinding("Out", (Binding("out", "E1"),)),),
    )  # fmt: skip
    function = translate_workbook(workbook(cells), bindings).operators[0].function
    assert isinstance(function, Sheet)
    return function


def test_a_formula_that_differs_in_true_and_1_is_no_copy_of_the_one_above() -> None:
    plain = {f"A{r}": f"=IF(1,A{r - 1}+1,A{r - 1}*2)" for r in ROWS}
    type_ = QueueType(Schema.of(x=NUMBER, y=NUMBER))
    whole, cut = (
        CompiledSheetKernel(sheet({}, f"=A{LAST}", plain | odd), (type_,), 1).source
        for odd in ({}, {"A9": "=IF(TRUE,A8+1,A8*2)"})
    )
    assert f"for j in range({len(ROWS)}):" in whole
    assert f"for j in range({len(ROWS)}):" not in cut


@pytest.mark.slow
@pytest.mark.parametrize("name", in_turn([*SHEETS]))
def test_a_loop_over_rows_gives_what_its_formulas_give(name: str) -> None:
    function = sheet(*SHEETS[name])
    type_ = QueueType(Schema.of(x=NUMBER, y=NUMBER))
    batch = batch_of(type_, list(range(len(VALUES))), VALUES)
    round_ = Round(0, np.zeros(0, np.int64))
    compiled = CompiledSheetKernel(function, (type_,), 1)
    assert "for j in range" in compiled.source
    expected = SheetKernel(function, (type_,), 1)
    assert repr(expected.process((batch,), round_)[0].rows()) == repr(
        compiled.process((batch,), round_)[0].rows()
    )
    assert expected.faults() == compiled.faults()


def test_rows_are_left_out_once_all_cells_stay_what_they_were() -> None:
    type_ = QueueType(Schema.of(x=NUMBER, y=NUMBER))
    found = CompiledSheetKernel(sheet(*SHEETS["stays"]), (type_,), 1).source
    plain = found[found.index("def plain_part") :]
    lines = [line.strip() for line in plain.splitlines()]
    start = lines.index(f"for j in range({len(ROWS)}):")
    # Nothing is computed twice, kept in memory or chosen before it is known to be wanted.
    assert "break" in lines[start + 1 : start + 5]
    assert not any(line.startswith("T[") for line in lines[start : lines.index("break")])
