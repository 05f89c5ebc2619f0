"""Laws 1, 2 and 7 for nets of filters: reference = local, any cut, any stop; and law 3."""

from __future__ import annotations

import re

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from millstream.calculus.graph import Program
from millstream.calculus.text import render
from millstream.engine.reference.feed import Event
from millstream.errors import MillstreamError
from millstream.languages.brook.load import load
from millstream.source import Source
from tests.generate_nets import inputs_by_key, net_inputs, nets, nets_by_key
from tests.laws.runs import on_local, on_reference
from tests.laws.test_snapshots import forgetting
from tests.seeds import TODAY, campaign, in_turn, seeded

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


@pytest.mark.parametrize("number", in_turn(range(2)))
def test_a_net_gives_what_the_reference_gives_however_it_is_cut_and_stopped(number: int) -> None:
    agree_on(number, 4)


@pytest.mark.slow
@pytest.mark.parametrize("number", [TODAY])
def test_more_nets_give_what_the_reference_gives(number: int) -> None:
    agree_on(number, 2)


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(600, 12))
def test_many_nets_give_what_the_reference_gives(number: int) -> None:
    agree_on(number, 12)


def agree_by_key(number: int, count: int) -> None:
    @seeded(number, count, phases=[Phase.generate])
    @given(st.data(), CUTS)
    def law(data: st.DataObject, cuts: list[int]) -> None:
        program = data.draw(nets_by_key())
        assert program == load(Source("printed.brook", render(program)))
        check(program, data.draw(inputs_by_key(program)), cuts)

    law()


def test_a_net_for_every_key_gives_what_the_reference_gives() -> None:
    agree_by_key(0, 3)


@pytest.mark.slow
@pytest.mark.parametrize("number", [TODAY])
def test_more_nets_for_every_key_give_what_the_reference_gives(number: int) -> None:
    agree_by_key(number, 2)


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(240, 12))
def test_many_nets_for_every_key_give_what_the_reference_gives(number: int) -> None:
    agree_by_key(number, 12)


@pytest.mark.parametrize(
    ("inner", "fault"),
    [
        (
            '"output o;", "input i(x integer);", "(o, $v) <- Now(i, $v);"',
            "Now waits for time to pass",
        ),
        ('"output o;", "input i relation (x integer);", "(o) <- Map[x](i);"', "streams only"),
        ('"output o;", "input i(x integer);", "(o) <- Map[k = x](i);"', "as the key has"),
        ('"output o, p;", "input i(x integer);", "(o, p) <- Duplicate(i);"', "one output"),
        ('"output o;", "input i(x integer);", "(o) <- Map[y = z](i);"', 'unknown column "z", in'),
    ],
)
def test_what_no_key_can_have_a_program_of_is_refused(inner: str, fault: str) -> None:
    text = f"output out; input in(k text, x integer);\n(out, $s) <- PerKey[by k; {inner}](in, $s);"
    with pytest.raises(MillstreamError, match=re.escape(fault)):
        load(Source("test.brook", text))
