"""What is wrong is told when it is written, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import millstream
from millstream import algebra
from millstream.algebra import Group
from millstream.errors import MillstreamError

vessels = algebra.table(
    "vessels", key="mmsi", mmsi="integer", berth="text", draught="number", arrived="boolean"
)
tides = algebra.table("tides", key="id", id="integer", height="number")
berths = algebra.table("berths", key="name", name="text", depth="number")
xs = algebra.stream("xs", x="integer", name="text")


def vector(combine: Any) -> Group:
    return Group(empty={"x": 0, "y": 0}, combine=combine, inverse=lambda a: {"x": -a.x, "y": -a.y})


FAULTS: dict[str, tuple[Callable[[], object], str]] = {
    "unknown column": (
        lambda: vessels.map(lambda v: {"d": v.draft}),
        ('unknown column "draft"\n'
        '    the input has: mmsi, berth, draught, arrived. Did you mean "draught"?'),
    ),
    "condition that is none": (
        lambda: vessels.filter(lambda v: v.draught + 1),
        "expected a value of type boolean, got number",
    ),
    "text added to a number": (
        lambda: vessels.map(lambda v: {"d": v.draught + v.berth}),
        "cannot add a number and a text",
    ),
    "key that is mapped": (
        lambda: vessels.map(lambda v: {"mmsi": v.mmsi, "d": v.draught}),
        ('"mmsi" is the key of this table, and map keeps keys as they are\n'
        "    leave it out; key_by on the changelog makes a table with another key"),
    ),
    "key that is not there": (
        lambda: xs.to_table("nam", deleted=None),
        ('the key of a table: unknown column "nam"\n'
        '    columns are: x, name. Did you mean "name"?'),
    ),
    "deletions that are no boolean": (
        lambda: xs.to_table("name", deleted="x"),
        '"x" says which rows are deleted, so it must be a boolean, got integer',
    ),
    "keys of other types": (
        lambda: vessels.inner_join(berths),
        ("cannot join tables of different keys: one has (mmsi integer), the other (name text)\n"
        "    use foreign_join where one table holds keys of the other"),
    ),
    "foreign key of another type": (
        lambda: vessels.foreign_join(tides, on="berth"),
        "the foreign key (berth text) does not fit the key of the other table (id integer)",
    ),
    "foreign key that is not there": (
        lambda: vessels.foreign_join(berths, on="birth"),
        ('a foreign key: unknown column "birth"\n'
        '    columns are: mmsi, berth, draught, arrived. Did you mean "berth"?'),
    ),
    "columns of both tables": (
        lambda: vessels.foreign_join(berths.map(lambda b: {"draught": b.depth}), on="berth"),
        'both tables of the join have a column "draught"\n    rename one of them with map',
    ),
    "streams that differ": (
        lambda: xs.merge(algebra.stream("ys", y="integer")),
        ("cannot merge streams of different columns: the first has (x integer, name text), "
        "number 2 has (y integer)\n    make them alike with map"),
    ),
    "unknown type": (
        lambda: algebra.stream("zs", z="float"),
        ('unknown type "float" of column "z"\n'
        "    types are: number, integer, text, boolean, time, duration"),
    ),
    "untraceable without columns": (
        lambda: xs.map(lambda r: {"n": len(r.name)}),
        ("this callable cannot be traced: object of type 'Traced' has no len()\n"
        '    name the columns it returns, such as map(f, cost="number")'),
    ),
    "state of an unknown field": (
        lambda: vessels.combine_updates({"n": 0}, lambda s, _: {"n": s.m + 1}),
        'unknown field "m"\n    there are: n.',
    ),
    "row of an unknown field": (
        lambda: vessels.combine_updates({"n": 0.0}, lambda s, r: {"n": s.n + r.draugt}),
        ('unknown field "draugt"\n'
        '    there are: mmsi, berth, draught, arrived. Did you mean "draught"?'),
    ),
    "state that was not there": (
        lambda: vessels.combine_updates({"n": 0}, lambda s, _: {"m": s.n + 1}),
        'combine gives a field "m" that is not in the initial state\n    there are: n.',
    ),
    "state of another type": (
        lambda: vessels.combine_updates({"n": 0}, lambda s, r: {"n": s.n + r.draught}),
        "expected a value of type integer, got number",
    ),
    "state without a type": (
        lambda: vessels.combine_updates({"last": None}, lambda _, r: {"last": r.draught}),
        'the type of "last" cannot be told from None\n    say it: last="number"',
    ),
    "sum of texts": (
        lambda: vessels.reduce(algebra.total(lambda v: v.berth)),
        "sum cannot aggregate a text",
    ),
    "no group": (
        vessels.reduce,
        "reduce takes one group, or several by name",
    ),
    "half a group": (
        lambda: berths.map(lambda _: {"x": 1, "y": 2}).reduce(
            vector(lambda a, b: {"x": a.x + b.x})
        ),
        ("this is not a group: combine(x, inverse(x)) == empty does not hold: {'x': 0} is not "
        "{'x': 0, 'y': 0}"),
    ),
    "rows of now that differ": (
        lambda: algebra.now({"x": 1}, {"y": 2}),
        "the rows of now must be alike: expected x, got y",
    ),
    "no window": (
        lambda: algebra.window(xs, 0),
        "a window needs at least one row, got 0",
    ),
    "no duration": (
        lambda: algebra.debounce(xs, "5"),
        '"5" is not a duration\n    write "5 min"',
    ),
    "control that is none": (
        lambda: algebra.switch(xs, "nme", a=xs),
        ('"nme" must be a text column of the control, which has (x integer, name text)\n'
        '    Did you mean "name"?'),
    ),
    "names of both streams": (
        lambda: algebra.combine_latest(xs, xs),
        'both streams have a column "x"\n    rename one of them with map',
    ),
    "input that is an output": (
        lambda: millstream.compile_flow(xs=xs),
        '"xs" is the name of an input and of an output\n    give the output another name',
    ),
    "two inputs of one name": (
        lambda: millstream.compile_flow(out=tides.inner_join(algebra.table(
            "tides", key="id", id="integer", low="number"))),
        'there are two different inputs "tides"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_told(name: str) -> None:
    wrong, expected = FAULTS[name]
    with pytest.raises(MillstreamError) as caught:
        wrong()
    assert str(caught.value).startswith(expected), str(caught.value)
