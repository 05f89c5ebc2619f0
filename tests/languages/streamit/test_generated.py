"""Theorem 2 of the calculus paper: programs by chance give what an interpreter of them gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.calculus.graph import Program
from millstream.calculus.work import Work
from millstream.engine.reference.feed import Event
from millstream.engine.reference.run import random_schedule
from millstream.languages.streamit.load import load
from millstream.source import Source
from tests.languages.streamit.generate import changing_programs, messaging_programs, programs
from tests.languages.streamit.oracle import Oracle
from tests.laws.runs import on_local, on_reference
from tests.laws.test_snapshots import forgetting


def known(value: Any) -> float | str:
    """A number that is equal to itself."""
    return "nan" if math.isnan(value) else float(value)


def given_by(text: str, items: list[float], *, is_local: bool = False) -> list[float | str]:
    program = load(Source("test.str", text)).program
    events = {"items": [Event(n, (item,)) for n, item in enumerate(items)]}
    run = on_local(program, events, (3,)) if is_local else on_reference(program, events)
    return [known(row[0]) for _, _, row in run[0]["out"]]


def expected_of(text: str, items: list[float]) -> list[float | str]:
    kind = np.int32 if text.startswith("int") else np.float32
    oracle = Oracle(text)
    return [known(item.item()) for item in oracle.run([kind(item) for item in items])]


def agree(text: str, sent: list[float | str], expected: list[float | str]) -> None:
    """What a prework gives without taking anything leaves when the first item has come."""
    assert expected[: len(sent)] == sent
    assert "prework" in text or len(expected) == len(sent)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_generated_programs_give_what_their_text_says(program: tuple[str, list[float]]) -> None:
    text, items = program
    agree(text, given_by(text, items), expected_of(text, items))


@pytest.mark.slow
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_the_local_engine_gives_the_same(program: tuple[str, list[float]]) -> None:
    text, items = program
    agree(text, given_by(text, items, is_local=True), expected_of(text, items))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(changing_programs())
def test_rates_that_change_give_what_the_text_says(program: tuple[str, list[float]]) -> None:
    text, items = program
    agree(text, given_by(text, items), expected_of(text, items))


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(changing_programs())
def test_rates_change_in_the_same_way_on_the_local_engine(
    program: tuple[str, list[float]],
) -> None:
    text, items = program
    agree(text, given_by(text, items, is_local=True), expected_of(text, items))


Events = dict[str, list[Event]]


def told(program: tuple[str, list[float]]) -> tuple[Program, Events]:
    """A program with messages, and its items."""
    text, items = program
    translated = load(Source("test.str", text)).program
    assert any(op.function.tells for op in translated.operators if isinstance(op.function, Work))
    return translated, {"items": [Event(n, (item,)) for n, item in enumerate(items)]}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(messaging_programs(), st.integers(0, 1000))
def test_messages_come_at_the_same_firings_whoever_fires_when(
    program: tuple[str, list[float]], number: int
) -> None:
    translated, events = told(program)
    expected = on_reference(translated, events)[0]
    assert expected == on_reference(translated, events, random_schedule(number))[0]


@pytest.mark.slow
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(messaging_programs(), st.lists(st.integers(0, 30), max_size=4))
def test_messages_come_at_the_same_firings_however_a_run_is_cut_and_stopped(
    program: tuple[str, list[float]], cuts: list[int]
) -> None:
    translated, events = told(program)
    expected = on_reference(translated, events)[0]
    assert expected == on_local(translated, events, cuts)[0]
    with forgetting():
        assert expected == on_local(translated, events, cuts)[0]
