"""Groups: their laws, products, and what engines make of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import millstream
from millstream import algebra
from millstream.algebra import Group, Table, call, if_
from millstream.calculus.functions import Aggregate, Fold, OpaqueFold
from millstream.errors import UsageError

ENGINES = pytest.mark.parametrize("engine", ["reference", "local", "actors"])
EVENTS: list[dict[str, Any]] = [
    {"_time": 1, "k": "a", "x": 4, "gone": False},
    {"_time": 2, "k": "b", "x": 1, "gone": False},
    {"_time": 3, "k": "c", "x": None, "gone": False},
    {"_time": 4, "k": "b", "x": 9, "gone": False},
    {"_time": 5, "k": "a", "x": None, "gone": True},
    {"_time": 6, "k": "b", "x": None, "gone": True},
    {"_time": 7, "k": "c", "x": None, "gone": True},
]


def rows() -> Table:
    return algebra.table("rows", key="k", deleted="gone", k="text", x="integer", gone="boolean")


def added(extra: Any = None) -> Group:
    return Group(
        empty={"sum": 0},
        combine=lambda a, b: {"sum": a.sum + b.sum},
        inverse=lambda a: {"sum": -a.sum},
        lift=lambda r: {"sum": if_(r.k == "b", 100, 1)},
        finish=extra,
    )


def results(made: Any, engine: str) -> list[tuple[Any, ...]]:
    job = millstream.compile_flow(out=made)
    found = job.run({"rows": EVENTS}, engine=engine).rows("out")
    return [tuple(r.values()) for r in found]


@ENGINES
def test_ready_made_groups(engine: str) -> None:
    made = rows().reduce(
        n=algebra.count(),
        sum=algebra.total(lambda r: r.x),
        mean=algebra.average(lambda r: r.x),
        low=algebra.minimum(lambda r: r.x),
        high=algebra.maximum(lambda r: r.x),
    )
    assert ("n", "sum", "mean", "low", "high") == made.schema.names
    expected = [
        (1, 1, 4, 4.0, 4, 4),
        (2, 2, 5, 2.5, 1, 4),
        (3, 3, 5, 2.5, 1, 4),
        (4, 3, 13, 6.5, 4, 9),
        (5, 2, 9, 9.0, 9, 9),
        (6, 1, 0, None, None, None),
        (7, 0, 0, None, None, None),
    ]
    assert expected == results(made, engine)


@ENGINES
def test_a_group_of_ones_own_is_a_fold(engine: str) -> None:
    made = rows().reduce(added())
    functions = {type(op.function) for op in millstream.compile_flow(out=made).program.operators}
    assert Fold in functions and OpaqueFold not in functions
    # The row b changes at 4, but neither its part nor the sum does.
    expected = [(1, 1), (2, 101), (3, 102), (5, 101), (6, 1), (7, 0)]
    assert expected == results(made, engine)


@ENGINES
def test_a_group_of_plain_values(engine: str) -> None:
    lengths = Group(0, lambda a, b: a + b, lambda a: -a, lift=lambda r: call("length", r.k))
    expected = [(1, 1), (2, 2), (3, 3), (5, 2), (6, 1), (7, 0)]
    assert expected == results(rows().reduce(lengths), engine)
    doubled = replace(lengths, finish=lambda a: a * 2)
    both = [(t, n, 2 * n) for t, n in expected]
    assert both == results(rows().reduce(one=lengths, two=doubled), engine)
    with pytest.raises(UsageError, match="== empty does not hold"):
        rows().reduce(Group(0, max, lambda a: -a, lift=lambda r: call("length", r.k)))


@ENGINES
def test_a_group_that_cannot_be_traced_is_kept(engine: str) -> None:
    opaque = Group(
        empty={"length": 0},
        combine=lambda a, b: {"length": a.length + b.length},
        inverse=lambda a: {"length": -a.length},
        lift=lambda r: {"length": len(r.k)},
    )
    made = rows().reduce(opaque)
    job = millstream.compile_flow(out=made)
    assert OpaqueFold in {type(op.function) for op in job.program.operators}
    assert "OpaqueFold" in job.explain("plan")
    assert [(1, 1), (2, 2), (3, 3), (5, 2), (6, 1), (7, 0)] == results(made, engine)


@ENGINES
def test_products_of_all_kinds(engine: str) -> None:
    made = rows().reduce(n=algebra.count(), mine=added(lambda s: {"half": s.sum / 2}))
    expected = [(1, 1, 0.5), (2, 2, 50.5), (3, 3, 51.0), (5, 2, 50.5), (6, 1, 0.5), (7, 0, 0.0)]
    assert expected == results(made, engine)


def test_ready_made_groups_obey_the_laws() -> None:
    for group in (
        algebra.count(),
        algebra.total(lambda r: r.x),
        algebra.average(lambda r: r.x),
        algebra.minimum(lambda r: r.x),
        algebra.maximum(lambda r: r.x),
        algebra.product(n=algebra.count(), low=algebra.minimum(lambda r: r.x), mine=added()),
    ):
        group.check_laws()


def test_ready_made_groups_are_exact_aggregates() -> None:
    made = rows().reduce(algebra.total(lambda r: r.x))
    functions = {type(op.function) for op in millstream.compile_flow(out=made).program.operators}
    assert Aggregate in functions


@pytest.mark.parametrize(
    ("combine", "inverse", "law"),
    [
        (lambda a, b: {"x": a.x + b.x}, lambda a: {"x": a.x}, "combine(x, inverse(x)) == empty"),
        (lambda a, b: {"x": a.x + b.x + 1}, lambda a: {"x": -a.x - 1}, "combine(x, empty) == x"),
        (
            lambda a, b: {"x": a.x + b.x if abs(a.x) > 500 else b.x + a.x - 2 * a.x * 0},
            lambda a: {"x": -a.x if a.x > -900 else a.x},
            "combine(x, inverse(x)) == empty",
        ),
        (lambda a, b: {"x": abs(a.x - b.x)}, lambda a: {"x": a.x}, "combine"),
        (
            lambda a, b: {"x": a.x + b.x - (a.x * b.x) // 1_000},
            lambda a: {"x": -a.x},
            "combine(x, inverse(x)) == empty",
        ),
    ],
)
def test_what_is_not_a_group_is_refused(combine: Any, inverse: Any, law: str) -> None:
    with pytest.raises(UsageError) as caught:
        rows().reduce(Group(empty={"x": 0}, combine=combine, inverse=inverse))
    assert f"this is not a group: {law}" in str(caught.value)
    assert "with x = " in str(caught.value)


@ENGINES
def test_a_group_need_only_be_one_on_what_is_lifted(engine: str) -> None:
    """Numbers modulo 5 are a group, though 7 combined with nothing is 2."""
    modulo = Group(
        empty=0,
        combine=lambda a, b: (a + b) % 5,
        inverse=lambda a: (5 - a) % 5,
        lift=lambda r: (call("coalesce", r.x, 0) % 5 + 5) % 5,
    )
    assert [(1, 4), (2, 0), (4, 3), (5, 4), (6, 0)] == results(rows().reduce(modulo), engine)
    with pytest.raises(UsageError, match="this is not a group"):
        rows().reduce(replace(modulo, lift=lambda r: r.x))


def test_a_group_that_minds_the_order_is_refused() -> None:
    """Words under concatenation have no inverses; signed words of one letter do, but here
    only the order is wrong: the first operand counts for nothing once the second is there.
    """
    last = Group(
        empty={"x": 0, "y": 0},
        combine=lambda a, b: {"x": a.x + b.x, "y": a.y + b.y + a.x * b.x * (a.x - b.x)},
        inverse=lambda a: {"x": -a.x, "y": -a.y + 2 * a.x**3},
    )
    with pytest.raises(UsageError, match="this is not a group"):
        last.check_laws()


@ENGINES
def test_a_product_may_hold_products(engine: str) -> None:
    extremes = algebra.product(
        low=algebra.minimum(lambda r: r.x), high=algebra.maximum(lambda r: r.x)
    )
    made = rows().reduce(n=algebra.count(), x=extremes)
    assert ("n", "x_low", "x_high") == made.schema.names
    assert [(1, 1, 4, 4), (2, 2, 1, 4), (3, 3, 1, 4), (4, 3, 4, 9)] == results(made, engine)[:4]


@ENGINES
def test_functions_of_the_calculus_work_on_the_values_that_laws_are_tried_on(engine: str) -> None:
    group = Group(
        empty={"sum": 0},
        combine=lambda a, b: {"sum": call("coalesce", a.sum + b.sum, 0)},
        inverse=lambda a: {"sum": call("neg", a.sum)},
        lift=lambda r: {"sum": if_(r.x > 3, call("coalesce", r.x, 0), 0)},
    )
    expected = [(1, 4), (4, 13), (5, 9), (6, 0)]
    assert expected == results(rows().reduce(group), engine)
