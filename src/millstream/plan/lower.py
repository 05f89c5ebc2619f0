"""Programs in fewer functions: what the kernels need not know.

Each rule replaces one operator by others that mean the same:

    Now                      Range[0 s]
    Latest[by k]             Rows[1 by k]
    Join[on ..; where c]     Join[on ..], then Filter[c]
    Aggregate[.. sum(t) ..]  Map that computes t as a column, then Aggregate over columns
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Assign,
    Filter,
    Join,
    Latest,
    Map,
    Now,
    Range,
    Rows,
)
from millstream.calculus.graph import Operator, Program
from millstream.calculus.terms import Column
from millstream.calculus.types import Schema


def lower(program: Program) -> Program:
    """The same program in the functions that have kernels of their own."""
    types = program.queue_types()
    operators = [
        lowered for op in program.operators for lowered in _lowered(op, types[op.inputs[0]].schema)
    ]
    return replace(program, operators=tuple(operators))


def _lowered(op: Operator, schema: Schema) -> Iterator[Operator]:
    match op.function:
        case Now():
            yield replace(op, function=Range(0))
        case Latest(by, None):
            yield replace(op, function=Rows(1, by))
        case Join(on, where, nulls_match) if where is not None:
            pairs = f"{op.outputs[0]}.pairs"
            yield replace(op, function=Join(on, None, nulls_match), outputs=(pairs,))
            yield Operator(Filter(where), (pairs,), op.outputs, origin=op.origin)
        case Aggregate() if any(not isinstance(t, Column) for t in op.function.terms()):
            yield from _split_aggregate(op, op.function, schema)
        case _:
            yield op


def _split_aggregate(op: Operator, function: Aggregate, schema: Schema) -> Iterator[Operator]:
    columns = [Assign(name, Column(name, schema[name])) for name in function.by]
    over_columns: list[Aggregation] = []
    for number, one in enumerate(function.aggregations):
        if one.term is None:
            over_columns.append(one)
            continue
        computed = f"_{number}"
        columns.append(Assign(computed, one.term))
        over_columns.append(replace(one, term=Column(computed, one.term.type)))
    terms = f"{op.outputs[0]}.terms"
    yield Operator(Map(tuple(columns)), op.inputs, (terms,), origin=op.origin)
    aggregate = Aggregate(function.by, tuple(over_columns))
    yield replace(op, function=aggregate, inputs=(terms,))
