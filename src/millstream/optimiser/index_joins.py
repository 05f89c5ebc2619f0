"""Equations in the condition of a join become its keys.

Law: a pair for which `a == b and c` is true is a pair with equal keys a and b for which c
is true; a null equals nothing in both. One column must be of each side, and of one type.

    before  (out) <- Join[where a == b and a < c](left, right);
    after   (out) <- Join[on a = b; where a < c](left, right);
"""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.functions import Join
from millstream.calculus.graph import Program
from millstream.calculus.terms import Call, Column, Term
from millstream.calculus.types import Schema
from millstream.optimiser.conjuncts import all_of, conjuncts


def index_joins(program: Program) -> Program:
    """Index the first join that has an equation; the same program if none has."""
    types = program.queue_types()
    for op in program.operators:
        if not isinstance(op.function, Join) or op.function.where is None:
            continue
        if op.function.nulls_match:
            continue  # its keys let nulls through, which an equation does not
        left, right = (types[q].schema for q in op.inputs)
        for term in conjuncts(op.function.where):
            pair = _pair(term, left, right)
            if pair is not None:
                rest = [t for t in conjuncts(op.function.where) if t is not term]
                function = Join((*op.function.on, pair), all_of(rest))
                operators = (
                    replace(o, function=function) if o is op else o for o in program.operators
                )
                return replace(program, operators=tuple(operators))
    return program


def _pair(term: Term, left: Schema, right: Schema) -> tuple[str, str] | None:
    match term:
        case Call("==", (Column(one), Column(other))):
            # A key that both sides have under one name is already a key.
            for a, b in ((one, other), (other, one)):
                if a in left and b in right and a not in right and b not in left:
                    return a, b
    return None
