"""Laws 1, 2 and 7 for nets of filters: reference = local, any cut, any stop; and law 3."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from millstream.calculus.graph import Program
from millstream.engine.reference.feed import Event
from tests.generate_nets import net_inputs, nets
from tests.laws.runs import on_local, on_reference
from tests.laws.test_snapshots import forgetting
from tests.seeds import TODAY, seeded

CUTS = st.lists(st.integers(0, 20), max_size=4)


def check(program: Program, events: dict[str, list[Event]], cuts: list[int]) -> None:
    expected, report = on_reference(program, events)
    actual, local = on_local(program, events, cuts)
    assert expected == actual
    assert report.inputs == local.inputs
    with forgetting():
        assert expected == on_local(program, events, cuts)[0]


def agree_on(number: int, count: int) -> None:
    @seeded(number, count, phases=[Phase.generate])
    @given(st.data(), CUTS)
    def law(data: st.DataObject, cuts: list[int]) -> None:
        program = data.draw(nets())
        check(program, data.draw(net_inputs(program)), cuts)

    law()


@pytest.mark.parametrize("number", range(2))
def test_a_net_gives_what_the_reference_gives_however_it_is_cut_and_stopped(number: int) -> None:
    agree_on(number, 5)


@pytest.mark.slow
@pytest.mark.parametrize("number", [*range(100, 108), TODAY])
def test_more_nets_give_what_the_reference_gives(number: int) -> None:
    agree_on(number, 12)
