"""Rows are counted as dictionaries count them, in cells and by hashes, wherever they are cut."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, TEXT, Type
from millstream.kernels.scripts.counting import CountedRows
from millstream.plan.batch import vector_of

_FAR = 2**63 - 1
#: What may stand in a column; the last have nulls, lie far from each other, or are many.
COLUMNS: dict[str, tuple[Type, list[Any]]] = {
    "few": (INTEGER, [-3, 0, 1, 7]), "one": (INTEGER, [5]), "texts": (TEXT, ["a", "b", "", "ü"]),
    "flags": (BOOLEAN, [True, False]), "spread": (INTEGER, list(range(-400, 900, 13))),
    "far": (INTEGER, [-_FAR - 1, _FAR, 0]), "high": (INTEGER, [_FAR - 2, _FAR]),
    "nulls": (INTEGER, [1, None]), "no texts": (TEXT, ["a", None]), "floats": (NUMBER, [0.5, 2.0]),
    "many": (INTEGER, [n * 997 for n in range(2000)]),
}  # fmt: skip
SHAPES = [
    ("few",), ("few", "texts"), ("one", "spread", "flags"), ("far",), ("high", "few"), ("nulls",),
    ("texts", "no texts"), ("floats", "few"), ("many", "many"), ("spread", "spread", "spread"), (),
]  # fmt: skip


@pytest.mark.parametrize("names", SHAPES)
@pytest.mark.parametrize("adds", ["counts", "ones", "any"])
def test_amounts_are_those_of_a_dictionary(names: tuple[str, ...], adds: str) -> None:
    chance = random.Random(f"{names}{adds}")
    types = [COLUMNS[n][0] for n in names]
    counted, expected = CountedRows(types), Counter[tuple[Any, ...]]()
    for size in (1, 0, 40, 700, 3):
        width = chance.random()
        choices = [COLUMNS[n][1] for n in names]
        rows = [
            tuple(c[int(chance.random() * width * len(c))] for c in choices) for _ in range(size)
        ]
        amounts = [chance.randrange(-_FAR, _FAR) if adds == "any" else 3 for _ in range(size)]
        columns = [vector_of(t, [r[n] for r in rows]) for n, t in enumerate(types)]
        values = None if adds == "counts" else np.array(amounts, np.int64)
        counted.add(columns, size, values)
        for row, amount in zip(rows, amounts, strict=True):
            expected[row] += 1 if adds == "counts" else amount
    wrapped = {row: (n + 2**63) % 2**64 - 2**63 for row, n in expected.items()}
    found = list(counted.rows())
    assert wrapped == dict(found)
    assert len(wrapped) == len(found)
