"""Reading a text piece by piece: memory stays flat however long the file or a line is."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar, Protocol, cast

from millstream import cold
from millstream.connectors.chunks import Chunk, Rejected, shown
from millstream.connectors.csv_rows import too_long
from millstream.errors import RunError
from millstream.plan.batch import Batch, empty_batch

PIECE_BYTES = 1 << 22
#: Until a process has read so much, the compiled scanners are not worth loading.
SMALL_BYTES = 1 << 18
_COMPILED = "millstream.connectors.cells"


class FileWindow:
    """Mutable: the part of an open file that is being looked at, and its first line.

    `offset` is where in the file the data begin. Rows are only wanted if they begin before
    `last`; what comes after it may have to be looked at to see what such a row is.
    """

    #: The bytes that have been read through all windows of this process.
    seen: ClassVar[int] = 0

    def __init__(
        self,
        read: Callable[[int], bytes],
        name: str,
        piece: int = PIECE_BYTES,
        *,
        offset: int = 0,
        line: int = 1,
        last: int | None = None,
    ) -> None:
        self.name = name
        self.data = b""
        self.start = 0
        self.line = line
        self.final = False
        self.offset = offset
        self._read = read
        self._piece = piece
        self._last = last
        if offset == 0:
            self._skip_mark()

    def _skip_mark(self) -> None:
        """A file may begin with a byte order mark."""
        while len(self.data) < 3 and not self.final:
            self.more()
        if self.data.startswith(b"\xef\xbb\xbf"):
            self.start = 3

    def __len__(self) -> int:
        return len(self.data) - self.start

    @property
    def position(self) -> int:
        """Where in the file the window stands."""
        return self.offset + self.start

    @property
    def stop(self) -> int:
        """Where in the data no more rows may begin."""
        end = len(self.data)
        return end if self._last is None else min(end, self._last - self.offset)

    @property
    def is_over(self) -> bool:
        return self.final or (self._last is not None and self.position >= self._last)

    @property
    def is_small(self) -> bool:
        if cold.is_cold():
            return FileWindow.seen < cold.FEW_BYTES
        return FileWindow.seen < SMALL_BYTES and _COMPILED not in sys.modules

    def more(self) -> None:
        """Read on."""
        try:
            piece = self._read(self._piece)
        except (OSError, EOFError, zlib.error) as error:
            raise unreadable(self.name, error) from None
        self.data = self.data[self.start :] + piece
        self.offset += self.start
        self.start = 0
        FileWindow.seen += len(piece)
        self.final = not piece

    def advance(self, end: int, lines: int) -> None:
        self.start = end
        self.line += lines
        if self._last is not None and self.position > self._last:
            raise RunError("has changed since it was read", place=self.name)

    def skip_line(self, blanks: bytes) -> bool:
        """Drop everything up to the next line, without holding it; tells a blank line."""
        is_blank = True
        while True:
            newline = self.data.find(b"\n", self.start)
            end = len(self.data) if newline < 0 else newline + 1
            is_blank = is_blank and not self.data[self.start : end].strip(blanks)
            is_over = newline >= 0 or self.final
            self.advance(end, int(is_over))
            if is_over:
                return is_blank
            self.more()


@dataclass(frozen=True, slots=True)
class DecodedStep:
    """What a decoder made of the beginning of a window: up to `end`, so many `lines`."""

    batch: Batch
    rejected: tuple[Rejected, ...]
    end: int
    lines: int


class Decoder(Protocol):
    """Turns whole rows at the start of a window into a batch; leaves half a row alone."""

    longest: int
    #: A line of nothing else is passed over, however long it is.
    blanks: bytes

    def decode(self, window: FileWindow) -> DecodedStep: ...


def decoded(window: FileWindow, decoder: Decoder) -> Iterator[Chunk]:
    """All chunks of a text. Overlong lines are rejected while they are being read."""
    while True:
        step = decoder.decode(window)
        if step.end > window.start:
            window.advance(step.end, step.lines)
            if len(step.batch) or step.rejected:
                yield Chunk(step.batch, step.rejected)
        elif window.is_over:
            return
        elif len(window) > decoder.longest + 1:
            reason = too_long(decoder.longest)
            text = shown(window.data[window.start :][:1000])
            row = Rejected(window.name, window.line, reason, text)
            if not window.skip_line(decoder.blanks):
                yield Chunk(empty_batch(step.batch.type), (row,))
        else:
            window.more()


def unreadable(name: str, error: Exception) -> RunError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return RunError(f"cannot be read: {reason}", place=name)


def shorter(name: str) -> RunError:
    return RunError("has become shorter since it was read", place=name)


def open_file(path: Path, name: str) -> BinaryIO:
    try:
        if path.suffix == ".gz":
            return cast("BinaryIO", gzip.open(path, "rb"))
        return path.open("rb")
    except OSError as error:
        raise unreadable(name, error) from None


class TextReader:
    """Mutable: one open text. `decoder_of` looks at its beginning and may refuse it."""

    def __init__(
        self, stream: BinaryIO, name: str, decoder_of: Callable[[FileWindow], Decoder]
    ) -> None:
        self._stream = stream
        # A pipe gives what it has, so that rows are not kept waiting.
        read = stream.read if stream.seekable() else getattr(stream, "read1", stream.read)
        try:
            self._window = FileWindow(read, name)
            self._decoder = decoder_of(self._window)
        except BaseException:
            self.close()
            raise

    def chunks(self) -> Iterator[Chunk]:
        return decoded(self._window, self._decoder)

    def close(self) -> None:
        """Standard input belongs to the process and stays open."""
        if self._stream is not sys.stdin.buffer:
            self._stream.close()
