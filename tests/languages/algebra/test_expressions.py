"""Trees: what costs nothing, what is traced, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest

import millstream
from millstream import algebra
from millstream.algebra import Stream, Table
from millstream.calculus.functions import Fold, Istream, Opaque, OpaqueFold
from millstream.calculus.text import render
from millstream.errors import UsageError
from millstream.languages.brook.load import load
from millstream.source import Source

ENGINES = pytest.mark.parametrize("engine", ["reference", "local"])


def updates() -> Stream:
    return algebra.stream("rows", k="integer", x="number", deleted="boolean")


def rows() -> Table:
    return updates().to_table("k")


def run(made: Stream | Table, events: list[dict[str, Any]], engine: str) -> list[Any]:
    job = millstream.compile_flow(out=made)
    return [tuple(r.values()) for r in job.run({"rows": events}, engine=engine).rows("out")]


EVENTS: list[dict[str, Any]] = [
    {"_time": 1, "k": 1, "x": 1.0, "deleted": False},
    {"_time": 2, "k": 1, "x": 1.0, "deleted": None},
    {"_time": 2, "k": 2, "x": 7.0, "deleted": False},
    {"_time": 3, "k": 1, "x": None, "deleted": True},
    {"_time": 3, "k": 3, "x": None, "deleted": True},
]


def test_changelog_and_to_table_are_inverse_and_cost_nothing() -> None:
    xs = updates()
    assert xs.node is xs.to_table("k").changelog().node
    for table in (rows().filter(lambda r: r.x > 1), rows().map(lambda r: {"y": r.x})):
        assert table.node is table.changelog().to_table("k").node
    again = rows().changelog().to_table("k")
    assert millstream.compile_flow(out=rows()).program == millstream.compile_flow(out=again).program
    log = rows().map(lambda r: {"y": r.x}).changelog()
    there = rows().map(lambda r: {"y": r.x}).changelog().to_table("k").changelog()
    programs = [millstream.compile_flow(out=s).program for s in (log, there)]
    assert len(programs[0].operators) == len(programs[1].operators)


def test_a_map_of_updates_stays_on_the_changelog() -> None:
    job = millstream.compile_flow(out=rows().map(lambda r: {"y": r.x}).changelog())
    assert not any(isinstance(op.function, Istream) for op in job.program.operators)


@ENGINES
def test_updates_are_counted_one_by_one(engine: str) -> None:
    made = rows().combine_updates({"n": 0}, lambda state, _: {"n": state.n + 1})
    expected = [(1, 1, 1, False), (2, 1, 2, False), (2, 2, 1, False), (3, 1, None, True)]
    assert expected == run(made.changelog(), EVENTS, engine)
    assert [(1, 1, 1, 1), (2, -1, 1, 1), (2, 1, 1, 2), (2, 1, 2, 1), (3, -1, 1, 2)] == run(
        made, EVENTS, engine
    )


@ENGINES
def test_computed_tables_speak_of_changes_only(engine: str) -> None:
    made = rows().filter(lambda r: r.x < 5).changelog()
    assert [(1, 1, 1.0, False), (3, 1, None, True)] == run(made, EVENTS, engine)


@ENGINES
def test_what_cannot_be_traced_is_kept_and_explained(engine: str) -> None:
    made = rows().map(lambda r: {"half": r.x // 2 if r.x else 0.0}, half="number")
    kept = made.filter(lambda r: bool(r.half in (0.0, 3.0)))
    job = millstream.compile_flow(out=kept)
    assert 2 == sum(isinstance(op.function, Opaque) for op in job.program.operators)
    assert "row at a time" in job.explain("plan")
    assert [(1, 1, 1, 0.0), (2, 1, 2, 3.0), (3, -1, 1, 0.0)] == run(kept, EVENTS, engine)


@ENGINES
def test_an_opaque_map_of_updates_passes_deletions(engine: str) -> None:
    made = rows().map(lambda r: {"half": r.x // 2}, half="number").changelog()
    expected = [(1, 1, 0.0, False), (2, 1, 0.0, None), (2, 2, 3.0, False),
                (3, 1, None, True), (3, 3, None, True)]  # fmt: skip
    assert expected == run(made, EVENTS, engine)


@ENGINES
def test_an_opaque_scan_and_an_opaque_combination(engine: str) -> None:
    seen = rows().combine_updates(
        {"words": ""}, lambda state, row: {"words": state.words + str(row.x)}
    )
    job = millstream.compile_flow(out=seen)
    assert any(isinstance(op.function, OpaqueFold) for op in job.program.operators)
    expected = [(1, 1, 1, "1.0"), (2, -1, 1, "1.0"), (2, 1, 1, "1.01.0"), (2, 1, 2, "7.0"),
                (3, -1, 1, "1.01.0")]  # fmt: skip
    assert expected == run(seen, EVENTS, engine)


@ENGINES
def test_derived_operators_on_callables_that_cannot_be_traced(engine: str) -> None:
    live = updates().filter(lambda r: r.k != 3)
    taken = algebra.take_while(live, lambda r: str(r.x) == "1.0")
    assert [(1, 1), (2, 1)] == [r[:2] for r in run(taken, EVENTS, engine)]


def _is_there(value: object) -> bool:
    return value is not None


@ENGINES
def test_looking_at_objects_is_seen_wherever_it_is_done(engine: str) -> None:
    """A column is never None while a lambda is traced, so what asks for that is kept as it is."""
    events = [{"_time": n, "k": n, "x": x, "deleted": False} for n, x in enumerate((None, 1.0))]
    skipped = algebra.skip_while(updates(), lambda r: r.x is None)
    assert [(1, 1, 1.0, False)] == run(skipped, events, engine)
    there = updates().map(lambda r: {"there": _is_there(r.x)}, there="boolean")
    assert [(0, False), (1, True)] == run(there, events, engine)


@ENGINES
def test_a_value_is_a_row_of_one_column(engine: str) -> None:
    events = [{"_time": n, "k": n % 2, "x": float(n), "deleted": False} for n in (1, 2, 3)]
    xs = updates()
    made: dict[str, tuple[Stream | Table, list[Any]]] = {
        "map": (xs.map(lambda r: r.x + 1), [(1, 2.0), (2, 3.0), (3, 4.0)]),
        "concat": (xs.map_concat(lambda r: [r.k, algebra.when(r.x > 2, r.k + 10)]),
                   [(1, 1), (2, 0), (3, 1), (3, 11)]),
        "opaque": (xs.map(lambda r: len(str(r.x)), size="integer"), [(1, 3), (2, 3), (3, 3)]),
        "table": (rows().map(lambda r: r.x * 2).filter(lambda r: r.value < 6),
                  [(1, 1, 1, 2.0), (2, 1, 0, 4.0), (3, -1, 1, 2.0)]),
        "scan": (algebra.scan(xs, 0.0, lambda sum_, r: sum_ + r.x),
                 [(1, 1.0), (2, 3.0), (3, 6.0)]),
        "kept": (algebra.scan(xs, "", lambda all_, r: all_ + str(r.x)),
                 [(1, "1.0"), (2, "1.02.0"), (3, "1.02.03.0")]),
        "groups": (algebra.group_by(xs, lambda r: r.x > 1, 0, lambda n, _: n + 1),
                   [(1, 1, False, 1), (2, 1, True, 1), (3, -1, True, 1), (3, 1, True, 2)]),
        "now": (algebra.now(1.5).merge(xs.map(lambda r: r.x)).filter(lambda r: r.value > 1.7),
                [(2, 2.0), (3, 3.0)]),
    }  # fmt: skip
    for name, (one, expected) in made.items():
        assert (name, expected) == (name, run(one, events, engine))


@ENGINES
def test_a_window_speaks_after_each_row_also_when_nothing_has_changed(engine: str) -> None:
    """Also when rows follow each other by a microsecond, and when they come at one instant."""
    events = [{"_time": t, "k": 1, "x": 1.0, "deleted": False} for t in (1, 2, 3, 3, 7)]
    made = algebra.window(updates(), 2, number=algebra.count(), sum=algebra.total(lambda r: r.x))
    expected = [(1, 1, 1.0), (2, 2, 2.0), (3, 2, 2.0), (3, 2, 2.0), (7, 2, 2.0)]
    assert expected == run(made, events, engine)


def test_derived_operators_are_folds() -> None:
    made = algebra.distinct_until_changed(updates(), "x")
    functions = [type(op.function) for op in millstream.compile_flow(out=made).program.operators]
    assert Fold in functions and OpaqueFold not in functions


@ENGINES
def test_a_table_joined_with_itself_never_shows_halves(engine: str) -> None:
    other = rows().map(lambda r: {"y": r.x + 1})
    made = rows().inner_join(other).filter(lambda r: r.y != r.x + 1)
    assert [] == run(made, EVENTS, engine)


def test_constants_are_part_of_the_text() -> None:
    made = algebra.start_with(updates(), {"k": 0, "x": 1.5, "deleted": None})
    program = millstream.compile_flow(out=made).program
    assert "values ((0, 0, 1.5, null(boolean)))" in render(program)
    assert program == load(Source("again", render(program)))


@ENGINES
def test_terms_are_accepted_in_place_of_lambdas(engine: str) -> None:
    from millstream.calculus.check import Scope, check
    from millstream.calculus.expressions import parse_expression
    from millstream.calculus.functions import Assign
    from millstream.calculus.types import BOOLEAN

    schema = rows().schema
    small = check(parse_expression(Source("t", "x < 5")), Scope(schema), wanted=BOOLEAN)
    double = check(parse_expression(Source("t", "x * 2")), Scope(schema))
    made = rows().filter(small).map((Assign("double", double),))
    assert [(1, 1, 1, 2.0), (3, -1, 1, 2.0)] == run(made, EVENTS, engine)


def test_there_is_one_kind_of_stream() -> None:
    xs = millstream.stream("ys", x="number")
    job = millstream.compile_flow(a=rows(), b=xs.range("5 us").aggregate(n="count"))
    assert ("a", "b") == job.program.outputs
    with pytest.raises(UsageError, match="is no stream or table"):
        millstream.compile_flow(a=3)  # type: ignore[arg-type]


@ENGINES
def test_comparing_with_none_asks_whether_there_is_a_value(engine: str) -> None:
    nothing = updates().filter(lambda r: r.x == None)  # noqa: E711 - what people write
    something = updates().filter(lambda r: r.x != None)  # noqa: E711
    assert [3, 3] == [time for time, *_ in run(nothing, EVENTS, engine)]
    assert [1, 2, 2] == [time for time, *_ in run(something, EVENTS, engine)]
