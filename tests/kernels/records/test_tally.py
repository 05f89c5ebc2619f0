"""Tables that are gathered batch by batch hold what all that was emitted comes to."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.scripts import Table
from millstream.calculus.tables import END_OF_TIME, Contents, Tally, emitted_schema
from millstream.calculus.types import QueueType
from millstream.engine.storage.codec import decode, encode
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.scripts.combining import combined
from millstream.kernels.scripts.tally import TallyKernel
from millstream.plan.batch import batch_of
from millstream.values.records.types import FLOAT, INT, STRING

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
}
_VALUES: dict[Any, Any] = {
    INT: st.integers(0, 9), FLOAT: st.sampled_from([0.1, 2.5, -3.0]),
    STRING: st.sampled_from("abc"),
}  # fmt: skip


def rows_of(table: Table) -> Any:
    types = [*(t for _, t in table.indexes), table.value, *([table.weight] if table.weight else [])]
    return st.lists(st.tuples(*(_VALUES[t] for t in types)), max_size=20)


def expected(function: Tally, rows: list[Any], times: list[int]) -> Counter[Any]:
    contents = Contents(function)
    accs: dict[Any, Any] = {}
    for row, time in zip(rows, times, strict=True):
        window = None if function.window is None else time // function.window * function.window
        key = (window, row[: contents.at])
        accs[key] = contents.add(accs.get(key, contents.table.empty()), row)
    found: Counter[Any] = Counter()
    for (window, key), acc in accs.items():
        found.update(contents.rows(key, acc, window))
    return found


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
        size = data.draw(st.integers(1, 8))
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
    assert [("a", 1), ("b", 6), ("a", 19), ("a", 20), ("b", 4)] == list(parted.rows())


def _changes(batch: Any) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row, weight in zip(batch.rows(), batch.weight.tolist(), strict=True):
        found[row] += weight
    return found
