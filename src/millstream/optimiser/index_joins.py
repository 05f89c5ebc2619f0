"""Equations in the condition of a join become its keys.

Law: a pair for which `a == b and c` is true is a pair with equal keys a and b for which c
is true; a null equals nothing in both. One column must be of each side, and of one type.

    before  (out) <- Join[where a == b and a < c](left, right);
    after   (out) <- Join[on a = b; where a < c](left, right);
"""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.functions import Join
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.terms import Call, Column, Term, all_of, conjuncts
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
