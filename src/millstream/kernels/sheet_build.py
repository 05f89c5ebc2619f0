"""A kernel for a sheet: compiled if it can be, else walked."""

from __future__ import annotations

from millstream.calculus.sheets import Sheet
from millstream.calculus.types import QueueType
from millstream.kernels.kernel import Kernel
from millstream.kernels.sheet import SheetKernel
from millstream.kernels.sheet_compiled import CompiledSheetKernel
from millstream.kernels.sheet_operands import NotCompiled
from millstream.kernels.sheet_report import commented, phases


def sheet_kernel(function: Sheet, input_types: tuple[QueueType, ...], output_count: int) -> Kernel:
    try:
        return CompiledSheetKernel(function, input_types, output_count)
    except NotCompiled as reason:
        kernel = SheetKernel(function, input_types, output_count)
        kernel.source = commented([f"walked, not compiled: {reason}", *phases(function)])
        return kernel
