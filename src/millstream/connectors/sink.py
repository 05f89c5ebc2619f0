"""Where bytes go: a file that others see only when it is whole, or standard output."""

from __future__ import annotations

import gzip
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from millstream.errors import RunError, UsageError


class Sink(Protocol):
    """Mutable: an open file."""

    @property
    def name(self) -> str: ...

    @property
    def file(self) -> BinaryIO: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...


@contextmanager
def told(name: str) -> Iterator[None]:
    """Errors of the system in one sentence, except a pipe that nobody reads any more.

    That one is for the command line, which ends without a word as other commands do.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error).split("\n", 1)[0]
        raise RunError(f"cannot be written: {reason}", place=name) from None


def check_folder_of(target: Path, name: str) -> None:
    """Where something is to be made, there must be a folder; a new one may be a slip."""
    folder, here = target.parent, Path.cwd()
    if not folder.is_dir():
        shown = folder.relative_to(here) if folder.is_relative_to(here) else folder
        raise UsageError("its folder does not exist", place=name, hint=f"mkdir -p {shown}")


class FileSink:
    """Mutable: writes beside the target and renames at the end.

    What is no ordinary file (a device, a pipe) is written to directly: a rename would
    put a file in its place.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise UsageError("expected a file, this is a folder", place=name)
        check_folder_of(target, name)
        self._target = target
        self._is_direct = target.exists() and not target.is_file()
        unique = f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
        self._written = target if self._is_direct else target.with_name(unique)
        self._raw: BinaryIO | None = None
        with told(name):
            self._raw = self._written.open("wb" if self._is_direct else "xb")
        self._file: BinaryIO = self._raw
        if path.suffix == ".gz":
            self._file = cast("BinaryIO", _packed(self._raw))

    @property
    def file(self) -> BinaryIO:
        return self._file

    def commit(self) -> None:
        if self._raw is None:
            return
        try:
            with told(self.name):
                if self._file is not self._raw:
                    self._file.close()
                self._raw.flush()
                if not self._is_direct:
                    os.fsync(self._raw.fileno())
                self._raw.close()
                if not self._is_direct:
                    self._written.replace(self._target)
        except BaseException:
            self.abort()
            raise
        self._raw = None

    def abort(self) -> None:
        if self._raw is None:
            return
        raw, self._raw = self._raw, None
        for file in (self._file, raw):
            with suppress(OSError, ValueError):  # a full disk is no reason to stay
                file.close()
        if not self._is_direct:
            self._written.unlink(missing_ok=True)


def _packed(raw: BinaryIO) -> gzip.GzipFile:
    """Without a time of its own, so that the same rows give the same bytes."""
    return gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0)


#: Where a program is told of errors; opened as a file it would be emptied.
STANDARD_ERROR = Path("/dev/stderr")


class StandardSink:
    """Mutable: standard output or error, which is seen as it is written and is never closed."""

    def __init__(self, *, is_error: bool = False) -> None:
        self.name = "standard error" if is_error else "standard output"
        self._stream = sys.stderr if is_error else sys.stdout

    @property
    def file(self) -> BinaryIO:
        return self._stream.buffer

    def commit(self) -> None:
        with told(self.name):
            self._stream.buffer.flush()

    def abort(self) -> None:
        """What has been written cannot be taken back."""
