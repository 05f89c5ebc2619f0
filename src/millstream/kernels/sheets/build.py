"""A kernel for a sheet: compiled if it can be, else walked."""

from __future__ import annotations

from millstream.calculus.sheets import Sheet
from millstream.calculus.types import QueueType
from millstream.kernels.runtime.kernel import Kernel
from millstream.kernels.sheets.compiled import CompiledSheetKernel
from millstream.kernels.sheets.operands import NotCompiled
from millstream.kernels.sheets.report import commented, phases
from millstream.kernels.sheets.walked import SheetKernel


def sheet_kernel(function: Sheet, input_types: tuple[QueueType, ...], output_count: int) -> Kernel:
    try:
        return CompiledSheetKernel(function, input_types, output_count)
    except NotCompiled as reason:
        kernel = SheetKernel(function, input_types, output_count)
        kernel.source = commented([f"walked, not compiled: {reason}", *phases(function)])
        return kernel
