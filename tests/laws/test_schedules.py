"""Law 3: any interleaving of queue firings gives the same output."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.graph import Operator
from millstream.engine.reference.feed import entries_of
from millstream.engine.reference.run import random_schedule
from millstream.meaning.items import Entry
from millstream.meaning.machine import Machine
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


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_machine_fires_in_the_order_of_the_default_schedule(data: st.DataObject) -> None:
    program = data.draw(programs())
    entries = entries_of(program, data.draw(inputs_for(program)))
    searching, running = Machine(program), Machine(program)
    fired = []

    def noted(queue: str) -> tuple[Operator, Entry]:
        fired.append(queue)
        return Machine.step(running, queue)

    running.step = noted  # type: ignore[method-assign]
    for machine in (searching, running):
        for queue, some in entries.items():
            machine.push(queue, some)
    running.run()
    expected = []
    while enabled := searching.enabled():
        expected.append(min(enabled, key=searching.schedule_key))
        searching.step(expected[-1])
    assert fired == expected
    assert running.queues == searching.queues
