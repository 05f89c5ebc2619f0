"""Equations in the condition of a join become its keys.

Law: a pair for which `a == b and c` is true is a pair with equal keys a and b for which c
is true; a null equals nothing in both. One column must be of each side, and of one type.

    before  (out) <- Join[where a == b and a < c](left, right);
    after   (out) <- Join[on a = b; where a < c](left, right);
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.calculus.functions import Join
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.terms import Call, Column, Term, all_of, columns_read, conjuncts
from millstream.calculus.text import render_term
from millstream.calculus.types import Schema


def index_joins(program: Program) -> Program:
    """Index all joins that have an equation; the same program if none has."""
    types = program.queue_types()
    instead: dict[int, list[Operator]] = {}
    for op in program.operators:
        if isinstance(op.function, Join) and op.function.where is not None:
            left, right = (types[q].schema for q in op.inputs)
            function = _indexed(op.function, conjuncts(op.function.where), left, right)
            if function is not op.function:
                instead[id(op)] = [replace(op, function=function)]
    return rewritten(program, instead)


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The equations of joins that do not become keys, and the guard of each."""
    types = program.queue_types()
    for op in program.operators:
        if isinstance(op.function, Join) and op.function.where is not None:
            left, right = (types[q].schema for q in op.inputs)
            for term in conjuncts(op.function.where):
                if isinstance(term, Call) and term.function == "==":
                    yield op, f"{render_term(term)}: {_why_not(op.function, term, left, right)}"


def _why_not(join: Join, equation: Call, left: Schema, right: Schema) -> str:
    if join.nulls_match:
        return "keys of this join match if they are null, which an equation does not"
    if not all(isinstance(arg, Column) for arg in equation.args):
        return "a key is a column, and this is worked out of columns"
    reads = columns_read(equation)
    if reads <= frozenset(left.names) or reads <= frozenset(right.names):
        return "it compares columns of one side"
    return "both sides have a column of that name, which is a key already"


def _indexed(join: Join, conditions: list[Term], left: Schema, right: Schema) -> Join:
    if join.nulls_match:
        return join  # its keys let nulls through, which an equation does not
    pairs = [_pair(term, left, right) for term in conditions]
    keys = tuple(pair for pair in pairs if pair is not None)
    rest = [term for term, pair in zip(conditions, pairs, strict=True) if pair is None]
    return Join((*join.on, *keys), all_of(rest)) if keys else join


def _pair(term: Term, left: Schema, right: Schema) -> tuple[str, str] | None:
    match term:
        case Call("==", (Column(one), Column(other))):
            # A key that both sides have under one name is already a key.
            for a, b in ((one, other), (other, one)):
                if a in left and b in right and a not in right and b not in left:
                    return a, b
    return None
