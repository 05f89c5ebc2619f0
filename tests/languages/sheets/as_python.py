"""Random sheets through the compiled kernel, its loop run by Python itself.

    python -m tests.languages.sheets.as_python COUNT SEED [MANNER]

MANNER is large, alone, outside, walked, windows, digits, comparing, functions or handed.

To compile a sheet takes seconds and its tuples microseconds; without the compiler hundreds of
sheets are tried in a minute. It needs a process of its own, in which numba compiles nothing.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import random
import struct
import sys
import warnings
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings

from millstream.kernels.loop import scalar_arrays as loops_arrays
from millstream.kernels.sheets import arithmetic as scalar_sheet
from millstream.kernels.sheets import blocks as sheet_blocks
from millstream.kernels.sheets import build as sheet_build
from millstream.kernels.sheets import compiled as sheet_compiled
from millstream.kernels.sheets import generated as sheet_generated
from millstream.kernels.sheets import outside as sheet_outside
from millstream.kernels.sheets import paths as sheet_paths
from millstream.kernels.sheets import recall as sheet_recall
from millstream.kernels.sheets import texts as sheet_texts
from millstream.kernels.sheets.functions import HOMES, OF_NUMBERS, OfNumbers
from millstream.kernels.sheets.operands import ERROR_VALUES, FIRST_ERROR, NotCompiled
from millstream.kernels.windows import product as loops_product
from millstream.kernels.windows import sums as loops_sums
from millstream.values.excel.constant_cells import ConstantCells
from millstream.values.excel.evaluate import Context, value_of
from millstream.values.excel.syntax import Call, Literal
from millstream.values.excel.values import NUM, Scalar
from tests.languages.sheets import handed_windows
from tests.languages.sheets.generate import sheets, sheets_alone, tuples
from tests.languages.sheets.laws import CUTS, agree
from tests.languages.sheets.long_windows import (
    COMPARING,
    KEPT,
    SCANNED,
    digits,
    events,
    neighbours,
    rows,
    sheet,
)

_PHASES = [Phase.generate, Phase.shrink]
walked: dict[str, int] = {}
kernels = [0]
blocks = [0]
outside = [0]
called = [0]


def interpreted(source: str) -> Any:
    names: dict[str, Any] = {}
    exec(source, names)  # noqa: S102  our own generated code
    kernels[0] += 1
    blocks[0] += "wrong == 0" in source
    return names["run"]


class Keys:
    """Keys by a plain dictionary: the loops of the real one cannot be run by Python."""

    def __init__(self, types: Any) -> None:
        self.known: dict[Any, int] = {}

    @property
    def bound(self) -> int:
        return len(self.known)

    def ids(self, vectors: Any, count: int) -> Any:
        rows = zip(*(v.to_list() for v in vectors), strict=True)
        return np.array([self.known.setdefault(r, len(self.known)) for r in rows], np.int64)


class Pool:
    """Texts by a plain dictionary, of which none is ever freed."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.known)

    @property
    def top(self) -> int:
        return len(self.known)

    def codes(self, words: Any) -> Any:
        words = words.to_pylist()
        found = [-1 if w is None else self.known.setdefault(w, len(self.known)) for w in words]
        return np.array(found, np.int64)

    def everything(self) -> Any:
        return pa.array(list(self.known), pa.string())

    def gathered(self, codes: Any) -> Any:
        return self.everything().take(pa.array(codes))

    def live(self) -> Any:
        return np.arange(len(self.known))


#: What lies where a loop is given an address.
_HELD_AT: dict[str, Any] = {
    "pointer_f": ctypes.c_double, "pointer_i": ctypes.c_int64, "pointer_i32": ctypes.c_int32,
    "pointer_s": ctypes.c_int8, "pointer_b": ctypes.c_bool,
}  # fmt: skip


class Cells:
    """An array by its address, from some cell on."""

    def __init__(self, kind: Any, address: int, first: int = 0) -> None:
        self.kind, self.address = kind, int(address)
        self.cells = ctypes.cast(self.address, ctypes.POINTER(kind))
        self.first = first

    def __getitem__(self, place: Any) -> Any:
        value = self.cells[self.first + int(place)]
        # Numbers of numpy do not complain where a machine does not.
        return np.float64(value) if self.kind is ctypes.c_double else np.int64(value)

    def __setitem__(self, place: Any, value: Any) -> None:
        held = bool(value) if self.kind is ctypes.c_bool else value
        is_number = self.kind is ctypes.c_double
        self.cells[self.first + int(place)] = float(held) if is_number else int(held)


def run_by_python() -> None:
    """From here on loops of sheets are run by Python: what it cannot run is replaced."""
    sheet_blocks.BLOCK = 2  # so that some have nothing strange in them, and there are several
    loops_sums.bits_of_float = lambda v: np.int64(struct.unpack("q", struct.pack("d", v))[0])
    loops_sums.float_of_bits = lambda b: struct.unpack("d", struct.pack("q", int(b)))[0]
    loops_product.high_product = lambda a, b: np.uint64((int(a) * int(b)) >> 64)
    pointers: Any = loops_arrays
    for name, kind in _HELD_AT.items():
        setattr(pointers, name, functools.partial(Cells, kind))
    pointers.beyond = lambda cells, count: Cells(cells.kind, cells.address, int(count))
    scalars: Any = scalar_sheet
    # A number as the others, which may be divided by when it is zero.
    scalars.pick = lambda is_first, a, b: np.float64(a if is_first else b)
    or_zero = scalars.or_zero  # a plain zero would be divided by as Python does
    scalars.or_zero = lambda value, left: np.float64(or_zero(value, left))
    scalars.likely = lambda condition: condition
    scalars.nothing_of = lambda value, rest: value * 0.0 + rest
    recalls: Any = sheet_recall
    recalls.bits_of_float, recalls.float_of_bits = (
        loops_sums.bits_of_float,
        loops_sums.float_of_bits,
    )
    recalls.call_back = lambda address: ctypes.CFUNCTYPE(None)(int(address))()
    kernels_of_sheets: Any = sheet_compiled
    kernels_of_sheets.compiled = interpreted
    kernels_of_sheets.Interner = Keys
    cells_outside: Any = sheet_outside
    cells_outside.Interner = Keys
    texts_of_sheets: Any = sheet_texts
    texts_of_sheets.TextPool = Pool
    warnings.simplefilter("ignore", RuntimeWarning)  # overflows, which compiled code does not tell


def not_compiled(*_: object) -> None:
    raise NotCompiled("all are walked")


def _windows(number: int) -> None:
    agree(sheet(KEPT + SCANNED), events(rows(number, 400)), [30])


def _digits(number: int) -> None:
    agree(sheet(KEPT + SCANNED), events(digits()), [3, 50])


def _comparing(number: int) -> None:
    for window in ("WINDOW({},0.1)", "WINDOWROWS({},7)"):
        agree(sheet(COMPARING, window), events(neighbours()), [40, 100])


def _functions(number: int) -> None:
    """Every compiled function of numbers gives what the evaluated one gives."""
    chance = random.Random(number)
    odd = [
        0.0, 1.0, -1.0, 0.5, 59.0, 60.0, 61.0, 1900.0, 2958465.0, 2958466.0, -0.25, 1e9, 1e15, 0.1,
        36526.999999, 45000.5, 12.0, 2.0, 10.0, 13.0, 1e300, -3.0, 3.0, 11.0, 17.0,
    ]  # fmt: skip
    nowhere = Context(_NO_CELLS, _NO_CELLS)
    for name, function in OF_NUMBERS.items():
        for _ in range(400):
            made = [chance.choice(odd) if chance.random() < 0.5 else chance.uniform(-40, 60_000)
                    for _ in range(function.count)]  # fmt: skip
            expected = value_of(Call(name, tuple(map(Literal, made))), nowhere)
            found = _computed(function, made)
            assert repr(expected) == repr(found), (name, made, expected, found)
    kernels[0] += 1


_NO_CELLS = ConstantCells({}, [])


def _computed(function: OfNumbers, numbers: list[float]) -> Scalar:
    homes = [home for home, names in HOMES.items() if function.name in names]
    module = importlib.import_module(homes[0] if homes else scalar_sheet.__name__)
    pairs = [part for x in numbers for part in (np.float64(x), 0)]
    try:
        value, status = getattr(module, function.name)(*pairs)
    except OverflowError:  # compiled code gives an infinity, which is this error
        return NUM
    return ERROR_VALUES[status - FIRST_ERROR] if status else float(value)


def _handed(number: int) -> None:
    """What looks at all of a window, in a small sheet and in one as if it were large."""
    for formula in handed_windows.FORMULAS:
        for size in (300, -1):
            sheet_paths.LARGE = size
            program = handed_windows.sheet(formula, "=A1+1")
            note_if_walked(program)
            agree(program, handed_windows.events(number), [7, 20])
            sheet_generated.generated.cache_clear()
    assert not walked, walked


#: Sheets that are not random.
LONG = {"functions": _functions, "windows": _windows, "digits": _digits, "comparing": _comparing,
        "handed": _handed}  # fmt: skip


def main(count: int, number: int, manner: str) -> None:
    run_by_python()
    if manner == "large":  # every sheet as if it were large: cells in memory, loops over rows
        sheet_paths.LARGE = -1
    if manner == "walked":  # none is compiled
        made: Any = sheet_build
        made.CompiledSheetKernel = not_compiled
    if manner in LONG:
        for n in range(count):
            LONG[manner](number + n)
        print(f"{kernels[0]} rounds of compiled loops")  # noqa: T201
        return

    @seed(number)
    @settings(max_examples=count, deadline=None, database=None, phases=_PHASES,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(sheets_alone() if manner == "alone" else sheets(outside=manner == "outside"),
           tuples(), CUTS)  # fmt: skip
    def check(program: Any, events: Any, cuts: list[int]) -> None:
        note_if_walked(program)
        agree(program, {name: events[name] for name in program.input_names}, cuts)

    check()
    done = (f"{kernels[0]} rounds of compiled loops, {blocks[0]} by blocks; "
            f"{outside[0]} sheets with cells outside, {called[0]} that call; "
            f"walked: {walked}")  # fmt: skip
    print(done)  # noqa: T201


def note_if_walked(program: Any) -> None:
    from millstream.kernels.sheets.build import sheet_kernel

    for operator in program.operators:
        types = program.queue_types()
        kernel = sheet_kernel(
            operator.function, tuple(types[q] for q in operator.inputs), len(operator.outputs)
        )
        source: str = kernel.source  # type: ignore[attr-defined]
        first = source.splitlines()[0]
        outside[0] += "# outside of the loop" in source
        called[0] += "called by the loop" in source
        if "walked" in first:
            walked[first] = walked.get(first, 0) + 1


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
