"""Columns to text, whole batches at a time: the cells of CSV and the values of JSON.

Every column becomes an Arrow array of texts, and joining them gives the rows one after
another in one buffer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.types import TEXT, Kind
from millstream.connectors.location import Times
from millstream.plan.batch import Vector

_CSV_SPECIAL = r'[",\r\n]|^$'
_JSON_SPECIAL = r'["\\\x00-\x1f]'
#: The years 1 to 9999, which ISO 8601 can write.
_FIRST_WRITABLE, _LAST_WRITABLE = -62_135_596_800_000_000, 253_402_300_799_999_999


def csv_lines(vectors: Sequence[Vector], times: Times) -> memoryview:
    """Rows as CSV. Null is an empty cell, an empty text a pair of quotes."""
    columns = [_column(v, times, _csv_texts, _plain_numbers, "") for v in vectors]
    return _joined(columns, ["", *[","] * (len(columns) - 1), "\n"], "")


def csv_header(names: Sequence[str]) -> bytes:
    return bytes(csv_lines([Vector(TEXT, pa.array([n], pa.string())) for n in names], "micros"))


def jsonl_lines(names: Sequence[str], vectors: Sequence[Vector], times: Times) -> memoryview:
    """Rows as JSON objects. Numbers that are not finite are texts, as JSON has none."""
    keys = [json.dumps(name, ensure_ascii=False) + ":" for name in names]
    columns = [_column(v, times, _json_texts, _json_numbers, '"') for v in vectors]
    between = ["{" + keys[0], *["," + key for key in keys[1:]], "}\n"]
    return _joined(columns, between, "null")


Texts = Callable[[Any], Any]


def _column(
    vector: Vector, times: Times, texts: Texts, numbers: Callable[[Vector], Any], quote: str
) -> Any:
    if vector.is_text:
        return _of_distinct(vector.values, texts)
    if vector.type.kind is Kind.NUMBER:
        return numbers(vector)
    if vector.type.kind is Kind.TIME and times == "iso":
        return _iso_times(vector, quote)
    return _arrow(vector).cast(pa.string())


def _arrow(vector: Vector) -> Any:
    return pa.array(vector.values, mask=None if vector.valid is None else ~vector.valid)


def _plain_numbers(vector: Vector) -> Any:
    """The shortest text that reads back as the same number; minus zero is zero."""
    return _arrow(Vector(vector.type, vector.values + 0.0, vector.valid)).cast(pa.string())


def _json_numbers(vector: Vector) -> Any:
    texts = _plain_numbers(vector)
    if np.isfinite(vector.values).all():
        return texts
    spoken = {"nan": '"NaN"', "-nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
    for plain, text in spoken.items():
        texts = pc.if_else(pc.equal(texts, plain), text, texts)
    return texts


def _iso_times(vector: Vector, quote: str) -> Any:
    """`2026-01-31T12:00:00.000000Z`; microseconds where the calendar has no year."""
    plain = _arrow(vector)
    writable = (vector.values >= _FIRST_WRITABLE) & (vector.values <= _LAST_WRITABLE)
    moments = pa.array(np.where(writable, vector.values, 0)).view(pa.timestamp("us", "UTC"))
    texts = pc.strftime(moments, f"{quote}%Y-%m-%dT%H:%M:%SZ{quote}")
    texts = pc.if_else(pa.array(writable), texts, plain.cast(pa.string()))
    return pc.if_else(plain.is_valid(), texts, None)


def _of_distinct(array: Any, texts: Texts) -> Any:
    """Work on a dictionary instead of its rows, where that is less."""
    if not pa.types.is_dictionary(array.type):
        return texts(array)
    if len(array.dictionary) > len(array):
        return texts(array.cast(pa.string()))
    return pa.DictionaryArray.from_arrays(array.indices, texts(array.dictionary)).cast(pa.string())


def _csv_texts(array: Any) -> Any:
    special = pc.match_substring_regex(array, _CSV_SPECIAL)
    if not pc.any(special).as_py():
        return array
    doubled = pc.replace_substring(array, '"', '""')
    quoted = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(special, quoted, array)


def _json_texts(array: Any) -> Any:
    quoted = pc.binary_join_element_wise('"', array, '"', "")
    special = pc.fill_null(pc.match_substring_regex(array, _JSON_SPECIAL), False)
    if not pc.any(special).as_py():
        return quoted
    escaped = [json.dumps(t, ensure_ascii=False) for t in array.filter(special).to_pylist()]
    return pc.replace_with_mask(quoted, special, pa.array(escaped, pa.string()))


def _joined(columns: Sequence[Any], between: Sequence[str], null: str) -> memoryview:
    """All rows one after another: between[0], column 0, between[1], column 1, ..."""
    parts: list[Any] = [between[0]]
    for column, after in zip(columns, between[1:], strict=True):
        parts += [column, after]
    lines = pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement=null)
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    return memoryview(data)[int(ends[0]) : int(ends[-1])] if len(lines) else memoryview(b"")
