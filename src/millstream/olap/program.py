"""The program that a server runs: every cube's stream leaves it, for the store of the cube.

The store makes the cells itself, since it needs those of all vertices and of the active
partition too; outputs of cubes that go nowhere are left out.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from millstream.calculus.cube import Cubify
from millstream.calculus.functions import Duplicate
from millstream.calculus.graph import Operator, Program, without_copies
from millstream.calculus.types import Schema
from millstream.calculus.verify import verified


@dataclass(frozen=True, slots=True)
class ServedCube:
    """A cube that can be asked, and the output of the program that brings its rows."""

    name: str
    function: Cubify
    schema: Schema
    output: str


def served(program: Program, sinks: Container[str]) -> tuple[Program, tuple[ServedCube, ...]]:
    """The program with the rows of its cubes as outputs, and these cubes."""
    types = program.queue_types()
    operators: list[Operator] = []
    cubes: list[ServedCube] = []
    dropped: set[str] = set()
    for op in program.operators:
        if not isinstance(op.function, Cubify):
            operators.append(op)
            continue
        (queue,) = op.inputs
        name = _fresh(op.function.called or op.outputs[0], {c.name for c in cubes})
        cube = ServedCube(name, op.function, types[queue].schema, f"{name}.rows")
        cubes.append(cube)
        gone = {q for q in op.outputs if q in program.outputs and q not in sinks}
        dropped |= gone
        operators += _with_rows(op, op.function, gone, cube.output)
    outputs = tuple(q for q in program.outputs if q not in dropped)
    made = replace(
        program, operators=tuple(operators), outputs=(*outputs, *(c.output for c in cubes))
    )
    return verified(without_copies(made)), tuple(cubes)


def _with_rows(op: Operator, function: Cubify, gone: set[str], rows: str) -> Iterator[Operator]:
    """A cube without some of its outputs, and beside it what it is made of."""
    (queue,) = op.inputs
    left = [(q, v) for q, v in zip(op.outputs, function.outputs, strict=True) if q not in gone]
    if not left:
        yield Operator(Duplicate(), (queue,), (rows,), origin=op.origin)
        return
    own = f"{rows}.cube"
    yield Operator(Duplicate(), (queue,), (own, rows), origin=op.origin)
    cube = replace(function, outputs=tuple(v for _, v in left))
    yield replace(op, function=cube, inputs=(own,), outputs=tuple(q for q, _ in left))


def _fresh(name: str, taken: set[str]) -> str:
    number, made = 1, name
    while made in taken:
        number += 1
        made = f"{name}{number}"
    return made
