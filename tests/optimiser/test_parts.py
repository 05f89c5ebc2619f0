"""Totals in parts: what stays whole is told with its guard, and what goes wrong without it."""

from __future__ import annotations

import pytest

from millstream.calculus.graph import Program
from millstream.engine.reference.feed import Event
from millstream.languages.brook.load import load
from millstream.optimiser import sum_in_parts as parts
from millstream.optimiser.optimise import optimise, refusals
from millstream.source import Source
from tests.laws.runs import Rows, on_reference


def total(window: str, of: str, kind: str) -> Program:
    text = f"""
        output out; input in(a {kind});
        (w, $w) <- Range[{window}](in, $w); (out, $s) <- Aggregate[x = {of}](w, $s);
    """
    return load(Source("total.brook", text))


def told(program: Program) -> list[str]:
    done = optimise(program)
    return [why for one, _, why in refusals(done) if one is parts.sum_in_parts]


def results(program: Program, values: list[float]) -> Rows:
    events = {"in": [Event(n, (value,), 1) for n, value in enumerate(values)]}
    rows, _ = on_reference(program, events)
    return rows["out"]


def test_exact_totals_of_windows_that_slide_are_cut() -> None:
    assert [] == told(total("10 us; slide 5 us", "sum(a)", "integer"))


def test_sums_of_numbers_stay_whole_for_parts_would_round_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = total("10 us; slide 5 us", "sum(a)", "number")
    assert ["x is a sum of numbers, which parts would round otherwise"] == told(program)
    # The one is lost in the part of what is large, and is all that is left of the whole.
    values = [1e16, -1e16, 1.0, 0.0, 0.0, 0.0]
    whole = results(program, values)
    monkeypatch.setattr(parts, "_is_exact", lambda _: True)
    monkeypatch.setattr(parts, "PARTS", 2)
    cut = parts.sum_in_parts(program)
    assert cut is not program
    assert whole != results(cut, values)


def test_windows_that_do_not_slide_stay_whole_though_they_could_be_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = total("3 us", "sum(a)", "integer")
    (why,) = told(program)
    assert why.startswith("its window does not slide")
    whole = results(program, [1, 2, 3, 4, 5])
    monkeypatch.setattr(parts, "_refusal", lambda *_: None)
    assert whole == results(parts.sum_in_parts(program), [1, 2, 3, 4, 5])
