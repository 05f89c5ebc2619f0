"""The texts of a compiled sheet: numbers, what differs only in case, lengths."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.types import TEXT
from millstream.kernels.sheets.columns import Zeros
from millstream.kernels.sheets.texts import TextNumbers, folded_texts
from millstream.plan.batch import Vector
from millstream.values.excel.values import folded

LOOP = "folded[int(a)] == folded[int(b)] and lengths[int(a)] > 0"


def texts_of_a_sheet(*names: str, loop: str = LOOP) -> TextNumbers:
    texts = TextNumbers()
    for name in names:
        texts.texts.number(name)
    texts.name_all(loop)
    return texts


def numbers(texts: TextNumbers, words: list[str | None]) -> list[int]:
    vector = Vector(TEXT, pa.array(words, pa.string()).dictionary_encode())
    codes, of_codes, _ = texts.column(0, vector, Zeros())
    return [int(n) for n in of_codes[codes]]


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_case_of_any_text(words: list[str]) -> None:
    array = pa.array(words, pa.string())
    assert [folded(w) for w in words] == folded_texts(array).to_pylist()


def test_texts_that_differ_only_in_case_are_told_as_equal() -> None:
    texts = texts_of_a_sheet("Total")
    a, b, c, d, e, f = numbers(texts, ["TOTAL", "ÄRGER", "ärger", "other", None, "\U0001f600x"])
    assert texts.folded[a] == texts.folded[texts.texts.number("Total")]
    assert texts.folded[b] == texts.folded[c]
    assert 4 == len({int(texts.folded[n]) for n in (a, b, d, f)})
    assert [0, 0] == [e, texts.folded[0]]
    assert [5, 5, 0, 2] == [int(texts.lengths[n]) for n in (a, b, e, f)]


def test_a_number_that_was_freed_is_looked_up_anew() -> None:
    texts = texts_of_a_sheet("Total")
    first, kept = numbers(texts, ["long ago", "kept"])
    marks = texts.pool.marks()
    marks[[0, 1, kept]] = True
    texts.sweep(marks)
    again, other = numbers(texts, ["Kept", "new"])
    assert first in (again, other)
    assert texts.folded[kept] == texts.folded[again] != texts.folded[other]
    assert 3 == texts.lengths[other]
    assert [kept, again, other] == numbers(texts, ["kept", "Kept", "new"])


def test_a_restored_sheet_knows_its_texts() -> None:
    texts = texts_of_a_sheet("Total")
    before = numbers(texts, ["a", "B", "b"])
    other = texts_of_a_sheet("Total")
    other.restore(texts.snapshot())
    assert before == numbers(other, ["a", "B", "b"])
    assert other.folded[before[1]] == other.folded[before[2]] != other.folded[before[0]]


@pytest.mark.parametrize("count", [2, 6])
def test_texts_leave_with_few_others(count: int) -> None:
    texts = texts_of_a_sheet()
    codes = numbers(texts, ["a", "b", "c"])
    leaving = np.array([codes[2], 0][:count] * (count // 2), np.int32)
    missing = np.arange(count) % 2 == 1
    found = texts.vector(TEXT, leaving, missing)
    assert ["c", None] * (count // 2) == found.values.to_pylist()


def test_nothing_is_looked_up_that_no_formula_asks_for() -> None:
    texts = texts_of_a_sheet("Total", loop="total = a + b")
    numbers(texts, ["a", "b"])
    assert (0, 0) == (len(texts.folded), len(texts.lengths))
