"""Rows as publishers write them: a JSON object a line, or an Arrow stream."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from millstream.broker.core import Given
from millstream.calculus.types import Row
from millstream.connectors.json_plain import values_of
from millstream.connectors.layout import InputColumns, check_keys
from millstream.connectors.values import Unfit
from millstream.languages.served import ServedStream
from millstream.plan.batch import ARROW_TYPES, vector_from_arrow

#: A line is never longer.
LONGEST_LINE = 1 << 20


def layout_of(stream: ServedStream) -> InputColumns:
    """The columns of a stream; a row without a tick is given one, all else must be there."""
    keys = tuple(n for n in stream.input.keys if n != stream.key)
    given = replace(stream.input, keys=keys, time=None)
    return InputColumns(given, tuple(given.type.schema), None)


def rows_of_lines(stream: ServedStream, body: bytes) -> tuple[Given, ...]:
    """Blank lines are passed over; a line that is no row of the stream says why."""
    layout = layout_of(stream)
    made: list[Given] = []
    for line in body.split(b"\n"):
        if not line.strip():
            continue
        try:
            made.append(Given(values_of(layout, line, LONGEST_LINE)))
        except Unfit as unfit:
            made.append(Given(None, str(unfit)))
    return tuple(made)


def rows_of_arrow(stream: ServedStream, body: bytes) -> tuple[Given, ...]:
    """An Arrow stream whose columns have the names and the types of the stream; `Unfit` if not."""
    layout = layout_of(stream)
    try:
        table = pa.ipc.open_stream(body).read_all()
        columns = []
        for field in layout.fields:
            type_ = ARROW_TYPES[field.type.kind]
            if field.name in table.column_names:
                column = table.column(field.name).cast(type_)
            elif field.name == stream.key:
                column = pa.chunked_array([pa.nulls(len(table), type_)])
            else:
                raise Unfit(f'there is no column "{field.name}"')
            columns.append(vector_from_arrow(field.type, column).to_list())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OSError) as error:
        raise Unfit(f"this is no Arrow stream of these rows: {str(error)[:200]}") from None
    rows = zip(*columns, strict=True)
    return tuple(_checked(layout, row) for row in rows)


def _checked(layout: InputColumns, row: Row) -> Given:
    try:
        check_keys(layout.input, row)
    except Unfit as unfit:
        return Given(None, str(unfit))
    return Given(row)
