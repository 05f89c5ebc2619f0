"""Rows that a Python program has as a table: of Arrow, pandas, Polars, or anything like them.

They are taken column by column, by the way of handing tables over that all of these have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from millstream.calculus.graph import Input
from millstream.connectors.arrow_rows import ArrowRows, check_types
from millstream.connectors.chunks import Chunk
from millstream.connectors.layout import as_declared, layout_in
from millstream.errors import UsageError

_ROWS = 65_536


class Frame(Protocol):
    """A table in memory, whoever has made it."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def is_frame(given: object) -> bool:
    return hasattr(given, "__arrow_c_stream__")


def framed(given: Any, name: str = "") -> Any:
    """A table as one of Arrow, which can be read more than once; all else as it is.

    Tables that are only worked out when somebody collects them, such as those of Polars, are.
    """
    if not is_frame(given) and callable(getattr(given, "collect", None)):
        given = given.collect()
    if not is_frame(given):
        return given
    try:
        return pa.table(given)
    except (ValueError, TypeError) as reason:
        why = (str(reason).splitlines() or [type(reason).__name__])[0]
        raise UsageError(f'the table of "{name}" cannot be taken: {why}') from None


class FrameReader:
    """The rows of a table of Arrow."""

    def __init__(self, input_: Input, table: Any) -> None:
        self._input = input_
        self._table = table

    def chunks(self) -> Iterator[Chunk]:
        input_ = self._input
        name = f'the table of "{input_.name}"'
        table = self._table.rename_columns(as_declared(input_, self._table.column_names))
        layout = layout_in(input_, tuple(table.column_names), name)
        check_types(layout, table.schema, name)
        rows = ArrowRows(layout, name)
        first = 1
        for batch in table.select(list(layout.names)).to_batches(max_chunksize=_ROWS):
            yield rows.chunk(batch.columns, first)
            first += batch.num_rows

    def close(self) -> None:
        """There is nothing to close."""
