"""Kernels of sheets: state written down and taken up, windows without drift, one sheet by both."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import millstream
from millstream.calculus.graph import Program
from millstream.calculus.sheets import Sheet
from millstream.engine.storage.codec import decode, encode
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.sheets.compiled import CompiledSheetKernel
from millstream.kernels.sheets.walked import SheetKernel
from millstream.plan.batch import Batch, batch_of

EXAMPLES = Path(__file__).parents[3] / "examples" / "sheets"
NO_TICKS = np.zeros(0, np.int64)


def program(name: str) -> Program:
    return millstream.compile(EXAMPLES / name).program


def rounds_of(found: Program, count: int) -> list[tuple[Batch, ...]]:
    """The tuples of an example, cut by time into so many rounds."""
    events = millstream.compile(EXAMPLES / "vwap").read_inputs()
    times = sorted({e.time for some in events.values() for e in some})
    bounds = [-(2**63), *times[:: -(-len(times) // count)][1:], 2**63 - 1]
    return [
        tuple(
            batch_of(one.type, [e.time for e in part], [e.row for e in part])
            for one in found.inputs
            for part in [[e for e in events[one.name] if start <= e.time < end]]
        )
        for start, end in pairwise(bounds)
    ]


@pytest.mark.parametrize(
    "kind", [SheetKernel, pytest.param(CompiledSheetKernel, marks=pytest.mark.slow)]
)
def test_a_kernel_goes_on_from_its_snapshot(kind: Any) -> None:
    """Whoever reads its state after every round sends the rows that it would have sent."""
    found = program("vwap")
    function = found.operators[0].function
    assert isinstance(function, Sheet)
    types = tuple(one.type for one in found.inputs)
    (whole,) = rounds_of(found, 1)
    (expected,) = kind(function, types, 1).process(whole, Round(0, NO_TICKS))
    times, rows = list[int](), list[object]()
    kernel = kind(function, types, 1)
    for batches in rounds_of(found, 5):
        (sent,) = kernel.process(batches, Round(0, NO_TICKS))
        times += sent.time.tolist()
        rows += sent.rows()
        before, kernel = kernel, kind(function, types, 1)
        kernel.restore(decode(encode(before.snapshot())))
    assert len(times) > 5
    assert (expected.time.tolist(), expected.rows()) == (times, rows)


@pytest.mark.slow
def test_what_has_left_a_window_leaves_no_trace_in_its_sum() -> None:
    from millstream.calculus.types import NUMBER, QueueType, Schema
    from millstream.languages.sheets.bindings import (
        Binding,
        Bindings,
        InputBinding,
        OutputBinding,
    )
    from millstream.languages.sheets.translate import translate_workbook
    from tests.languages.sheets.books import workbook

    bindings = Bindings(
        (InputBinding("In", (Binding("x", "A1"),), columns=Schema.of(x=NUMBER)),),
        (OutputBinding("Out", (Binding("s", "B1"),)),),
    )
    function = (
        translate_workbook(workbook({"B1": "=SUM(WINDOWROWS(A1,2))"}), bindings)
        .operators[0]
        .function
    )
    assert isinstance(function, Sheet)
    type_ = QueueType(Schema.of(x=NUMBER))
    values = [1e300, 1e-300, 0.1, 0.2, -1e300, 1e300, 0.1, 0.2]
    kernel = CompiledSheetKernel(function, (type_,), 1)
    batch = batch_of(type_, list(range(len(values))), [(v,) for v in values])
    rows = kernel.process((batch,), Round(0, NO_TICKS))[0].rows()
    assert [1e300, 1e300, 0.1, 0.30000000000000004, -1e300, 0.0, 1e300, 0.30000000000000004] == [
        r[0] for r in rows
    ]


@pytest.mark.slow
def test_texts_that_nothing_holds_are_forgotten() -> None:
    """Ten thousand texts come by; the last two, and what the sheet names, stay known."""
    from millstream.calculus.types import TEXT, QueueType, Schema
    from millstream.languages.sheets.bindings import (
        Binding,
        Bindings,
        InputBinding,
        OutputBinding,
    )
    from millstream.languages.sheets.translate import translate_workbook
    from tests.languages.sheets.books import workbook

    bindings = Bindings(
        (InputBinding("In", (Binding("s", "A1"),), columns=Schema.of(s=TEXT)),),
        (OutputBinding("Out", (Binding("first", "B1"), Binding("is", "C1"))),),
    )
    cells = {"D1": "=WINDOWROWS(A1,2)", "B1": "=INDEX(D1,1)", "C1": '=A1="Text 7"'}
    function = translate_workbook(workbook(cells), bindings).operators[0].function
    assert isinstance(function, Sheet)
    type_ = QueueType(Schema.of(s=TEXT))
    kernel = CompiledSheetKernel(function, (type_,), 1)
    texts = [f"text {n}" for n in range(10_000)]
    rows = []
    for start in range(0, len(texts), 1000):
        some = texts[start : start + 1000]
        batch = batch_of(type_, list(range(start, start + 1000)), [(t,) for t in some])
        rows += kernel.process((batch,), Round(0, NO_TICKS))[0].rows()
    assert [r[0] for r in rows] == [texts[0], *texts[:-1]]
    assert [n for n, r in enumerate(rows) if r[1]] == [7]
    assert len(kernel.texts) < 6_000


def test_keys_that_are_integers_are_told_apart_whatever_their_size() -> None:
    from millstream.calculus.types import INTEGER
    from millstream.kernels.runtime.interning import Interner
    from millstream.kernels.sheets.columns import KeyIds
    from millstream.plan.batch import Vector

    keys = KeyIds(Interner([INTEGER]))
    found: dict[int, int] = {}
    for some in ([3, 1, 3], [5000, 3, 0], [-1, 5000], [1 << 40, 1], [100_000, 1 << 40, -1]):
        codes, numbers = keys.of(0, Vector(INTEGER, np.array(some, np.int64)))
        for key, number in zip(some, numbers[codes].tolist(), strict=True):
            assert found.setdefault(key, number) == number
    assert len(set(found.values())) == len(found)


def test_a_sheet_is_generated_once_and_only_for_itself() -> None:
    """TRUE and 1 are equal in Python, and so are an error and its text; here they are not."""
    from dataclasses import replace

    from millstream.calculus.sheets import Computed
    from millstream.kernels.sheets.generated import generated
    from millstream.values.excel.syntax import Binary, Literal

    found = program("average")
    function = found.operators[0].function
    assert isinstance(function, Sheet)
    types = tuple(one.type for one in found.inputs)
    assert generated(function, types) is generated(function, types)
    last = function.cells[-1]
    assert isinstance(last.rule, Computed)
    one, true = (
        replace(function, cells=(*function.cells[:-1], replace(last, rule=replace(
            last.rule, formula=Binary("=", last.rule.formula, Literal(value))
        ))))
        for value in (1.0, True)
    )  # fmt: skip
    assert one != true
    assert generated(one, types).loop != generated(true, types).loop
