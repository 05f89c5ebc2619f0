"""Theorem 2 of the calculus paper: programs by chance give what an interpreter of them gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from millstream.engine.reference.feed import Event
from millstream.languages.streamit.load import load
from millstream.source import Source
from tests.languages.streamit.generate import programs
from tests.languages.streamit.oracle import Oracle
from tests.laws.runs import on_local, on_reference


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
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_the_local_engine_gives_the_same(program: tuple[str, list[float]]) -> None:
    text, items = program
    agree(text, given_by(text, items, is_local=True), expected_of(text, items))
