"""Rows from and to memory, for the API and for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from millstream.calculus.graph import Input
from millstream.calculus.types import Row
from millstream.connectors.chunks import Chunk, Rejected
from millstream.connectors.layout import check_keys
from millstream.connectors.values import Unfit
from millstream.plan.batch import Batch, batch_of, concat_batches

#: A time, a row and perhaps a weight.
Item = tuple[int, Row] | tuple[int, Row, int]


class MemoryReader:
    """Mutable: gives rows that a program already has, as (time, row).

    A change of a relation is (time, row, weight); without a weight it is an insertion.
    """

    def __init__(
        self,
        input_: Input,
        rows: Iterable[Item],
        chunk_rows: int = 65_536,
    ) -> None:
        self._input = input_
        self._type = input_.type
        self._rows = iter(rows)
        self._chunk_rows = chunk_rows

    def chunks(self) -> Iterator[Chunk]:
        number = 0
        while given := list(islice(self._rows, self._chunk_rows)):
            items, rejected = self._checked(given, number)
            number += len(given)
            weights = [item[2] if len(item) == 3 else 1 for item in items]
            yield Chunk(
                batch_of(
                    self._type,
                    [item[0] for item in items],
                    [item[1] for item in items],
                    weights if self._type.is_relation else None,
                ),
                rejected,
            )

    def _checked(self, items: list[Item], before: int) -> tuple[list[Item], tuple[Rejected, ...]]:
        """The items that have their keys, and why others are rejected."""
        if not (self._input.keys or self._input.within):
            return items, ()
        good: list[Item] = []
        rejected: list[Rejected] = []
        for number, item in enumerate(items, before + 1):
            try:
                check_keys(self._input, item[1])
                good.append(item)
            except Unfit as unfit:
                row = Rejected(self._input.name, number, str(unfit), repr(item[1]))
                rejected.append(row)
        return good, tuple(rejected)

    def close(self) -> None:
        """There is nothing to close."""


class MemoryWriter:
    """Mutable: keeps what is written in `batches`."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def write(self, batch: Batch) -> None:
        self.batches.append(batch)

    def close(self) -> None:
        """What has been written stays."""

    def abort(self) -> None:
        self.batches.clear()

    def items(self) -> list[tuple[int, Row]]:
        """All (time, row), in order."""
        if not self.batches:
            return []
        whole = concat_batches(self.batches, self.batches[0].type)
        return list(zip(whole.time.tolist(), whole.rows(), strict=True))
