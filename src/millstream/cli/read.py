"""`millstream read`: the rows of a file, a folder of results or a table of a database."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    TIME_COLUMN,
    Kind,
    Type,
)
from millstream.cli.show import SHOWN_ROWS, print_table, time_shown
from millstream.connectors.location import Format, Location, parse_location
from millstream.connectors.results import FileResults, Replaced, Results, Tables, joined
from millstream.connectors.sink import StandardSink
from millstream.connectors.standing import standing
from millstream.connectors.texts import csv_header, csv_lines, jsonl_lines
from millstream.connectors.write import TextTable
from millstream.errors import RunError, UsageError
from millstream.plan.batch import Vector, vector_from_arrow
from millstream.values.instants import parse_time

POLL_SECONDS = 0.5


def run(arguments: argparse.Namespace) -> int:
    location = parse_location(arguments.path, Path())
    limit: int | None = arguments.limit
    if limit is not None and limit < 1:
        raise UsageError("--limit must be 1 or more")
    chosen = arguments.format or ("table" if sys.stdout.isatty() else "csv")
    if chosen == "table" and limit is None and not arguments.follow:
        limit = SHOWN_ROWS
    if arguments.follow:
        _check_can_follow(location)
    with ExitStack() as stack:
        results = stack.enter_context(closing(_results(location, stack)))
        if arguments.state or arguments.as_of:
            _show_state(results, arguments, location, limit, chosen)
        elif arguments.follow:
            with suppress(KeyboardInterrupt):  # the way to end it
                _follow(results, _shower(chosen), limit)
        else:
            _show_all(results, _shower(chosen), limit, location, is_table=chosen == "table")
    return 0


def _results(location: Location, stack: ExitStack) -> Results:
    if location.elsewhere is not None:
        location = _brought(location, stack)
    if location.database is not None:
        from millstream.connectors.elsewhere.extras import optional

        optional("psycopg", "postgres")
        from millstream.connectors.postgres_rows import TableResults

        return TableResults(location)
    if location.path is None:
        raise UsageError(
            "expected a file, a folder or an address of a database", place=location.text
        )
    return FileResults(location)


def _brought(location: Location, stack: ExitStack) -> Location:
    """What a store or a table has now, in a folder here for as long as it is shown."""
    place = location.elsewhere
    if place is not None and place.is_messages:
        raise UsageError(
            "messages are read by a program, and not shown as they are", place=location.text,
            hint="run one with it as an input",
        )  # fmt: skip
    from millstream.connectors.elsewhere.bring import Bringing

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="millstream-read-")))
    return stack.enter_context(closing(Bringing(location, folder, is_following=False))).location


def _check_can_follow(location: Location) -> None:
    if location.elsewhere is not None:
        raise UsageError("only what is there now can be read here", place=location.text,
                         hint="leave --follow out")  # fmt: skip
    if location.database is None and not location.is_pattern:
        raise UsageError(
            "a single file cannot be followed: it appears when it is complete",
            place=location.text,
        )


def _show_all(
    results: Results, show: Shower, limit: int | None, location: Location, *, is_table: bool
) -> None:
    shown = 0
    kept = []
    try:
        for table in _first(_undisturbed(results), limit):
            shown += table.num_rows
            if not is_table:
                show(table)
            elif table.num_rows:
                kept.append(table)  # the widths of columns depend on all rows
        count = results.count() if is_table else shown
    except Replaced:
        raise RunError(
            "a new run has replaced these results while they were read",
            place=location.text,
            hint="read them again",
        ) from None
    if shown and is_table:
        show(joined(kept))
    elif is_table:
        print(f"{location.text}: no rows")
    if count > shown:
        print(f"... {count:,} rows in all; --limit {count} shows them")


def _show_state(
    results: Results,
    arguments: argparse.Namespace,
    location: Location,
    limit: int | None,
    chosen: str,
) -> None:
    if arguments.follow:
        raise UsageError("--state shows what stands now", hint="leave --follow out")
    as_of = None if arguments.as_of is None else parse_time(arguments.as_of)
    if arguments.as_of is not None and as_of is None:
        raise UsageError(f'"{arguments.as_of}" is not a time', hint="such as 2026-01-05T09:30:00Z")
    table = standing(_undisturbed(results), as_of)
    count = 0 if table is None else table.num_rows
    if not count and chosen == "table":
        print(f"{location.text}: no rows")
    elif table is not None:
        _shower(chosen)(table.slice(0, limit))
    if limit is not None and count > limit:
        print(f"... {count:,} rows in all; --limit {count} shows them")


def _follow(results: Results, show: Shower, limit: int | None) -> None:
    """Everything that is there, then what comes; from the beginning when it is replaced."""
    for table in _first(_without_end(results), limit):
        if table.num_rows:
            show(table)
            sys.stdout.flush()


def _without_end(results: Results) -> Tables:
    tables = results.tables
    while True:
        try:
            yield from tables()
            tables = results.news
            time.sleep(POLL_SECONDS)
        except Replaced:
            print("a new run has replaced these results", file=sys.stderr)
            tables = results.again


def _undisturbed(results: Results) -> Tables:
    """All rows; from the beginning if they are replaced before any has been shown."""
    for tables in (results.tables, results.again, results.again):
        has_shown = False
        try:
            for table in tables():
                has_shown = True
                yield table
        except Replaced:
            if has_shown:
                raise
        else:
            return
    raise Replaced


def _first(tables: Tables, limit: int | None) -> Iterator[Any]:
    with closing(tables):
        for table in tables:
            yield table if limit is None else table.slice(0, limit)
            if limit is not None:
                limit -= table.num_rows
                if limit <= 0:
                    return


# --- how rows are shown ---

Shower = Callable[[Any], None]


def _shower(chosen: str) -> Shower:
    return _show_table if chosen == "table" else _TextShower(Format(chosen))


class _TextShower:
    """Mutable: prints tables one after another as one; the first one gives the columns."""

    def __init__(self, format_: Format) -> None:
        self._format = format_
        self._names: list[str] | None = None
        self._text: TextTable | None = None

    def __call__(self, table: Any) -> None:
        if self._text is None:
            self._names, self._text = table.column_names, self._opened(table.column_names)
        if table.column_names != self._names:
            raise RunError("these files have different columns", hint="read them one by one")
        if table.num_rows:
            self._text.write([_vector(n, table[n]) for n in table.column_names])
            self._text.close()

    def _opened(self, names: list[str]) -> TextTable:
        if self._format is Format.CSV:
            return TextTable(StandardSink(), csv_header(names), lambda c: csv_lines(c, "micros"))
        return TextTable(StandardSink(), b"", lambda c: jsonl_lines(names, c, "micros"))


def _show_table(table: Any) -> None:
    names = table.column_names
    columns = [_readable(_vector(n, table[n])) for n in names]
    print_table([dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)])


def _readable(vector: Vector) -> list[Any]:
    values: list[Any] = vector.to_list()
    if vector.type.kind is not Kind.TIME:
        return values
    return [v if v is None else time_shown(v) for v in values]


_TYPES: tuple[tuple[Callable[[Any], bool], Type, Any], ...] = (
    (pa.types.is_timestamp, TIME, pa.timestamp("us", "UTC")),
    (pa.types.is_duration, DURATION, pa.duration("us")),
    (pa.types.is_boolean, BOOLEAN, pa.bool_()),
    (pa.types.is_integer, INTEGER, pa.int64()),
    (pa.types.is_floating, NUMBER, pa.float64()),
)


def _vector(name: str, column: Any) -> Vector:
    """A column as our writers take it; what they have no type for becomes text."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    for is_one, type_, arrow in _TYPES:
        if is_one(array.type):
            if name == TIME_COLUMN and type_ is INTEGER:
                type_, arrow = TIME, pa.timestamp("us", "UTC")  # noqa: PLW2901
            return vector_from_arrow(type_, array.cast(arrow, safe=False))
    if not pa.types.is_string(array.type):
        array = pa.array([None if v is None else str(v) for v in array.to_pylist()], pa.string())
    return Vector(TEXT, array)
