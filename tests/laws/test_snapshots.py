"""Law 7, without the kill: whoever takes up a state that was written down goes on as before.

After every round all state becomes bytes, and kernels that are new read it from these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given

from millstream.calculus.graph import Program
from millstream.engine.reference.feed import Event
from millstream.engine.storage.codec import decode, encode
from millstream.kernels.rounds import StepRunner
from millstream.languages.brook.load import load
from millstream.source import Source
from tests.generate import Case, cases
from tests.laws.runs import check_faults, on_local, on_reference
from tests.laws.witness import Witness
from tests.seeds import TODAY, in_turn, seeded


@contextmanager
def forgetting() -> Iterator[list[int]]:
    """Engines of this process keep nothing from one round to the next but bytes."""
    rounds: list[int] = []
    whole = StepRunner.round

    def round_(self: StepRunner, *args: Any) -> Any:
        outputs = whole(self, *args)
        written = encode(self.snapshot())
        rounds.append(len(written))
        self.__init__(self.plan, self.steps)  # type: ignore[misc]
        self.restore(decode(written))
        assert written == encode(self.snapshot()), "another state than the one that was read"
        return outputs

    runner: Any = StepRunner
    runner.round = round_
    try:
        yield rounds
    finally:
        runner.round = whole


def check(program: Program, events: dict[str, list[Event]], cuts: list[int]) -> None:
    expected, reference = on_reference(program, events)
    with forgetting() as rounds:
        actual, report = on_local(program, events, cuts)
    assert rounds or not any(events.values())
    assert expected == actual
    check_faults(program, reference.faults, report.faults)


def agree_on(number: int, count: int) -> None:
    @seeded(number, count)
    @given(cases())
    def law(case: Case) -> None:
        program, events, cuts = case
        check(program, events, [3, *cuts])

    law()


@pytest.mark.parametrize("number", in_turn(range(2)))
def test_state_that_was_written_down_gives_the_same_rows(
    number: int, compiled_loops: Witness
) -> None:
    agree_on(number, 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [TODAY, *(pytest.param(n, marks=pytest.mark.proof) for n in range(10, 14))]
)
def test_state_of_more_programs_gives_the_same_rows(number: int, compiled_loops: Witness) -> None:
    agree_on(number, 20)


AROUND_A_WINDOW = """
output out; input in(x integer); variable $v(n integer = 0);
(b, $v) <- Fold[set $v.n = $v.n + 1; emit x](in, $v);
(w, $w) <- Range[3 us](b, $w); (i, $i) <- Istream(w, $i);
(out) <- Fold[emit x, n = $v.n](i, $v);
"""
FEEDBACK = """
output out; input in(x integer);
(both, $a, $b, $c) <- RoundRobinJoin(in, back, $a, $b, $c);
(halved) <- Map[x = div(x, 2)](both);
(out, again) <- Duplicate(halved);
(back) <- Filter[x > 1](again);
"""


@pytest.mark.parametrize("text", [AROUND_A_WINDOW, FEEDBACK])
def test_what_the_reference_keeps_for_the_engines_can_be_written_down(text: str) -> None:
    program = load(Source("test.brook", text))
    check(program, {"in": [Event(n, (7 * n,)) for n in range(8)]}, [2, 3, 6])
