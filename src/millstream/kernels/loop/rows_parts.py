"""Which form of a loop does which rows: the plain one, and a careful one where that does not do.

A null or a fault makes its block of rows slow, not its batch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from millstream.kernels.loop.cache import compiled
from millstream.kernels.loop.emit import LoopSource
from millstream.kernels.loop.ir import Given
from millstream.kernels.loop.passes.assume_sound import BLOCK
from millstream.kernels.loop.rows_arguments import Arguments, Leaf
from millstream.kernels.loop.rows_generated import Functions

#: If one block of so many has nulls, all rows are taken to have some.
_FEW = 8


class LoopCall:
    """A loop on the arguments of a batch. Mutable: which rows it does."""

    def __init__(self, function: LoopSource, arguments: Arguments) -> None:
        self.run = compiled(function.source)
        self.frame = arguments.frame(function.params)
        self.places = {p.kind: n for n, p in enumerate(function.params) if isinstance(p, Given)}

    def __call__(self) -> None:
        self.run(self.frame)

    def on(self, begin: int, end: int) -> None:
        """On these rows only, for loops of one input."""
        self.frame[self.places["begin"]], self.frame[self.places["rows"]] = begin, end
        self.run(self.frame)


class RowParts:
    """Mutable: the loops that were called for some of the rows."""

    def __init__(self, functions: Functions, arguments: Arguments) -> None:
        self.functions = functions
        self.arguments = arguments
        self.calls: dict[str, LoopCall] = {}

    def run(self) -> None:
        leaves = self.arguments.with_nulls(self.functions.columns)
        for begin, end, has_nulls in _parts(leaves, self.arguments.row_count):
            if has_nulls:
                self._call(self.functions.masked, begin, end)
            elif self.functions.hopeful is None:
                self._call(self.functions.plain, begin, end)
            else:
                self._hope(self.functions.hopeful, begin, end)

    def _hope(self, hopeful: LoopSource, begin: int, end: int) -> None:
        """The more blocks fail, the fewer are tried."""
        careful = BLOCK
        while begin < end:
            self._call(hopeful, begin, end)
            reached = int(self.arguments.reached[0])
            careful = max(BLOCK, careful // (1 + (reached - begin) // BLOCK))
            begin = min(reached + careful, end)
            if reached < begin:
                self._call(self.functions.plain, reached, begin)
            careful *= 2

    def _call(self, function: LoopSource, begin: int, end: int) -> None:
        if function.source not in self.calls:
            self.calls[function.source] = LoopCall(function, self.arguments)
        self.calls[function.source].on(begin, end)


def _parts(leaves: list[Leaf], rows: int) -> Iterator[tuple[int, int, bool]]:
    """From where to where, and whether there are nulls."""
    starts = np.arange(0, rows, BLOCK)
    is_careful = np.zeros(len(starts), np.bool_)
    for leaf in leaves:
        if leaf.valid is not None:
            is_careful |= ~np.logical_and.reduceat(leaf.valid, starts)
        if leaf.faults is not None:
            is_careful |= np.logical_or.reduceat(leaf.faults, starts)
    if _FEW * np.count_nonzero(is_careful) > len(starts):
        yield 0, rows, True
        return
    edges = np.flatnonzero(np.diff(is_careful)) + 1
    for first, last in zip([0, *edges], [*edges, len(starts)], strict=True):
        yield first * BLOCK, min(last * BLOCK, rows), bool(is_careful[first])
