"""What is done to the values of a table while its key stays."""

from __future__ import annotations

from collections.abc import Mapping

from millstream.calculus.functions import Assign, Columns, Map, Opaque
from millstream.calculus.terms import Column
from millstream.calculus.types import Field, Row, Schema
from millstream.errors import UsageError
from millstream.languages.algebra.nodes import TableNode
from millstream.tracing.lambdas import RowFunction
from millstream.tracing.rows import MadeMap, map_function


def table_map_function(
    function: RowFunction | Columns, table: TableNode, columns: Mapping[str, str]
) -> MadeMap:
    """A map of the values of a table; the key goes before them."""
    made = map_function(function, table.schema, columns)
    kept = [Field(n, table.schema[n]) for n in table.key]
    for name in made.schema.names:
        if name in table.key:
            raise UsageError(
                f'"{name}" is the key of this table, and map keeps keys as they are',
                hint="leave it out; key_by on the changelog makes a table with another key",
            )
    schema = Schema((*kept, *made.schema.fields))
    if isinstance(made.function, Map):
        keys = tuple(Assign(f.name, Column(f.name, f.type)) for f in kept)
        return MadeMap(schema, Map(keys + made.function.columns))
    inner, places = made.function.call, [table.schema.index(f.name) for f in kept]

    def call(row: Row, time: int) -> list[Row]:
        return [(*(row[p] for p in places), *new) for new in inner(row, time)]

    return MadeMap(schema, Opaque(made.function.label, schema, call))
