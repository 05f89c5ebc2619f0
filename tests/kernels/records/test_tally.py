"""Tables that are gathered batch by batch hold what all that was emitted comes to."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.scripts import Table
from millstream.calculus.tables import (
    CHANCE,
    END_OF_TIME,
    Contents,
    Tally,
    emitted_schema,
    to_queue,
)
from millstream.calculus.types import QueueType
from millstream.engine.storage.codec import decode, encode
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.scripts.combining import combined
from millstream.kernels.scripts.tally import TallyKernel
from millstream.plan.batch import batch_of
from millstream.values.records.types import FLOAT, INT, STRING, UINT, Field, MapOf, TupleOf

TABLES = {
    "sum": Table("t", "sum", None, (("k", STRING),), INT),
    "all": Table("t", "sum", None, (), FLOAT),
    "top": Table("t", "top", 2, (("k", STRING),), STRING, INT),
    "most": Table("t", "maximum", 2, (), STRING, INT),
    "each": Table("t", "collection", None, (("k", STRING),), FLOAT),
    "tops": Table("t", "top", 2, (), STRING, INT),
    "count": Table("t", "mrcounter", None, (), INT),
    "pairs": Table("t", "sum", None, (("k", STRING), ("n", INT)), INT),
    "distinct": Table("t", "unique", 100, (), INT),
    "some": Table("t", "set", 2, (("k", STRING),), INT),
    "halves": Table("t", "quantile", 3, (), INT),
    "amounts": Table("t", "sum", None, (("k", STRING),), FLOAT),
    "unsigned": Table("t", "sum", None, (("k", STRING),), UINT),
    "both": Table("t", "sum", None, (("k", INT),), TupleOf((Field("a", INT), Field("b", FLOAT)))),
    "by key": Table("t", "sum", None, (), MapOf(STRING, FLOAT)),
    "least": Table("t", "minimum", 1, (("k", STRING),), INT, FLOAT),
    "largest": Table("t", "maximum", 1, (("k", STRING),), INT, UINT),
    "longest": Table("t", "maximum", 1, (("k", STRING),), INT, STRING),
    "few": Table("t", "unique", 2, (("k", STRING),), STRING),
    "chosen": Table("t", "distinctsample", 2, (), INT, FLOAT),
    "counted": Table("t", "distinctsample", 2, (("k", STRING),), INT),
    "often": Table("t", "inversehistogram", 3, (), INT, INT),
    "tops by share": Table("t", "top", 2, (), STRING, FLOAT),
    "words": Table("t", "quantile", 3, (("k", STRING),), STRING),
    "sampled": Table("t", "sample", 1, (("k", STRING),), INT),
    "weighed": Table("t", "weightedsample", 1, (), INT, FLOAT),
    "again": Table("t", "bootstrapsum", 3, (("k", STRING),), FLOAT, INT),
}
_FLOATS = [0.1, 2.5, 1e300, -1e-310, 5e-324, math.inf, math.nan]
_VALUES: dict[Any, Any] = {
    INT: st.integers(0, 9), FLOAT: st.sampled_from(_FLOATS),
    UINT: st.integers(2**64 - 2, 2**64 - 1),
    STRING: st.sampled_from("abc"),
    TABLES["both"].value: st.tuples(st.integers(0, 9), st.sampled_from(_FLOATS)),
    TABLES["by key"].value: st.dictionaries(st.sampled_from("abc"), st.sampled_from(_FLOATS)),
}  # fmt: skip
#: Of a table that samples weights above zero are wanted, of others none that is not finite.
_WEIGHTS = _VALUES | {FLOAT: st.sampled_from([0.25, 3.0, 1e10])}


def rows_of(table: Table) -> Any:
    """Rows as they are emitted; no two have the same chance."""
    types = [*(t for _, t in table.indexes), table.value]
    parts = [_VALUES[t].map(to_queue(t)) for t in types]
    if table.weight is not None:
        parts.append(_WEIGHTS[table.weight].map(to_queue(table.weight)))
    rows = st.lists(st.tuples(*parts), max_size=30)
    if CHANCE not in emitted_schema(table):
        return rows
    return rows.map(lambda some: [(*row, n) for n, row in enumerate(some)])


def expected(function: Tally, rows: list[Any], times: list[int]) -> Counter[Any]:
    contents = Contents(function)
    accs: dict[Any, Any] = {}
    for row, time in zip(rows, times, strict=True):
        window = None if function.window is None else time // function.window * function.window
        key = (window, row[: contents.at])
        accs[key] = contents.add(accs.get(key, contents.table.empty()), row)
    rows_told: Counter[Any] = Counter()
    for (window, key), acc in accs.items():
        rows_told.update(map(repr, contents.rows(key, acc, window)))
    return rows_told


@pytest.mark.parametrize("name", sorted(TABLES))
@pytest.mark.parametrize("when", ["at the end", "now and then", "by windows"])
@given(st.data())
@settings(max_examples=25)
def test_no_cut_can_be_seen(name: str, when: str, data: st.DataObject) -> None:
    every, window = {"now and then": (4, None), "by windows": (None, 5)}.get(when, (None, None))
    function = Tally(TABLES[name], every, window)
    restarts, combines = data.draw(st.booleans()), data.draw(st.booleans())
    rows = data.draw(rows_of(TABLES[name]))
    type_ = QueueType(emitted_schema(TABLES[name]))
    kernel = TallyKernel(function, (type_,), 1)
    told: Counter[Any] = Counter()
    at, times = 0, list(range(1, len(rows) + 1))
    while at < len(rows):
        size = data.draw(st.integers(1, 12))
        batch = batch_of(type_, times[at : at + size], rows[at : at + size])
        at += size
        batch = combined(function, batch) if combines else batch
        (made,) = kernel.process((batch,), Round(min(at, len(rows)), np.zeros(0, np.int64)))
        told.update(_changes(made))
        if restarts:
            state = decode(encode(kernel.snapshot()))
            kernel = TallyKernel(function, (type_,), 1)
            kernel.restore(state)
    (made,) = kernel.process((batch_of(type_, [], []),), Round(END_OF_TIME, np.zeros(0, np.int64)))
    told.update(_changes(made))
    assert expected(function, rows, times) == +told
    assert not -told


def test_what_is_emitted_often_is_sent_once() -> None:
    rows = [("a", 1), ("b", 2), ("a", 3), ("a", 4)] * 5
    batch = batch_of(QueueType(emitted_schema(TABLES["sum"])), list(range(20)), rows)
    assert [("a", 40), ("b", 10)] == list(combined(Tally(TABLES["sum"]), batch).rows())
    parted = combined(Tally(TABLES["sum"], every=10), batch)
    expected = [("a", 1), ("a", 19), ("a", 20), ("b", 4), ("b", 6)]
    assert expected == sorted(parted.rows())
    assert bool((np.diff(parted.time) >= 0).all())


@pytest.mark.parametrize(
    ("name", "most"),
    [("largest", 2), ("least", 2), ("few", 6), ("some", 6), ("sampled", 2), ("amounts", 4)],
)
def test_what_cannot_be_in_a_table_any_more_stays_behind(name: str, most: int) -> None:
    """Of a hundred emits to two indexes only those go that could be told."""
    table = TABLES[name]
    values: dict[Any, Any] = {INT: int, FLOAT: float, STRING: str}
    batch = batch_of(QueueType(emitted_schema(table)), list(range(100)), [
        ("ab"[n % 2], values[table.value](n),
         *([] if table.weight is None else [n * 0.5 if table.weight == FLOAT else n]),
         *([n] if CHANCE in emitted_schema(table) else []))
        for n in range(100)
    ])  # fmt: skip
    assert len(combined(Tally(table), batch)) <= most


def _changes(batch: Any) -> Counter[Any]:
    changes: Counter[Any] = Counter()
    for row, weight in zip(batch.rows(), batch.weight.tolist(), strict=True):
        changes[repr(row)] += weight
    return changes
