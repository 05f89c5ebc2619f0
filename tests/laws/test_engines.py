"""Law 1: reference = local, row for row. Law 2: any cut into batches. Law 8: conservation."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generate import inputs_for, programs
from tests.laws.runs import on_local, on_reference

CUTS = st.lists(st.integers(0, 8), max_size=4)


@settings(max_examples=150, deadline=None)
@given(st.data(), CUTS)
def test_the_local_engine_gives_what_the_reference_gives(
    data: st.DataObject, cuts: list[int]
) -> None:
    program = data.draw(programs())
    events = data.draw(inputs_for(program))
    expected, reference_report = on_reference(program, events)
    actual, report = on_local(program, events, cuts)
    assert expected == actual
    for name, counts in report.inputs.items():
        assert counts.is_conserved
        assert reference_report.inputs[name] == counts
