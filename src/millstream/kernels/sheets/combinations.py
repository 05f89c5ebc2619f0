"""What cells outside of a loop hold, by the combinations of values that they are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.calculus.sheets import Address, Computed, Fed, Sheet, SheetCell
from millstream.calculus.types import TEXT, Type
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.sheets.columns import KnownWords
from millstream.kernels.sheets.machine import SheetMachine, SheetState, constants_of
from millstream.plan.batch import Array, Vector
from millstream.values.excel.direct import Part, SeveralValues, direct, looks_at
from millstream.values.excel.values import Scalar

#: In a combination: a cell that has no value yet.
NOT_THERE: Any = object()
_NO_ROWS = np.zeros(0, np.int64)


class Combinations:
    """Mutable: the combinations of values seen so far, and what a cell made of them holds."""

    def __init__(
        self, sheet: Sheet, cells: Sequence[SheetCell], wanted: Address,
        leaves: Sequence[Address], types: Sequence[Type],
    ) -> None:  # fmt: skip
        constants = constants_of(sheet)
        self.machine = SheetMachine(cells, constants, constants, uses_1904=sheet.uses_1904)
        self.wanted = wanted
        #: The cells of which values are given.
        self.leaves = tuple(leaves)
        self.chain = Chain.of(self.machine, cells, wanted, self.leaves)
        self.types = list(types)
        self.forget()

    def forget(self) -> None:
        self.known = Interner(self.types)
        #: What is known of the words of a dictionary, if combinations are of one text each.
        self.words = KnownWords()
        self.results: list[Scalar] = []

    def numbers(self, vectors: Sequence[Vector], count: int) -> tuple[Array, Array]:
        """The number of the combination of each row, and a row of each that is new."""
        ids = self._ids(vectors, count)
        if self.known.bound == len(self.results):
            return ids, _NO_ROWS
        rows = np.empty(self.known.bound, np.int64)
        rows[ids] = np.arange(count)
        return ids, rows[len(self.results) :]

    def _ids(self, vectors: Sequence[Vector], count: int) -> Array:
        first = vectors[0].values
        if len(vectors) > 1 or not isinstance(first, pa.DictionaryArray) or first.null_count:
            return self.known.ids(list(vectors), count)
        codes, numbers, _ = self.words.of(
            first, lambda words: self.known.ids([Vector(TEXT, words)], len(words))
        )
        return numbers.take(codes)

    def learn(self, combinations: Iterable[Sequence[Scalar]]) -> None:
        """Compute the cell for combinations that are new, in the order of their numbers."""
        self.results += map(self._value, combinations)

    def _value(self, row: Sequence[Scalar]) -> Scalar:
        if self.chain is not None and NOT_THERE not in row:
            try:
                return self.chain.value(row)
            except SeveralValues:
                pass  # computed as all formulas are
        given = {a: v for a, v in zip(self.leaves, row, strict=True) if v is not NOT_THERE}
        state = SheetState()
        self.machine.compute(state, 0, given)
        return state.values.get(self.wanted)


class Chain:
    """Cells as functions of the values of others, one after the other; the last one is wanted."""

    def __init__(
        self, machine: SheetMachine, order: Sequence[Address], parts: Sequence[Part], *,
        is_looked_at: bool,
    ) -> None:  # fmt: skip
        self.machine = machine
        self.order = order
        self.parts = parts
        #: Do formulas see cells not only as values, but also as references?
        self.is_looked_at = is_looked_at

    @staticmethod
    def of(
        machine: SheetMachine, cells: Sequence[SheetCell], wanted: Address,
        leaves: Sequence[Address],
    ) -> Chain | None:  # fmt: skip
        """None if a formula among them is not plain."""
        places = {address: n for n, address in enumerate(leaves)}
        parts: list[Part] = []
        is_looked_at = False
        for cell in cells:
            rule = cell.rule
            if isinstance(rule, Fed):
                continue
            if not isinstance(rule, Computed) or rule.is_array or not cell.refers_to:
                return None
            part = direct(rule.formula, places, machine.context(cell.address))
            if part is None:
                return None
            is_looked_at = is_looked_at or looks_at(rule.formula, places)
            places[cell.address] = len(places)
            parts.append(part)
        if not parts or places[wanted] != len(places) - 1:
            return None
        return Chain(machine, tuple(places), parts, is_looked_at=is_looked_at)

    def value(self, row: Sequence[Scalar]) -> Scalar:
        if len(self.parts) == 1 and not self.is_looked_at:
            value: Scalar = self.parts[0](row)
            return value
        values = list(row)
        if self.is_looked_at:
            state = self.machine.live.state = SheetState(
                dict(zip(self.order[: len(values)], values, strict=True))
            )
        for part in self.parts:
            value = part(values)
            if self.is_looked_at:
                state.values[self.order[len(values)]] = value
            values.append(value)
        return value
