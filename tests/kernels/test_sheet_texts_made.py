"""Texts that are made by columns are those that formulas give one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.sheets import Computed, SheetCell
from millstream.kernels.sheets.texts_made import Rows, TextsMade, as_column, made_texts
from millstream.values.excel.constant_cells import ConstantCells
from millstream.values.excel.evaluate import Context, value_of
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Node
from tests.languages.sheets.books import workbook

TEXT, NUMBER, MADE = ("S", 1, 1), ("S", 1, 2), ("S", 1, 3)
FORMULAS = (
    "=LEFT(A1)", "=LEFT(A1,0)", "=LEFT(A1,3)", "=RIGHT(A1)", "=RIGHT(A1,2.9)", "=MID(A1,2,3)",
    "=MID(A1,1,0)", "=TRIM(A1)", '=SUBSTITUTE(A1," ","-")', '=SUBSTITUTE(A1,"ab","")',
    "=LEFT(B1,2)", '=RIGHT("00"&B1,3)', "=UPPER(LEFT(TRIM(A1),1))&MID(A1,2,99)",
)  # fmt: skip
NOT_MADE = ("=LEFT(A1,-1)", "=MID(A1,0,2)", "=LEFT(A1,B1)", "=RIGHT(A1,0)", "=LEFT(A1,1,2)")
TEXTS = st.lists(st.text("ab Aé😀-", max_size=7), min_size=1, max_size=12)


def _tree(formula: str) -> Node:
    book = workbook({"C1": formula})
    (key,) = book.sheets["S"].formulas
    return book.tree("S", key)


@pytest.mark.parametrize("formula", FORMULAS)
@settings(max_examples=30, deadline=None)
@given(texts=TEXTS)
def test_a_column_is_what_rows_give(formula: str, texts: list[str]) -> None:
    numbers = np.arange(len(texts)) * 7.5 - 10
    node = _tree(formula)
    kinds = {TEXT: Kind.TEXT, NUMBER: Kind.NUMBER}
    maker = TextsMade([SheetCell(MADE, Computed(node))], kinds, {}).maker(MADE)
    assert maker is not None
    columns = {TEXT: as_column(pa.array(texts, pa.string())), NUMBER: as_column(numbers)}
    rows = Rows(columns, np.zeros(len(texts), np.bool_))
    made = made_texts(maker, rows).to_pylist()
    for text, number, value, is_left_out in zip(texts, numbers, made, rows.left_out, strict=True):
        cells = ConstantCells({TEXT: text, NUMBER: float(number)}, [])
        if not is_left_out:
            assert value == value_of(node, Context(cells, cells, "S"))


@pytest.mark.parametrize("formula", NOT_MADE)
def test_what_is_odd_is_computed_one_by_one(formula: str) -> None:
    kinds = {TEXT: Kind.TEXT, NUMBER: Kind.NUMBER}
    made = TextsMade([SheetCell(MADE, Computed(_tree(formula)))], kinds, {})
    assert made.maker(MADE) is None
