"""What is written is read back as it was, in every format."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.calculus.graph import Input
from millstream.calculus.types import INT64_MAX, INT64_MIN, NUMBER, TEXT, QueueType, Row, Schema
from millstream.connectors.location import Times, parse_location
from millstream.connectors.read import open_reader
from millstream.connectors.write import open_writer
from millstream.errors import RunError
from millstream.plan.batch import Batch, Vector, batch_of
from tests.connectors.inputs import ALL_CHANGES, ALL_TYPES, EVERYTHING, everything, plain, read_all

NASTY = [
    "", " ", "  leading", "trailing ", '"', '""', 'a"b', ",", "a,b", "\n", "\r", "\r\n", "a\nb",
    "\0", "\x1f", "\x7f", "=1+1", "+1", "-1", "@x", "\t=1", "null", "NaN", "true", "1", "\\", "\\n",
    "\u202eabc", "\u200d", "e\u0301", "\u00e9", "\u2028", "\ufeff", "\U0001f600", "\ud7ff\ue000",
]  # fmt: skip
INTS = st.integers(INT64_MIN, INT64_MAX) | st.sampled_from([0, -1, INT64_MIN, INT64_MAX])
ROWS = st.tuples(
    st.none() | st.floats() | st.sampled_from([-0.0, 5e-324, 1e22, 2.0**53 + 2]),
    st.none() | INTS,
    st.none() | st.sampled_from(NASTY) | st.text(max_size=8),
    st.none() | st.booleans(),
    st.none() | INTS,
    st.none() | INTS,
)
ITEMS = st.lists(st.tuples(INTS, ROWS, st.sampled_from([1, -1])), max_size=12)


def written_and_read(batch: Batch, input_: Input, name: str, times: Times = "micros") -> Batch:
    with tempfile.TemporaryDirectory() as folder:
        location = replace(parse_location(name, Path(folder)), times=times)
        writer = open_writer(location, input_.type)
        writer.write(batch)
        writer.close()
        chunks = read_all(open_reader(location, input_))
        assert not any(c.rejected for c in chunks)
        (times_, weights, rows), _ = everything(chunks, input_)
        return batch_of(input_.type, times_, rows, weights)


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet", "x.csv.gz", "x.jsonl.gz"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(items=ITEMS)
def test_changes_of_every_type_are_read_back_as_written(
    name: str, items: list[tuple[int, Row, int]]
) -> None:
    batch = batch_of(
        ALL_CHANGES.type,
        [i[0] for i in items],
        [i[1] for i in items],
        [i[2] for i in items],
    )
    assert plain(batch) == plain(written_and_read(batch, ALL_CHANGES, name))


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
@settings(max_examples=25, deadline=None)
@given(items=ITEMS)
def test_iso_times_are_read_back_as_written(name: str, items: list[tuple[int, Row, int]]) -> None:
    batch = batch_of(ALL_TYPES.type, [i[0] for i in items], [i[1] for i in items])
    assert plain(batch) == plain(written_and_read(batch, ALL_TYPES, name, "iso"))


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_nasty_texts_are_read_back_as_written_also_from_a_dictionary(name: str) -> None:
    input_ = Input("X", QueueType(Schema.of(t=TEXT)))
    texts = pa.array([*NASTY, None, *NASTY], pa.string())
    times = np.arange(len(texts))
    for values in (texts, texts.dictionary_encode(), texts.dictionary_encode().slice(3, 2)):
        batch = Batch(input_.type, times[: len(values)], (Vector(TEXT, values),))
        assert plain(batch) == plain(written_and_read(batch, input_, name))


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_large_batches_with_nulls_are_read_back_as_written(name: str) -> None:
    """Large enough for several pieces and for the compiled readers."""
    input_ = Input("X", QueueType(Schema.of(price=NUMBER, sym=TEXT)))
    count = 150_000
    prices = np.random.default_rng(3).normal(size=count)
    sym = pa.array(["IBM", None, 'M"S', ""] * (count // 4))
    price = Vector(NUMBER, prices, prices > -1)
    batch = Batch(input_.type, np.arange(count), (price, Vector(TEXT, sym)))
    assert plain(batch) == plain(written_and_read(batch, input_, name))


def test_names_of_columns_may_need_escapes() -> None:
    schema = Schema.of(**{'a"b,c': TEXT, "é\n": NUMBER})
    input_ = Input("X", QueueType(schema))
    batch = batch_of(input_.type, [1, 2], [("x", 1.5), (None, None)])
    for name in ("x.csv", "x.jsonl", "x.parquet"):
        assert plain(batch) == plain(written_and_read(batch, input_, name))


def test_minus_zero_is_written_as_zero() -> None:
    batch = batch_of(QueueType(EVERYTHING), [0], [(-0.0, 0, "", False, 0, 0)])
    with tempfile.TemporaryDirectory() as folder:
        location = parse_location("x.csv", Path(folder))
        writer = open_writer(location, batch.type)
        writer.write(batch)
        writer.close()
        text = (Path(folder) / "x.csv").read_text()
    assert '_time,n,i,t,b,at,d\n0,0,0,"",false,0,0\n' == text


def test_a_damaged_page_of_a_parquet_file_is_noticed(tmp_path: Path) -> None:
    """Pages have checksums, so damage never becomes other values."""
    input_ = Input("X", QueueType(Schema.of(price=NUMBER)))
    batch = batch_of(input_.type, list(range(50)), [(i / 7,) for i in range(50)])
    location = parse_location("x.parquet", tmp_path)
    writer = open_writer(location, input_.type)
    writer.write(batch)
    writer.close()
    whole = (tmp_path / "x.parquet").read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    for at in range(0, len(whole) - 8 - footer, 7):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        (tmp_path / "x.parquet").write_bytes(damaged)
        try:
            chunks = read_all(open_reader(location, input_))
        except RunError:
            continue
        assert plain(batch) == everything(chunks, input_)[0], at
