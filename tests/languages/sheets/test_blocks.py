"""Many tuples at once give what they give one by one, also where some of them are strange."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import millstream
from millstream.calculus.sheets import Sheet
from millstream.calculus.types import Kind, QueueType, Value
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.sheets.compiled import CompiledSheetKernel
from millstream.kernels.sheets.walked import SheetKernel
from millstream.plan.batch import batch_of

EXAMPLES = Path(__file__).parents[3] / "examples" / "sheets"
ROWS = 2_000
NO_TICKS = np.zeros(0, np.int64)
#: Empty, next to nothing, too large to add up; and where in the rows they are.
STRANGE = {600: None, 601: 0.0, 1_100: 1e308, 1_101: -1e308, 1_102: 1e308, 1_900: 5e-324}


def rows_for(type_: QueueType, *, is_strange: bool) -> list[tuple[Value, ...]]:
    random = np.random.default_rng(7)
    columns: list[list[Value]] = []
    for field in type_.schema:
        if field.type.kind is Kind.TEXT:
            columns.append([f"{field.name} {n}" for n in random.integers(0, 9, ROWS)])
            continue
        values: list[Value] = [*(random.integers(-400_000, 600_000, ROWS) / 16).tolist()]
        if field.type.kind is Kind.INTEGER:
            values = [*random.integers(0, 20, ROWS).tolist()]
        elif is_strange:
            for place, value in STRANGE.items():
                values[place] = value
        columns.append(values)
    return list(zip(*columns, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["average", "tax"])
@pytest.mark.parametrize("is_strange", [False, True])
def test_blocks_of_tuples_give_what_walking_them_gives(name: str, *, is_strange: bool) -> None:
    program = millstream.compile(EXAMPLES / name).program
    function = program.operators[0].function
    assert isinstance(function, Sheet)
    types = tuple(one.type for one in program.inputs)
    compiled, walked = CompiledSheetKernel(function, types, 1), SheetKernel(function, types, 1)
    assert compiled.whole.block is not None
    rows = rows_for(types[0], is_strange=is_strange)
    for part in (slice(0, 700), slice(700, 701), slice(701, None)):
        batch = batch_of(types[0], list(range(ROWS))[part], rows[part])
        expected, actual = (
            kernel.process((batch,), Round(0, NO_TICKS))[0] for kernel in (walked, compiled)
        )
        assert repr(expected.rows()) == repr(actual.rows())
    assert walked.faults() == compiled.faults()


def test_there_are_no_blocks_where_keys_keep_something() -> None:
    program = millstream.compile(EXAMPLES / "kalman").program
    function = program.operators[0].function
    assert isinstance(function, Sheet)
    types = tuple(one.type for one in program.inputs)
    assert CompiledSheetKernel(function, types, 1).whole.block is None
