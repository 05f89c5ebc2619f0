"""What a call is given for inputs and outputs: rows as items, and what reads and writes places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.calculus.graph import Input, Program
from millstream.calculus.terms import fitted
from millstream.calculus.types import (
    INTEGER,
    START_OF_TIME,
    TIME,
    TIME_COLUMN,
    WEIGHT_COLUMN,
    Kind,
    Row,
    Type,
    Value,
)
from millstream.connectors.chunks import Reader, Writer
from millstream.connectors.frames import FrameReader, framed, is_frame
from millstream.connectors.layout import refuse_weights
from millstream.connectors.location import Location, parse_location
from millstream.connectors.python_values import held
from millstream.connectors.time_style import TimeStyle
from millstream.connectors.values import EXPECTED, Unfit
from millstream.errors import UsageError, listing, suggest

if TYPE_CHECKING:
    from millstream.connectors.write import Shape

#: An output: a file, a location, or a writer of your own.
OutputGiven = str | Path | Location | Writer


#: The endings of a file that is an input without being named.
_BESIDE = ("parquet", "csv", "jsonl", "txt", "log")
#: Outputs that every job has beside those of its program.
REJECTED = "rejected"
LATE = "late"
#: Values of these types mean what they are.
_HELD = {Kind.NUMBER: float, Kind.INTEGER: int, Kind.TEXT: str, Kind.BOOLEAN: bool}


def check_names(given: Mapping[str, Any], known: Iterable[str], what: str) -> dict[str, Any]:
    names = list(known)
    for name in given:
        if name not in names:
            hint = f"{what}s are: {listing(names)}. {suggest(name, names) or ''}".strip()
            raise UsageError(f'this program has no {what} "{name}"', hint=hint)
    return dict(given)


def outputs_of(program: Program, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of outputs, all of which a run of the program has."""
    return check_names(given, (*program.outputs, REJECTED, *late_names(program)), "output")


def late_names(program: Program) -> dict[str, Input]:
    """The outputs for late rows: `late`, or `late.INPUT` where there are several inputs."""
    if len(program.inputs) == 1:
        return {LATE: program.inputs[0]}
    return {f"{LATE}.{input_.name}": input_ for input_ in program.inputs}


def given_or_beside(input_: Input, given: Mapping[str, Any], folder: Path) -> Any:
    """What is given for an input, or the file of its name beside the program."""
    if input_.name in given:
        return given[input_.name]
    beside = [folder / f"{input_.name}.{end}" for end in _BESIDE]
    files = [path for path in beside if path.exists()]
    if input_.values is not None and not (input_.is_numbered and files):
        columns = input_.type.schema.names
        return [dict(zip(columns, row, strict=True)) for row in input_.values]
    if len(files) == 1:
        return parse_location(files[0].name, folder)
    if files:
        raise UsageError(
            f'the input "{input_.name}" is not given, and there are several files for it: '
            f"{listing(path.name for path in files)}",
            hint=f"say which: --in {input_.name}={files[0]}",
        )
    names = " or ".join(path.name for path in beside[:3])
    raise UsageError(
        f'the input "{input_.name}" is not given',
        hint=f"say --in {input_.name}=FILE, or put {names} beside the program",
    )


def items_given(
    input_: Input, rows: Iterable[Mapping[str, Value]]
) -> Iterator[tuple[int, Row, int]]:
    """Dictionaries as items; integers become numbers where a number is wanted."""
    known = {TIME_COLUMN, WEIGHT_COLUMN, input_.time, *input_.type.schema.names}
    time_column = input_.time or TIME_COLUMN
    style = TimeStyle(input_.unit, input_.zone, input_.time_format)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise UsageError(
                f'row {number} of "{input_.name}": expected a dictionary, got {row!r:.80}',
                hint=f'such as {{"{time_column}": 0, ...}}',
            )
        strange = next((key for key in row if key not in known), None)
        if strange is not None and any(name not in row for name in input_.type.schema.names):
            raise UsageError(
                f'row {number} of "{input_.name}": unknown column "{strange}"',
                hint=suggest(str(strange), input_.type.schema.names),
            )
        if input_.is_log:
            refuse_weights(input_, tuple(row), f"row {number}")
        if input_.is_read_once or input_.is_numbered:
            time: Value = START_OF_TIME if input_.is_read_once else number
        else:
            time = _value(input_, time_column, TIME, row.get(time_column), number, style)
        weight = row.get(WEIGHT_COLUMN, 1)
        if time is None or not _is_of(weight, INTEGER):
            raise UsageError(
                f'row {number} of "{input_.name}" has no time',
                hint=f'give "{time_column}" in microseconds since 1970, or a datetime',
            )
        assert isinstance(time, int) and isinstance(weight, int)
        yield (
            time,
            tuple(
                _value(input_, f.name, f.type, row.get(f.name), number, style)
                for f in input_.type.schema
            ),
            weight,
        )


def _value(
    input_: Input, column: str, type_: Type, value: Value, number: int, style: TimeStyle
) -> Value:
    try:
        is_held = type(value) is _HELD.get(type_.kind)  # as most are
        return fitted(value if is_held else held(value, type_, style), type_)
    except (TypeError, Unfit) as error:
        is_told = isinstance(error, Unfit)
        wanted = EXPECTED[type_.kind]
        why = f"{column}: {error if is_told else f'expected {wanted}, got {value!r:.80}'}"
        raise UsageError(f'row {number} of "{input_.name}": {why}') from error


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
        if isinstance(given, Mapping) or not isinstance(given, Iterable):
            raise UsageError(
                f'the rows of "{input_.name}" cannot be {given!r:.80}',
                hint="give a file, a list of dictionaries, or a table of Arrow, pandas or Polars",
            )
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
