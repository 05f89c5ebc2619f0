"""The model of costs tells dear programs from cheap ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream
from millstream.calculus.graph import Program
from millstream.engine.local.threads import layout_for_threads
from millstream.kernels.build import why_not
from millstream.languages.brook.load import load
from millstream.optimiser.hoist_select import hoist_select
from millstream.optimiser.optimise import optimise
from millstream.plan.steps import make_plan
from millstream.plan.work import rates, work_of_program
from millstream.source import Source

EXAMPLES = Path(__file__).parents[2] / "examples"


def brook(text: str) -> Program:
    return load(Source("work.brook", text))


def is_spread(program: Program) -> bool:
    sizes = {one.name: 1e8 for one in program.inputs}
    return layout_for_threads(optimise(program), sizes, 2) is not None


TOTALS = """
output out; input in(key text, value integer);
(recent, $w) <- Range[5 s](in, $w);
(out, $s) <- Aggregate[by key; {totals}](recent, $s);
"""
QUICK = TOTALS.format(totals="total = sum(value)")
WINDOW = TOTALS.format(totals=", ".join(
    f"t{n} = {name}(value + {n})" for n, name in enumerate(("min", "max") * 2)
))  # fmt: skip
CHEAP = "output out; input in(a number); (out) <- Filter[a > 0.5](in);"
NOW = """
output out; input in(key text, value number);
(some) <- Filter[value > 100.0](in);
(now, $w) <- Now(some, $w);
(twice) <- Map[key, value = 2.0 * value](now);
(out, $o) <- Istream(twice, $o);
"""
ROOTS = "sqrt(a + " * 120 + "1" + ")" * 120
DEAR = f"output out; input in(a number); (out) <- Map[x = {ROOTS}](in);"


@pytest.mark.parametrize(
    ("program", "is_worth_it"),
    [
        (WINDOW, True),  # state by keys, of which much is done for each row
        (QUICK, False),  # one thread computes it sooner than others read and write
        (CHEAP, False),  # moving a row takes longer than looking at it
        (NOW, False),  # a window of the instant keeps nothing
        (DEAR, True),  # no state, and much to compute
    ],
)
def test_threads_share_what_is_dear(program: str, *, is_worth_it: bool) -> None:
    assert is_worth_it == is_spread(brook(program))


def test_quick_sheets_stay_in_one_thread() -> None:
    """A sheet that computes a few cells is done before its row could be moved."""
    assert not is_spread(millstream.compile(EXAMPLES / "sheets/kalman").program)
    assert is_spread(millstream.compile(EXAMPLES / "sheets/mandelbrot").program)


def test_rates_follow_what_functions_do_with_rows() -> None:
    program = brook(
        "output out; input in(a number);"
        "(some) <- Filter[a > 0.5](in); (out, $w) <- Range[5 s](some, $w);"
    )
    plan = make_plan(program, why_not)
    assert {"in": 1.0, "some": 0.3, "out": 0.6} == rates(plan, {"in": 10.0})


#: What is dropped before the smaller side of a join is in none of its pairs either.
JOINED = """
    output out; input s(k integer, x number), t(j integer, y number);
    (w, $w) <- Range[1 s](s, $w); (u, $u) <- Range[1 s](t, $u);
    (pairs, $a, $b) <- Join[on k = j](w, u, $a, $b);
    (some) <- Filter[{side} > 1.0](pairs); (out, $c) <- Aggregate[by k; n = count()](some, $c);
"""


@pytest.mark.parametrize("side", ["x", "y"])
def test_what_either_side_of_a_join_drops_is_work_spared(side: str) -> None:
    program = millstream.compile(text=JOINED.format(side=side)).program
    hoisted = optimise(program, (hoist_select,))
    assert hoisted is not program
    assert work_of_program(hoisted) < work_of_program(program)
