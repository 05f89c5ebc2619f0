"""Answers as tables: columns with names, as records for JSON, as Arrow and as CSV."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.calculus.types import Kind
from millstream.plan.batch import Array, Vector, concat_vectors
from millstream.values.instants import render_time


@dataclass(frozen=True)
class AnswerTable:
    """Columns of one length."""

    names: tuple[str, ...]
    vectors: tuple[Vector, ...]
    size: int

    def __len__(self) -> int:
        return self.size

    def take(self, indices: Array) -> AnswerTable:
        return AnswerTable(self.names, tuple(v.take(indices) for v in self.vectors), len(indices))

    def records(self) -> list[dict[str, Any]]:
        """A dictionary for each row; times as ISO 8601, what is no finite number as a text."""
        columns = [plain_values(v) for v in self.vectors]
        if not columns:
            return [{} for _ in range(self.size)]
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def arrow(self, metadata: dict[str, str]) -> bytes:
        """An Arrow stream of one batch."""
        arrays = [v.to_arrow() for v in self.vectors]
        schema = pa.schema(
            [pa.field(n, a.type) for n, a in zip(self.names, arrays, strict=True)], metadata
        )
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, schema) as stream:
            stream.write_batch(pa.record_batch(arrays, schema=schema))
        return sink.getvalue()

    def csv(self) -> str:
        """Nulls are empty; an empty text is in quotes, and so is one that looks like a formula."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([_harmless(n) for n in self.names])
        columns = [[_harmless(c) for c in plain_values(v)] for v in self.vectors]
        writer.writerows(zip(*columns, strict=True))
        return out.getvalue()


def plain_values(vector: Vector) -> list[Any]:
    """Values as JSON has them."""
    if vector.is_text:
        return _texts(vector.values)
    values = vector.to_list()
    if vector.type.kind is Kind.TIME:
        shown = {v: None if v is None else render_time(v) or v for v in dict.fromkeys(values)}  # type: ignore[arg-type]
        return [shown[v] for v in values]
    if vector.type.kind is Kind.NUMBER and not np.isfinite(vector.values).all():
        return [_named(v) for v in values]
    return values


def _texts(values: Any) -> list[Any]:
    """Texts one by one; of few that come often each is made once."""
    if pa.types.is_dictionary(values.type):
        if len(values.dictionary) <= len(values) and not values.null_count:
            names = values.dictionary.to_numpy(zero_copy_only=False)
            return names[values.indices.to_numpy()].tolist()  # type: ignore[no-any-return]
        values = values.cast(pa.string())
    return values.to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]


def _named(value: Any) -> Any:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _harmless(cell: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front."""
    is_formula = isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{cell}" if is_formula else cell


def stacked(one: AnswerTable, other: AnswerTable) -> AnswerTable:
    vectors = tuple(concat_vectors(pair) for pair in zip(one.vectors, other.vectors, strict=True))
    return AnswerTable(one.names, vectors, len(one) + len(other))


def ranks(values: Vector) -> Array:
    """Where each value comes in order, equal ones at one place, null last."""
    _, places = np.unique(np.asarray(values.values), return_inverse=True)
    return np.where(values.mask(), places.reshape(-1), len(values))


def taken(values: Vector, numbers: Array) -> Vector:
    """Values by their numbers; texts stay where they are and are only pointed at."""
    if not values.is_text:
        return values.take(numbers)
    indices = pa.array(numbers.astype(np.int32, copy=False))
    texts = pa.DictionaryArray.from_arrays(indices, values.to_arrow(), safe=False)
    return Vector(values.type, texts)
