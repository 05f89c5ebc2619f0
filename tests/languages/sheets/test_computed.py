"""Formulas give what another spreadsheet program computed for them, or what Excel does."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

from millstream.values.excel.direct import SeveralValues, direct
from millstream.values.excel.evaluate import Context, value_of
from millstream.values.excel.recalculate import Recalculation
from millstream.values.excel.values import ErrorValue
from tests.languages.sheets import oracle
from tests.languages.sheets.books import address, workbook


def is_same(mine: Any, wanted: Any) -> bool:
    if isinstance(mine, ErrorValue):
        # The other program writes most of its own errors as #VALUE!.
        return wanted in (str(mine), "#VALUE!")
    if type(mine) is bool:
        return bool(mine == wanted)
    if isinstance(mine, float) and isinstance(wanted, (int, float)):
        return math.isclose(mine, wanted, rel_tol=1e-10, abs_tol=1e-12)
    return bool(mine == wanted) or (mine == "" and wanted is None)


def computed() -> dict[str, Any]:
    places = oracle.places()
    book = workbook({**dict(oracle.cells()), **{p: f"={f}" for p, f in places.items()}})
    values = Recalculation(book)
    return {formula: values.read("S", *address(place)) for place, formula in places.items()}


def test_formulas_give_what_another_program_computed() -> None:
    wanted = json.loads(oracle.GOLDEN.read_text()) | json.loads(oracle.EXCEL.read_text())
    mine = computed()
    assert set(mine) == set(wanted)
    wrong = {f: (v, wanted[f]) for f, v in mine.items() if not is_same(v, wanted[f])}
    assert wrong == {}


def test_formulas_made_into_functions_give_what_is_evaluated() -> None:
    """With the cells of data given as values, and with none; references see the same."""
    places, data = oracle.places(), dict(oracle.cells())
    cells = Recalculation(workbook({**data, **{p: f"={f}" for p, f in places.items()}}))
    where = {("S", *address(place)): n for n, place in enumerate(data)}
    row = tuple(cells.value(*place) for place in where)
    made = 0
    for place, text in places.items():
        formula = cells.formula("S", *address(place))
        assert formula is not None
        context = Context(cells, cells.workbook, "S", *address(place))
        for given in (where, {}):
            function = direct(formula, given, context)
            with contextlib.suppress(SeveralValues):
                if function is not None:
                    made += 1
                    assert repr(function(row)) == repr(value_of(formula, context)), text
    assert made > 8_000


def test_where_excel_differs_the_other_program_says_something_else() -> None:
    """Else the formula is no exception, and stands in the wrong file."""
    golden, excel = json.loads(oracle.GOLDEN.read_text()), json.loads(oracle.EXCEL.read_text())
    assert [f for f, v in excel.items() if v == golden[f]] == []
