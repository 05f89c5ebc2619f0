"""What the tests of laws of sheets share."""

from __future__ import annotations

from hypothesis import strategies as st

from millstream.calculus.graph import Program
from millstream.engine.reference.feed import Event
from tests.laws.runs import on_local, on_reference

CUTS = st.lists(st.integers(0, 8), max_size=4)
Events = dict[str, list[Event]]


def agree(program: Program, events: Events, cuts: list[int]) -> None:
    """The local engine gives what the reference gives, row for row and fault for fault."""
    expected, reference = on_reference(program, events)
    actual, report = on_local(program, events, cuts)
    assert expected == actual
    assert reference.faults == report.faults
