"""Results as objects of a store: one, or a folder of one for each batch.

A store shows an object when it is whole, so rows and the number of their batch appear together, as
in a folder here. It has no locks: before every batch it is looked whether the place is still ours.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from pyarrow import fs

from millstream.connectors.elsewhere.objects import file_system, told
from millstream.connectors.folder import PART, RECORD, ROWS_OF_A_PART
from millstream.connectors.location import Format, Location
from millstream.connectors.shelf import Record, Shelf, SpooledPart, new_job, record_in_bytes
from millstream.connectors.write import Shape, open_writer
from millstream.errors import RunError, UsageError, listing
from millstream.plan.batch import Batch

_PIECE_BYTES = 1 << 22


class _Store:
    """Mutable: a store, and a folder here in which objects are made."""

    def __init__(self, location: Location, shape: Shape) -> None:
        assert location.elsewhere is not None
        place = location.elsewhere
        self.text = location.text
        self.system = file_system(place, location.text)
        self.path = f"{place.host}/{place.path}".rstrip("/")
        self._made = Path(tempfile.mkdtemp(prefix="millstream-objects-"))
        self._location = replace(location, elsewhere=None)
        self._shape = shape

    def made(self, name: str, format_: Format) -> Any:
        """A writer of a file here, and where it is."""
        path = self._made / name
        location = replace(self._location, path=path, format=format_)
        return open_writer(location, self._shape, self.text), path

    def put(self, file: Path, key: str) -> None:
        writing = self.system.open_output_stream
        with told(self.text), file.open("rb") as source, writing(key) as target:
            shutil.copyfileobj(source, target, _PIECE_BYTES)
        file.unlink()

    def close(self) -> None:
        shutil.rmtree(self._made, ignore_errors=True)


class ObjectWriter:
    """Mutable: one object, which appears when the run has come to its end."""

    def __init__(self, location: Location, shape: Shape) -> None:
        self._store = _Store(location, shape)
        name = PurePosixPath(self._store.path).name
        self._writer, self._file = self._store.made(name, location.format)
        with told(location.text):
            folder = self._store.system.get_file_info(self._store.path.partition("/")[0])
        if folder.type is fs.FileType.NotFound:
            self.abort()
            raise UsageError("there is no such bucket", place=location.text)

    def write(self, batch: Batch) -> None:
        self._writer.write(batch)

    def close(self) -> None:
        if self._file.parent.exists():
            self._writer.close()
            self._store.put(self._file, self._store.path)
            self._store.close()

    def abort(self) -> None:
        self._writer.abort()
        self._store.close()


class _ObjectShelf(Shelf):
    """Mutable: the parts of a result that are objects."""

    def __init__(self, store: _Store, format_: Format) -> None:
        super().__init__(Path(store.path), RECORD, PART, format_, store.text)
        self._store = store
        self._key = f"{store.path}/{RECORD}"

    def names(self) -> list[str]:
        with told(self._store.text):
            selector = fs.FileSelector(self._store.path, allow_not_found=True)
            there = self._store.system.get_file_info(selector)
        return [info.base_name for info in there if info.type is fs.FileType.File]

    def parts(self) -> list[SpooledPart]:
        matched = ((name, PART.fullmatch(name)) for name in self.names())
        parts = [SpooledPart(int(m[1]), Path(name)) for name, m in matched if m]
        return sorted(parts, key=lambda part: part.number)

    def recorded(self) -> Record | None:
        with told(self._store.text):
            if self._store.system.get_file_info(self._key).type is fs.FileType.NotFound:
                return None
            with self._store.system.open_input_stream(self._key) as source:
                return record_in_bytes(source.read(), self._store.text)

    def store(self, record: bytes) -> None:
        with told(self._store.text), self._store.system.open_output_stream(self._key) as target:
            target.write(record)

    def remove(self, part: SpooledPart) -> None:
        with told(self._store.text):
            self._store.system.delete_file(f"{self._store.path}/{part.path.name}")

    def sync(self) -> None:
        """An object that a store shows is durable."""

    def check_owner(self) -> None:
        if self.recorded() != self.current:
            raise RunError("another run, or another output of this one, has taken this place over",
                           place=self._store.text)  # fmt: skip


class ObjectFolderWriter:
    """Mutable: a folder of objects. See `BatchWriter`; a plain writer fills it on `close`."""

    def __init__(self, location: Location, shape: Shape) -> None:
        self._store = _Store(location, shape)
        self._format = location.format
        self._shelf = _ObjectShelf(self._store, location.format)
        self._whole: list[Path] = []
        self._writer: Any = None
        self._rows = 0
        self._is_open = True
        try:
            self._refuse_foreign_objects()
        except BaseException:
            self.abort()
            raise

    def open(self, job: str, *, fresh: bool) -> int:
        return self._shelf.open(job, fresh=fresh)

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        if number < self._shelf.next:
            return
        self._shelf.check_owner()
        if len(batch):
            writer, file = self._store.made(self._name(number), self._format)
            try:
                for one in chain((batch,), more):
                    writer.write(one)
            except BaseException:
                writer.abort()
                raise
            writer.close()
            self._shelf.clear_for_new_parts()
            self._store.put(file, f"{self._store.path}/{file.name}")
        else:
            self._shelf.clear_for_new_parts()
        self._shelf.passed(number, is_empty=not len(batch))

    def write(self, batch: Batch) -> None:
        if self._shelf.current is not None:
            self.write_batch(self._shelf.next, batch)
            return
        if self._writer is not None and self._rows >= ROWS_OF_A_PART:
            self._writer.close()
            self._writer = None
        if self._writer is None and len(batch):
            name = self._name(len(self._whole))
            self._writer, file = self._store.made(name, self._format)
            self._whole.append(file)
            self._rows = 0
        if len(batch):
            self._writer.write(batch)
            self._rows += len(batch)

    def close(self) -> None:
        if not self._is_open:
            return
        if self._shelf.current is None:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            self.open(new_job(), fresh=True)
            self._shelf.clear_for_new_parts()
            for file in self._whole:
                self._store.put(file, f"{self._store.path}/{file.name}")
        self.abort()

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()
        self._is_open = False
        self._store.close()

    def _name(self, number: int) -> str:
        return f"part-{number:09}.{self._format.value}"

    def _refuse_foreign_objects(self) -> None:
        is_ours = self._shelf.recorded() is not None
        foreign = [
            name for name in sorted(self._shelf.names())
            if not name.startswith(".") and not (is_ours and PART.fullmatch(name))
        ]  # fmt: skip
        if foreign:
            raise UsageError(
                f"this folder holds objects that are not results of Millstream: {listing(foreign)}",
                place=self._store.text, hint="choose one that is empty or not there yet",
            )  # fmt: skip
