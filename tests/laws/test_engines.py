"""Law 1: reference = local, row for row. Law 2: any cut into batches. Law 8: conservation.

Every generated program is compiled, which takes a second the first time. So most tests
always take the same programs, whose kernels are on disk after the first run.
"""

from __future__ import annotations

import pytest
from hypothesis import given

from millstream.calculus.graph import Program
from millstream.engine.reference.feed import Event
from tests.generate import Case, cases
from tests.laws.runs import check_faults, on_local, on_reference
from tests.laws.witness import Witness
from tests.seeds import TODAY, campaign, in_turn, seeded


def agree(program: Program, events: dict[str, list[Event]], cuts: list[int]) -> None:
    expected, reference_report = on_reference(program, events)
    actual, report = on_local(program, events, cuts)
    assert expected == actual
    check_faults(program, reference_report.faults, report.faults)
    for name, counts in report.inputs.items():
        assert counts.is_conserved
        assert reference_report.inputs[name] == counts


def agree_on(number: int, count: int) -> None:
    """On so many programs that follow from a seed."""

    @seeded(number, count)
    @given(cases())
    def law(case: Case) -> None:
        agree(*case)

    law()


@pytest.mark.parametrize("number", in_turn(range(2)))
def test_the_local_engine_gives_what_the_reference_gives(
    number: int, compiled_loops: Witness
) -> None:
    agree_on(number, 20)


@pytest.mark.slow
@pytest.mark.parametrize("number", [TODAY])
def test_the_engines_agree_on_programs_of_the_day(number: int, compiled_loops: Witness) -> None:
    agree_on(number, 20)


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(3_000, 25))
def test_the_engines_agree_on_thousands_of_programs(number: int, compiled_loops: Witness) -> None:
    agree_on(number, 25)
