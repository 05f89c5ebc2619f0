"""A pool of texts: each distinct text has a code, a small integer.

The texts live end to end in one array of bytes, so that no Python string is ever made:
text columns come in and go out as Arrow buffers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import RunError
from millstream.kernels.runtime.hashing import FREE, LIVE, TOP, frozen, grown, padded, refill_slots
from millstream.kernels.runtime.kernel import State
from millstream.kernels.runtime.utf8 import (
    SPARE,
    UNKNOWN,
    USED,
    TextColumn,
    Texts,
    find_first_uses,
    gather_texts,
    hash_texts,
    index_texts,
    intern_texts,
    measure_texts,
    sweep_texts,
    take_codes,
)
from millstream.plan.batch import Array

_LEAST_SLOTS = 64
_LEAST_ARENA = 256
_LEAST_SWEEP_BYTES = 1 << 16
_MOST_BYTES = 2**31 - 1


class TextPool:
    """Mutable. Codes stay what they are until `sweep` frees those no longer in use."""

    def __init__(self) -> None:
        self.texts = Texts(
            slots=np.zeros(slots_for(0), np.int64),
            places=np.zeros((slots_for(0) // 2, 2), np.int64),
            arena=np.zeros(_LEAST_ARENA, np.uint8),
            free=np.zeros(slots_for(0) // 2, np.int64),
            counters=np.zeros(4, np.int64),
        )
        self._swept_size = 0
        # The dictionary seen last, kept alive so that its address stays its own.
        self._known: tuple[Any, Any, Array] | None = None
        self._dictionary: tuple[int, Any] | None = None

    def __len__(self) -> int:
        return int(self.texts.counters[LIVE])

    @property
    def top(self) -> int:
        """All codes ever given are below this."""
        return int(self.texts.counters[TOP])

    def codes(self, values: Any) -> Array:
        """The codes of an Arrow array of text, -1 for null."""
        if not pa.types.is_dictionary(values.type):
            return self._intern(values)
        indices = _indices(values)
        codes = self._dictionary_codes(values.dictionary, indices)
        taken = np.empty(len(indices), np.int64)
        take_codes(indices, codes, taken)
        return taken

    def _dictionary_codes(self, dictionary: Any, indices: Array) -> Array:
        """The codes of the entries of a dictionary, at least of those that are used."""
        buffers = tuple(b.address if b else 0 for b in dictionary.buffers())
        identity = (buffers, dictionary.offset, len(dictionary))
        if self._known is None or self._known[1] != identity:
            unknown = np.full(len(dictionary), UNKNOWN, np.int64)
            self._known = (dictionary, identity, unknown)
        codes = self._known[2]
        entries = np.empty(min(len(dictionary), len(indices)), np.int64)
        entries = entries[: find_first_uses(indices, codes, entries)]
        if len(entries):
            codes[entries] = self._intern(dictionary.take(pa.array(entries)))
        return codes

    def _intern(self, values: Any) -> Array:
        column = text_column(values)
        codes, hashes = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
        hash_texts(column, hashes)
        start = 0
        while True:
            start = intern_texts(column, hashes, start, codes, self.texts)
            if start == len(codes):
                return codes
            self.make_room(int(column.offsets[start + 1]) - int(column.offsets[start]))

    def make_room(self, length: int, codes: int = 1) -> None:
        """Room for so many bytes more, and for so many codes."""
        texts = self.texts
        slots, live = texts.slots, len(self)
        if 2 * (live + 1) > len(slots):
            slots = np.zeros(2 * len(slots), np.int64)
            refill_slots(texts.slots, slots)
        self.texts = texts._replace(
            slots=slots,
            places=grown(texts.places, live + codes),
            arena=grown(texts.arena, int(texts.counters[USED]) + length),
            free=grown(texts.free, live + codes),
        )

    def array(self, codes: Array) -> Any:
        """The texts of codes as an Arrow array, dictionary-encoded if that is smaller."""
        if 0 < self.top <= len(codes):
            valid = codes >= 0
            indices = pa.array(codes.astype(np.int32), mask=None if valid.all() else ~valid)
            return pa.DictionaryArray.from_arrays(indices, self.everything(), safe=False)
        return self.gathered(codes)

    def everything(self) -> Any:
        """The texts of all codes. Until the next sweep their number only grows."""
        if self._dictionary is None or self._dictionary[0] != len(self):
            self._dictionary = (len(self), self.gathered(np.arange(self.top)))
        return self._dictionary[1]

    def live(self) -> Array:
        """The codes in use."""
        is_live = np.ones(self.top, np.bool_)
        is_live[self.texts.free[: self.texts.counters[FREE]]] = False
        return np.flatnonzero(is_live)

    def encoded(self, codes: Array) -> Any:
        """The texts of codes, none of them null, encoded by a dictionary of just these."""
        place = np.zeros(self.top, np.int32)
        place[codes] = 1
        used = np.flatnonzero(place)
        place[used] = np.arange(len(used))
        return pa.DictionaryArray.from_arrays(pa.array(place[codes]), self.gathered(used))

    def gathered(self, codes: Array) -> Any:
        """The texts of codes as a plain Arrow array."""
        codes = frozen(codes)
        offsets = np.zeros(len(codes) + 1, np.int32)
        size = measure_texts(codes, self.texts.places, offsets)
        if size > _MOST_BYTES:
            raise RunError(
                f"a batch of {len(codes)} rows has {size} bytes of text in one column",
                hint="a column of a batch can hold 2 GB of text; use smaller batches",
            )
        data = np.empty(size + SPARE, np.uint8)
        gather_texts(codes, self.texts, offsets, data)
        return text_array(offsets, data, codes >= 0)

    def wants_sweep(self) -> bool:
        """Has the pool doubled since it was last swept?"""
        return self._size() > 2 * self._swept_size + _LEAST_SWEEP_BYTES

    def _size(self) -> int:
        return int(self.texts.counters[USED]) + 16 * len(self)

    def marks(self) -> Array:
        """A mark per code, all false, to be set for those in use."""
        return np.zeros(self.top, np.bool_)

    def sweep(self, is_live: Array) -> None:
        """Free the codes whose mark is false."""
        self._known = self._dictionary = None
        lengths = self.texts.places[: len(is_live), 1][is_live]
        fresh = np.zeros(max(_LEAST_ARENA, 2 * int(lengths.sum())), np.uint8)
        sweep_texts(frozen(is_live), self.texts, fresh)
        self.texts = self.texts._replace(arena=fresh)
        self._swept_size = self._size()

    def snapshot(self) -> State:
        _, places, arena, free, counters = self.texts
        return {
            "places": places[: counters[TOP]].copy(),
            "arena": arena[: counters[USED]].copy(),
            "free": free[: counters[FREE]].copy(),
            "swept": self._swept_size,
        }

    def restore(self, state: State) -> None:
        places, free = state["places"].reshape(-1, 2), state["free"]
        top = len(places)
        live = top - len(free)
        self.texts = Texts(
            slots=np.zeros(slots_for(top), np.int64),
            places=np.array(places, np.int64),
            arena=np.array(state["arena"], np.uint8),
            free=padded(np.array(free, np.int64), top),
            counters=np.array([top, len(free), live, len(state["arena"])], np.int64),
        )
        self._swept_size = int(state["swept"])
        self._known = self._dictionary = None
        is_live = np.ones(top, np.bool_)
        is_live[free] = False
        index_texts(frozen(is_live), self.texts)


def slots_for(count: int) -> int:
    """A power of two at least twice the count."""
    return max(_LEAST_SLOTS, 1 << (2 * count).bit_length())


def _indices(values: Any) -> Array:
    """The indices of a dictionary-encoded array as int64, -1 for null."""
    indices = values.indices
    if indices.null_count:
        indices = pc.fill_null(indices, -1)
    return frozen(indices.to_numpy(zero_copy_only=False).astype(np.int64))


def text_column(values: Any) -> TextColumn:
    """The parts of an Arrow array of plain text."""
    if values.type != pa.string():
        values = values.cast(pa.string())
    _, offsets, data = values.buffers()
    starts = np.zeros(len(values) + 1, np.int32)
    if len(values) and offsets is not None:
        starts = np.frombuffer(offsets, np.int32, len(values) + 1, 4 * values.offset)
    content = np.zeros(0, np.uint8)
    if data is not None and data.size:
        content = np.frombuffer(data, np.uint8)
    valid = np.zeros(0, np.bool_)
    if values.null_count:
        valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return TextColumn(frozen(starts), frozen(content), frozen(valid))


def text_array(offsets: Array, data: Array, valid: Array) -> Any:
    """An Arrow array of text of its parts; `valid` may be empty if nothing is null."""
    bitmap, null_count = None, len(valid) - int(valid.sum())
    if null_count:
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data), bitmap, null_count
    )
