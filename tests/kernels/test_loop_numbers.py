"""Integers and truths of loops are what they would be without being worked out beforehand."""

from __future__ import annotations

import operator
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from millstream.kernels.loop import numbers
from millstream.kernels.loop.emit import emit
from millstream.kernels.loop.ir import (
    INTEGER,
    NO,
    YES,
    ZERO,
    Function,
    Local,
    Memory,
    Set,
    Store,
    Value,
    integer,
)
from millstream.kernels.loop.numbers import all_of, less, or_, plus

#: A value of the IR, and what it is.
Pair = tuple[Value, int]

X, Y = Local("x", INTEGER), Local("y", INTEGER)
MEANINGS: dict[Callable[..., Value], Callable[[int, int], int]] = {
    numbers.plus: operator.add,
    numbers.minus: operator.sub,
    numbers.times: operator.mul,
    numbers.greater_of: max,
    numbers.less: operator.lt,
    numbers.at_least: operator.ge,
    numbers.equal: operator.eq,
    numbers.differ: operator.ne,
}


def pairs(x: int, y: int) -> st.SearchStrategy[Pair]:
    leaves = st.one_of(
        st.integers(-3, 3).map(lambda n: (integer(n), n)), st.just((X, x)), st.just((Y, y))
    )
    sums = [numbers.plus, numbers.minus, numbers.times, numbers.greater_of]
    made = st.recursive(
        leaves,
        lambda inner: st.tuples(st.sampled_from(sums), inner, inner).map(_joined),
        max_leaves=8,
    )
    return st.one_of(made, st.tuples(st.sampled_from([*MEANINGS]), made, made).map(_joined))


def _joined(what: tuple[Callable[..., Value], Pair, Pair]) -> Pair:
    make, (a, first), (b, second) = what
    return make(a, b), MEANINGS[make](first, second)


def evaluated(value: Value, x: int, y: int) -> int:
    """What the emitter writes of a value, as Python reads it."""
    store = Store(Memory("out", value.form.rep), ZERO, value)
    body = (Set(X, integer(x)), Set(Y, integer(y)), store)
    source = emit(Function(body)).source
    names: dict[str, object] = {f"pointer_{rep}": lambda cell: cell for rep in "ib"}
    exec(source[source.index("def run") :], names)  # noqa: S102
    cells = [0]
    names["run"]([cells])  # type: ignore[operator]
    return cells[0]


@given(st.data(), st.integers(-5, 5), st.integers(-5, 5))
def test_sums_and_truths(data: st.DataObject, x: int, y: int) -> None:
    value, expected = data.draw(pairs(x, y))
    assert expected == evaluated(value, x, y)


def test_counting_on_makes_no_longer_sums() -> None:
    counted: Value = X
    for _ in range(100):
        counted = plus(counted, integer(1))
    assert plus(X, integer(100)) == counted
    assert plus(Y, integer(3)) == plus(plus(Y, integer(5)), integer(-2))


def test_hundreds_of_conditions_are_put_together_by_halves() -> None:
    conditions = [less(Local(f"v{n}", INTEGER), integer(n)) for n in range(500)]
    function = Function((Set(Local("c", YES.form), all_of(conditions)),))
    compile(emit(function).source, "<loop>", "exec")  # Python allows no 200 levels
    assert NO == all_of([*conditions, NO])
    assert YES == all_of([])
    assert YES == or_(YES, conditions[0])
