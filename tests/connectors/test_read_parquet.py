from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.calculus.graph import Input
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    QueueType,
    Schema,
    Type,
)
from millstream.connectors.chunks import Chunk
from millstream.connectors.location import parse_location
from millstream.connectors.read import open_reader
from millstream.errors import CheckError, MillstreamError, RunError
from tests.connectors.inputs import TRADES, everything, read_all

LARGE = pa.large_string()
TOO_LARGE = ["c: does not fit 64-bit microseconds"]


def read(folder: Path, table: Any, input_: Input, **options: Any) -> list[Chunk]:
    pq.write_table(table, folder / "x.parquet")
    return read_all(open_reader(parse_location("x.parquet", folder), input_, **options))


def column(folder: Path, array: Any, type_: Type) -> tuple[list[object], list[str]]:
    """The values of a column read as a type, and the reasons of rejected rows."""
    input_ = Input("X", QueueType(Schema.of(c=type_)))
    table = pa.table({"_time": pa.array(range(len(array)), pa.int64()), "c": array})
    (_, _, rows), wrong = everything(read(folder, table, input_), input_)
    return [row[0] for row in rows], [r.reason for r in wrong]


def failure(folder: Path, table: Any, input_: Input) -> str:
    with pytest.raises(MillstreamError) as caught:
        read(folder, table, input_)
    return str(caught.value)


MOMENT = 1_700_000_000_000_000


@pytest.mark.parametrize(
    ("type_", "array", "expected"),
    [
        (NUMBER, pa.array([1.5, None]), [1.5, None]),
        (NUMBER, pa.array([1.5, None], pa.float32()), [1.5, None]),
        (NUMBER, pa.array(np.array([1.5], np.float16)), [1.5]),
        (NUMBER, pa.array([7], pa.int8()), [7.0]),
        (NUMBER, pa.array([2**64 - 1], pa.uint64()), [1.8446744073709552e19]),
        (NUMBER, pa.array([Decimal("0.1"), None]), [0.1, None]),
        (NUMBER, pa.array([Decimal("12345678901234567890.1234567891")]), [12345678901234567890.0]),
        (NUMBER, pa.array([1.5, 1.5]).dictionary_encode(), [1.5, 1.5]),
        (NUMBER, pa.nulls(2), [None, None]),
        (INTEGER, pa.array([-1, None], pa.int16()), [-1, None]),
        (INTEGER, pa.array([5], pa.uint64()), [5]),
        (BOOLEAN, pa.array([True, None, False]), [True, None, False]),
        (TEXT, pa.array(["a", None, ""]), ["a", None, ""]),
        (TEXT, pa.array(["a", None], LARGE), ["a", None]),
        (TEXT, pa.array(["a", "b"]).cast(pa.string_view()), ["a", "b"]),
        (TEXT, pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        (TEXT, pa.nulls(1), [None]),
        (TIME, pa.array([MOMENT // 1_000_000], pa.timestamp("s")), [MOMENT]),
        (TIME, pa.array([MOMENT // 1_000], pa.timestamp("ms", "Europe/Paris")), [MOMENT]),
        (TIME, pa.array([MOMENT, None], pa.timestamp("us", "UTC")), [MOMENT, None]),
        (TIME, pa.array([MOMENT * 1_000 + 999, -1], pa.timestamp("ns")), [MOMENT, -1]),
        (TIME, pa.array([MOMENT]), [MOMENT]),
        (TIME, pa.array([1, -1], pa.date32()), [86_400_000_000, -86_400_000_000]),
        (TIME, pa.array([86_400_000], pa.date64()), [86_400_000_000]),
        (TIME, pa.array(["2023-11-14T22:13:20", None]), [MOMENT, None]),
        (DURATION, pa.array([3, None], pa.duration("s")), [3_000_000, None]),
        (DURATION, pa.array([1_999], pa.duration("ns")), [1]),
        (DURATION, pa.array([5], pa.int32()), [5]),
        (DURATION, pa.array(["5 min"]), [300_000_000]),
    ],
)
def test_columns_that_are_accepted(
    type_: Type, array: Any, expected: list[object], tmp_path: Path
) -> None:
    assert (expected, []) == column(tmp_path, array, type_)


@pytest.mark.parametrize(
    ("type_", "array", "expected"),
    [
        (INTEGER, pa.array([2**63], pa.uint64()),
         ["c: 9223372036854775808 does not fit a 64-bit integer"]),
        (TIME, pa.array([2**60], pa.timestamp("ms")), TOO_LARGE),
        (TIME, pa.array([2**31 - 1], pa.date32()), TOO_LARGE),
        (DURATION, pa.array([-(2**63)], pa.duration("ms")), TOO_LARGE),
        (TIME, pa.array(["noon"]), ['c: expected a time, got "noon"']),
    ],
)  # fmt: skip
def test_values_that_are_rejected(
    type_: Type, array: Any, expected: list[str], tmp_path: Path
) -> None:
    assert ([], expected) == column(tmp_path, array, type_)


def test_texts_that_are_not_utf8_are_rejected(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 1, 3, 4], np.int32))
    texts = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"ab\xffc"))
    expected = (["a", "c"], ["c: not UTF-8 at byte 2"])
    assert expected == column(tmp_path, texts, TEXT)
    encoded = pa.DictionaryArray.from_arrays(pa.array([2, 1, 0]), texts)
    assert (["c", "a"], ["c: not UTF-8 at byte 2"]) == column(tmp_path, encoded, TEXT)


def test_rejected_rows_have_their_row_and_what_was_in_them(tmp_path: Path) -> None:
    table = pa.table(
        {"sym": ["A", "é", "C"], "price": [1.5, 2.5, None], "ts": pa.array([1, None, 3])}
    )
    chunks = read(tmp_path, table, TRADES, chunk_rows=1)
    (_, _, rows), (wrong,) = everything(chunks, TRADES)
    assert [("A", 1, 1.5), ("C", 3, None)] == rows
    assert ("x.parquet", 2, "ts: the event time is missing") == (
        wrong.source, wrong.position, wrong.reason,
    )  # fmt: skip
    assert '{"sym": "é", "ts": null, "price": 2.5}' == wrong.text


def test_weights_other_than_one_are_rejected(tmp_path: Path) -> None:
    input_ = Input("R", QueueType(Schema.of(x=TEXT), is_relation=True))
    table = pa.table({"_time": [1, 2, 3], "_weight": [1, -1, 0], "x": ["a", "b", "c"]})
    (times, weights, _), wrong = everything(read(tmp_path, table, input_), input_)
    assert ([1, 2], [1, -1]) == (times, weights)
    assert ["_weight: expected 1 or -1, got 0"] == [r.reason for r in wrong]


def test_repeated_texts_stay_dictionary_encoded(tmp_path: Path) -> None:
    table = pa.table({"sym": ["A", "B"] * 5000, "price": [1.0] * 10_000, "ts": range(10_000)})
    (chunk, *_) = read(tmp_path, table, TRADES)
    assert pa.types.is_dictionary(chunk.batch.column("sym").values.type)


def test_plain_columns_are_not_copied(tmp_path: Path) -> None:
    table = pa.table({"sym": ["A"], "price": [1.0], "ts": pa.array([1], pa.timestamp("us"))})
    (chunk,) = read(tmp_path, table, TRADES)
    assert not chunk.batch.column("price").values.flags.owndata
    assert not chunk.batch.time.flags.owndata


def test_chunks_have_at_most_the_rows_asked_for(tmp_path: Path) -> None:
    table = pa.table({"sym": ["A"] * 10, "price": [1.0] * 10, "ts": range(10)})
    assert [4, 4, 2] == [c.read for c in read(tmp_path, table, TRADES, chunk_rows=4)]


def test_a_file_without_rows_is_fine(tmp_path: Path) -> None:
    table = pa.table({"sym": pa.array([], pa.string()), "price": pa.array([], pa.float64()),
                      "ts": pa.array([], pa.int64())})  # fmt: skip
    assert [] == read(tmp_path, table, TRADES)


def test_columns_of_a_wrong_type_are_told_at_once(tmp_path: Path) -> None:
    table = pa.table({"sym": [1], "price": ["x"], "ts": [1], "other": [[1]]})
    assert (
        'x.parquet: column "sym": expected a text, found int64\n'
        'x.parquet: column "price": expected a number, found string'
    ) == failure(tmp_path, table, TRADES)


def test_a_text_is_not_an_integer(tmp_path: Path) -> None:
    input_ = Input("X", QueueType(Schema.of(c=INTEGER)))
    table = pa.table({"_time": [1], "c": ["1"]})
    expected = 'x.parquet: column "c": expected an integer, found string'
    assert expected == failure(tmp_path, table, input_)


def test_a_missing_column_is_told(tmp_path: Path) -> None:
    table = pa.table({"symbol": ["a"], "price": [1.0], "ts": [1]})
    assert (
        'x.parquet: no column "sym", which input "Trades" declares\n'
        '    x.parquet has: symbol, price, ts. Did you mean "symbol"?'
    ) == failure(tmp_path, table, TRADES)


def test_too_many_columns_are_told(tmp_path: Path) -> None:
    table = pa.table({f"c{i}": pa.array([1]) for i in range(16_385)})
    assert "x.parquet: it has more than 16,384 columns" == failure(tmp_path, table, TRADES)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda _: b"", "Parquet file size is 0 bytes"),
        (lambda _: b"hello, this is text", "the end of the file is missing"),
        (lambda raw: raw[: len(raw) // 2], None),
        (lambda raw: raw[:-1], None),
        (lambda raw: raw[:4] + b"\xff" * 40 + raw[44:], None),
    ],
)
def test_a_damaged_file_is_told_in_one_sentence(
    damage: Any, why: str | None, tmp_path: Path
) -> None:
    table = pa.table({"sym": ["A"] * 100, "price": [1.0] * 100, "ts": range(100)})
    pq.write_table(table, tmp_path / "x.parquet")
    (tmp_path / "x.parquet").write_bytes(damage((tmp_path / "x.parquet").read_bytes()))
    with pytest.raises(RunError) as caught:
        read_all(open_reader(parse_location("x.parquet", tmp_path), TRADES))
    text = str(caught.value)
    assert text.startswith("x.parquet: not a readable Parquet file: ")
    assert "\n" not in text
    assert why is None or text.endswith(why)


def test_an_event_time_that_is_missing_everywhere_is_told(tmp_path: Path) -> None:
    table = pa.table({"x": ["a"]})
    with pytest.raises(CheckError, match='where "X" is declared: time COLUMN'):
        read(tmp_path, table, Input("X", QueueType(Schema.of(x=TEXT))))
