"""Law 1 for the algebra: reference = local, row for row; and both = actors at every instant.

Actors send messages as they come, and what they say in between depends on delays. When no
message is on its way any more, their tables must be those of the reference.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import millstream
from millstream.algebra import Stream, Table
from millstream.calculus.types import Row, Value
from millstream.engine.actors.run import run_actors
from tests.languages.algebra import generate
from tests.languages.algebra.generate import Events

Rows = list[dict[str, Value]]
History = dict[int, dict[Row, Row]]


def as_rows(events: Events) -> dict[str, Rows]:
    return {
        name: [dict(zip(("_time", "k", "v", "w", "gone"), (t, *row), strict=True))
               for t, row in some]
        for name, some in events.items()
    }  # fmt: skip


def history(rows: Rows) -> History:
    """The contents of a table by key after every instant at which it changes."""
    contents: dict[Row, Row] = {}
    found: History = {}
    for row in rows:
        time, weight, key, *values = row.values()
        assert isinstance(time, int)
        if weight == 1:
            contents[(key,)] = tuple(values)
        elif contents.get((key,)) == tuple(values):
            del contents[(key,)]
        found[time] = dict(contents)
    return found


def history_of_updates(updates: list[tuple[int, Row]]) -> History:
    contents: dict[Row, Row] = {}
    found: History = {}
    before: dict[Row, Row] = {}
    times = sorted({t for t, _ in updates})
    for time in times:
        for _, row in (u for u in updates if u[0] == time):
            if row[-1] is True:
                contents.pop(row[:1], None)
            else:
                contents[row[:1]] = row[1:-1]
        if contents != before:
            found[time] = before = dict(contents)
    return found


def last_changes(rows: list[tuple[int, Row]]) -> list[tuple[int, Row]]:
    """The last row of every instant, where it is not the one before."""
    last = dict(rows)
    found: list[tuple[int, Row]] = []
    for time, row in last.items():
        if not found or found[-1][1] != row:
            found.append((time, row))
    return found


def check(table: Table, reduced: Stream, events: Events, seed: int) -> None:
    outputs: dict[str, Stream | Table] = {"table": table, "reduced": reduced}
    job = millstream.compile_flow(**outputs)
    given_rows = {n: r for n, r in as_rows(events).items() if n in job.program.input_names}
    runs = [job.run(given_rows, engine=e) for e in ("reference", "local")]
    for name in outputs:
        assert runs[0].rows(name) == runs[1].rows(name)
    acted = run_actors(outputs, events, seed)
    assert history(runs[0].rows("table")) == history_of_updates(acted["table"])
    results = [(row["_time"], tuple(row.values())[1:]) for row in runs[0].rows("reduced")]
    assert results == last_changes(acted["reduced"])


def agree(data: st.DataObject) -> None:
    table = data.draw(generate.tables())
    if data.draw(st.booleans()):
        reduced = generate.reductions(table)
    else:
        reduced = generate.no_nulls(table).reduce(generate.VECTORS)
    for seed in range(2):
        check(table, reduced, data.draw(generate.events()), seed)


# Shrinking compiles hundreds of programs more; the failing one is printed anyway.
@settings(max_examples=25, deadline=None, derandomize=True, database=None, phases=(Phase.generate,))
@given(st.data())
def test_three_interpretations_agree(data: st.DataObject) -> None:
    agree(data)


@pytest.mark.proof
@settings(
    max_examples=int(os.environ.get("MILLSTREAM_EXAMPLES", "1000")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_three_interpretations_agree_on_many_programs(data: st.DataObject) -> None:
    agree(data)
