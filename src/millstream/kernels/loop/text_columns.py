"""Functions of text on whole columns.

A function is applied to the distinct values of a column, in Python, which defines it;
or by Arrow to the column as it is, where Arrow means exactly the same. Dictionary-encoded
columns stay so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.types import Kind, Type, Value
from millstream.kernels.loop.text_arrow import by_arrow
from millstream.kernels.loop.text_functions import TextFault, text_function
from millstream.plan.batch import DTYPES, Array, Vector, booleans_of, vector_of


@dataclass(frozen=True, slots=True)
class Scalar:
    """An argument that is the same in every row."""

    type: Type
    value: Value


Argument = Vector | Scalar


@dataclass(frozen=True, slots=True)
class Answer:
    """A column and, if there are any, its faults: per row 0 or 1 << number of the message."""

    vector: Vector
    faults: Array | None = None


def apply(function: str, args: Sequence[Argument], result: Type, count: int) -> Answer:
    """A strict function of text, or to text, on columns of `count` rows."""
    if any(isinstance(a, Scalar) and a.value is None for a in args):
        return Answer(constant_vector(result, None, count))
    columns = [a for a in args if isinstance(a, Vector)]
    if not columns:
        return _on_scalars(function, args, result, count)
    if len(columns) > 1:
        return _on_rows(function, args, result, count)
    (column,) = columns
    if not column.is_text:
        return _on_column(function, args, result, column)
    if pa.types.is_dictionary(column.values.type):
        return _on_dictionary(function, args, result, column.values)
    return _on_column(function, args, result, column)


def constant_vector(type_: Type, value: Value, count: int) -> Vector:
    """The same value in every row."""
    if type_.kind is Kind.TEXT:
        if value is None:
            return Vector(type_, pa.nulls(count, pa.string()))
        indices = pa.array(np.zeros(count, np.int32))
        return Vector(type_, pa.DictionaryArray.from_arrays(indices, pa.array([value])))
    if value is None:
        return Vector(type_, np.zeros(count, DTYPES[type_.kind]), np.zeros(count, np.bool_))
    return Vector(type_, np.full(count, value, DTYPES[type_.kind]))


def plain_text(vector: Vector) -> Any:
    """The Arrow array of a text column, not dictionary-encoded."""
    return vector.values if vector.values.type == pa.string() else vector.values.cast(pa.string())


def with_plain_nulls(vector: Vector) -> Vector:
    """The column with its nulls among the rows; Arrow also allows them in a dictionary."""
    if not vector.is_text or not pa.types.is_dictionary(vector.values.type):
        return vector
    if vector.values.dictionary.null_count == 0:
        return vector
    return Vector(vector.type, plain_text(vector).dictionary_encode())


def arrow_of(vector: Vector) -> Any:
    """An Arrow array; times and durations as integers."""
    if vector.is_text:
        return plain_text(vector)
    return pa.array(vector.values, mask=None if vector.valid is None else ~vector.valid)


def _on_scalars(function: str, args: Sequence[Argument], result: Type, count: int) -> Answer:
    call = text_function(function, args[0].type.kind)
    answer = _answer(result, [call(*(a.value for a in args if isinstance(a, Scalar)))])
    value = answer.vector.to_list()[0]
    faults = None if answer.faults is None else np.repeat(answer.faults, count)
    return Answer(constant_vector(result, value, count), faults)


def _on_column(function: str, args: Sequence[Argument], result: Type, column: Vector) -> Answer:
    array = arrow_of(column)
    places = [array if a is column else _value(a) for a in args]
    done = by_arrow(function, args[0].type.kind, places)
    if done is not None:
        return Answer(_vector(result, done))
    return _on_dictionary(function, args, result, array.dictionary_encode())


def _on_dictionary(function: str, args: Sequence[Argument], result: Type, encoded: Any) -> Answer:
    values = encoded.dictionary
    call = text_function(function, args[0].type.kind)
    own = next(n for n, a in enumerate(args) if isinstance(a, Vector))
    before, after = [_value(a) for a in args[:own]], [_value(a) for a in args[own + 1 :]]
    distinct = _answer(result, [call(*before, v, *after) for v in values.to_pylist()])
    return _spread(distinct, encoded.indices)


def _on_rows(function: str, args: Sequence[Argument], result: Type, count: int) -> Answer:
    places = [arrow_of(a) if isinstance(a, Vector) else _value(a) for a in args]
    done = by_arrow(function, args[0].type.kind, places)
    if done is not None:
        return Answer(_vector(result, done))
    call = text_function(function, args[0].type.kind)
    rows = zip(*(p.to_pylist() if isinstance(p, pa.Array) else [p] * count for p in places),
               strict=True)  # fmt: skip
    return _answer(result, [None if None in row else call(*row) for row in rows])


def _value(argument: Argument) -> Value:
    assert isinstance(argument, Scalar)
    return argument.value


def _answer(type_: Type, values: list[Any]) -> Answer:
    faults = [1 << v.number if isinstance(v, TextFault) else 0 for v in values]
    good = [None if isinstance(v, TextFault) else v for v in values]
    return Answer(vector_of(type_, good), np.array(faults, np.int64) if any(faults) else None)


def _vector(type_: Type, array: Any) -> Vector:
    """A vector of what Arrow has computed."""
    if type_.kind is Kind.TEXT:
        return Vector(type_, array)
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False) if array.null_count else None
    filled = (
        array.fill_null(False if type_.kind is Kind.BOOLEAN else 0) if array.null_count else array
    )
    if type_.kind is Kind.BOOLEAN:
        return Vector(type_, booleans_of(filled), valid)
    values = filled.to_numpy(zero_copy_only=False).astype(DTYPES[type_.kind], copy=False)
    return Vector(type_, values, valid)


def _spread(distinct: Answer, indices: Any) -> Answer:
    """From an answer per distinct value to one per row."""
    vector = distinct.vector
    if len(vector) == 0:  # every row is null
        return Answer(constant_vector(vector.type, None, len(indices)))
    places = (indices.fill_null(0) if indices.null_count else indices).to_numpy()
    present = None
    if indices.null_count:
        present = pc.is_valid(indices).to_numpy(zero_copy_only=False)
    faults = distinct.faults
    if faults is not None:
        faults = faults[places] if present is None else np.where(present, faults[places], 0)
    if vector.is_text:
        again = vector.values.dictionary_encode()  # different values may have become equal
        taken = again.indices.take(indices)
        return Answer(
            Vector(vector.type, pa.DictionaryArray.from_arrays(taken, again.dictionary)), faults
        )
    valid = present if vector.valid is None else vector.valid[places]
    if vector.valid is not None and present is not None:
        valid = vector.valid[places] & present
    return Answer(Vector(vector.type, vector.values[places], valid), faults)
