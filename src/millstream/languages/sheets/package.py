"""An `.xlsx` file as a package of parts, opened with suspicion.

What is not a workbook, is encrypted, would unpack to far more than it weighs, or declares a
document type is refused before anything of it is used.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException, DTDForbidden
from defusedxml.ElementTree import iterparse

from millstream.errors import ProgramError, UsageError

MAX_PARTS = 10_000
MAX_UNPACKED = 1 << 30
#: XML packs well, but not a thousandfold.
MAX_RATIO = 250
_SMALL_PART = 1 << 20

_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class Package:
    """The parts of a workbook, by name."""

    def __init__(self, archive: zipfile.ZipFile, shown: str) -> None:
        self.archive = archive
        self.shown = shown
        self.names = {name.lower(): name for name in archive.namelist()}

    def has(self, part: str) -> bool:
        return part.lower() in self.names

    def elements(self, part: str, *tags: str, begun: str = "") -> Iterator[tuple[str, Element]]:
        """The ended elements of a part with these local names, which are then emptied.

        Those of one name are given as they begin, with what is written in their first tag.
        """
        wanted = frozenset(tags)
        try:
            with self._opened(part) as file:
                events: Any = iterparse(file, events=("start", "end"), forbid_dtd=True)
                _, root = next(events)
                for event, element in events:
                    tag = element.tag.rpartition("}")[2]
                    if tag == begun and event == "start":
                        yield tag, element
                    if event == "end" and (tag in wanted or tag == begun):
                        if tag != begun:
                            yield tag, element
                        element.clear()
                        if len(root) > 64:
                            root.clear()
        except DTDForbidden:
            raise self.refused(
                f"{part} declares a document type (DOCTYPE), which no workbook has"
            ) from None
        except DefusedXmlException as error:
            raise self.refused(f"{part} uses XML that no workbook has: {error}") from None
        except (ParseError, zipfile.BadZipFile, EOFError, OSError, StopIteration) as error:
            raise self.refused(f"{part} is damaged: {error}") from None

    def count(self, part: str, *marks: bytes) -> int:
        """How often some marks of one length stand in a part, as fast as it is unpacked."""
        count, rest, shortest = 0, b"", min(map(len, marks))
        with self._opened(part) as file:
            while chunk := file.read(1 << 20):
                text = rest + chunk
                count += sum(map(text.count, marks))
                rest = text[1 - shortest :]
        return count

    def size(self, part: str) -> int:
        name = self.names.get(part.lower())
        return self.archive.getinfo(name).file_size if name else 0

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Relation id to kind and part, of a part."""
        folder, name = posixpath.split(part)
        file = posixpath.join(folder, "_rels", f"{name}.rels")
        if not self.has(file):
            return {}
        relations: dict[str, tuple[str, str]] = {}
        for _, element in self.elements(file, "Relationship"):
            target = element.get("Target", "")
            path = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
            kind = element.get("Type", "").rpartition("/")[2]
            relations[element.get("Id", "")] = (kind, posixpath.normpath(path))
        return relations

    @contextmanager
    def _opened(self, part: str) -> Iterator[IO[bytes]]:
        name = self.names.get(part.lower())
        if name is None:
            raise self.refused(f"it has no part {part}")
        with self.archive.open(name) as file:
            yield file

    def refused(self, why: str) -> ProgramError:
        return ProgramError(f"this workbook cannot be read: {why}", place=self.shown)


@contextmanager
def opened_package(path: Path, shown: str) -> Iterator[Package]:
    """The package of a file, closed at the end."""
    _check_kind(path, shown)
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise ProgramError(f"this workbook cannot be read: {error}", place=shown) from None
    with archive:
        package = Package(archive, shown)
        _check_size(archive, package)
        if not package.has("[Content_Types].xml"):
            raise package.refused("it is an archive, but not one of Excel's")
        yield package


def _check_kind(path: Path, shown: str) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise UsageError(f"cannot read this file: {error.strerror}", place=shown) from None
    if head == _COMPOUND_FILE:
        raise ProgramError(
            "this workbook is encrypted, or in the old .xls format",
            place=shown,
            hint="open it, remove the password, and save it as .xlsx",
        )
    if not head.startswith(b"PK"):
        raise ProgramError("this is not a workbook (.xlsx)", place=shown)


def _check_size(archive: zipfile.ZipFile, package: Package) -> None:
    parts = archive.infolist()
    if len(parts) > MAX_PARTS:
        raise package.refused(f"it has {len(parts):,} parts; at most {MAX_PARTS:,} are read")
    total = 0
    for part in parts:
        if part.flag_bits & 1:
            raise package.refused("it is encrypted")
        total += part.file_size
        is_small = part.file_size <= _SMALL_PART
        if not is_small and part.file_size > MAX_RATIO * max(1, part.compress_size):
            raise package.refused(
                f"{part.filename} would unpack to {part.file_size:,} bytes from "
                f"{part.compress_size:,}: it looks like a zip bomb"
            )
    if total > MAX_UNPACKED:
        raise package.refused(
            f"it would unpack to {total:,} bytes; at most {MAX_UNPACKED:,} are read"
        )
