"""A pool of texts: each distinct text has a code, a small integer.

The texts live end to end in one array of bytes, so that no Python string is ever made:
text columns come in and go out as Arrow buffers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.kernel import State
from millstream.kernels.loops import FREE, LIVE, TOP, frozen, grown, refill_slots
from millstream.kernels.loops_text import (
    USED,
    gather_texts,
    index_texts,
    intern_texts,
    measure_texts,
    sweep_texts,
)
from millstream.plan.batch import Array

_LEAST_SLOTS = 64
_LEAST_SWEEP_BYTES = 1 << 16
_NONE = frozen(np.zeros(0, np.bool_))


class TextPool:
    """Mutable. Codes stay what they are until `sweep` frees those no longer in use."""

    def __init__(self) -> None:
        self._slots = np.zeros(_LEAST_SLOTS, np.int64)
        self.places = np.zeros((_LEAST_SLOTS // 2, 2), np.int64)
        self.arena = np.zeros(256, np.uint8)
        self._free = np.zeros(len(self.places), np.int64)
        self._counters = np.zeros(4, np.int64)
        self._swept_size = 0
        # The dictionary seen last, kept alive so that its address stays its own.
        self._known: tuple[Any, Any, Array] | None = None
        self._dictionary: Any = None

    def __len__(self) -> int:
        return int(self._counters[LIVE])

    def codes(self, values: Any) -> Array:
        """The codes of an Arrow array of text, -1 for null."""
        if not pa.types.is_dictionary(values.type):
            return self._intern(values)
        codes = self._dictionary_codes(values.dictionary)
        indices = values.indices
        if indices.null_count == 0:
            taken: Array = codes[indices.to_numpy(zero_copy_only=False)]
            return taken
        filled = pc.fill_null(indices, 0).to_numpy(zero_copy_only=False)
        padded = codes if len(codes) else np.full(1, -1, np.int64)
        valid = pc.is_valid(indices).to_numpy(zero_copy_only=False)
        return np.where(valid, padded[filled], -1)

    def _dictionary_codes(self, dictionary: Any) -> Array:
        buffers = tuple(b.address if b else 0 for b in dictionary.buffers())
        identity = (buffers, dictionary.offset, len(dictionary))
        if self._known is None or self._known[1] != identity:
            self._known = (dictionary, identity, self._intern(dictionary))
        return self._known[2]

    def _intern(self, values: Any) -> Array:
        offsets, data, valid = text_buffers(values)
        codes = np.empty(len(values), np.int64)
        start = 0
        while True:
            start = intern_texts(
                offsets, data, valid, start, codes,
                self._slots, self.places, self.arena, self._free, self._counters,
            )  # fmt: skip
            if start == len(codes):
                break
            self._grow(int(offsets[start + 1]) - int(offsets[start]))
        return codes

    def _grow(self, length: int) -> None:
        self._dictionary = None
        live, used = int(self._counters[LIVE]), int(self._counters[USED])
        self.arena = grown(self.arena, used + length)
        if 2 * (live + 1) > len(self._slots):
            old, self._slots = self._slots, np.zeros(2 * len(self._slots), np.int64)
            refill_slots(old, self._slots)
        self.places = grown(self.places, live + 1)
        self._free = grown(self._free, len(self.places))

    def array(self, codes: Array) -> Any:
        """The texts of codes as an Arrow array, dictionary-encoded if that is smaller."""
        top = int(self._counters[TOP])
        if 0 < top <= len(codes):
            valid = codes >= 0
            indices = pa.array(codes.astype(np.int32), mask=None if valid.all() else ~valid)
            return pa.DictionaryArray.from_arrays(indices, self._all(top))
        return self._gathered(codes)

    def _all(self, top: int) -> Any:
        if self._dictionary is None or len(self._dictionary) != top:
            self._dictionary = self._gathered(np.arange(top))
        return self._dictionary

    def _gathered(self, codes: Array) -> Any:
        codes = frozen(codes)
        offsets = np.zeros(len(codes) + 1, np.int32)
        data = np.empty(measure_texts(codes, self.places, offsets), np.uint8)
        gather_texts(codes, self.places, self.arena, offsets, data)
        return text_array(offsets, data, codes >= 0)

    def wants_sweep(self) -> bool:
        """Has the pool doubled since it was last swept?"""
        size = int(self._counters[USED]) + 16 * int(self._counters[LIVE])
        return size > 2 * self._swept_size + _LEAST_SWEEP_BYTES

    def marks(self) -> Array:
        """A mark per code, all false, to be set for those in use."""
        return np.zeros(int(self._counters[TOP]), np.bool_)

    def sweep(self, is_live: Array) -> None:
        """Free the codes whose mark is false."""
        self._known = self._dictionary = None
        lengths = self.places[: len(is_live), 1][is_live]
        fresh = np.zeros(max(256, 2 * int(lengths.sum())), np.uint8)
        sweep_texts(
            is_live, self._slots, self.places, self.arena, fresh, self._free, self._counters
        )
        self.arena = fresh
        self._swept_size = int(self._counters[USED]) + 16 * int(self._counters[LIVE])

    def snapshot(self) -> State:
        top, used = int(self._counters[TOP]), int(self._counters[USED])
        return {
            "places": self.places[:top].copy(),
            "arena": self.arena[:used].copy(),
            "free": self._free[: int(self._counters[FREE])].copy(),
        }

    def restore(self, state: State) -> None:
        self.__init__()  # type: ignore[misc]
        self.places = np.array(state["places"], np.int64).reshape(-1, 2)
        self.arena = np.array(state["arena"], np.uint8)
        free = np.asarray(state["free"], np.int64)
        self._free = grown(np.array(free), len(self.places))
        top = len(self.places)
        self._counters[:] = (top, len(free), top - len(free), len(self.arena))
        self._slots = np.zeros(slots_for(top), np.int64)
        is_live = np.ones(top, np.bool_)
        is_live[free] = False
        index_texts(is_live, self._slots, self.places, self.arena)


def slots_for(count: int) -> int:
    """A power of two at least twice the count."""
    return max(_LEAST_SLOTS, 1 << (2 * count).bit_length())


def text_buffers(values: Any) -> tuple[Array, Array, Array]:
    """Offsets, bytes and validity (empty if all are valid) of an Arrow text array."""
    if values.type != pa.string():
        values = values.cast(pa.string())
    _, offsets, data = values.buffers()
    valid = _NONE
    if values.null_count:
        valid = frozen(pc.is_valid(values).to_numpy(zero_copy_only=False))
    if not len(values) or offsets is None:
        return frozen(np.zeros(len(values) + 1, np.int32)), frozen(np.zeros(0, np.uint8)), valid
    starts = np.frombuffer(offsets, np.int32, len(values) + 1, 4 * values.offset)
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else None
    return frozen(starts), frozen(np.zeros(0, np.uint8) if content is None else content), valid


def text_array(offsets: Array, data: Array, valid: Array) -> Any:
    """An Arrow text array of its parts, as `text_buffers` gave them."""
    bitmap, null_count = None, 0
    if len(valid) and not valid.all():
        null_count = int(len(valid) - valid.sum())
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.StringArray.from_buffers(
        len(offsets) - 1, buffers[1], buffers[2], buffers[0], null_count
    )
