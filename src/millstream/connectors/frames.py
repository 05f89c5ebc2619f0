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

_ROWS = 65_536


class Frame(Protocol):
    """A table in memory, whoever has made it."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def is_frame(given: object) -> bool:
    return hasattr(given, "__arrow_c_stream__")


def framed(given: Any) -> Any:
    """A table as one of Arrow, which can be read more than once; all else as it is."""
    return pa.table(given) if is_frame(given) else given


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
