"""The program that a server runs: every cube's stream leaves it, for the store of the cube.

The store makes the cells itself, since it needs those of all vertices and of the active
partition too; outputs of cubes that go nowhere are left out.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from millstream.calculus.cube import Cubify
from millstream.calculus.functions import Assign, Duplicate, Map, Merge
from millstream.calculus.graph import Operator, Program, without_copies
from millstream.calculus.library.cube_changing import GONE, told_of
from millstream.calculus.terms import Column, Literal
from millstream.calculus.types import BOOLEAN, INTEGER, Field, Schema
from millstream.calculus.verify import verified

#: Of rows that tell of versions, of which dimension that changes; of facts it is null.
OF_VERSIONS = ".versions"


@dataclass(frozen=True, slots=True)
class ServedCube:
    """A cube that can be asked, and the output of the program that brings its rows.

    `schema` has all that can be asked for. If members change by type 1 rows are facts and what is
    told of versions, and `given` has the columns of both.
    """

    name: str
    function: Cubify
    schema: Schema
    output: str
    given: Schema | None = None

    @property
    def brought(self) -> Schema:
        """The columns of the rows that come."""
        return self.given or self.schema


def served(program: Program, sinks: Container[str]) -> tuple[Program, tuple[ServedCube, ...]]:
    """The program with the rows of its cubes as outputs, and these cubes."""
    types = program.queue_types()
    operators: list[Operator] = []
    cubes: list[ServedCube] = []
    dropped: set[str] = set()
    beside: list[Operator] = []
    shared: dict[str, str] = {}
    for op in program.operators:
        if not isinstance(op.function, Cubify):
            operators.append(op)
            continue
        (queue,) = op.inputs
        name = _fresh(op.function.called or op.outputs[0], {c.name for c in cubes})
        if op.function.moving:
            cube, added = _with_versions(program, op, op.function, f"{name}.rows", shared)
            cubes.append(replace(cube, name=name))
            operators.append(op)
            beside += added
            continue
        cube = ServedCube(name, op.function, types[queue].schema, f"{name}.rows")
        cubes.append(cube)
        gone = {q for q in op.outputs if q in program.outputs and q not in sinks}
        dropped |= gone
        operators += _with_rows(op, op.function, gone, cube.output)
    outputs = tuple(q for q in program.outputs if q not in dropped)
    operators = [replace(op, inputs=tuple(shared.get(q, q) for q in op.inputs)) for op in operators]
    made = replace(
        program, operators=(*operators, *beside), outputs=(*outputs, *(c.output for c in cubes))
    )
    return verified(without_copies(made)), tuple(cubes)


def _with_versions(
    program: Program, op: Operator, function: Cubify, rows: str, shared: dict[str, str]
) -> tuple[ServedCube, list[Operator]]:
    """A cube whose members move: its facts and its versions leave as one, so that they meet.

    `shared` says what those are to read from now on that read them before.
    """
    types = program.queue_types()
    facts, versions = told_of(program, op)
    levels = [f for one in function.moving for f in one.levels]
    schema = Schema((*types[facts].schema.fields, *levels))
    extra = (Field(GONE, BOOLEAN), Field(OF_VERSIONS, INTEGER))
    given = Schema((*schema.fields, *extra))
    added, parts = [], []
    for number, queue in enumerate((facts, *versions), -1):
        own, copy, part = f"{rows}.{number}.own", f"{rows}.{number}.copy", f"{rows}.{number}"
        shared[queue] = own
        there = types[queue].schema
        columns = [
            Assign(f.name, Column(f.name, f.type) if f.name in there else Literal(None, f.type))
            for f in given.fields[:-1]
        ]
        mark = Literal(number if number >= 0 else None, INTEGER)
        added += [
            Operator(Duplicate(), (queue,), (own, copy), origin=op.origin),
            Operator(Map((*columns, Assign(OF_VERSIONS, mark))), (copy,), (part,),
                     origin=op.origin),
        ]  # fmt: skip
        parts.append(part)
    state = tuple(parts)
    added.append(Operator(Merge(), tuple(parts), (rows,), state, state, op.origin))
    asked = list(function.dimensions)
    for one in function.moving:
        asked[one.dimension] = one.names
    whole = replace(function, dimensions=tuple(asked), outputs=())
    return ServedCube("", whole, schema, rows, given), added


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
