"""Filters that keep nothing run in blocks on several tasks, and give what one place gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.api import Compiled
from millstream.engine.layout import Choice, layout_as
from millstream.languages.streamit.load import load
from millstream.plan.net_blocks import LEAST_ROWS
from millstream.source import Source
from tests.languages.streamit.test_partition import folder, keys_and_changing_rates
from tests.laws.runs import Collector

__all__ = ["folder"]

pytestmark = pytest.mark.spark

#: Three items for each: the filter behind it sees several that are set free by one row.
TEXT = """float->float pipeline Main {
    add float->float filter { work pop 1 push 3 { push(peek(0)); push(0); push(-pop()); } };
    add Fir(160);
}
float->float filter Fir(int n) {
    float[n] h;
    init { for (int i = 0; i < n; i++) h[i] = 1.0 / (i + 1); }
    work push 1 pop 1 peek n {
        float sum = 0;
        for (int i = 0; i < n; i++) sum += h[i] * peek(i);
        push(sum);
        pop();
    }
}"""


def test_blocks_of_several_batches_are_put_together_again(spark: Any, tmp_path: Path) -> None:
    program = load(Source("smooth.str", TEXT)).program
    assert 2 == len(layout_as(program, Choice()).stages)
    count = 5 * LEAST_ROWS // 2
    # Many rows have one time; files are cut anywhere.
    times, values = np.arange(count) // 700, np.arange(count) % 1000 / 8.0
    for number, part in enumerate(np.array_split(np.arange(count), [5_000, 9_999, 16_383])):
        rows = pa.table({"_time": times[part], "value": values[part]})
        pq.write_table(rows, tmp_path / f"{number}.parquet")
    items = {"items": f"{tmp_path}/*.parquet"}
    expected, actual = Collector(), Collector()
    Compiled(program).run(items, {"out": expected}, engine="local")
    Compiled(program).run(items, {"out": actual}, engine="spark", session=spark, partitions=4,
                          buckets=4, batch_bytes=60_000)  # fmt: skip
    assert 3 * count - 159 == len(expected.rows)
    assert expected.rows == actual.rows


def test_keys_and_changing_rates_in_one_project(spark: Any, folder: Path) -> None:
    keys_and_changing_rates(folder, engine="spark", session=spark, partitions=2)
