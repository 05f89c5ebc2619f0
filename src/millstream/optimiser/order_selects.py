"""Of a selection by several conditions, the cheap one that drops most is asked first.

Law: a row is kept if all conditions are true, in whichever order they are asked; those behind one
that is false are not asked at all. With costs c and parts s of the rows that are kept, an order by
c / (1 - s) takes the least time. Where these are nearly alike, the order stays. The parts are
guessed, or measured on a sample.

    before  (out) <- Filter[contains(name, "x") and k == 1](in);
    after   (out) <- Filter[k == 1 and contains(name, "x")](in);

A condition that can fail stays behind those that stood before it, for they may be there to keep
from it what it fails on: `x != 0 and y / x > 1`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from millstream.calculus.costs import Shares, cost_of, kept_by, never_fails
from millstream.calculus.estimates import NOTHING, Measures
from millstream.calculus.functions import Filter
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.terms import Term, all_of, conjuncts
from millstream.calculus.text import render_term


def order_selects(program: Program, measures: Measures = NOTHING) -> Program:
    """Order the conditions of all selections; the same program if all are in order."""
    instead: dict[int, list[Operator]] = {}
    for op, parts in _selections(program):
        ordered = _ordered(parts, measures.kept)
        if any(a is not b for a, b in zip(parts, ordered, strict=True)):
            condition = all_of(ordered)
            assert condition is not None
            instead[id(op)] = [replace(op, function=Filter(condition))]
    return rewritten(program, instead)


def refusals(program: Program, measures: Measures = NOTHING) -> Iterator[tuple[Operator, str]]:
    """The conditions that would come first if they could not fail."""
    for op, parts in _selections(program):
        for before, part in itertools.pairwise(parts):
            if _is_better(part, before, measures.kept) and not never_fails(part):
                yield op, f"{render_term(part)} can fail on rows that {render_term(before)} drops"


def _selections(program: Program) -> Iterator[tuple[Operator, list[Term]]]:
    for op in program.operators:
        if isinstance(op.function, Filter):
            parts = conjuncts(op.function.condition)
            if len(parts) > 1:
                yield op, parts


def _ordered(parts: list[Term], kept: Shares) -> list[Term]:
    ordered: list[Term] = []
    for part in parts:
        place = len(ordered)
        while place and never_fails(part) and _is_better(part, ordered[place - 1], kept):
            place -= 1
        ordered.insert(place, part)
    return ordered


def _is_better(one: Term, other: Term, kept: Shares) -> bool:
    """Guesses that are nearly alike say nothing."""
    return 2 * _rank(one, kept) < _rank(other, kept)


def _rank(condition: Term, kept: Shares) -> float:
    """What it costs to drop a row by it."""
    dropped = 1 - kept_by(condition, kept)
    return cost_of(condition) / dropped if dropped else float("inf")
