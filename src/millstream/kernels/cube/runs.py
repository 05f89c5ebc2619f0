"""The active partition of a vertex as packed cells that nobody changes: versions share them.

What a batch brings is a run of its own. A run that is not much larger than the one after it is put
together with it, so there are few of them, and a cell is moved few times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from millstream.kernels.cube.cells import Cells, Measures, Packed, joined
from millstream.kernels.cube.grouping import Block, Grouping
from millstream.kernels.runtime.kernel import State

#: A run so many times as large as the one after it stays as it is.
_RATIO = 2


class Runs:
    """Mutable: the cells of the active partition, oldest run first."""

    def __init__(self, width: int, measures: Measures) -> None:
        self.width = width
        self.measures = measures
        self.runs: tuple[Packed, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def add(self, cells: Cells) -> None:
        """Cells of which no two are alike, and which are given up."""
        runs = [*self.runs, self.measures.packed(cells)]
        count, size = 1, len(runs[-1])
        while count < len(runs) and len(runs[-1 - count]) <= _RATIO * size:
            count += 1
            size += len(runs[-count])
        self.runs = (*runs[:-count], self._together(runs[-count:]))

    def _together(self, runs: Sequence[Packed]) -> Packed:
        if len(runs) == 1:
            return runs[0]
        given = self.measures.unpacked(joined(runs))
        block = Block(given, np.array([0, len(given)]))
        made = Grouping(self.measures).of_cells(given.codes, block).cells
        for run in runs:
            give_up(run, self.measures)
        return self.measures.packed(made)

    def finished(self) -> Cells:
        """All cells, which are here no longer."""
        runs, self.runs = self.runs, ()
        whole = self._together(runs) if runs else self.measures.nothing(self.width)
        return self.measures.unpacked(whole)

    def clear(self) -> None:
        for run in self.runs:
            give_up(run, self.measures)
        self.runs = ()

    def snapshot(self) -> State:
        if len(self.runs) > 1:
            self.runs = (self._together(self.runs),)
        whole = self.runs[0] if self.runs else self.measures.nothing(self.width)
        return packed_state(whole)

    def restore(self, state: State) -> None:
        whole = restored_packed(state)
        self.runs = (whole,) if len(whole) else ()


def give_up(packed: Packed, measures: Measures) -> None:
    """Give back the wide sums of cells that are here no longer; versions have copies of them."""
    if packed.has_wide_sums:
        numbers = measures.unpacked(replace(packed, sums=packed.sums.copy())).numbers
        measures.forget(numbers, np.arange(len(packed)))


def packed_state(packed: Packed) -> State:
    return {name: getattr(packed, name) for name in Packed.__slots__}


def restored_packed(state: State) -> Packed:
    return Packed(*(np.ascontiguousarray(state[name]) for name in Packed.__slots__))
