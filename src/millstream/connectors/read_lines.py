"""Lines of text in: each is a row of one column, whatever is in it.

A line is held byte by byte, as characters below 256: what its bytes mean is for the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.calculus.graph import Input
from millstream.calculus.types import Kind
from millstream.connectors.csv_rows import LONGEST_ROW
from millstream.connectors.layout import InputColumns, batch_of_vectors, layout_of
from millstream.connectors.window import DecodedStep, FileWindow
from millstream.errors import CheckError
from millstream.plan.batch import Array, Batch, Vector


class LinesDecoder:
    """Whole lines at the start of a window become a batch."""

    #: Empty lines are rows as well.
    blanks = b""

    def __init__(self, layout: InputColumns, chunk_rows: int, longest: int) -> None:
        self.longest = longest
        self._layout = layout
        self._chunk_rows = chunk_rows

    def decode(self, window: FileWindow) -> DecodedStep:
        data, start = window.data, window.start
        stop = data.rfind(b"\n", start) + 1
        if window.final and len(data) > start:
            stop = len(data)
        if stop <= start:
            return DecodedStep(self._batch(pa.array([], pa.string())), (), start, 0)
        texts, end = (None, start) if window.is_small else self._quickly(data, start, stop)
        if texts is None:
            end, breaks = self._end(data, start, stop)
            texts = _lines(bytes(data[start:end]), breaks)
        return DecodedStep(self._batch(texts), (), end, len(texts))

    def _quickly(self, data: bytes, start: int, stop: int) -> tuple[Any, int]:
        """The next lines and where they end; None if some are not plain, or the last has no end."""
        from millstream.connectors.line_scan import SPARE, cut_lines

        # A few lines more than usual are better than a batch of their own.
        near = stop if stop - start < 2 * _PIECE else start + _PIECE
        offsets = np.zeros(min(self._chunk_rows, near - start) + 1, np.int32)
        out, done = np.empty(near - start + SPARE, np.uint8), np.zeros(2, np.int64)
        array = np.frombuffer(data, np.uint8)
        is_plain = cut_lines(array, start, near, offsets, out, done)
        end, count = done.tolist()
        if not is_plain or not count:
            return None, start
        buffers = [None, pa.py_buffer(offsets[: count + 1]), pa.py_buffer(out)]
        return pa.Array.from_buffers(pa.string(), count, buffers, null_count=0), end

    def _end(self, data: bytes, start: int, stop: int) -> tuple[int, Array]:
        """Where the next lines end, of which there are no more than make a batch, and each."""
        near = data.find(b"\n", min(start + _PIECE, stop)) + 1 or stop
        raw = np.frombuffer(data, np.uint8, near - start, start)
        breaks = np.flatnonzero(raw == _BREAK)
        if len(breaks) <= self._chunk_rows:
            return near, breaks
        breaks = breaks[: self._chunk_rows]
        return start + int(breaks[-1]) + 1, breaks

    def _batch(self, texts: Any) -> Batch:
        vectors = [Vector(f.type, texts) for f in self._layout.fields]
        return batch_of_vectors(self._layout, vectors)


_BREAK = 10
#: About so many bytes are looked at for a batch.
_PIECE = 1 << 22


def _lines(raw: bytes, breaks: Array) -> Any:
    """The lines of some bytes, without what ends them, each byte a character.

    The `breaks` are where lines end, as long as nothing is changed before them.
    """
    is_changed = not raw.endswith(b"\n") or b"\r" in raw or not raw.isascii()
    if is_changed:
        raw = raw if raw.endswith(b"\n") else raw + b"\n"
        raw = raw.replace(b"\r\n", b"\n").decode("latin-1").encode()
        breaks = np.flatnonzero(np.frombuffer(raw, np.uint8) == _BREAK)
    # Without the breaks, a text begins where the last one ends.
    offsets = np.zeros(len(breaks) + 1, np.int32)
    offsets[1:] = breaks - np.arange(len(breaks))
    data = raw.replace(b"\n", b"")
    return pa.StringArray.from_buffers(len(breaks), pa.py_buffer(offsets), pa.py_buffer(data))


def lines_decoder(
    input_: Input, chunk_rows: int, longest: int = LONGEST_ROW
) -> Callable[[FileWindow], LinesDecoder]:
    """What reads lines for an input of one text."""
    kinds = [f.type.kind for f in input_.type.schema]
    if kinds not in ([Kind.TEXT], []) or not input_.is_numbered:
        raise CheckError(
            f'lines of text are rows of one text, which input "{input_.name}" is not',
            span=input_.span,
            hint="give it csv, jsonl or parquet",
        )
    layout = layout_of(input_, has_weight=False)
    return lambda _window: LinesDecoder(layout, chunk_rows, longest)
