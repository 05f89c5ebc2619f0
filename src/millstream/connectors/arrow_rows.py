"""Rows of Arrow columns: what fits is taken as it is, the rest is rejected row by row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.connectors.arrow_columns import (
    Taken,
    can_hold,
    plain_value,
    take_column,
    why_unfit,
)
from millstream.connectors.chunks import SHOWN_CHARACTERS, Chunk, Rejected
from millstream.connectors.layout import (
    InputColumns,
    batch_of_vectors,
    check_values,
    check_vectors,
)
from millstream.connectors.values import EXPECTED, Unfit
from millstream.errors import CheckError, Fault


def check_types(layout: InputColumns, schema: Any, name: str) -> None:
    """All columns of the wrong type are told at once."""
    faults = [
        Fault(f'column "{f.name}": expected {EXPECTED[f.type.kind]}, found {arrow}', place=name)
        for f in layout.fields
        if not can_hold(f.type.kind, arrow := schema.field(f.name).type, layout.unit)
    ]
    if faults:
        raise CheckError(faults)


@dataclass(frozen=True)
class ArrowRows:
    """Turns columns into chunks; `name` is where they come from."""

    layout: InputColumns
    name: str

    def chunk(self, arrays: Sequence[Any], first: int) -> Chunk:
        """A chunk of the columns of the layout; `first` is the number of its first row."""
        layout = self.layout
        taken = [
            take_column(f.type, a, layout.times) for f, a in zip(layout.fields, arrays, strict=True)
        ]
        vectors = [vector for vector, _ in taken]
        good = check_vectors(layout, vectors)
        for _, unfit in taken:
            if unfit is not None:
                good = good & ~unfit
        if good.all():
            return Chunk(batch_of_vectors(layout, vectors))
        rejected = [
            self._rejected(taken, arrays, row, first + row)
            for row in np.flatnonzero(~good).tolist()
        ]
        kept = [v.take(np.flatnonzero(good)) for v in vectors]
        return Chunk(batch_of_vectors(layout, kept), tuple(rejected))

    def _rejected(
        self, taken: list[Taken], arrays: Sequence[Any], row: int, position: int
    ) -> Rejected:
        cells = [array.slice(row, 1) for array in arrays]
        shown = dict(zip(self.layout.names, map(plain_value, cells), strict=True))
        text = json.dumps(shown, ensure_ascii=False)[:SHOWN_CHARACTERS]
        return Rejected(self.name, position, self._reason(taken, cells, row), text)

    def _reason(self, taken: list[Taken], cells: list[Any], row: int) -> str:
        fields = self.layout.fields
        for field, cell, (_, unfit) in zip(fields, cells, taken, strict=True):
            if unfit is not None and unfit[row]:
                return f"{field.name}: {why_unfit(field.type, cell, self.layout.times)}"
        values = tuple(vector.slice(row, row + 1).to_list()[0] for vector, _ in taken)
        try:
            check_values(self.layout, values)
        except Unfit as missing:
            return str(missing)
        raise AssertionError(values)
