"""Compiled loops for criteria that are computed: `COUNTIF(w, ">"&B2)`.

A criterion becomes an interval of numbers; or, if what is compared with is empty or an error, a
status that is looked for. Text in between has fifteen digits, so numbers are rounded to these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.compiled import apart, inlined, lent
from millstream.kernels.windows.ring import (
    EMPTIES,
    ERRORS,
    FIRST,
    SEEN,
    STATUSES,
    place_of,
)
from millstream.kernels.windows.tree import tree_count
from millstream.plan.batch import Array
from millstream.values.excel import rounding

#: What is done with the number: it is meant itself, or the text of it after an operator.
ITSELF, EQUAL, UNEQUAL, LESS, GREATER, AT_MOST, AT_LEAST = range(7)
_EMPTY, _FIRST_ERROR = 2, 10

_shown: Any = lent(rounding.shown_number)
_last_same: Any = lent(rounding.last_same)


@apart
def criterion_bounds(kind: int, x: Any, status: Any) -> Any:
    """A status or zero; the least and the greatest number; and whether all others are meant."""
    if status >= _FIRST_ERROR:
        return np.int64(status), 0.0, 0.0, False
    is_other = kind == UNEQUAL
    if status != 0 and kind != ITSELF:
        # An empty cell makes no text: equality looks for empty cells, an order for nothing.
        is_looked_for = kind in (EQUAL, UNEQUAL)
        return np.int64(_EMPTY if is_looked_for else 0), np.inf, -np.inf, is_other
    if kind != ITSELF:
        x = _shown(x)
    low, high = _last_same(x, -1.0), _last_same(x, 1.0)
    if kind == LESS:
        low, high = -np.inf, np.nextafter(low, -np.inf)
    elif kind == GREATER:
        low, high = np.nextafter(high, np.inf), np.inf
    elif kind == AT_MOST:
        low = -np.inf
    elif kind == AT_LEAST:
        high = np.inf
    return np.int64(0), low, high, is_other


@inlined
def is_met(status: Any, value: Any, wanted: Any, low: Any, high: Any, is_other: Any) -> Any:
    """Is a criterion met by a value with its status?"""
    is_found = status == wanted if wanted != 0 else status == 0 and low <= value <= high
    return is_found != is_other


@apart
def window_count_met(
    row: Array, pool: Array, floats: Array, tree: Any, counts: int, column: int, wanted: Any,
    low: Any, high: Any, is_other: Any,
) -> Any:  # fmt: skip
    """COUNTIF: how many values of a window meet a criterion."""
    group, stride, count = tree[0], tree[1], np.int64(0)
    if wanted == _EMPTY:
        count = row[counts + EMPTIES]
    elif wanted != 0 and row[counts + ERRORS] != 0:
        for position in range(row[group + FIRST], row[group + SEEN]):
            statuses = pool[place_of(row, group, stride, position) + STATUSES]
            count += (statuses >> (8 * column)) & 0xFF == wanted
    elif wanted == 0 and low <= high:
        count = tree_count(row, pool, floats, tree, np.nextafter(high, np.inf))
        count -= tree_count(row, pool, floats, tree, low)
    if is_other:
        count = row[group + SEEN] - row[group + FIRST] - count
    return float(count)
