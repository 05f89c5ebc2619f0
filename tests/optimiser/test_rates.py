"""Filters with rates side by side: the same outcomes, and what each guard keeps from happening."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from millstream.calculus.functions import Duplicate, RoundRobinJoin, RoundRobinSplit
from millstream.calculus.graph import Operator, Program
from millstream.calculus.text import render
from millstream.calculus.work import Work
from millstream.engine.reference.explore import explore
from millstream.engine.reference.feed import Event
from millstream.languages.brook.load import load
from millstream.optimiser import split_by_rates as module
from millstream.optimiser.join_then_split import join_then_split
from millstream.optimiser.join_then_split import refusals as turns_refused
from millstream.optimiser.optimise import optimise
from millstream.optimiser.split_by_rates import refusals, split_by_rates
from millstream.source import Source
from tests.laws.runs import on_local, on_reference

MOVING = ("let a int32;", "a = peek 0;", "let b int32;", "b = peek 1;",
          "push int32_add(a, b);", "pop;")  # fmt: skip
PAIRS = ("let a int32;", "a = pop;", "let b int32;", "b = pop;",
         "push a;", "push b;", "push int32_sub(a, b);")  # fmt: skip


def work(
    given: str, taken: str, body: tuple[str, ...], rates: str, *more: str, state: str = ""
) -> str:
    lines = ["code F()", "takes int32", "gives int32", *more, "work {", *body, "}",
             "item takes int32", "item gives int32", f"rates {rates}"]  # fmt: skip
    text = ",\n".join(f'"{line}"' for line in lines)
    return f"({taken}, {state}${taken}) <- Work[{text}]({given}, {state}${taken});"


def program_of(text: str, outputs: str = "out") -> Program:
    return load(Source("rates.brook", f"output {outputs}; input in(value integer);\n{text}"))


def events_of(*values: int) -> dict[str, list[Event]]:
    """Two items of each instant."""
    return {"in": [Event(number // 2, (value,)) for number, value in enumerate(values)]}


def rows_of(program: Program, *values: int) -> Any:
    return on_reference(program, events_of(*values))[0]


@pytest.mark.parametrize(
    ("body", "rates"),
    [
        pytest.param(PAIRS, "pop 2 peek 2 push 3", id="by pop and push"),
        pytest.param(MOVING, "pop 1 peek 2 push 1", id="overlap"),
        pytest.param((*MOVING, "pop;"), "pop 2 peek 5 push 1", id="wide overlap"),
    ],
)
def test_copies_give_the_same_at_the_same_times(body: tuple[str, ...], rates: str) -> None:
    program = program_of(work("in", "out", body, rates))
    split = optimise(program, (split_by_rates,))
    assert len(split.operators) == 4
    assert not list(refusals(split))
    thrice = split_by_rates(program, 3)
    assert len(thrice.operators) == 5
    for count in range(12):
        values = [3 * n % 7 for n in range(count)]
        assert rows_of(program, *values) == rows_of(split, *values) == rows_of(thrice, *values)
    events = events_of(*range(1000))
    assert on_local(program, events)[0] == on_local(split, events, cuts=(1, 500))[0]


def test_the_same_outcomes_are_possible_before_and_after() -> None:
    text = (
        "output late, high; input in(value integer), asks(value integer);"
        "variable $last(value integer = 0);"
        + work("in", "q", MOVING, "pop 1 peek 2 push 1")
        + "(late, $last) <- Fold[set $last.value = value; emit p = $last.value](q, $last);"
        "(high, $last) <- Fold[set $last.value = $last.value + value;"
        " emit p = $last.value](asks, $last);"
    )
    program = load(Source("race.brook", text))
    events = {name: [Event(n, (n,)) for n in range(1, count)] for name, count in
              (("in", 4), ("asks", 2))}  # fmt: skip
    outcomes = [explore(p, events) for p in (program, optimise(program, (split_by_rates,)))]
    assert all(o.is_complete for o in outcomes)
    before, after = ({final.outputs for final in o.finals} for o in outcomes)
    assert len(before) > 1
    assert before == after


SUM = ("let a int32;", "a = pop;", "sum = int32_add(sum, a);", "push sum;")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(work("in", "out", SUM, "pop 1 peek 1 push 1", "field sum int32",
                          state="$sum, "),
                     "a firing leaves something that the next one sees", id="state"),
        pytest.param(work("in", "out", PAIRS, "pop 2 peek 2 push 3", "first {", "push 1;", "pop;",
                          "}").replace('push 3"', 'push 3",\n"first rates pop 1 peek 1 push 1"'),
                     "its first firing is another than the rest", id="first firing"),
    ],
)  # fmt: skip
def test_what_keeps_a_filter_whole_would_else_change_what_it_gives(text: str, why: str) -> None:
    program = program_of(text)
    assert split_by_rates(program) is program
    ((_, told),) = refusals(program)
    assert told.startswith(why)
    (op,) = program.operators
    assert isinstance(op.function, Work)
    forced = replace(program, operators=tuple(module._copies(op, op.function, 2)))
    assert rows_of(program, *range(8)) != rows_of(forced, *range(8))


def _forced(program: Program, *, weights: tuple[int, int], copies: bool) -> Program:
    """A split in turns that are not those of the rates, or without what copies look ahead to."""
    (op,) = program.operators
    inner = [replace(op, inputs=(f"t{n}",), outputs=(f"g{n}",), reads=(f"v{n}",),
                     writes=(f"v{n}",)) for n in (1, 2)]  # fmt: skip
    pop, push = weights
    split = (
        Operator(Duplicate(), op.inputs, ("t1", "t2"))
        if copies
        else Operator(RoundRobinSplit((pop, pop)), op.inputs, ("t1", "t2"), ("s",), ("s",))
    )
    held = ("h1", "h2", "j")
    join = Operator(RoundRobinJoin((push, push)), ("g1", "g2"), op.outputs, held, held)
    return replace(program, operators=(split, *inner, join))


def test_turns_must_be_those_of_the_rates() -> None:
    pairs = program_of(work("in", "out", PAIRS, "pop 2 peek 2 push 3"))
    right = rows_of(pairs, *range(8))
    assert right == rows_of(_forced(pairs, weights=(2, 3), copies=False), *range(8))
    for weights in ((1, 3), (2, 1)):
        assert right != rows_of(_forced(pairs, weights=weights, copies=False), *range(8))
    moving = program_of(work("in", "out", MOVING, "pop 1 peek 2 push 1"))
    for copies in (True, False):
        forced = _forced(moving, weights=(1, 1), copies=copies)
        assert rows_of(moving, *range(8)) != rows_of(forced, *range(8))


def test_filters_that_were_split_one_by_one_stand_side_by_side() -> None:
    text = work("in", "q", PAIRS, "pop 2 peek 2 push 3") + work(
        "q", "out", ("let c int32;", "c = pop;", "pop;", "pop;", "push c;"), "pop 3 peek 3 push 1"
    )
    program = program_of(text)
    whole = optimise(program, (split_by_rates, join_then_split))
    assert render(whole).count("RoundRobin") == 2
    for count in range(9):
        assert rows_of(program, *range(count)) == rows_of(whole, *range(count))


@pytest.mark.parametrize(
    ("ways", "why"),
    [
        pytest.param("(c) <- Filter[value > 2](a); (d) <- Map[value](b);", "do not come from one",
                     id="not in step"),
        pytest.param(work("a", "c", PAIRS, "pop 2 peek 2 push 3") + "(d) <- Map[value](b);",
                     "do not come from one", id="one waits for more"),
    ],
)  # fmt: skip
def test_a_join_that_makes_others_wait_stays(ways: str, why: str) -> None:
    head = "(a, b, $s) <- RoundRobinSplit(in, $s);" + ways
    text = (
        head + "(q, $hc, $hd, $j) <- RoundRobinJoin(c, d, $hc, $hd, $j);"
        "(left, right, $t) <- RoundRobinSplit(q, $t);"
    )
    program = program_of(text, "left, right")
    assert join_then_split(program) is program
    ((_, told),) = turns_refused(program)
    assert why in told
    renamed = head.replace("(c", "(left").replace("(d", "(right")
    forced = program_of(renamed, "left, right")
    assert rows_of(program, *range(7)) != rows_of(forced, *range(7))
