"""The batches that leave a row kernel, put together from what the loop has written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from millstream.calculus.types import Kind, Type
from millstream.kernels.loop.rows_lanes import Lanes
from millstream.kernels.loop.rows_layout import (
    ComputedColumn,
    Gathered,
    GatheredBySlot,
    LoopLayout,
    OutputColumn,
    OutputLayout,
)
from millstream.kernels.loop.rows_nodes import Constant
from millstream.kernels.loop.text_columns import constant_vector, plain_text
from millstream.plan.batch import DTYPES, Array, Batch, Vector


class Outputs:
    """Mutable: the arrays that the loop writes, made when they are asked for."""

    def __init__(self, layout: LoopLayout, inputs: tuple[Batch, ...]) -> None:
        self.layout = layout
        self.inputs = inputs
        self.arrays: dict[tuple[str, int, int], Array] = {}
        self.counts: Array = np.zeros(len(layout.outputs), np.int64)

    def array(self, kind: str, number: int, column: int) -> Array:
        made = self.arrays.get((kind, number, column))
        if made is None:
            output = self.layout.outputs[number]
            room = len(self.inputs[output.input]) * output.slot_count
            # Of rows in which nothing can be null a loop does not say so.
            fresh = np.ones if kind == "out_valid" else np.empty
            made = fresh(room, self._dtype(kind, output, column))
            self.arrays[kind, number, column] = made
        return made

    @staticmethod
    def _dtype(kind: str, output: OutputLayout, column: int) -> Any:
        if kind == "out_valid":
            return np.bool_
        if kind != "out":
            return np.int64
        type_ = output.type.schema.fields[column].type
        return np.int64 if type_.kind is Kind.TEXT else DTYPES[type_.kind]

    def batches(self, lanes: list[Lanes], pool: Any) -> tuple[Batch, ...]:
        return tuple(
            _Assembly(self, number, lanes, pool).batch() for number in range(len(self.counts))
        )


class _Assembly:
    """One output."""

    def __init__(self, outputs: Outputs, number: int, lanes: list[Lanes], pool: Any) -> None:
        self.outputs = outputs
        self.number = number
        self.layout = outputs.layout.outputs[number]
        self.lanes = lanes[self.layout.input]
        self.pool = pool
        self.source = outputs.inputs[self.layout.input]
        every_row = self.layout.is_every_row
        self.count = len(self.source) if every_row else int(outputs.counts[number])
        all_have_left = self.layout.slot_count == 1 and self.count == len(self.source)
        #: The numbers of the rows that have left; None if all have, each once.
        self.index = None if all_have_left else self._array("index")

    def _array(self, kind: str, column: int = 0) -> Array:
        """What was written, without the room that was not needed."""
        whole = self.outputs.arrays.get((kind, self.number, column))
        if whole is None:  # no row can ever leave
            return self.outputs.array(kind, self.number, column)[:0]
        part = whole[: self.count]
        return part if 2 * self.count >= len(whole) else part.copy()

    def batch(self) -> Batch:
        source = self.source
        fields = self.layout.type.schema.fields
        return Batch(
            self.layout.type,
            self._taken(source.time),
            tuple(
                self._column(n, f.type, made)
                for n, (f, made) in enumerate(zip(fields, self.layout.columns, strict=True))
            ),
            None if source.weight is None else self._taken(source.weight),
            None if source.rank is None else self._taken(source.rank),
            source.is_net,
        )

    def _taken(self, array: Array) -> Array:
        return array if self.index is None else array.take(self.index)

    def _column(self, number: int, type_: Type, made: OutputColumn) -> Vector:
        match made:
            case Gathered(Constant(value)):
                return constant_vector(type_, value, self.count)
            case Gathered(node):
                vector = self.lanes.get(node).vector
                return vector if self.index is None else vector.take(self.index)
            case GatheredBySlot():
                return self._by_slot(type_, made)
            case ComputedColumn():
                return self._written(number, type_)

    def _by_slot(self, type_: Type, made: GatheredBySlot) -> Vector:
        """Take from all columns laid end to end; a constant takes one place."""
        parts, starts, strides = [], [], []
        start = 0
        for node in made.nodes:
            is_constant = isinstance(node, Constant)
            part = (
                pa.array([node.value], pa.string())
                if isinstance(node, Constant)
                else plain_text(self.lanes.get(node).vector)
            )
            parts.append(part)
            starts.append(start)
            strides.append(0 if is_constant else 1)
            start += len(part)
        slots, index = self._array("slot"), self._array("index")
        places = np.array(starts)[slots] + np.array(strides)[slots] * index
        return Vector(type_, pa.concat_arrays(parts).take(pa.array(places)))

    def _written(self, number: int, type_: Type) -> Vector:
        values = self._array("out", number)
        valid = None
        if ("out_valid", self.number, number) in self.outputs.arrays:
            valid = self._array("out_valid", number)
            valid = None if valid.all() else valid
        if type_.kind is Kind.TEXT:
            codes = values if valid is None else np.where(valid, values, -1)
            return Vector(type_, self.pool.array(codes))
        return Vector(type_, values, valid)
