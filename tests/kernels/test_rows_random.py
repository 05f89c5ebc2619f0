"""Row kernels against the reference, on generated programs of row functions.

Rows, times, weights and the count of every fault must be the same, wherever the input is
cut into batches, and also if the state is saved and restored at every cut.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from millstream.calculus.functions import (
    Assign,
    Branch,
    Columns,
    Duplicate,
    Filter,
    FlatMap,
    Fold,
    Function,
    Map,
    Update,
)
from millstream.calculus.graph import Input, Operator, Program, Variable, in_dependency_order
from millstream.calculus.terms import (
    NAN,
    Call,
    Column,
    Literal,
    Term,
    VariableField,
    canonical,
    walk,
)
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    TIME_COLUMN,
    Field,
    Kind,
    QueueType,
    Row,
    Schema,
    Type,
    Value,
)
from millstream.kernels.loop.rows import RowKernel
from millstream.kernels.runtime.kernel import Round
from millstream.meaning.items import Item
from millstream.meaning.machine import Machine
from millstream.plan.batch import batch_of
from millstream.values.core.scalar import Signature
from millstream.values.core.table import OF_ROWS, SCALARS
from tests.seeds import in_turn

ALL = (NUMBER, INTEGER, TEXT, BOOLEAN, TIME, DURATION)
NO_TICKS = np.zeros(0, np.int64)

NUMBERS = [0.0, 1.0, -1.0, 0.5, 2.5, math.inf, -math.inf, NAN, 1e308, -1e-300, 0.49999999999999994]
INTEGERS = [0, 1, -1, 2, -7, 86_400_000_000, 2**40, INT64_MAX, INT64_MIN, INT64_MIN + 1]
TEXTS = ["", "a", "abc", "ABC", " x ", "12", "-7", "3.5", "1e3", "nan", "true", "2026-01-01", "ß",
         "É%_", "a\nb", "99999999999999999999"]  # fmt: skip

Item3 = tuple[int, Row, int]
Run = tuple[dict[str, list[Item3]], dict[str, int]]


def value(rng: random.Random, type_: Type, null: float) -> Value:
    if rng.random() < null:
        return None
    match type_.kind:
        case Kind.NUMBER:
            return canonical(rng.choice([*NUMBERS, rng.uniform(-10, 10)]))
        case Kind.TEXT:
            return rng.choice(TEXTS)
        case Kind.BOOLEAN:
            return rng.random() < 0.5
        case _:
            return rng.choice([*INTEGERS, rng.randrange(-(2**50), 2**50)])


def overloads() -> dict[Type, dict[str, list[tuple[Type, ...]]]]:
    """For each type, the functions that give it and what they take."""
    found: dict[Type, dict[str, list[tuple[Type, ...]]]] = {t: {} for t in ALL}
    for name, scalar in OF_ROWS.items():
        for count in (1, 2, 3):
            for types in itertools.product(ALL, repeat=count):
                signature = scalar.rule(types)
                if isinstance(signature, Signature) and signature.params == types:
                    found[signature.result].setdefault(name, []).append(types)
    return found


OVERLOADS = overloads()


@dataclass
class Maker:
    """Makes a program; `tainted` columns depend on state, which limits what text may do."""

    rng: random.Random
    variables: tuple[Variable, ...]
    by: tuple[str, ...]
    tainted: set[str] = field(default_factory=set)
    operators: list[Operator] = field(default_factory=list)

    def term(self, type_: Type, depth: int, columns: Schema, *, state: bool = False) -> Term:
        while True:
            made = self._any_term(type_, depth, columns, state)
            if all(self._compiles(t) for t in walk(made)):
                return made

    def _any_term(self, type_: Type, depth: int, columns: Schema, state: bool) -> Term:
        rng = self.rng
        leaves: list[Term] = [Column(f.name, f.type) for f in columns if f.type == type_]
        if type_ == TIME:
            leaves.append(Column(TIME_COLUMN, TIME))
        if state:
            leaves += [
                VariableField(v.name, f.name, f.type)
                for v in self.variables
                for f in v.fields
                if f.type == type_
            ]
        if depth <= 0 or rng.random() < 0.15:
            if leaves and rng.random() < 0.75:
                return rng.choice(leaves)
            return Literal(value(rng, type_, 0.1), type_)
        name = rng.choice(list(OVERLOADS[type_]))
        types = rng.choice(OVERLOADS[type_][name])
        return Call(name, tuple(self._any_term(t, depth - 1, columns, state) for t in types), type_)

    def _depends_on_state(self, term: Term) -> bool:
        return any(
            isinstance(t, VariableField) or (isinstance(t, Column) and t.name in self.tainted)
            for t in walk(term)
        )

    def _compiles(self, term: Term) -> bool:
        """The one thing that row kernels leave to others."""
        if not isinstance(term, Call) or SCALARS[term.function].on_codes:
            return True
        touches_text = TEXT in (term.type, *(a.type for a in term.args))
        return not touches_text or not self._depends_on_state(term)

    def columns(self, count: int, depth: int, schema: Schema, *, state: bool = False) -> Columns:
        kept = tuple(
            Assign(f.name, Column(f.name, f.type))
            for f in schema
            if f.name in self.by or self.rng.random() < 0.3
        )
        made = tuple(
            Assign(
                f"m{len(self.operators)}_{n}",
                self.term(self.rng.choice(ALL), depth, schema, state=state),
            )
            for n in range(count)
        )
        self.tainted |= {c.name for c in made if self._depends_on_state(c.term)}
        return kept + made

    def function(self, schema: Schema) -> Function:
        kinds: list[Callable[[Schema], Function]] = [self._filter, self._map, self._flat_map]
        if self.variables:
            kinds += [self._fold, self._fold]
        return self.rng.choice(kinds)(schema)

    def _filter(self, schema: Schema) -> Function:
        usually = (self.term(BOOLEAN, 3, schema), Literal(True, BOOLEAN))
        return Filter(Call("coalesce", usually, BOOLEAN))

    def _map(self, schema: Schema) -> Function:
        return Map(self.columns(6, 4, schema))

    def _flat_map(self, schema: Schema) -> Function:
        first = self.columns(3, 3, schema)
        other = tuple(Assign(c.name, self._other(c, schema)) for c in first)
        self.tainted |= {c.name for c in other if self._depends_on_state(c.term)}
        return FlatMap((Branch(None, first), Branch(self.term(BOOLEAN, 2, schema), other)))

    def _other(self, column: Assign, schema: Schema) -> Term:
        if column.name in self.by or self.rng.random() < 0.3:
            return column.term
        return self.term(column.term.type, 2, schema)

    def _fold(self, schema: Schema) -> Function:
        updates = tuple(
            Update(v.name, f.name, self.term(f.type, 2, schema, state=True))
            for v in self.variables
            for f in v.fields
            if self.rng.random() < 0.6
        )
        when = self.term(BOOLEAN, 2, schema, state=True) if self.rng.random() < 0.4 else None
        return Fold(self.by, when, updates, self.columns(4, 2, schema, state=True))

    def chain(self, queue: str, type_: QueueType) -> list[str]:
        """Some operators after a queue; returns the queues at the ends."""
        open_queues = [(queue, type_)]
        for _ in range(self.rng.randrange(1, 4)):
            made: list[tuple[str, QueueType]] = []
            for source, its_type in open_queues:
                name = f"q{len(self.operators)}_{queue}"
                if self.rng.random() < 0.15:
                    self.operators.append(Operator(Duplicate(), (source,), (name, f"{name}b")))
                    made += [(name, its_type), (f"{name}b", its_type)]
                    continue
                function = self.function(its_type.schema)
                reads, writes = (), ()  # type: tuple[str, ...], tuple[str, ...]
                if isinstance(function, Fold):
                    reads = tuple(sorted(function.variables_read()))
                    writes = tuple(sorted(function.variables_written()))
                self.operators.append(Operator(function, (source,), (name,), reads, writes))
                made.append((name, function.output_types((its_type,), 1)[0]))
            open_queues = made
        return [name for name, _ in open_queues]


def make_program(rng: random.Random) -> Program:
    variables = tuple(
        Variable(f"v{n}", fields, tuple(value(rng, f.type, 0.3) for f in fields))
        for n in range(rng.choice([0, 1, 2]))
        for fields in [tuple(Field(f"f{m}", rng.choice(ALL)) for m in range(3))]
    )
    names = tuple(Field(f"a{n}", t) for n, t in enumerate(ALL + ALL))
    keys = (Field("k", rng.choice(ALL)), Field("l", rng.choice(ALL)))
    is_relation = not variables and rng.random() < 0.3
    inputs = tuple(
        Input(f"in{n}", QueueType(Schema(names + keys), is_relation))
        for n in range(rng.choice([1, 1, 2]))
    )
    maker = Maker(rng, variables, rng.choice([(), ("k",), ("k", "l")]))
    outputs = [queue for one in inputs for queue in maker.chain(one.name, one.type)]
    return Program(inputs, tuple(outputs), tuple(maker.operators), variables)


def make_items(rng: random.Random, type_: QueueType, null: float) -> list[Item3]:
    few = {f.name: [value(rng, f.type, null) for _ in range(4)] for f in type_.schema}
    return [
        (
            time,
            tuple(
                rng.choice(few[f.name]) if f.name in "kl" else value(rng, f.type, null)
                for f in type_.schema
            ),
            rng.choice([1, -1]) if type_.is_relation else 1,
        )
        for time in sorted(rng.randrange(1, 40) for _ in range(40))
    ]


def reference_run(program: Program, items: dict[str, list[Item3]]) -> Run:
    machine = Machine(program)
    for number, (queue, some) in enumerate(items.items()):
        machine.push(
            queue,
            [Item(t, row, weight, (t, 0, number, n)) for n, (t, row, weight) in enumerate(some)],
        )
    machine.run()
    found = {
        q: [(i.time, i.row, i.weight) for i in machine.queues[q] if isinstance(i, Item)]
        for q in program.outputs
    }
    return found, dict(machine.faults)


def kernel_run(
    program: Program, items: dict[str, list[Item3]], cuts: list[int], *, restores: bool = False
) -> Run:
    def new_kernel() -> RowKernel:
        inputs = tuple((i.name, i.type) for i in program.inputs)
        return RowKernel(in_dependency_order(program), inputs, program.outputs, program.variables)

    kernel = new_kernel()
    found: dict[str, list[Item3]] = {q: [] for q in program.outputs}
    for low, high in itertools.pairwise(cuts):
        batches = []
        for number, one in enumerate(program.inputs):
            some = [item for item in items[one.name] if low < item[0] <= high]
            weights = [w for _, _, w in some] if one.type.is_relation else None
            made = batch_of(one.type, [t for t, _, _ in some], [r for _, r, _ in some], weights)
            first = sum(item[0] <= low for item in items[one.name])
            rank = (number << 48) + first + np.arange(len(some))
            batches.append(replace(made, rank=rank))
        outputs = kernel.process(tuple(batches), Round(high, NO_TICKS))
        for queue, out in zip(program.outputs, outputs, strict=True):
            weights = [1] * len(out) if out.weight is None else out.weight.tolist()
            found[queue] += zip(out.time.tolist(), out.rows(), weights, strict=True)
        if restores:
            state, kernel = kernel.snapshot(), new_kernel()
            kernel.restore(state)
    return found, kernel.faults()


def check_program(seed: int) -> None:
    rng = random.Random(seed)
    program = make_program(rng)
    for null in (0.0, 0.2):
        items = {one.name: make_items(rng, one.type, null) for one in program.inputs}
        expected = reference_run(program, items)
        # Compared as text, which tells 0.0 from -0.0 and True from 1.
        assert repr(expected[0]) == repr(kernel_run(program, items, [0, 100])[0])
        assert expected[1] == kernel_run(program, items, [0, 100])[1]
        cuts = [0, 7, 7, 20, 21, 100]
        for restores in (False, True):
            found = kernel_run(program, items, cuts, restores=restores)
            assert repr(expected[0]) == repr(found[0])
            assert expected[1] == found[1]


@pytest.mark.parametrize("seed", in_turn(range(4), 2))
def test_compiled_programs_do_what_the_reference_does(seed: int) -> None:
    check_program(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", in_turn(range(100, 130), 10))
def test_more_compiled_programs_do_what_the_reference_does(seed: int) -> None:
    check_program(seed)
