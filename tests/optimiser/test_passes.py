"""Each pass by itself: what it makes of a program, and that both mean the same.

A case is a program, then a line `# becomes` and another program, or a line `# stays`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.calculus.functions import Join, Lookup
from millstream.calculus.graph import Program
from millstream.calculus.text import render
from millstream.languages.brook.load import load
from millstream.optimiser.optimise import ON_REQUEST, PASSES, REASONS, RELAXED, optimise
from millstream.source import Source
from tests.generate import inputs_for
from tests.laws.runs import on_reference

CASES = sorted((Path(__file__).parent / "cases").glob("*/*.brook"))
BY_NAME = {one.__name__: one for one in (*PASSES, *ON_REQUEST, *RELAXED)}


def halves(case: Path) -> tuple[Program, Program]:
    text = case.read_text()
    before, _, after = text.partition("# becomes\n")
    program = load(Source(case.name, before))
    return program, load(Source(case.name, after)) if after else program


@pytest.mark.parametrize("case", CASES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_pass_makes_of_a_program_what_its_case_says(case: Path) -> None:
    before, after = halves(case)
    assert render(after) == render(optimise(before, (BY_NAME[case.parent.name],)))


@pytest.mark.parametrize("case", CASES, ids=lambda p: f"{p.parent.name}/{p.stem}")
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_both_halves_of_a_case_mean_the_same(case: Path, data: st.DataObject) -> None:
    before, after = halves(case)
    events = data.draw(inputs_for(before))
    assert on_reference(before, events)[0] == on_reference(after, events)[0]


def test_every_pass_has_a_reason_and_cases() -> None:
    assert set(BY_NAME) == set(REASONS) == {case.parent.name for case in CASES}


def test_a_pass_that_makes_what_is_no_program_is_told_by_name() -> None:
    def forgets_all(program: Program) -> Program:
        return replace(program, operators=()) if program.operators else program

    program = load(Source("one.brook", "output b;\ninput a(x integer);\n(b) <- Map[x](a);\n"))
    REASONS["forgets_all"] = "it is wrong"
    try:
        with pytest.raises(AssertionError, match="forgets_all"):
            optimise(program, (forgets_all,))
    finally:
        del REASONS["forgets_all"]


def test_a_join_is_looked_up_once_nobody_reads_what_nobody_needs() -> None:
    """What only a narrower Map would not read had been dropped from under it."""
    (case,) = (one for one in CASES if one.stem == "not_while_what_nobody_needs_is_read")
    program, _ = halves(case)
    assert any(isinstance(op.function, Lookup) for op in optimise(program).operators)


def test_joins_that_are_looked_up_one_by_one_may_be_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.optimiser.optimise.MAX_TURNS", 2)
    queues = [f"a{n}" for n in range(12)]
    joins = "".join(
        f"(h{n}, $h{n}) <- Aggregate[m = avg(x)](a{n}, $h{n});"
        f"(j{n}, $l{n}, $r{n}) <- Join[where x > m](a{n + 6}, h{n}, $l{n}, $r{n});"
        f"(o{n}) <- Map[x, y = x + {n}.0](j{n});"
        for n in range(6)
    )
    outputs = ", ".join(f"o{n}" for n in range(6))
    text = (
        f"output {outputs}; input in relation(x number); ({', '.join(queues)}) <- Duplicate(in); "
    )
    optimised = optimise(load(Source("joins.brook", text + joins)))
    assert [op for op in optimised.operators if isinstance(op.function, Lookup)]
    assert not [op for op in optimised.operators if isinstance(op.function, Join)]
