"""A sheet that is given rows: each is an instant of its own, whatever its time is."""

from __future__ import annotations

import numpy as np

from millstream.calculus.sheets import Sheet
from millstream.calculus.types import QueueType
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.sheets.compiled import CompiledSheetKernel
from millstream.kernels.sheets.operands import NotCompiled
from millstream.kernels.sheets.walked import SheetKernel
from millstream.plan.batch import Array, Batch, concat_batches

_NOTHING = np.zeros(0, np.int64)


class RowsKernel(CompiledSheetKernel):
    """Mutable: inputs have as many items as there are rows, or none; they come together.

    Their ranks are the numbers of the rows.
    """

    def _instants(self, inputs: tuple[Batch, ...], *, is_ranked: bool) -> list[Array]:
        time = max((b.time for b in inputs), key=len)
        places = np.full((len(time), len(inputs)), -1, np.int64)
        for number, batch in enumerate(inputs):
            if len(batch):
                places[:, number] = np.arange(len(time))
        ranks = np.arange(len(time)) if is_ranked else _NOTHING
        return [places.reshape(-1), np.zeros(len(time), np.int64), time, ranks]


class WalkedRowsKernel(SheetKernel):
    """Mutable: the same where the sheet has no compiled form: rows of one time one by one."""

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        process = super().process
        parts = [process(self._row(inputs, n), round_) for n in range(len(round_.ticks))]
        return tuple(_joined(batches) for batches in zip(*parts, strict=True))

    def _row(self, inputs: tuple[Batch, ...], number: int) -> tuple[Batch, ...]:
        place = np.array([number])
        return tuple(b.take(place) if len(b) else b for b in inputs)


def _joined(batches: tuple[Batch, ...]) -> Batch:
    return concat_batches(batches, batches[0].type)


def rows_kernel(
    function: Sheet, input_types: tuple[QueueType, ...], output_count: int
) -> RowsKernel | WalkedRowsKernel:
    """For a sheet without keys that fires once per instant."""
    try:
        return RowsKernel(function, input_types, output_count)
    except NotCompiled:
        return WalkedRowsKernel(function, input_types, output_count)
