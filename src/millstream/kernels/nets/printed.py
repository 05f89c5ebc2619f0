"""What compiled filters have printed: values kept by the loop, made texts here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.types import TEXT
from millstream.calculus.work import PRINTED
from millstream.kernels.loop.code_layout import memory_of
from millstream.kernels.loop.code_prints import Template
from millstream.kernels.nets.table import PRINTS, TOLD, TOLD_COUNT, TOLD_ROOM
from millstream.plan.batch import Array, Batch, Vector, integer_array, text_array
from millstream.values.types import BOOLEAN, SINGLE, Type


class Printed:
    """Mutable: room for what a filter prints in a round."""

    def __init__(self, templates: Sequence[Template], row: Array, frame: Array) -> None:
        self.templates = templates
        self.row = row
        self.frame = frame
        row[PRINTS] = 1
        self.room = 0
        self.grow()

    def grow(self) -> None:
        """Twice the room; what is there stays."""
        self.room = max(2 * self.room, 1 << 13)
        wide = 1 + max((len(t.terms) for t in self.templates), default=0)
        kinds = (np.int32, np.int64, np.float32, np.int32, np.int64)
        sizes = (self.room, self.room, wide * self.room, wide * self.room, self.room)
        arrays = [np.zeros(size, kind) for size, kind in zip(sizes, kinds, strict=True)]
        for old, new in zip(getattr(self, "arrays", arrays), arrays, strict=True):
            new[: len(old)] = old
        self.arrays = arrays
        self.frame[20:24] = [array.ctypes.data for array in arrays[:4]]
        self.frame[24:27] = sizes[0], sizes[2], sizes[3]
        self.row[TOLD], self.row[TOLD_ROOM] = arrays[4].ctypes.data, self.room

    def given(self, times: Array | None) -> Batch:
        """A text for every firing of the round; their times if they are not kept here."""
        said, _, _ = self.frame[27:30].tolist()
        count = int(self.row[TOLD_COUNT])
        sites, firings, singles, integers, kept = self.arrays
        texts = texts_of(self.templates, sites[:said], singles, integers)
        ends = np.searchsorted(firings[:said], np.arange(count + 1), "left").astype(np.int32)
        if said == count and bool((np.diff(ends) == 1).all()):
            joined = texts
        else:
            joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), texts), "")
        self.frame[27:30] = 0
        self.row[TOLD_COUNT] = 0
        stamps = kept[:count].copy() if times is None else times
        return Batch(PRINTED, stamps, (Vector(TEXT, joined),))


def texts_of(templates: Sequence[Template], sites: Array, singles: Array, integers: Array) -> Any:
    """The texts of what was printed, in order: all of one place at a time."""
    begins = {}
    for letter in "FI":
        each = np.array([sum(memory_of(t.type) == letter for t in template.terms)
                         for template in templates], np.int64)[sites]  # fmt: skip
        begins[letter] = np.cumsum(each) - each
    parts, places = [], []
    for number in np.unique(sites).tolist():
        here = np.flatnonzero(sites == number)
        parts.append(_filled(templates[number], here, begins, singles, integers))
        places.append(here)
    if not parts:
        return text_array([])
    back = np.empty(len(sites), np.int64)
    back[np.concatenate(places)] = np.arange(len(sites))
    return pa.concat_arrays(parts).take(integer_array(back))


def _filled(
    template: Template, here: Array, begins: dict[str, Array], singles: Array, integers: Array
) -> Any:
    done = {"F": 0, "I": 0}
    columns: list[Any] = []
    for piece in template.pieces:
        if isinstance(piece, str):
            columns.append(text_array([piece])[0])
            continue
        letter = memory_of(piece.type)
        cells = begins[letter][here] + done[letter]
        done[letter] += 1
        columns.append(_column((singles if letter == "F" else integers)[cells], piece.type))
    if len(columns) == 1 and not isinstance(columns[0], pa.Scalar):
        return columns[0]
    if all(isinstance(c, pa.Scalar) for c in columns):
        whole = "".join(c.as_py() for c in columns)
        return text_array([whole]).take(integer_array(np.zeros(len(here), np.int64)))
    return pc.binary_join_element_wise(*columns, text_array([""])[0])


def _column(values: Array, type_: Type) -> Any:
    if type_ == SINGLE:
        return singles_as_text(values)
    if type_ == BOOLEAN:
        return text_array(["false", "true"]).take(integer_array(values))
    return integer_array(values).cast(pa.string())


def singles_as_text(values: Array) -> Any:
    """The fewest digits that read back, as NumPy finds them and Python writes them."""
    return text_array([repr(float(text)) for text in values.astype(str).tolist()])
