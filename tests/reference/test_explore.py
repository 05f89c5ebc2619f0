"""Every interleaving: deterministic programs have one result, the market maker several."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream
from millstream.backends.reference.explore import explore, replay
from millstream.backends.reference.feed import Event, read_events
from millstream.calculus.graph import Program
from millstream.calculus.text import load
from millstream.cli.main import main
from millstream.engine.job import Report
from millstream.source import Source
from tests.generate import inputs_for, programs
from tests.laws.runs import job_for, on_reference

MARKET_MAKER = Path(__file__).parents[2] / "examples" / "brook" / "market_maker"

RACE = """
output out;
input a(x integer), b(x integer);
variable $last(x integer = 0);
($last) <- Fold[set $last.x = x](a);
(out)   <- Fold[emit seen = $last.x](b, $last);
"""


def program_of(text: str) -> Program:
    return load(Source("test.brook", text))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_programs_without_shared_variables_have_one_result(data: st.DataObject) -> None:
    program = data.draw(programs(sharing=False, max_operators=4))
    job, _ = job_for(program, data.draw(inputs_for(program, max_rows=3)))
    events = read_events(job, Report.for_program(program))
    result = explore(program, events, limit=20_000)
    assert len(result.finals) <= 1
    if result.is_complete:
        expected, _ = on_reference(program, events)
        (final,) = result.finals
        if program.outputs:
            actual = {q: [(i.time, i.weight, i.row) for i in items] for q, items in final.outputs}
            assert expected == actual


def test_a_race_has_every_result_that_some_order_gives() -> None:
    events = {"a": [Event(1, (1,)), Event(2, (2,))], "b": [Event(1, (0,)), Event(2, (0,))]}
    result = explore(program_of(RACE), events)
    seen = {tuple(item.row[0] for item in final.outputs[0][1]) for final in result.finals}
    # The reader sees what was written so far; it never sees an older value after a newer.
    assert {(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)} == seen
    assert result.is_complete


def test_replaying_a_schedule_tells_what_it_did() -> None:
    program = program_of(RACE)
    events = {"a": [Event(1, (5,))], "b": [Event(1, (0,))]}
    told = [replay(program, events, final.schedule) for final in explore(program, events).finals]
    assert [
        "  1. b pops 1:(0): out += 1:(0)",
        "  2. a pops 1:(5): $last = {x=5}",
    ] in told


def test_eight_firings_that_all_race_finish_in_seconds() -> None:
    events = {"a": [Event(n, (n,)) for n in range(4)], "b": [Event(n, (0,)) for n in range(4)]}
    start = time.perf_counter()
    assert explore(program_of(RACE), events).is_complete
    assert time.perf_counter() - start < 5


def test_the_limit_is_told() -> None:
    events = {"a": [Event(n, (n,)) for n in range(6)], "b": [Event(n, (0,)) for n in range(6)]}
    assert not explore(program_of(RACE), events, limit=10).is_complete


def test_the_command_shows_that_the_market_maker_is_not_unique(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert 0 == main(["explore", str(MARKET_MAKER / "market_maker.brook")])
    told = capsys.readouterr().out
    assert "the result is NOT unique" in told
    assert "schedule 1" in told
    assert "schedule 2" in told


def test_the_default_schedule_is_one_of_the_explored_results() -> None:
    compiled = millstream.compile(MARKET_MAKER / "market_maker.brook")
    events = compiled.read_inputs()
    expected, _ = on_reference(compiled.program, events)
    finals = [
        [(i.time, i.weight, i.row) for i in final.outputs[0][1]]
        for final in explore(compiled.program, events).finals
    ]
    assert expected["result"] in finals
