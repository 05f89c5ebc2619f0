"""A kernel that rests gives nothing when it is given nothing, so that rounds may leave it out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from millstream.engine.storage.codec import encode
from millstream.kernels.rounds import NO_TICKS, StepRunner
from millstream.kernels.runtime.kernel import Round
from millstream.plan.batch import empty_batch
from tests.generate import Case, cases
from tests.laws.runs import on_local
from tests.seeds import seeded


def check_resting(runner: StepRunner, mark: int) -> int:
    """Give nothing to all kernels that rest; how many there are."""
    types = runner.plan.program.queue_types()
    for number in runner.nothing:
        kernel, step = runner.kernels[number], runner.steps[number]
        before = encode(kernel.snapshot())
        made = kernel.process(
            tuple(empty_batch(types[q]) for q in step.inputs), Round(mark, NO_TICKS)
        )
        assert [len(batch) for batch in made] == [0] * len(step.outputs), step
        assert before == encode(kernel.snapshot()), step
    return len(runner.nothing)


def test_what_rests_has_nothing_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    rested = 0
    whole = StepRunner.round

    def round_(self: StepRunner, arrivals: Any, mark: int, ticks: Any) -> Any:
        nonlocal rested
        outputs = list(whole(self, arrivals, mark, ticks))
        rested += check_resting(self, mark)
        return iter(outputs)

    monkeypatch.setattr(StepRunner, "round", round_)

    @seeded(1, 20)
    @given(cases())
    def law(case: Case) -> None:
        program, events, _ = case
        on_local(program, events, [1, 3])

    law()
    assert rested
