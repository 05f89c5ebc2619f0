"""Programs in Python: tracing, opaque callables, and the same words as the command line."""

from __future__ import annotations

import re
from typing import Any

import pytest

import millstream
from millstream.calculus.functions import Filter, Map, Opaque
from millstream.errors import RunError, UsageError
from millstream.tracing.lambdas import call

ROWS: list[dict[str, Any]] = [
    {"_time": 1, "symbol": "IBM", "price": 10.0},
    {"_time": 2, "symbol": "XYZ", "price": 3},
    {"_time": 3, "symbol": "IBM", "price": None},
]

ENGINES = pytest.mark.parametrize("engine", ["reference", "local"])


def trades() -> millstream.Stream:
    return millstream.stream("trades", symbol="text", price="number")


@ENGINES
def test_lambdas_are_traced_into_terms(engine: str) -> None:
    flow = trades().filter(lambda r: (r.price > 2) & (r.symbol == "IBM"))
    flow = flow.map(lambda r: {"s": call("lower", r.symbol), "cost": 0.5 * r["price"] - 1})
    job = millstream.compile_flow(out=flow)
    functions = [type(op.function) for op in job.program.operators]
    assert Filter in functions
    assert Map in functions
    assert Opaque not in functions
    assert [{"_time": 1, "s": "ibm", "cost": 4.0}] == job.run({"trades": ROWS}, engine=engine).rows(
        "out"
    )


@ENGINES
def test_what_cannot_be_traced_is_kept_and_explained(engine: str) -> None:
    flow = trades().map(lambda r: {"n": len(r.symbol) if r.price else 0}, n="integer")
    job = millstream.compile_flow(out=flow)
    assert [3, 3, 0] == [r["n"] for r in job.run({"trades": ROWS}, engine=engine).rows("out")]
    assert "row at a time" in job.explain("plan")
    assert "Opaque" in job.explain("plan")


@ENGINES
def test_a_flow_can_be_read_twice(engine: str) -> None:
    source = trades()
    total = source.unbounded().aggregate(n=("count", None)).istream()
    job = millstream.compile_flow(total=total, all=source)
    finished = job.run({"trades": ROWS}, engine=engine)
    assert [1, 2, 3] == [row["n"] for row in finished.rows("total")]
    assert 3 == len(finished.rows("all"))


@ENGINES
def test_flat_maps_and_joins(engine: str) -> None:
    names = millstream.relation("names", symbol="text", name="text")
    words = trades().flat_map(lambda r: [{"c": c} for c in r.symbol[:2]], c="text")
    joined = trades().latest("symbol").join(names, on=("symbol",)).rstream()
    job = millstream.compile_flow(words=words, joined=joined)
    given = {"trades": ROWS[:1], "names": [{"_time": 1, "symbol": "IBM", "name": "Big Blue"}]}
    finished = job.run(given, engine=engine)
    assert ["I", "B"] == [row["c"] for row in finished.rows("words")]
    assert ["Big Blue"] == [row["name"] for row in finished.rows("joined")]


def test_an_untraceable_callable_without_columns_is_told() -> None:
    with pytest.raises(UsageError, match="cannot be traced"):
        trades().map(lambda r: {"n": len(r.symbol)})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"symbol": "IBM", "price": 1.0}, 'row 1 of "trades" has no time'),
        ({"_time": 1, "symbol": 7, "price": 1.0}, "symbol: expected a text, got 7"),
        ({"_time": 1, "symbol": "IBM", "price": "x"}, "price: expected a number, got 'x'"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_are_told(row: dict[str, Any], message: str) -> None:
    job = millstream.compile_flow(out=trades())
    with pytest.raises(UsageError) as caught:
        job.run({"trades": [row]})
    assert message in str(caught.value)


def test_unknown_types_are_told() -> None:
    with pytest.raises(UsageError, match='unknown type "string"'):
        millstream.stream("x", a="string")


@pytest.mark.parametrize(
    "function",
    [
        lambda r: {"s": f"{r.symbol}!"},
        lambda r: {"s": str(r.price)},
        lambda r: {"s": "none" if r.price is None else "some"},
    ],
)
def test_what_would_be_traced_wrongly_is_not_traced(function: Any) -> None:
    with pytest.raises(UsageError, match="cannot be traced"):
        trades().map(function)


@ENGINES
def test_filters_by_identity_see_real_rows(engine: str) -> None:
    job = millstream.compile_flow(out=trades().filter(lambda r: r.price is None))
    assert [3] == [r["_time"] for r in job.run({"trades": ROWS}, engine=engine).rows("out")]


@ENGINES
def test_a_remainder_is_the_one_of_python(engine: str) -> None:
    numbers = millstream.stream("numbers", i="integer")
    job = millstream.compile_flow(out=numbers.map(lambda r: {"m": r.i % 3, "n": -7 % r.i}))
    rows = [{"_time": n, "i": i} for n, i in enumerate([-7, 7, 2, -2])]
    expected = [(i % 3, -7 % i) for i in (-7, 7, 2, -2)]
    found = job.run({"numbers": rows}, engine=engine).rows("out")
    assert expected == [(row["m"], row["n"]) for row in found]


@ENGINES
def test_a_callable_that_fails_is_named_with_its_row(engine: str) -> None:
    flow = trades().map(lambda r: {"n": len(r.symbol) // 0}, n="integer")
    with pytest.raises(RunError, match=r"failed on the row \('IBM', 10.0\): ZeroDivisionError"):
        millstream.compile_flow(out=flow).run({"trades": ROWS}, engine=engine)


def test_a_misspelt_key_of_a_row_is_told() -> None:
    job = millstream.compile_flow(out=trades())
    with pytest.raises(UsageError, match='unknown column "prise"'):
        job.run({"trades": [{"_time": 1, "symbol": "IBM", "prise": 1.0}]})


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_row_can_be_unpacked_into_a_dictionary(engine: str) -> None:
    by_term = trades().map(lambda r: {**r, "double": r.price * 2, "symbol": "X"})
    as_it_is = trades().map(lambda r: r)
    row_by_row = trades().map(
        lambda r: {**r, "price": r.price if r.price > 1 else 0.0}, symbol="text", price="number"
    )
    job = millstream.compile_flow(by_term=by_term, as_it_is=as_it_is, row_by_row=row_by_row)
    given = [{"_time": 1, "symbol": "IBM", "price": 1.5}, {"_time": 2, "symbol": "A", "price": 0.5}]
    result = job.run({"trades": given}, engine=engine)
    assert given == result.rows("as_it_is")
    changed = [row | {"double": row["price"] * 2, "symbol": "X"} for row in given]  # type: ignore[operator]
    assert changed == result.rows("by_term")
    assert [given[0], given[1] | {"price": 0.0}] == result.rows("row_by_row")


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda r: {"x": len(r.symbol)}, 'call("length", column)'),
        (lambda r: {"x": r.symbol.startswith("I")}, 'call("starts_with", column)'),
        (lambda r: {"x": r.price**2}, 'call("power", column)'),
        (lambda r: {"x": "I" in r.symbol}, 'call("contains", column)'),
    ],
)
def test_what_python_would_answer_itself_has_a_function(function: Any, advice: str) -> None:
    with pytest.raises(UsageError, match=re.escape(advice)):
        trades().map(function)


def test_what_is_wrongly_asked_of_a_result_is_told() -> None:
    job = millstream.compile_flow(last=trades().latest("symbol"))
    rows = [{"_time": 1_000_000, "symbol": "IBM", "price": 1.5}]
    result = job.run({"trades": rows}, engine="reference")
    assert 1 == len(result.state(as_of="1970-01-01T00:00:01Z"))
    assert [] == result.state(as_of="1970-01-01T00:00:00Z")
    with pytest.raises(UsageError, match='"noon" is not a time'):
        result.state(as_of="noon")
    with pytest.raises(UsageError, match='on_change of "last" is to be a function, not 5'):
        job.run({"trades": rows}, on_change={"last": 5})  # type: ignore[dict-item]
