"""Compiled loops for the canonical order of rows of words.

Rows are ordered by columns, left to right, null first; words are made so that all but
texts are ordered as integers (see `interning_words`).
"""

from __future__ import annotations

from typing import Any

from millstream.compiled import tight
from millstream.kernels.runtime.utf8 import Texts, compare_texts
from millstream.plan.batch import Array

_SMALL = 12
_BITS = 63


@tight
def compare_words(words: Array, one: int, other: int, is_text: Array, texts: Texts) -> Any:
    """The sign of the canonical order of two rows; `is_text` has a flag per column."""
    columns = is_text.size
    for block in range(words.shape[1] - columns):
        a_nulls, b_nulls = words[one, columns + block], words[other, columns + block]
        for j in range(_BITS * block, min(_BITS * (block + 1), columns)):
            a, b = words[one, j], words[other, j]
            if a_nulls != b_nulls:
                bit = j - _BITS * block
                a_null, b_null = (a_nulls >> bit) & 1, (b_nulls >> bit) & 1
                if a_null != b_null:
                    return -1 if a_null else 1
            if a != b:
                order = -1 if a < b else 1
                if is_text[j]:
                    order = compare_texts(a, b, texts)
                if order != 0:
                    return order
    return 0


@tight
def merge_rows(
    left: Array, right: Array, merged: Array, words: Array, order: tuple[Array, Texts]
) -> None:
    """Merge two sorted runs of row numbers, the left one first where rows are equal."""
    is_text, texts = order
    i, j = 0, 0
    for k in range(left.size + right.size):
        if j == right.size or (
            i < left.size and compare_words(words, left[i], right[j], is_text, texts) <= 0
        ):
            merged[k] = left[i]
            i += 1
        else:
            merged[k] = right[j]
            j += 1


@tight
def sort_rows(rows: Array, spare: Array, words: Array, order: tuple[Array, Texts]) -> None:
    """Sort numbers of rows in place, stably: small runs by insertion, then merged.

    `spare` has room for as many.
    """
    is_text, texts = order
    for start in range(0, rows.size, _SMALL):
        for i in range(start + 1, min(start + _SMALL, rows.size)):
            row = rows[i]
            j = i
            while j > start and compare_words(words, rows[j - 1], row, is_text, texts) > 0:
                rows[j] = rows[j - 1]
                j -= 1
            rows[j] = row
    width = _SMALL
    while width < rows.size:
        for start in range(0, rows.size, 2 * width):
            middle, end = min(start + width, rows.size), min(start + 2 * width, rows.size)
            merge_rows(rows[start:middle], rows[middle:end], spare[start:end], words, order)
        for i in range(rows.size):
            rows[i] = spare[i]
        width *= 2


@tight
def find_crowded(time: Array, weight: Array, crowded: Array) -> None:
    """Which changes are not alone at their instant, or not of weight one."""
    for i in range(time.size):
        crowded[i] = (
            abs(weight[i]) != 1
            or (i > 0 and time[i - 1] == time[i])
            or (i + 1 < time.size and time[i + 1] == time[i])
        )
