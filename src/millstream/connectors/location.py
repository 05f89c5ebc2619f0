"""Where rows come from or go to, as a person writes it: `trades/*.parquet`, `jsonl:-`.

The format is told by the name of the file or by a prefix (`csv:measurements.txt`). `-` is
standard input or output, as CSV unless a prefix says otherwise. A folder stands for the
files in it, which must be of one format. `.csv.gz` and `.jsonl.gz` are read and written
compressed.
"""

from __future__ import annotations

import enum
import glob
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from millstream.connectors.settings import GeneratorSettings, settings_in
from millstream.errors import UsageError, listing, suggest


class Format(enum.Enum):
    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"
    GENERATOR = "generator"


#: How times are written in text formats; both are read.
Times = Literal["micros", "iso"]

_FORMAT_OF_ENDING = {
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".csv": Format.CSV,
    ".csv.gz": Format.CSV,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".jsonl.gz": Format.JSONL,
    ".ndjson.gz": Format.JSONL,
}
_FILE_FORMATS = (Format.PARQUET, Format.CSV, Format.JSONL)
_PREFIX = re.compile(r"([a-z]+):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Location:
    """A place for rows. `path` is None for standard input and output and for generators."""

    format: Format
    path: Path | None = None
    text: str = ""
    base: Path = field(default=Path(), compare=False)
    times: Times = "micros"
    generator: GeneratorSettings | None = None

    @property
    def is_pattern(self) -> bool:
        """Whether this may stand for several files."""
        path = self.path
        if path is None or path.is_file():
            return False
        return path.is_dir() or glob.has_magic(str(path))

    def name_of(self, path: Path) -> str:
        """A file's name in messages: as the user would write it."""
        _, written = _split_prefix(self.text)
        if Path(written).is_absolute() or not path.is_relative_to(self.base):
            return str(path)
        return str(path.relative_to(self.base))


def parse_location(text: str, base: Path) -> Location:
    """The location that a text means; relative names start at `base`."""
    prefix, rest = _split_prefix(text)
    if prefix is Format.GENERATOR:
        return Location(prefix, text=text, base=base, generator=settings_in(rest))
    if not rest:
        raise UsageError("expected a file, got an empty name", place=text or None)
    if rest == "-":
        if prefix is Format.PARQUET:
            raise UsageError("Parquet needs a file", hint="csv:- and jsonl:- take none")
        return Location(prefix or Format.CSV, None, text, base)
    path = base / rest
    if prefix is None:
        prefix = _format_in(path, text) if path.is_dir() else format_of(rest)
    if prefix is None:
        raise _unknown_format(rest)
    return Location(prefix, path, text, base)


def format_of(name: str) -> Format | None:
    """The format that the ending of a file name tells."""
    lowered = name.lower()
    return next((f for e, f in _FORMAT_OF_ENDING.items() if lowered.endswith(e)), None)


def _split_prefix(text: str) -> tuple[Format | None, str]:
    if text == Format.GENERATOR.value:
        return Format.GENERATOR, ""
    found = _PREFIX.fullmatch(text)
    if found and found[1] in {f.value for f in Format}:
        return Format(found[1]), found[2]
    return None, text


def _unknown_format(text: str) -> UsageError:
    found = _PREFIX.fullmatch(text)
    if found:
        names = [f.value for f in Format]
        near = suggest(found[1], names)
        hint = f"formats are: {listing(names)}. {near or ''}".strip()
        return UsageError(f'unknown format "{found[1]}"', hint=hint)
    hint = f"end its name in .parquet, .csv or .jsonl, or say it, such as csv:{text}"
    return UsageError(f'cannot tell the format of "{text}"', hint=hint)


def _format_in(folder: Path, text: str) -> Format:
    """The one format of the files in a folder."""
    found = {f for p in _visible(folder) if (f := format_of(p.name))}
    if len(found) == 1:
        return found.pop()
    names = sorted(f.value for f in found)
    if names:
        raise UsageError(
            f'the folder "{text}" holds files of several formats: {listing(names)}',
            hint=f"take one of them, such as {names[0]}:{text}",
        )
    raise UsageError(
        f'the folder "{text}" holds no Parquet, CSV or JSON Lines file',
        hint=f"it has: {listing(sorted(p.name for p in _visible(folder)))}",
    )


def _visible(folder: Path) -> list[Path]:
    return [p for p in folder.iterdir() if not p.name.startswith(".")]


def files_now(location: Location) -> list[Path]:
    """The files there are at this moment, by name; perhaps none."""
    path = location.path
    assert path is not None, location
    if path.is_dir():
        found = [p for p in _visible(path) if format_of(p.name) is location.format]
    elif path.exists():
        return [path]
    else:
        found = [Path(name) for name in glob.glob(str(path), recursive=True)]  # noqa: PTH207 - takes absolute patterns
    return sorted(p for p in found if not p.is_dir())


def matching_files(location: Location) -> list[Path]:
    """The files, by name; an error if there is none."""
    files = files_now(location)
    if files:
        return files
    path = location.path
    assert path is not None, location
    name = location.name_of(path)
    folder = path if path.is_dir() else path.parent
    if glob.has_magic(str(folder)):
        raise UsageError(f'no file matches "{name}"')
    if not folder.is_dir():
        raise UsageError(f'there is no folder "{location.name_of(folder)}"', place=name)
    there = sorted(location.name_of(p) for p in _visible(folder))
    if location.is_pattern:
        raise UsageError(f'no file matches "{name}"', hint=f"there are: {listing(there)}")
    hint = suggest(name, there) or f"there are: {listing(there)}"
    raise UsageError(f'there is no file "{name}"', hint=hint)
