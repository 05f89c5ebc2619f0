"""Where rows come from or go to, as a person writes it: `trades/*.parquet`, `jsonl:-`.

The format is told by the name of the file or by a prefix (`csv:measurements.txt`). `-` is
standard input or output, as CSV unless a prefix says otherwise. A folder stands for the
files in it, which must be of one format; as an output it is filled with files of the format
that its prefix or name tells, Parquet if they tell none. `.csv.gz` and `.jsonl.gz` are read
and written compressed. `raw:samples.in` has 32 bits for every number and nothing else, of which
`raw:samples.in?rows=100` reads the first hundred; `raw:?by=name` writes each row to the file that
its column `name` tells. `trades.csv?separator=;` is in another dialect of CSV. `.txt` and `.log`
are read as lines.
`postgresql://...` is a table of a database, which can be an output. `totals.csv?state` is an output
that has what stands of a relation, not its changes.
"""

from __future__ import annotations

import enum
import glob
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, unquote

from millstream.connectors.address import Database, is_database, masked, parse_database
from millstream.connectors.dialect import SETTINGS, STANDARD, Dialect, split_dialect
from millstream.connectors.elsewhere.address import (
    SCHEMES,
    Elsewhere,
    is_elsewhere,
    parse_elsewhere,
    refuse_settings,
    shown,
)
from millstream.connectors.native import NativeSettings, native_in
from millstream.connectors.settings import GeneratorSettings, settings_in
from millstream.errors import UsageError, listing, suggest


class Format(enum.Enum):
    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"
    RAW = "raw"
    LINES = "lines"
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
    ".tsv": Format.CSV,
    ".tsv.gz": Format.CSV,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".jsonl.gz": Format.JSONL,
    ".ndjson.gz": Format.JSONL,
    ".txt": Format.LINES,
    ".txt.gz": Format.LINES,
    ".log": Format.LINES,
    ".log.gz": Format.LINES,
}
#: What can stand before a colon.
_PREFIXES = (
    Format.PARQUET, Format.CSV, Format.JSONL, Format.RAW, Format.LINES, Format.GENERATOR,
    Format.SPARK,
)  # fmt: skip
#: Before a table of Delta Lake, and of Iceberg.
_DELTA, _ICEBERG = "delta:", "iceberg:"
#: After an output: what stands is wanted, not what changes.
_STATE = "?state"
_TABBED = re.compile(r"\.tsv(\.gz)?$", re.IGNORECASE)
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
    #: Of a raw file, only so many rows are read.
    rows: int | None = None
    #: Of raw files, the column that names the file of a row.
    by: str | None = None
    #: Whether an output is what stands, not what changes.
    is_state: bool = False
    #: Of CSV files.
    dialect: Dialect = STANDARD
    #: A place that is no file here, and the address from which these files were brought.
    elsewhere: Elsewhere | None = None
    brought_from: str | None = None

    @property
    def is_at_hand(self) -> bool:
        """Whether this is files, which can be read twice."""
        others = (self.generator, self.database, self.native, self.elsewhere)
        return self.path is not None and others == (None,) * 4

    @property
    def is_standard(self) -> bool:
        """Whether this is standard input or output, perhaps kept in a file meanwhile."""
        return _split_prefix(self.text)[1].partition("?")[0] == "-"

    @property
    def is_unsaid(self) -> bool:
        """Whether only the files of this folder, perhaps those to come, tell their format."""
        prefix, rest = _split_prefix(self.text)
        return prefix is None and self.is_folder and format_of(rest.rstrip("/")) is None

    @property
    def is_in_order(self) -> bool:
        """Whether rows can only come in their order: generated ones, and those Spark reads."""
        return self.generator is not None or self.native is not None

    @property
    def is_pattern(self) -> bool:
        """Whether this may stand for several files."""
        path = self.path
        if (
            path is None
            or self.database is not None
            or self.elsewhere is not None
            or path.is_file()
        ):
            return False
        return path.is_dir() or glob.has_magic(str(path))

    @property
    def is_folder(self) -> bool:
        """Whether this is a folder, there already or not yet."""
        if self.path is None or self.database is not None or self.elsewhere is not None:
            return False
        if self.by is not None:
            return False
        return self.text.endswith("/") or self.path.is_dir()

    @property
    def format_of_parts(self) -> Format:
        """The format of the files that an output puts into this folder.

        What lies in the folder from earlier runs does not count.
        """
        prefix, written = _split_prefix(self.text)
        return prefix or format_of(written.rstrip("/")) or Format.PARQUET

    def of_file(self, path: Path) -> Location:
        """The same for one of its files."""
        return replace(self, format=format_of(path.name) or self.format) if self.is_unsaid else self

    def name_of(self, path: Path) -> str:
        """A file's name in messages: as the user would write it."""
        if self.brought_from is not None:
            name = unquote(path.name)
            return f"{self.brought_from.partition('?')[0]} ({name.removesuffix('.jsonl.gz')})"
        if self.is_standard:
            return "standard input"
        _, written = _split_prefix(self.text)
        written = split_dialect(written.partition("?rows=")[0])[0]
        if Path(written).is_absolute() or not path.is_relative_to(self.base):
            return str(path)
        return str(path.relative_to(self.base))


def parse_location(text: str, base: Path) -> Location:
    """The location that a text means; relative names start at `base`."""
    has_settings = is_database(text) or text.startswith(_ICEBERG)
    if text.endswith(_STATE) or (has_settings and text.endswith("&state")):
        return replace(parse_location(text[: -len(_STATE)], base), is_state=True)
    if is_database(text):
        visible = masked(text)
        database = parse_database(text)
        return Location(Format.POSTGRESQL, Path(visible), visible, base, database=database)
    if is_elsewhere(text):
        return _located_elsewhere(text, base)
    if text.startswith(_DELTA):
        return _delta_table(text, base)
    if text.startswith(_ICEBERG):
        return _iceberg_table(text, base)
    if _ADDRESS.match(text):
        raise _unknown_format(text)
    prefix, rest = _split_prefix(text)
    if prefix is Format.GENERATOR:
        return Location(prefix, text=text, base=base, generator=settings_in(rest))
    if prefix is Format.SPARK:
        return Location(prefix, text=text, base=base, native=native_in(rest))
    if not rest:
        raise UsageError("expected a file, got an empty name", place=text or None)
    if rest.partition("?")[0] == "-":
        return _standard(prefix, rest, text, base)
    if prefix is Format.RAW:
        rest, _, by = rest.partition("?by=")
        if by:
            return Location(prefix, base / rest, text, base, by=by)
        rest, _, rows = rest.partition("?rows=")
        if rows and not rows.isdigit():
            raise UsageError(f'expected a number of rows, got "{rows}"', place=text)
        return Location(prefix, base / rest, text, base, rows=int(rows) if rows else None)
    rest, dialect = split_dialect(rest)
    path = base / rest
    if prefix is None:
        prefix = _format_in(path, text) if path.is_dir() else format_of(rest.rstrip("/"))
    if prefix is None and rest.endswith("/"):
        prefix = Format.PARQUET
    if prefix is None:
        raise _unknown_format(rest)
    if dialect is None:
        is_tabbed = prefix is Format.CSV and _TABBED.search(rest)
        dialect = Dialect(separator="\t") if is_tabbed else STANDARD
    return _in_dialect(Location(prefix, path, text, base), dialect)


def _delta_table(text: str, base: Path) -> Location:
    where = text.removeprefix(_DELTA)
    if not where:
        raise UsageError("this address names no table", place=text, hint="such as delta:trades")
    path = where if "://" in where else str(base / where)
    place = Elsewhere("delta", "", path)
    return Location(Format.PARQUET, Path(shown(path)), shown(text), base, elsewhere=place)


def _iceberg_table(text: str, base: Path) -> Location:
    where, _, query = text.removeprefix(_ICEBERG).partition("?")
    settings = dict(parse_qsl(query, keep_blank_values=True))
    place = Elsewhere("iceberg", "", where, settings)
    refuse_settings(place, ("catalog",), shown(text))
    name = where.rpartition("/")[2]
    has_folder = "/" in where
    if name.count(".") == 0 or "" in name.split(".") or has_folder == ("catalog" in settings):
        raise UsageError("a table of Iceberg has a namespace, and a folder or a catalog",
                         place=shown(text),
                         hint="such as iceberg:lake/shop.trades, or "
                         "iceberg:shop.trades?catalog=prod")  # fmt: skip
    if has_folder:
        place = replace(place, path=str(base / where))
    return Location(Format.PARQUET, Path(shown(where)), shown(text), base, elsewhere=place)


def _located_elsewhere(text: str, base: Path) -> Location:
    """Objects are in the format that their names tell, all else is JSON Lines."""
    place, shown_ = parse_elsewhere(text), shown(text)
    format_ = Format.JSONL
    if place.is_objects:
        format_told = format_of(place.path.rstrip("/"))
        if format_told is None and not place.path.endswith("/"):
            raise UsageError(f'cannot tell the format of "{shown_}"',
                             hint="its name should end in .parquet, .csv or .jsonl")  # fmt: skip
        format_ = format_told or Format.PARQUET
    return Location(format_, Path(shown_), shown_, base, elsewhere=place)


def _standard(prefix: Format | None, rest: str, text: str, base: Path) -> Location:
    if prefix is Format.PARQUET:
        raise UsageError("Parquet needs a file", hint="csv:- and jsonl:- take none")
    _, dialect = split_dialect(rest)
    return _in_dialect(Location(prefix or Format.CSV, None, text, base), dialect or STANDARD)


def _in_dialect(location: Location, dialect: Dialect) -> Location:
    if dialect.is_told and location.format is not Format.CSV:
        what = f"{location.format.value} has no such settings"
        hint = f"{listing(SETTINGS)} are settings of CSV"
        raise UsageError(what, place=location.text, hint=hint)
    return replace(location, dialect=dialect)


def seen_from(text: str, folder: Path) -> str:
    """A location that is meant from a folder, as it is written outside of that."""
    prefix, rest = _split_prefix(text)
    is_file = prefix not in (Format.GENERATOR, Format.SPARK) and rest != "-"
    if not is_file or is_database(text) or is_elsewhere(text):
        return text
    if text.startswith(_DELTA):
        where = text.removeprefix(_DELTA)
        return text if "://" in where else f"{_DELTA}{folder / where}"
    if text.startswith(_ICEBERG):
        where = text.removeprefix(_ICEBERG)
        return f"{_ICEBERG}{folder / where}" if "/" in where.partition("?")[0] else text
    return f"{prefix.value}:{folder / rest}" if prefix else str(folder / rest)


def lines_at(given: str | Path | Location) -> Location:
    """Where lines are read that are all a program wants: of any text, whatever its name says."""
    if isinstance(given, Location):
        is_text = given.format in (Format.CSV, Format.JSONL)
        return replace(given, format=Format.LINES) if is_text else given
    prefix, rest = _split_prefix(str(given))
    is_text = prefix is None and format_of(rest) is not Format.PARQUET
    return parse_location(f"lines:{rest}" if is_text else str(given), Path())


def format_of(name: str) -> Format | None:
    """The format that the ending of a file name tells."""
    _, *endings = name.lower().split(".")
    last = endings[-2:] if endings[-1:] == ["gz"] else endings[-1:]
    return _FORMAT_OF_ENDING.get(".".join(["", *last]))


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
            hint=f"addresses are: {listing(f'{one}://' for one in (*SCHEMES, 'postgresql'))}",
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
    return _only_format((format_of(p.name) for p in _visible(folder)), text)


def _only_format(formats: Iterable[Format | None], text: str) -> Format:
    kinds = {f for f in formats if f is not None}
    if kinds != {Format.LINES}:
        kinds.discard(Format.LINES)  # notes that somebody has put beside the data
    if len(kinds) > 1:
        names = sorted(f.value for f in kinds)
        raise UsageError(
            f'the folder "{text}" holds files of several formats: {listing(names)}',
            hint=f"take one of them, such as {names[0]}:{text}",
        )
    return kinds.pop() if kinds else Format.PARQUET


def _visible(folder: Path) -> list[Path]:
    return [p for p in folder.iterdir() if not p.name.startswith(".")]


def files_now(location: Location) -> list[Path]:
    """The files there are at this moment, by name; perhaps none."""
    return [Path(text) for text in file_names_now(location)]


def file_names_now(location: Location) -> list[str]:
    """The same as texts: a run that follows looks at all of them for every batch."""
    path = location.path
    assert path is not None, location
    if location.database is not None:
        raise UsageError(
            "only a run brings the rows of this database",
            place=location.text,
            hint="millstream read shows what a run has written there",
        )
    if location.elsewhere is not None:
        raise UsageError("only a run brings the rows of this address", place=location.text)
    if path.is_dir():
        return _names_in(path, location)
    if path.exists():
        return [str(path)]
    names = glob.glob(str(path), recursive=True)  # noqa: PTH207 - takes absolute patterns
    return sorted(
        (name for name in names if not Path(name).is_dir()), key=lambda name: Path(name).parts
    )


def _names_in(folder: Path, location: Location) -> list[str]:
    with os.scandir(folder) as entries:
        formats = {
            entry.path: format_of(entry.name)
            for entry in entries
            if entry.name[0] != "." and not entry.is_dir()
        }
    is_unsaid = location.is_unsaid
    wanted = _only_format(formats.values(), location.text) if is_unsaid else location.format
    return sorted(path for path, format_ in formats.items() if format_ is wanted)


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
