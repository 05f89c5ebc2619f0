"""Cubes: reference = local in any cut, from any snapshot, whatever vertices are kept."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.calculus.aggregation import AGGREGATIONS, Aggregation
from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.functions import Aggregate, Range
from millstream.calculus.grains import Grain
from millstream.calculus.graph import Input, Operator, Program
from millstream.calculus.sketches import part_of
from millstream.calculus.terms import Column
from millstream.calculus.types import INTEGER, NUMBER, TEXT, QueueType, Schema
from millstream.calculus.verify import verified
from millstream.engine.layout import Choice, layout_as
from millstream.engine.reference.feed import Event
from millstream.kernels.build import why_not
from millstream.kernels.cube.cube import CubeKernel
from millstream.kernels.relational.hidden_keys import HiddenKeys
from millstream.kernels.rounds import StepRunner
from millstream.kernels.runtime.kernel import Round
from millstream.plan.batch import Batch
from millstream.plan.cube_parts import cubes_in_parts
from millstream.plan.steps import make_plan
from tests.laws.runs import Rows, on_local, on_reference
from tests.laws.test_snapshots import forgetting

SALES = Schema.of(part=TEXT, kind=TEXT, shop=INTEGER, amount=NUMBER, pieces=INTEGER)
DIMENSIONS = (("part", "kind"), ("shop",))
NUMBERS = [0.0, 0.5, -3.25, 1e16, 1e-20, 2.0**60, float("inf"), float("nan"), None]
MEASURES = [
    Aggregation("rows", "count"),
    *(
        Aggregation(f"{function}_{name}", function, Column(name, SALES[name]))
        for function in AGGREGATIONS
        for name in ("amount", "pieces")
        if SALES[name].kind in AGGREGATIONS[function]
    ),
    *(
        Aggregation(f"{function}_{name}", function, Column(name, SALES[name]))
        for function in ("distinct", "approx_distinct")
        for name in ("kind", "amount", "pieces")
    ),
    *(
        Aggregation(f"p{at}_{name}", "quantile", Column(name, SALES[name]), at)
        for at in (0, 500_000, 990_000, 1_000_000)
        for name in ("amount", "pieces")
    ),
]
settled = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def program_of(cube: Cubify) -> Program:
    """A program of one cube over sales."""
    names = tuple(f"q{n}" for n in range(len(cube.outputs)))
    state = tuple(f"v{n}" for n in range(len(cube.kept)))
    sales = Input("sales", QueueType(SALES))
    return verified(Program((sales,), names, (Operator(cube, ("sales",), names, state, state),)))


@st.composite
def vertices(draw: st.DrawFn, grain: Grain, window: int) -> Vertex:
    chosen = (draw(st.sampled_from([None, *levels])) for levels in DIMENSIONS)
    times = draw(st.integers(1, window))
    return Vertex(tuple(a for a in chosen if a is not None), Grain(grain.length * times))


@st.composite
def cubes(draw: st.DrawFn) -> Cubify:
    grain, window = Grain(draw(st.integers(1, 4))), draw(st.integers(1, 6))
    finest = Vertex(("part", "shop"), grain)
    some = st.lists(vertices(grain, window), max_size=3, unique=True)
    outputs = draw(some.filter(bool))
    measures = draw(st.lists(st.sampled_from(MEASURES), min_size=1, max_size=4, unique=True))
    kept = tuple(dict.fromkeys((finest, *draw(some))))
    is_live = draw(st.booleans())
    return Cubify(DIMENSIONS, tuple(measures), grain, window, kept, tuple(outputs), is_live)


def rows() -> st.SearchStrategy[tuple[object, ...]]:
    return st.tuples(
        st.sampled_from(["p", "q", None]), st.sampled_from(["k", "l"]),
        st.sampled_from([1, 2, None]), st.sampled_from(NUMBERS),
        st.sampled_from([0, 3, -7, 2**62, -(2**63), None]),
    )  # fmt: skip


@st.composite
def sales(draw: st.DrawFn) -> dict[str, list[Event]]:
    times = draw(st.lists(st.integers(-9, 40), max_size=14))
    if draw(st.booleans()):
        times.sort()
    return {"sales": [Event(t, draw(rows())) for t in times]}  # type: ignore[arg-type]


CUTS = st.lists(st.integers(0, 14), max_size=5)


@settled
@given(cubes(), sales(), CUTS)
def test_the_local_engine_gives_what_the_reference_gives(
    cube: Cubify, events: dict[str, list[Event]], cuts: list[int]
) -> None:
    expected, reference = on_reference(program_of(cube), events)
    actual, report = on_local(program_of(cube), events, cuts)
    assert expected == actual
    assert reference.faults == report.faults


@settled
@given(cubes(), sales(), CUTS)
def test_a_state_that_was_written_down_goes_on_as_before(
    cube: Cubify, events: dict[str, list[Event]], cuts: list[int]
) -> None:
    expected, _ = on_local(program_of(cube), events)
    with forgetting():
        actual, _ = on_local(program_of(cube), events, cuts)
    assert expected == actual


@settled
@given(cubes(), sales(), st.data())
def test_which_vertices_are_kept_never_changes_an_answer(
    cube: Cubify, events: dict[str, list[Event]], data: st.DataObject
) -> None:
    others = data.draw(st.lists(vertices(cube.grain, cube.window), max_size=3, unique=True))
    other = replace(cube, kept=tuple(dict.fromkeys((cube.finest, *others))))

    def told(one: Cubify) -> dict[str, Rows]:
        return on_local(program_of(one), events)[0]

    assert told(cube) == told(other)


@settled
@given(cubes(), sales(), CUTS, st.data())
def test_a_vertex_that_is_kept_from_some_round_on_changes_no_answer(
    cube: Cubify, events: dict[str, list[Event]], cuts: list[int], data: st.DataObject
) -> None:
    chosen = data.draw(vertices(cube.grain, cube.window))
    vertex = replace(chosen, grain=cube.grain)
    expected, _ = on_local(program_of(cube), events, cuts)
    process = CubeKernel.process

    def later(kernel: CubeKernel, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        told = process(kernel, inputs, round_)
        if vertex not in [one.vertex for one in kernel.kept]:
            kernel.keep(vertex)
        return told

    with patch.object(CubeKernel, "process", later):
        actual, _ = on_local(program_of(cube), events, cuts)
    assert expected == actual


@settled
@given(cubes(), sales(), CUTS)
def test_a_cube_by_parts_gives_the_same(
    cube: Cubify, events: dict[str, list[Event]], cuts: list[int]
) -> None:
    program = program_of(replace(cube, outputs=(*cube.outputs, Vertex((), cube.grain))))
    expected, _ = on_local(program, events)
    actual, _ = on_local(cubes_in_parts(program), events, cuts)
    assert expected == actual


@settled
@given(st.lists(st.sampled_from(MEASURES), min_size=1, max_size=4, unique=True), sales(), CUTS)
def test_an_aggregate_counts_by_hidden_keys_as_the_reference_does(
    measures: list[Aggregation], events: dict[str, list[Event]], cuts: list[int]
) -> None:
    window = Operator(Range(5), ("sales",), ("window",), ("w",), ("w",))
    by_shop = Aggregate(("shop",), tuple(measures))
    total = Operator(by_shop, ("window",), ("out",), ("a",), ("a",))
    sales_ = Input("sales", QueueType(SALES))
    program = verified(Program((sales_,), ("out",), (window, total)))
    expected, _ = on_reference(program, events)
    with forgetting():
        actual, _ = on_local(program, events, cuts)
    assert expected == actual


@given(st.lists(st.integers(0, (1 << 18) - 1), max_size=9), st.lists(st.floats(), max_size=9))
def test_a_hidden_key_is_told_as_a_value_that_has_it(
    registers: list[int], floats: list[float]
) -> None:
    def back(keys: HiddenKeys, hidden: np.ndarray) -> list[int]:
        examples = keys.examples(hidden)
        type_ = QueueType(Schema.of(x=examples.type))
        batch = Batch(type_, np.zeros(len(hidden), np.int64), (examples,))
        codes: list[int] = keys.keys(batch)[0].tolist()
        return codes

    codes = [(r & ~63) | (r % 53 + 1) for r in registers]
    nearly = HiddenKeys("approx_distinct", "x", INTEGER)
    assert codes == back(nearly, np.array(codes, np.int64))
    parts = [part_of(x) for x in floats]
    # What is nearly nothing and negative is told as nothing, and has its part.
    expected = [0 if part == -1 else part for part in parts]
    assert expected == back(HiddenKeys("quantile", "x", NUMBER), np.array(parts, np.int64))


def test_a_cube_without_a_place_is_made_by_parts() -> None:
    grain = Grain(2)
    finest = Vertex(("part", "shop"), grain)
    cube = Cubify(DIMENSIONS, (MEASURES[0],), grain, 3, (finest,), (Vertex((), grain),))
    program = program_of(cube)
    assert ["Cubify", "Aggregate", "Map"] == [
        o.function.name for o in cubes_in_parts(program).operators
    ]
    first, second = layout_as(program, Choice()).stages
    assert [("sales", ("part", "shop"))] == list(first.keys)
    assert [("q0.parts", ("time",))] == list(second.keys)


def test_a_cube_has_a_kernel() -> None:
    grain = Grain(2)
    finest = Vertex(("part", "shop"), grain)
    cube = Cubify(DIMENSIONS, (MEASURES[0],), grain, 3, (finest,), (finest,))
    plan = make_plan(program_of(cube), why_not)
    assert [CubeKernel] == [type(kernel) for kernel in StepRunner(plan).kernels]
