"""Law 3: any interleaving of queue firings gives the same output."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.reference.run import random_schedule
from tests.generate import inputs_for, programs
from tests.laws.runs import on_reference


@settings(max_examples=120, deadline=None)
@given(st.data(), st.integers(0, 10_000))
def test_any_schedule_gives_the_same_output(data: st.DataObject, seed: int) -> None:
    program = data.draw(programs(sharing=False))
    events = data.draw(inputs_for(program))
    expected, _ = on_reference(program, events)
    actual, _ = on_reference(program, events, random_schedule(seed))
    assert expected == actual
