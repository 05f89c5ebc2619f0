"""Programs of a thousand operators are checked and planned in a moment, and larger ones in step."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest

from millstream.calculus.graph import Program
from millstream.kernels.build import why_not
from millstream.languages import translate
from millstream.optimiser.optimise import optimise
from millstream.plan.stages import stages_of
from millstream.plan.state_kept import state_kept
from millstream.plan.steps import MOST_FUSED, Plan, make_plan
from millstream.source import Source
from tests.seeds import in_turn


def queries(operators: int) -> Program:
    """Many queries on one stream, none like another."""
    text = ["CREATE STREAM s (g INTEGER, v INTEGER, w NUMBER, t TEXT);"]
    text += [
        f"CREATE OUTPUT q{n} AS SELECT g, SUM(v) AS total FROM s [Range {n + 1} Seconds] "
        f"WHERE v > {n} GROUP BY g HAVING COUNT(*) > {n};"
        for n in range(operators // 5)
    ]
    return translate(Source("many.cql", "\n".join(text)), "cql").program


def row_by_row(operators: int) -> Program:
    """A chain of maps and selections, the last written first."""
    steps = [
        f"(q{n + 1}) <- {f'Filter[a > {n}]' if n % 2 else f'Map[a = a + {n}, b]'}(q{n});"
        for n in range(operators)
    ]
    text = "\n".join([f"output q{operators}; input q0(a integer, b text);", *reversed(steps)])
    return translate(Source("chain.brook", text), "brook").program


def one_after_the_other(operators: int) -> Program:
    """Windows on sums of windows, each by another key than the one before."""
    text = [f"output q{operators // 4}; input q0(a integer, b integer, c text);"]
    for n in range(operators // 4):
        by, other = ("a", "b") if n % 2 else ("b", "a")
        text.append(
            f"(w{n}, $w{n}) <- Range[{n + 1} s](q{n}, $w{n});"
            f"(g{n}, $g{n}) <- Aggregate[by {by}; {other} = sum({other}), c = max(c)](w{n}, $g{n});"
            f"(i{n}, $i{n}) <- Istream(g{n}, $i{n}); (q{n + 1}) <- Filter[{by} > {n}](i{n});"
        )
    return translate(Source("sums.brook", "\n".join(text)), "brook").program


Family = Callable[[int], Program]
FAMILIES = [queries, row_by_row, one_after_the_other]


def planned(program: Program) -> Plan:
    optimised = optimise(program)
    state_kept(optimised)
    plan = make_plan(optimised, why_not)
    stages_of(plan)
    return plan


def seconds(family: Family, operators: int) -> float:
    """Of the processor, the better of two: how busy it is with others matters little.

    Nothing is collected meanwhile: that costs the more the more other tests have left behind.
    """
    needed = []
    for _ in range(2):
        gc.collect()
        gc.disable()
        start = time.process_time()
        planned(family(operators))
        needed.append(time.process_time() - start)
        gc.enable()
    return min(needed)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_thousand_operators_are_planned_in_three_seconds(family: Family) -> None:
    family(10)  # what is imported and made once
    assert seconds(family, 1000) < 3


@pytest.mark.slow
@pytest.mark.parametrize("family", in_turn(FAMILIES))
def test_five_times_as_many_operators_take_little_more_than_five_times_as_long(
    family: Family,
) -> None:
    family(10)
    assert seconds(family, 5000) < 10 * max(seconds(family, 1000), 0.2)


def test_a_long_chain_is_several_loops() -> None:
    plan = planned(row_by_row(MOST_FUSED + 50))
    assert [MOST_FUSED, 50] == [len(step.operators) for step in plan.steps]
