"""What a call is given for inputs and outputs: rows as items, and what reads and writes places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from millstream.calculus.graph import Input
from millstream.calculus.terms import fitted
from millstream.calculus.types import (
    DURATION,
    INTEGER,
    START_OF_TIME,
    TIME,
    TIME_COLUMN,
    WEIGHT_COLUMN,
    Field,
    Row,
    Type,
    Value,
)
from millstream.connectors.chunks import Reader, Writer
from millstream.connectors.frames import FrameReader, framed, is_frame
from millstream.connectors.layout import refuse_weights
from millstream.connectors.location import Location, parse_location
from millstream.connectors.time_style import TimeStyle
from millstream.connectors.values import time_of
from millstream.errors import UsageError, suggest
from millstream.values.instants import micros_in, micros_of

if TYPE_CHECKING:
    from millstream.connectors.write import Shape

#: An output: a file, a location, or a writer of your own.
OutputGiven = str | Path | Location | Writer


def items_given(
    input_: Input, rows: Iterable[Mapping[str, Value]]
) -> Iterator[tuple[int, Row, int]]:
    """Dictionaries as items; integers become numbers where a number is wanted."""
    known = {TIME_COLUMN, WEIGHT_COLUMN, input_.time, *input_.type.schema.names}
    for number, row in enumerate(rows, 1):
        strange = next((key for key in row if key not in known), None)
        if strange is not None and any(name not in row for name in input_.type.schema.names):
            raise UsageError(
                f'row {number} of "{input_.name}": unknown column "{strange}"',
                hint=suggest(strange, input_.type.schema.names),
            )
        if input_.is_log:
            refuse_weights(input_, tuple(row), f"row {number}")
        time_column = input_.time or TIME_COLUMN
        time = START_OF_TIME if input_.is_read_once else row.get(time_column)
        is_moment = isinstance(time, datetime)
        time = number if input_.is_numbered else _plain(time, TIME, input_.zone)
        weight = row.get(WEIGHT_COLUMN, 1)
        if not _is_of(time, TIME) or not _is_of(weight, INTEGER):
            raise UsageError(
                f'row {number} of "{input_.name}" has no time',
                hint=f'give "{time_column}" in microseconds since 1970, or a datetime',
            )
        assert isinstance(time, int) and isinstance(weight, int)
        if input_.unit is not None and not (input_.is_read_once or is_moment):
            time = time_of(str(time), TimeStyle(input_.unit))
        yield (
            time,
            tuple(_value(input_, f, row.get(f.name), number) for f in input_.type.schema),
            weight,
        )


def _value(input_: Input, field_: Field, value: Value, number: int) -> Value:
    try:
        return fitted(_plain(value, field_.type, input_.zone), field_.type)
    except TypeError as error:
        raise UsageError(
            f'row {number} of "{input_.name}": expected {field_.name} to be a {field_.type}, '
            f"got {value!r}"
        ) from error


def _plain(value: Any, type_: Type, zone: str | None) -> Any:
    """Moments and lengths of time of Python as microseconds; a naive moment is in the zone."""
    if type_ == TIME and isinstance(value, datetime):
        if value.tzinfo is None and zone is not None:
            value = value.replace(tzinfo=ZoneInfo(zone))
        return micros_of(value)
    if type_ == DURATION and isinstance(value, timedelta):
        return micros_in(value)
    return value


def _is_of(value: object, type_: Type) -> bool:
    try:
        return fitted(value, type_) is not None
    except TypeError:
        return False


def location_of(given: str | Path | Location) -> Location:
    """Names given to a call are relative to where we are, not to the program."""
    return given if isinstance(given, Location) else parse_location(str(given), Path())


def located(given: Mapping[str, Any]) -> dict[str, Location]:
    """Those of some inputs or outputs that are places, not rows or writers."""
    places = (str, Path, Location)
    return {name: location_of(one) for name, one in given.items() if isinstance(one, places)}


def placed(given: Any) -> Any:
    """A place that is given by its name as what it is, other things as they are."""
    return location_of(given) if isinstance(given, (str, Path)) else given


def reader_of(input_: Input, given: Any, *, is_following: bool) -> Reader:
    """What a run that follows takes as it comes, and one that ends takes in time order."""
    from millstream.connectors.ordered import OrderedReader

    reader = plain_reader(input_, given, is_following=is_following)
    location = location_of(given) if isinstance(given, (str, Path, Location)) else None
    is_timeless = input_.is_read_once or input_.is_numbered
    if is_following or is_timeless or (location and location.is_in_order):
        return reader
    return OrderedReader(reader, input_, location)


def plain_reader(input_: Input, given: Any, *, is_following: bool = False) -> Reader:
    from millstream.connectors.memory import MemoryReader
    from millstream.connectors.read import open_reader
    from millstream.connectors.units import QuestionedReader, question_files

    if is_frame(given) and not input_.is_numbered:
        return QuestionedReader(
            FrameReader(input_, framed(given)), input_, f'the table of "{input_.name}"'
        )
    if not isinstance(given, (str, Path, Location)):
        given = framed(given).to_pylist() if is_frame(given) else given
        reader = MemoryReader(input_, items_given(input_, given))
        return QuestionedReader(reader, input_, f'rows of "{input_.name}"')
    location = location_of(given)
    if location.is_state:
        raise UsageError("?state is for outputs", place=location.text)
    if location.path is None and not location.is_in_order:
        return QuestionedReader(open_reader(location, input_), input_, "standard input")
    if location.is_at_hand:
        question_files(location, input_)
    if is_following and location.path is not None and not input_.is_read_once:
        return MemoryReader(input_, ())  # engines look for files themselves, as they come
    return open_reader(location, input_)


def writer_given(
    name: str, given: OutputGiven | None, shape: Shape, *, is_following: bool
) -> Writer:
    """The writer for what is given: in memory if that is nothing."""
    from millstream.connectors.memory import MemoryWriter
    from millstream.connectors.outputs import writer_of

    if given is None:
        return MemoryWriter()
    if not isinstance(given, (str, Path, Location)):
        return given
    return writer_of(name, location_of(given), shape, is_following=is_following)
