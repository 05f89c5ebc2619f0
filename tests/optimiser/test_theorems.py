"""Theorems 3 to 5: the same outcomes are possible before and after, whoever fires first.

And the guards: for each, a program that means something else when it is not heeded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from millstream.calculus.functions import RoundRobinJoin, RoundRobinSplit
from millstream.calculus.graph import Operator, Program
from millstream.calculus.text import render, render_operator
from millstream.engine.reference.explore import explore
from millstream.engine.reference.feed import Event
from millstream.errors import UsageError
from millstream.languages.brook.load import load
from millstream.optimiser.fuse import fuse
from millstream.optimiser.hoist_select import hoist_select
from millstream.optimiser.optimise import Pass, optimise, passes_named
from millstream.optimiser.split_stateless import split_stateless
from millstream.source import Source
from tests.laws.runs import on_reference

#: Two that share a variable race; what each of them is given goes through what is rewritten.
RACE = """output late, high;
input quotes(sym text, price integer), asks(sym text, price integer);
variable $last(price integer = 0);
{before}
(late, $last) <- Fold[set $last.price = price; emit p = $last.price](q, $last);
(high, $last) <- Fold[set $last.price = $last.price + price; emit p = $last.price](asks, $last);
"""
BEFORE: dict[Pass, str] = {
    hoist_select: '(m) <- Map[sym, price = price * 2](quotes); (q) <- Filter[sym == "a"](m);',
    fuse: '(m) <- Map[sym, price = price * 2](quotes); (q) <- Filter[sym == "a"](m);',
    split_stateless: "(q) <- Map[sym, price = price * 2](quotes);",
}


def program_of(text: str) -> Program:
    return load(Source("theorem.brook", text))


def events_of(*rows: Any) -> list[Event]:
    return [Event(time, tuple(row)) for time, row in enumerate(rows, 1)]


@pytest.mark.parametrize("one", BEFORE, ids=lambda p: p.__name__)
def test_the_same_outcomes_are_possible_before_and_after(one: Pass) -> None:
    program = program_of(RACE.format(before=BEFORE[one]))
    rewritten = optimise(program, (one,))
    assert render(rewritten) != render(program)
    events = {"quotes": events_of(("a", 1), ("b", 5), ("a", 3)), "asks": events_of(("a", 4))}
    outcomes = [explore(p, events) for p in (program, rewritten)]
    assert all(o.is_complete for o in outcomes)
    before, after = ({final.outputs for final in o.finals} for o in outcomes)
    assert len(before) > 1  # it is a race
    assert before == after


def _split(op: Operator) -> list[Operator]:
    """A split in spite of all guards."""
    turns, given, held = ("t1", "t2"), ("g1", "g2"), ("h1", "h2", "j")
    copies = [replace(op, inputs=(t,), outputs=(g,)) for t, g in zip(turns, given, strict=True)]
    return [
        Operator(RoundRobinSplit(), op.inputs, turns, ("s",), ("s",)),
        *copies,
        Operator(RoundRobinJoin(), given, op.outputs, held, held),
    ]


@pytest.mark.parametrize(
    "operator",
    [
        pytest.param("(out) <- Filter[x > 1](in);", id="none for some"),
        pytest.param("(out) <- FlatMap[emit x; when x > 1 emit x = x + 1](in);", id="two for some"),
    ],
)
def test_what_gives_not_one_for_one_cannot_be_split(operator: str) -> None:
    program = program_of(f"output out; input in(x integer); {operator}")
    assert split_stateless(program) is program
    forced = replace(program, operators=tuple(_split(program.operators[0])))
    events = {"in": events_of((0,), (2,), (3,), (1,), (4,))}
    assert on_reference(program, events)[0] != on_reference(forced, events)[0]


def test_what_has_variables_cannot_be_split() -> None:
    text = (
        "output out; input in(x integer); variable $sum(x integer = 0);"
        "(out, $sum) <- Fold[set $sum.x = $sum.x + x; emit total = $sum.x](in, $sum);"
    )
    apart = (
        "output out; input in(x integer); variable $a(x integer = 0); variable $b(x integer = 0);"
        "(t, u, $s) <- RoundRobinSplit(in, $s);"
        "(v, $a) <- Fold[set $a.x = $a.x + x; emit total = $a.x](t, $a);"
        "(w, $b) <- Fold[set $b.x = $b.x + x; emit total = $b.x](u, $b);"
        "(out, $c, $d, $j) <- RoundRobinJoin(v, w, $c, $d, $j);"
    )
    program = program_of(text)
    assert split_stateless(program) is program
    events = {"in": events_of((1,), (2,), (3,))}
    assert on_reference(program, events)[0] != on_reference(program_of(apart), events)[0]


@pytest.mark.parametrize(
    ("text", "forced"),
    [
        pytest.param(
            "(w, $w) <- Rows[2](in, $w); (out) <- Filter[x > 1](w);",
            "(s) <- Filter[x > 1](in); (out, $w) <- Rows[2](s, $w);",
            id="kept in one state",
        ),
        pytest.param(
            "(w) <- Map[x = x + 1](in); (out) <- Filter[x > 1](w);",
            "(s) <- Filter[x > 1](in); (out) <- Map[x = x + 1](s);",
            id="computed before",
        ),
        pytest.param(
            "(w, $w) <- Range[2 us](in, $w); (r, $r) <- Rstream(w, $r);"
            "(out) <- Filter[_time > time(2)](r);",
            "(s) <- Filter[_time > time(2)](in); (w, $w) <- Range[2 us](s, $w);"
            "(out, $r) <- Rstream(w, $r);",
            id="the time",
        ),
    ],
)
def test_what_a_selection_cannot_pass(text: str, forced: str) -> None:
    head = "output out; input in(x integer); "
    program, other = program_of(head + text), program_of(head + forced)
    assert "Filter" not in render(hoist_select(program)).split(";")[2]
    events = {"in": events_of((1,), (2,), (0,), (3,), (1,))}
    assert on_reference(program, events)[0] != on_reference(other, events)[0]


def test_passes_are_chosen_by_name() -> None:
    assert (hoist_select, split_stateless) == passes_named(["split_stateless", "hoist_select"])
    assert hoist_select not in passes_named(without=["hoist_select"])
    with pytest.raises(UsageError, match='there is no pass "fuze"'):
        passes_named(["fuze"])


def test_copies_are_as_many_as_somebody_says() -> None:
    """Section 5.1 of the paper, with its three copies."""
    program = program_of("output out; input q(x number); (out) <- Map[y = floor(x)](q);")
    split = optimise(program, passes_named(["split_stateless=3"]))
    names = [op.function.name for op in split.operators]
    assert names == ["RoundRobinSplit", "Map", "Map", "Map", "RoundRobinJoin"]
    events = {"q": [Event(n, (float(n),)) for n in range(1, 9)]}
    assert on_reference(program, events)[0] == on_reference(split, events)[0]
    for wrong, why in (("fuse=2", "no pass that makes copies"), ("split_by_rates=1", "2 to 64")):
        with pytest.raises(UsageError, match=why):
            passes_named([wrong])


def test_many_selections_move_in_a_few_turns() -> None:
    """Each passes those that stay, and takes along those that can move as well."""
    steps, queue = [], "in"
    for number in range(150):
        steps.append(
            f"(a{number}) <- Map[k, x = x + 1]({queue});"
            f"(b{number}) <- Filter[x > {number}](a{number});"
            f'(c{number}) <- Filter[k != "{number}"](b{number});'
        )
        queue = f"c{number}"
    text = f"output out; input in(k text, x integer); {''.join(steps)} (out) <- Map[k, x]({queue});"
    rewrites: list[str] = []
    optimised = optimise(program_of(text), trace=lambda one: rewrites.append(one.name))
    first, *rest = optimised.operators
    assert render_operator(first).count("k !=") == 150
    assert not any("k !=" in render_operator(op) for op in rest)
    assert rewrites.count("hoist_select") <= 3


def test_copies_that_share_what_splits_are_not_split_again() -> None:
    program = program_of(
        "output out, other; input in(x integer); (p, q) <- Duplicate(in);"
        "(out) <- Map[y = x + 1](p); (other) <- Map[z = x + 2](q);"
    )
    passes = passes_named(["share_common", "split_stateless"])
    split = optimise(program, passes)
    names = [op.function.name for op in split.operators]
    assert (names.count("RoundRobinSplit"), names.count("Map")) == (1, 4)
    events = {"in": events_of((1,), (2,), (3,))}
    assert on_reference(program, events)[0] == on_reference(split, events)[0]


#: Fusions in spite of each guard, and what then comes out otherwise.
HEAD = "output out; input in(k text, x integer); variable $v(n integer = 0);"
FORCED = {
    "what the second drops": (
        "(q, $v) <- Fold[set $v.n = $v.n + 1; emit x, n = $v.n](in, $v);(out) <- Filter[x > 1](q);",
        "(out, $v) <- Fold[when x > 1; set $v.n = $v.n + 1; emit x, n = $v.n](in, $v);",
    ),
    "different keys": (
        (
            "variable $w(n integer = 0);"
            "(q, $v) <- Fold[by k; set $v.n = $v.n + 1; emit x, n = $v.n](in, $v);"
            "(out, $w) <- Fold[by x; set $w.n = $w.n + 1; emit n, m = $w.n](q, $w);"
        ),
        (
            "variable $w(n integer = 0);"
            "(out, $v, $w) <- Fold[by k; set $v.n = $v.n + 1, $w.n = $w.n + 1;"
            " emit n = $v.n, m = $w.n](in, $v, $w);"
        ),
    ),
    "several rows for one": (
        (
            "(q) <- FlatMap[emit x; when x > 1 emit x = x + 1](in);"
            "(out, $v) <- Fold[set $v.n = $v.n + x; emit n = $v.n](q, $v);"
        ),
        "(out, $v) <- Fold[set $v.n = $v.n + x; emit n = $v.n](in, $v);",
    ),
}


@pytest.mark.parametrize(("text", "forced"), FORCED.values(), ids=list(FORCED))
def test_what_keeps_folds_apart_would_else_change_what_they_give(text: str, forced: str) -> None:
    program = program_of(HEAD + text)
    assert fuse(program) is program
    events = {"in": events_of(("a", 1), ("b", 2), ("a", 2), ("a", 0))}
    assert on_reference(program, events)[0] != on_reference(program_of(HEAD + forced), events)[0]


def test_who_reads_a_variable_sees_it_between_two_that_are_not_fused() -> None:
    """The guard that the paper forgets: a reader can come between the two writers."""
    head = (
        "output out, other; input in(x integer), asked(y integer);"
        "variable $v(n integer = 0); variable $w(n integer = 0);"
        "(other) <- Fold[emit n = $v.n, m = $w.n](asked, $v, $w);"
    )
    program = program_of(
        head + "(q, $v) <- Fold[set $v.n = $v.n + x; emit x](in, $v);"
        "(out, $w) <- Fold[set $w.n = $w.n + x; emit n = $w.n](q, $w);"
    )
    forced = program_of(
        head + "(out, $v, $w) <- Fold[set $v.n = $v.n + x, $w.n = $w.n + x;"
        " emit n = $w.n](in, $v, $w);"
    )
    assert fuse(program) is program
    events = {"in": events_of((1,)), "asked": events_of((7,))}
    before, after = (
        {final.outputs for final in explore(one, events).finals} for one in (program, forced)
    )
    assert after < before


def test_folds_that_nobody_looks_into_have_the_same_outcomes_fused() -> None:
    """Theorem 4 with variables, before what races for another one."""
    program = program_of(
        RACE.format(
            before="variable $a(n integer = 0); variable $b(n integer = 0);"
            "(m, $a) <- Fold[set $a.n = $a.n + price; emit sym, price = $a.n](quotes, $a);"
            "(q, $b) <- Fold[set $b.n = $b.n + 1; emit sym, price](m, $b);"
        )
    )
    fused = optimise(program, (fuse,))
    assert len(fused.operators) == len(program.operators) - 1
    events = {"quotes": events_of(("a", 1), ("b", 5)), "asks": events_of(("a", 4))}
    outcomes = [explore(p, events) for p in (program, fused)]
    before, after = ({final.outputs for final in o.finals} for o in outcomes)
    assert len(before) > 1
    assert before == after
