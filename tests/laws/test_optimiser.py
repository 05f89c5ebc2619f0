"""Law 4: optimised equals unoptimised."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.optimiser.optimise import ON_REQUEST, PASSES, Pass, optimise
from tests.generate import inputs_for, programs
from tests.laws.runs import on_reference
from tests.seeds import in_turn

EVERY = (*PASSES, *ON_REQUEST)
#: The pipelines of engines each day, every pass alone in its turn.
PIPELINES = [PASSES, EVERY, *in_turn([(one,) for one in EVERY], 3)]


@pytest.mark.parametrize("passes", PIPELINES, ids=lambda p: "+".join(x.__name__ for x in p))
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_rewrites_change_nothing_that_can_be_seen(
    passes: tuple[Pass, ...], data: st.DataObject
) -> None:
    program = data.draw(programs())
    events = data.draw(inputs_for(program))
    expected, _ = on_reference(program, events)
    actual, _ = on_reference(optimise(program, passes), events)
    assert expected == actual
