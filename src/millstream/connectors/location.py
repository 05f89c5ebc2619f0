"""Where rows come from or go to, as a person writes it: `trades/*.parquet`, `jsonl:-`.

The format is told by the name of the file or by a prefix (`csv:measurements.txt`). `-` is
standard input or output, as CSV unless a prefix says otherwise. A folder stands for the
files in it, which must be of one format; as an output it is filled with files of the format
that its prefix or name tells, Parquet if they tell none. `.csv.gz` and `.jsonl.gz` are read
and written compressed. `postgresql://...` is a table of a database, which can be an output.
"""

from __future__ import annotations

import enum
import glob
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from millstream.connectors.address import Database, is_database, masked, parse_database
from millstream.connectors.native import NativeSettings, native_in
from millstream.connectors.settings import GeneratorSettings, settings_in
from millstream.errors import UsageError, listing, suggest


class Format(enum.Enum):
    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"
    GENERATOR = "generator"
    POSTGRESQL = "postgresql"
    SPARK = "spark"


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
#: What can stand before a colon.
_PREFIXES = (Format.PARQUET, Format.CSV, Format.JSONL, Format.GENERATOR, Format.SPARK)
_PREFIX = re.compile(r"([a-z]+):(.*)", re.DOTALL)
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True, slots=True)
class Location:
    """A place for rows. `path` is None for standard input and output and for generators.

    `text` is what a person wrote, without passwords; of a database, `path` is the same text.
    """

    format: Format
    path: Path | None = None
    text: str = ""
    base: Path = field(default=Path(), compare=False)
    times: Times = "micros"
    generator: GeneratorSettings | None = None
    database: Database | None = None
    native: NativeSettings | None = None
    #: After so many microseconds without rows an input no longer holds time back.
    idle: int | None = None

    @property
    def is_at_hand(self) -> bool:
        """Whether this is files, which can be read twice."""
        elsewhere = (self.generator, self.database, self.native)
        return self.path is not None and elsewhere == (None, None, None)

    @property
    def is_in_order(self) -> bool:
        """Whether rows can only come in their order: generated ones, and those Spark reads."""
        return self.generator is not None or self.native is not None

    @property
    def is_pattern(self) -> bool:
        """Whether this may stand for several files."""
        path = self.path
        if path is None or self.database is not None or path.is_file():
            return False
        return path.is_dir() or glob.has_magic(str(path))

    @property
    def is_folder(self) -> bool:
        """Whether this is a folder, there already or not yet."""
        if self.path is None or self.database is not None:
            return False
        return self.text.endswith("/") or self.path.is_dir()

    @property
    def format_of_parts(self) -> Format:
        """The format of the files that an output puts into this folder.

        What lies in the folder from earlier runs does not count.
        """
        prefix, written = _split_prefix(self.text)
        return prefix or format_of(written.rstrip("/")) or Format.PARQUET

    def name_of(self, path: Path) -> str:
        """A file's name in messages: as the user would write it."""
        _, written = _split_prefix(self.text)
        if Path(written).is_absolute() or not path.is_relative_to(self.base):
            return str(path)
        return str(path.relative_to(self.base))


def parse_location(text: str, base: Path) -> Location:
    """The location that a text means; relative names start at `base`."""
    if is_database(text):
        shown = masked(text)
        database = parse_database(text)
        return Location(Format.POSTGRESQL, Path(shown), shown, base, database=database)
    if _ADDRESS.match(text):
        raise _unknown_format(text)
    prefix, rest = _split_prefix(text)
    if prefix is Format.GENERATOR:
        return Location(prefix, text=text, base=base, generator=settings_in(rest))
    if prefix is Format.SPARK:
        return Location(prefix, text=text, base=base, native=native_in(rest))
    if not rest:
        raise UsageError("expected a file, got an empty name", place=text or None)
    if rest == "-":
        if prefix is Format.PARQUET:
            raise UsageError("Parquet needs a file", hint="csv:- and jsonl:- take none")
        return Location(prefix or Format.CSV, None, text, base)
    path = base / rest
    if prefix is None:
        prefix = _format_in(path, text) if path.is_dir() else format_of(rest.rstrip("/"))
    if prefix is None and rest.endswith("/"):
        prefix = Format.PARQUET
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
    prefix = _PREFIX.fullmatch(text)
    if prefix and prefix[1] in {f.value for f in _PREFIXES}:
        return Format(prefix[1]), prefix[2]
    return None, text


def _unknown_format(text: str) -> UsageError:
    address = _ADDRESS.match(text)
    if address:
        return UsageError(
            f'unknown kind of address "{address[1]}://"',
            hint="an output can be a file, a folder or postgresql://user@host/database?table=name",
        )
    prefix = _PREFIX.fullmatch(text)
    if prefix:
        names = [f.value for f in _PREFIXES]
        near = suggest(prefix[1], names)
        hint = f"formats are: {listing(names)}. {near or ''}".strip()
        return UsageError(f'unknown format "{prefix[1]}"', hint=hint)
    hint = f"end its name in .parquet, .csv or .jsonl, or say it, such as csv:{text}"
    return UsageError(f'cannot tell the format of "{text}"', hint=hint)


def _format_in(folder: Path, text: str) -> Format:
    """The one format of the files in a folder; Parquet if there is none yet.

    Whether files are needed is not known here: the folder may be for output.
    """
    formats = {f for p in _visible(folder) if (f := format_of(p.name))}
    if len(formats) > 1:
        names = sorted(f.value for f in formats)
        raise UsageError(
            f'the folder "{text}" holds files of several formats: {listing(names)}',
            hint=f"take one of them, such as {names[0]}:{text}",
        )
    return formats.pop() if formats else Format.PARQUET


def _visible(folder: Path) -> list[Path]:
    return [p for p in folder.iterdir() if not p.name.startswith(".")]


def files_now(location: Location) -> list[Path]:
    """The files there are at this moment, by name; perhaps none."""
    path = location.path
    assert path is not None, location
    if location.database is not None:
        raise UsageError(
            "a database cannot be an input yet",
            place=location.text,
            hint="millstream read shows its rows",
        )
    if path.is_dir():
        paths = [p for p in _visible(path) if format_of(p.name) is location.format]
    elif path.exists():
        return [path]
    else:
        paths = [Path(name) for name in glob.glob(str(path), recursive=True)]  # noqa: PTH207 - takes absolute patterns
    return sorted(p for p in paths if not p.is_dir())


def matching_files(location: Location) -> list[Path]:
    """The files, by name; an error if there is none."""
    files = files_now(location)
    if files:
        return files
    path = location.path
    assert path is not None, location
    name = location.name_of(path)
    folder = path if path.is_dir() else path.parent
    if path.is_dir() and not any(format_of(p.name) for p in _visible(path)):
        raise UsageError(
            f'the folder "{location.text}" holds no Parquet, CSV or JSON Lines file',
            hint=f"it has: {listing(sorted(p.name for p in _visible(path)))}",
        )
    if glob.has_magic(str(folder)):
        raise UsageError(f'no file matches "{name}"')
    if not folder.is_dir():
        raise UsageError(f'there is no folder "{location.name_of(folder)}"', place=name)
    there = sorted(location.name_of(p) for p in _visible(folder))
    if location.is_pattern:
        raise UsageError(f'no file matches "{name}"', hint=f"there are: {listing(there)}")
    hint = suggest(name, there) or f"there are: {listing(there)}"
    raise UsageError(f'there is no file "{name}"', hint=hint)
