"""Engines agree on sheets, and partitions are isolated: theorems 1 and 2 of the paper."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings

from millstream.calculus.graph import Program
from millstream.calculus.sheets import Sheet
from millstream.calculus.text import render
from millstream.languages.brook.load import load
from millstream.source import Source
from tests.languages.sheets.generate import sheets, tuples
from tests.languages.sheets.laws import CUTS, Events, agree
from tests.laws.runs import on_reference
from tests.seeds import campaign, in_turn, seeded

ROOT = Path(__file__).parents[3]
WAYS: list[list[str]] = [[], ["large"], ["alone"], ["outside"], ["walked"]]


def by_python(count: int, number: int, *more: str) -> None:
    """In a process in which nothing is compiled: to compile a sheet takes seconds."""
    command = [sys.executable, "-m", "tests.languages.sheets.as_python", str(count), str(number)]
    done = subprocess.run(
        [*command, *more], cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rounds of compiled loops" in done.stdout


@pytest.mark.parametrize("more", in_turn(WAYS, 2))
def test_compiled_loops_give_what_figure_4_says(more: list[str]) -> None:
    by_python(30, 1, *more)


def test_aggregates_of_long_windows_give_what_the_reference_gives() -> None:
    by_python(1, 1, "windows")


def test_compiled_functions_of_numbers_give_what_evaluated_ones_give() -> None:
    by_python(1, 1, "functions")


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(6_000, 500))
@pytest.mark.parametrize("more", WAYS)
def test_compiled_loops_give_what_figure_4_says_on_many_sheets(
    number: int, more: list[str]
) -> None:
    by_python(500, number, *more)


@pytest.mark.slow
@settings(max_examples=4, deadline=None, derandomize=True, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(sheets(), tuples(), CUTS)
def test_the_local_engine_gives_what_figure_4_says(
    program: Program, events: Events, cuts: list[int]
) -> None:
    agree(program, events, cuts)


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(400, 5))
def test_the_local_engine_gives_what_figure_4_says_on_many_sheets(number: int) -> None:
    @seeded(number, 5)
    @given(sheets(), tuples(), CUTS)
    def law(program: Program, events: Events, cuts: list[int]) -> None:
        agree(program, events, cuts)

    law()


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(sheets())
def test_a_printed_sheet_parses_back(program: Program) -> None:
    assert program == load(Source("printed.brook", render(program)))


def _keys(program: Program) -> bool:
    function = program.operators[0].function
    assert isinstance(function, Sheet)
    return bool(function.keys)


def _of(events: Events, key: str) -> Events:
    return {name: [e for e in some if e.row[0] == key] for name, some in events.items()}


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(sheets(), tuples())
def test_theorem_1_each_output_tuple_belongs_to_one_key(program: Program, events: Events) -> None:
    """Both keys together give, as a bag, what each gives alone: no tick has two keys."""
    assume(_keys(program))
    together, _ = on_reference(program, events)
    apart = [on_reference(program, _of(events, key))[0] for key in ("p", "q")]
    for name, rows in together.items():
        assert sorted(rows, key=repr) == sorted(apart[0][name] + apart[1][name], key=repr)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(sheets(), tuples(), tuples())
def test_theorem_2_what_happens_in_one_key_does_not_affect_another(
    program: Program, events: Events, others: Events
) -> None:
    assume(_keys(program))
    changed = {
        name: sorted(_of(events, "p")[name] + _of(others, "q")[name], key=lambda e: e.time)
        for name in events
    }
    alone, _ = on_reference(program, _of(events, "p"))
    mixed, _ = on_reference(program, changed)
    without, _ = on_reference(program, _of(others, "q"))
    for name, rows in mixed.items():
        left = list(rows)
        for row in without[name]:
            left.remove(row)
        assert sorted(alone[name], key=repr) == sorted(left, key=repr)
