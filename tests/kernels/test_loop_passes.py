"""Each pass of the loop compiler obeys its law, alone and after the others."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from millstream.calculus.graph import in_dependency_order
from millstream.calculus.procedures import Code
from millstream.calculus.work import Work
from millstream.kernels.loop.code_frame import FIRED
from millstream.kernels.loop.code_loop import lowered as lowered_code
from millstream.kernels.loop.emit import ROWS, Entry
from millstream.kernels.loop.ir import (
    NO,
    YES,
    ZERO,
    Const,
    Decide,
    Form,
    Function,
    Guarded,
    Memory,
    Rep,
    Store,
    integer,
)
from millstream.kernels.loop.passes import CAREFUL, PLAIN, STEPS, Pass, through
from millstream.kernels.loop.passes.assume_present import assume_present
from millstream.kernels.loop.passes.assume_sound import REACHED, assume_sound, can_assume
from millstream.kernels.loop.passes.certain import certain
from millstream.kernels.loop.passes.choices import choices
from millstream.kernels.loop.rows import RowKernel
from millstream.kernels.loop.rows_lower import lower_rows
from millstream.languages.streamit.load import load
from millstream.source import Source
from tests.kernels.loop_python import COUNT, EndlessError, check, run
from tests.kernels.test_rows_random import make_program

SEEDS = range(6)


def lowered(seed: int) -> Function:
    program = make_program(random.Random(seed))
    inputs = tuple((i.name, i.type) for i in program.inputs)
    operators = in_dependency_order(program)
    kernel = RowKernel(operators, inputs, program.outputs, program.variables)
    function = lower_rows(kernel.trace, kernel.layout, kernel.leaves)
    check(function)
    return function


def codes() -> list[Code]:
    """What the filters of some programs do."""
    programs = Path(__file__).parents[1] / "languages" / "streamit" / "programs"
    made: dict[Code, None] = {}
    for name in ("arrays", "phases", "helpers", "structs", "switch_like", "crc"):
        path = programs / f"{name}.str"
        program = load(Source(path.name, path.read_text())).program
        made |= {
            op.function.code: None for op in program.operators if isinstance(op.function, Work)
        }
    return list(made)


def does_the_same(
    before: Function, after: Function, *, has_nulls: bool = False, entry: Entry = ROWS
) -> None:
    expected = run(before, has_nulls=has_nulls, entry=entry)
    found = run(after, has_nulls=has_nulls, entry=entry)
    for memory in set(expected) - set(found):
        assert memory.kind == "out_valid"
        assert all(value is True for value in expected.pop(memory).values())
    assert repr(sorted(expected.items(), key=repr)) == repr(sorted(found.items(), key=repr))


@pytest.mark.parametrize("one", [p for p in PLAIN if p is not choices])
def test_a_pass_alone_changes_nothing(one: Pass) -> None:
    for seed in SEEDS:
        before = lowered(seed)
        after = one(before)
        check(after)
        for has_nulls in (False,) if one is assume_present else (False, True):
            does_the_same(before, after, has_nulls=has_nulls)


@pytest.mark.parametrize("passes", [CAREFUL, PLAIN])
def test_passes_together_change_nothing(passes: tuple[Pass, ...]) -> None:
    for seed in SEEDS:
        before = after = lowered(seed)
        for one in passes:
            after = one(after)
            if one is not choices:  # guards are plain truths from then on
                check(after)
        does_the_same(before, after, has_nulls=passes is CAREFUL)


def test_hoping_for_the_best_stops_where_it_was_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the careful code goes on from there."""
    monkeypatch.setattr(sys.modules[assume_sound.__module__], "BLOCK", 2)
    failures = 0
    for before in map(assume_present, filter(can_assume, map(lowered, range(40)))):
        after = assume_sound(before)
        check(after)
        for is_sound in (True, False):
            expected = run(before, is_sound=is_sound)
            found = run(after, is_sound=is_sound)
            reached = found.pop(REACHED)[0]
            failures += reached < COUNT
            assert is_sound <= (reached == COUNT)
            rest = run(before, is_sound=is_sound, begin=reached, before=found)
            assert _told(expected) == _told(found | rest)
    assert failures > 3


def _told(written: dict[Memory, dict[int, object]]) -> str:
    return repr(sorted((repr(m), sorted(cells.items())) for m, cells in written.items()))


def test_passes_change_nothing_of_procedures() -> None:
    done = 0
    for code in codes():
        before = lowered_code(code).function
        check(before)
        for passes in (*((one,) for one in STEPS), STEPS):
            after = through(passes, before)
            check(after)
            try:
                does_the_same(before, after, entry=FIRED)
            except EndlessError:
                break  # whoever gave it these numbers is to blame
            done += 1
    assert done > 40


def test_a_guard_that_is_known_is_none() -> None:
    out = Memory("out", Rep.INTEGER)
    lines = (
        (0, Decide(1, YES)),
        (1, Store(out, ZERO, integer(1))),
        (1, Decide(2, NO)),
        (2, Decide(3, YES)),
        (3, Store(out, ZERO, integer(2))),
        (1, Store(out, ZERO, integer(3))),
    )
    (made,) = certain(Function((Guarded(lines),), (0, 0, 1, 2))).body
    assert Guarded(((0, lines[1][1]), (0, lines[5][1]))) == made


def test_zeros_of_either_sign_are_two_constants() -> None:
    number = Form(Rep.NUMBER)
    assert Const(0.0, number) != Const(-0.0, number)
    assert Const(float("nan"), number) == Const(float("nan"), number)
    assert Const(True, number) != Const(1, number)
