"""Law 1: reference = local, row for row. Law 2: any cut into batches. Law 8: conservation.

Every generated program is compiled, which takes a second the first time. So the quick
test always takes the same programs, whose kernels are on disk after the first run; the
others are longer.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.generate import inputs_for, programs
from tests.laws.runs import on_local, on_reference

CUTS = st.lists(st.integers(0, 8), max_size=4)


def agree(data: st.DataObject, cuts: list[int]) -> None:
    program = data.draw(programs())
    events = data.draw(inputs_for(program))
    expected, reference_report = on_reference(program, events)
    actual, report = on_local(program, events, cuts)
    assert expected == actual
    for name, counts in report.inputs.items():
        assert counts.is_conserved
        assert reference_report.inputs[name] == counts


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.data(), CUTS)
def test_the_local_engine_gives_what_the_reference_gives(
    data: st.DataObject, cuts: list[int]
) -> None:
    agree(data, cuts)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.data(), CUTS)
def test_the_engines_agree_on_more_programs(data: st.DataObject, cuts: list[int]) -> None:
    agree(data, cuts)


@pytest.mark.proof
@settings(
    max_examples=int(os.environ.get("MILLSTREAM_EXAMPLES", "3000")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data(), CUTS)
def test_the_engines_agree_on_thousands_of_programs(data: st.DataObject, cuts: list[int]) -> None:
    agree(data, cuts)
