"""Which columns of a source an input takes, and how they become a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from millstream.calculus.graph import Input
from millstream.calculus.types import (
    INT64_MAX,
    INTEGER,
    START_OF_TIME,
    TIME,
    TIME_COLUMN,
    WEIGHT_COLUMN,
    Field,
    Kind,
    Row,
    folded_name,
)
from millstream.connectors.time_style import TimeStyle
from millstream.connectors.values import TIME_UNITS, Unfit, time_of
from millstream.errors import CheckError, Fault, listing, suggest
from millstream.plan.batch import Array, Batch, Vector, vector_of
from millstream.source import Span


@dataclass(frozen=True, slots=True)
class InputColumns:
    """The columns to read: those of the schema, then time and weight if they are apart.

    `time` and `weight` say which of `fields` they are; a weight of null may mean +1. What
    is read once has no time.
    """

    input: Input
    fields: tuple[Field, ...]
    time: int | None
    weight: int | None = None
    null_weight_is_one: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @property
    def unit(self) -> str | None:
        """What integers in columns of times count."""
        return self.input.unit

    @property
    def times(self) -> TimeStyle:
        """How times are written."""
        return TimeStyle(self.input.unit, self.input.zone, self.input.time_format)

    def event_times(self, vector: Vector) -> tuple[Array, Array | None]:
        """The event times in microseconds, and which do not fit.

        A column of times has been scaled when it was read; one that the program takes for
        integers stays as it is, and only its times are scaled.
        """
        if self.unit is None or vector.type.kind is Kind.TIME:
            return vector.values, None
        return scaled(vector.values, *TIME_UNITS[self.unit])


def scaled(values: Array, micros: int, parts: int = 1) -> tuple[Array, Array | None]:
    """Integers as microseconds, and which of them are too large."""
    if micros == 1:
        return values if parts == 1 else values // parts, None
    most = INT64_MAX // micros
    too_large = (values > most) | (values < -most)
    with np.errstate(over="ignore"):
        return values * micros, too_large if too_large.any() else None


def layout_of(input_: Input, *, has_weight: bool) -> InputColumns:
    """The layout if everything needed is there; a missing weight means all +1."""
    fields = list(input_.type.schema)
    is_timeless = input_.is_read_once or input_.is_numbered
    time = None if is_timeless else _time_of(input_, fields)
    if not (input_.type.is_relation and has_weight):
        return InputColumns(input_, tuple(fields), time)
    fields.append(Field(WEIGHT_COLUMN, INTEGER))
    return InputColumns(input_, tuple(fields), time, len(fields) - 1)


def _time_of(input_: Input, fields: list[Field]) -> int:
    """Which field is the event time; it is added if it is not among the columns."""
    name = input_.time or TIME_COLUMN
    if name not in input_.type.schema:
        fields.append(Field(name, TIME))
    time = next(i for i, f in enumerate(fields) if f.name == name)
    if fields[time].type.kind not in (Kind.TIME, Kind.INTEGER):
        raise CheckError(
            f'the event time "{name}" of input "{input_.name}" is declared as '
            f"{fields[time].type}, expected time",
            span=input_.span,
        )
    return time


def layout_of_objects(input_: Input) -> InputColumns:
    """The layout of a source without columns, where each row says what it has."""
    return replace(layout_of(input_, has_weight=True), null_weight_is_one=True)


def as_declared(input_: Input, present: Sequence[str]) -> tuple[str, ...]:
    """Names of columns, with those that differ in case or blanks as the input declares them.

    A name that is there as it was declared wins; where two would be one, neither is.
    """
    wanted = layout_of(input_, has_weight=True).names
    missing_ = {folded_name(name): name for name in wanted if name not in present}
    alike = [folded_name(name) for name in present]
    return tuple(
        missing_[fold] if fold in missing_ and alike.count(fold) == 1 else name
        for name, fold in zip(present, alike, strict=True)
    )


def layout_in(
    input_: Input,
    present: Sequence[str],
    source: str,
    locate: Callable[[str | None], Span | None] = lambda _: None,
) -> InputColumns:
    """The layout in a source with these columns; all that are missing are told at once.

    `locate` finds the text of a column in the header, or all of it for None.
    """
    layout = layout_of(input_, has_weight=WEIGHT_COLUMN in present)
    refuse_weights(input_, present, source, locate)
    counts: dict[str, int] = {}
    for name in present:
        counts[name] = counts.get(name, 0) + 1
    faults = [
        missing(input_, name, present, source, locate)
        for name in layout.names
        if name not in counts
    ]
    faults += [
        Fault(f'column "{name}" stands {counts[name]} times', locate(name), None, source)
        for name in layout.names
        if counts.get(name, 0) > 1
    ]
    if faults:
        # All of them have one cause, if the header was cut at the wrong places.
        raise CheckError(faults if _other_separator(present) is None else faults[:1])
    return layout


def refuse_weights(
    input_: Input,
    present: Sequence[str],
    source: str,
    locate: Callable[[str | None], Span | None] = lambda _: None,
) -> None:
    """A log whose rows replace each other must not be one of changes."""
    if input_.is_log and WEIGHT_COLUMN in present:
        raise CheckError(
            f'"{input_.name}" has a key, by which a later row replaces an earlier one; '
            f"{WEIGHT_COLUMN} has no meaning then",
            span=locate(WEIGHT_COLUMN),
            place=source,
            hint=f"leave the key out if this is a log of changes, or {WEIGHT_COLUMN} if not",
        )


def _other_separator(present: Sequence[str]) -> str | None:
    """What seems to stand between the columns of a header that is read as one."""
    return next((c for c in (";", "\t", "|") if len(present) == 1 and c in present[0]), None)


def missing(
    input_: Input,
    name: str,
    present: Sequence[str],
    source: str,
    locate: Callable[[str | None], Span | None] = lambda _: None,
) -> Fault:
    there = f"{source} has: {listing(present)}."
    other = _other_separator(present)
    if other is not None:
        sign = "tab" if other == "\t" else other
        there += f" Are its columns separated by {other!r}? Say so: {source}?separator={sign}"
    if name == TIME_COLUMN and input_.time is None:
        return Fault(
            f'no column "{name}" for the event time of input "{input_.name}"',
            locate(None),
            f'say which column it is where "{input_.name}" is declared: time COLUMN, '
            f'in Python time="COLUMN". {there}',
            source,
        )
    near = suggest(name, present)
    # The near miss is what stands between the quotes of `Did you mean "..."?`.
    at = locate(near.split('"', 1)[1].rsplit('"', 1)[0] if near else None)
    hint = f"{there} {near}" if near else there
    return Fault(f'no column "{name}", which input "{input_.name}" declares', at, hint, source)


def check_keys(input_: Input, values: Row) -> None:
    """A row without its key is nobody's."""
    for name in input_.keys:
        if values[input_.type.schema.index(name)] is None:
            raise Unfit(f"{name}: the key is missing")
    for name, low, high in input_.within:
        value = values[input_.type.schema.index(name)]
        if isinstance(value, (int, float)) and not is_within(value, low, high):
            is_below = low is not None and value < low
            raise Unfit(f"{name}: {value} is {f'below {low}' if is_below else f'above {high}'}")


def is_within(value: Any, low: float | None, high: float | None) -> Any:
    """Whether a value, or each of an array, lies between bounds."""
    return (low is None or value >= low) & (high is None or value <= high)


def check_values(layout: InputColumns, values: Row) -> Row:
    """The values of one row, if it has an event time, its keys and a weight that can be."""
    check_keys(layout.input, values)
    if layout.time is not None:
        name, value = layout.fields[layout.time].name, values[layout.time]
        if value is None:
            raise Unfit(f"{name}: the event time is missing")
        if layout.fields[layout.time].type.kind is Kind.INTEGER:
            time_of(
                str(value), TimeStyle(layout.unit)
            )  # too large a count of a large unit is no time
    if layout.weight is None:
        return values
    weight = values[layout.weight]
    if weight is None and layout.null_weight_is_one:
        return (*values[: layout.weight], 1, *values[layout.weight + 1 :])
    if weight not in (1, -1):
        got = "nothing" if weight is None else weight
        raise Unfit(f"{WEIGHT_COLUMN}: expected 1 or -1, got {got}")
    return values


def check_vectors(layout: InputColumns, vectors: Sequence[Vector]) -> Array:
    """Which rows `check_values` would accept."""
    if layout.time is not None:
        good = vectors[layout.time].mask()
        too_large = layout.event_times(vectors[layout.time])[1]
        good = good if too_large is None else good & ~too_large
    else:
        good = np.ones(len(vectors[0]) if vectors else 0, np.bool_)
    for name in layout.input.keys:
        good = good & vectors[layout.input.type.schema.index(name)].mask()
    for name, low, high in layout.input.within:
        vector = vectors[layout.input.type.schema.index(name)]
        good = good & (is_within(vector.values, low, high) | ~vector.mask())
    if layout.weight is not None:
        weight = vectors[layout.weight]
        fits = weight.mask() & (np.abs(weight.values) == 1)
        good = good & (fits | ~weight.mask() if layout.null_weight_is_one else fits)
    return good


def batch_of_values(layout: InputColumns, rows: Sequence[Row]) -> Batch:
    vectors = [vector_of(f.type, [row[i] for row in rows]) for i, f in enumerate(layout.fields)]
    return batch_of_vectors(layout, vectors)


def batch_of_vectors(layout: InputColumns, vectors: Sequence[Vector]) -> Batch:
    """A batch of columns all of whose rows have been checked."""
    type_ = layout.input.type
    if layout.time is not None:
        time, _ = layout.event_times(vectors[layout.time])
    else:
        time = np.full(len(vectors[0]) if vectors else 0, START_OF_TIME, np.int64)
    weight = None
    if type_.is_relation:
        weight = np.ones(len(time), np.int64)
        if layout.weight is not None:
            given = vectors[layout.weight]
            weight = np.where(given.mask(), given.values, weight)
    return Batch(type_, time, tuple(vectors[: len(type_.schema)]), weight)
