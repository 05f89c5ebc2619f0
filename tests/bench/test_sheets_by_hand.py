"""What `millstream bench sheets` compares is the same computation, on both sides."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream import api
from tests.seeds import in_turn

pytestmark = pytest.mark.slow

KEYED = {"vwap": "sym", "linearroad": "segment", "kalman": "target", "pong": "game",
         "forecast": "location"}  # fmt: skip
BATCHES = 3


@pytest.fixture(autouse=True)
def _few_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    monkeypatch.setattr(bench("sheets_data"), "KEYS", 10)


def bench(name: str) -> Any:
    return importlib.import_module(name)


def batches_of(sheet: str, rows: int, step: int) -> list[dict[str, Any]]:
    data = bench("sheets_data").Rows(sheet, BATCHES * rows, rows, step)
    return [data.tables(number) for number in range(BATCHES)]


def ours(sheet: str, batches: list[dict[str, Any]], place: Path) -> Any:
    compiled = api.compile(bench("sheets_data").ROOT / sheet)
    inputs = {}
    for name in batches[0]:
        inputs[name] = str(place / f"{name}.parquet")
        pq.write_table(pa.concat_tables(one[name] for one in batches), inputs[name])
    out = place / "out"
    compiled.run(inputs, {compiled.program.outputs[0]: f"{out}/"}, engine="local")
    return bench("sheets_spark").answer(out)


def by_hand(sheet: str, batches: list[dict[str, Any]]) -> Any:
    """As Spark does it: the rows of a batch key by key, with the state that was left."""
    step = getattr(bench("sheets_steps"), sheet)
    states: dict[Any, Any] = {}
    found = []
    for tables in batches:
        frame = pd.concat([one.to_pandas() for one in tables.values()]).sort_values("ts")
        if sheet == "twitter":
            frame["length"] = frame["text"].str.len().astype(float)
        for key, rows in frame.groupby(KEYED.get(sheet, np.zeros(len(frame))), observed=True):
            columns = {
                name: np.asarray(rows[name], object if rows[name].dtype == "category" else None)
                for name in rows.columns
            }
            if "seller" in columns:
                columns["seller"][pd.isna(columns["seller"])] = None
            sent, states[key] = step(key, states.get(key), columns)
            found.append(pa.Table.from_pandas(pd.DataFrame(sent), preserve_index=False))
    return pa.concat_tables(found, promote_options="permissive").sort_by("ts")


@pytest.mark.parametrize("sheet", in_turn([*KEYED, "average", "twitter"], days=2))
@pytest.mark.parametrize("cut", in_turn([(800, 1_000_000), (20, 30_000_000), (200, 1_000)]))
def test_steps_by_hand_compute_what_the_sheet_computes(
    sheet: str, cut: tuple[int, int], tmp_path: Path
) -> None:
    """With windows that rows leave within a batch, and between batches, and not at all."""
    rows, step = cut
    batches = batches_of(sheet, rows, step)
    expected = ours(sheet, batches, tmp_path)
    assert BATCHES * rows == expected.num_rows
    assert bench("sheets_spark").is_equal(expected, by_hand(sheet, batches))


def test_mandelbrot_by_hand_computes_what_the_sheet_computes(tmp_path: Path) -> None:
    batches = batches_of("mandelbrot", 1_000, 1_000)
    pixels = pa.concat_tables(one["Pixels"] for one in batches)
    found = bench("sheets_steps").mandelbrot(pixels["re"].to_numpy(), pixels["im"].to_numpy())
    table = pa.table({"ts": pixels["ts"], **found})
    assert bench("sheets_spark").is_equal(ours("mandelbrot", batches, tmp_path), table)


def test_answers_that_differ_are_told() -> None:
    is_equal = bench("sheets_spark").is_equal
    table = pa.table({"ts": [1, 2], "x": [1.0, None], "name": ["a", "b"]})
    assert is_equal(table, table)
    for name, values in {"x": [1.0, 2.0], "name": ["a", "c"], "ts": [1, 3]}.items():
        place = table.column_names.index(name)
        assert not is_equal(table, table.set_column(place, name, pa.array(values)))
    assert not is_equal(table, table.slice(1))


@pytest.mark.spark
@pytest.mark.proof
def test_the_table_has_a_sheet_on_spark_beside_the_same_by_hand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Taxes, which are written as column expressions of Spark."""
    monkeypatch.setattr(bench("spark_engine"), "REPEATS", 1)
    monkeypatch.setattr(bench("spark_data"), "OUTPUT", tmp_path)
    monkeypatch.setenv("MILLSTREAM_BENCH_SHEETS", "tax")
    (record,) = bench("sheets_spark").spark(0.004)
    assert ("tax", 16_000, True) == tuple(record[name] for name in ("sheet", "rows", "is_equal"))
    assert record["rows_per_s"] > 0 and record["pyspark_rows_per_s"] > 0
