"""Law 1 for the algebra: reference = local = actors, row for row.

The messages of actors take random times to arrive; what they say does not depend on it.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import millstream
from millstream import algebra
from millstream.algebra import Stream, Table
from millstream.calculus.types import Row, Value
from tests.languages.algebra import generate
from tests.languages.algebra.generate import Events
from tests.seeds import campaign, seeded

Rows = list[dict[str, Value]]
History = dict[int, dict[Row, Row]]


def as_rows(events: Events) -> dict[str, Rows]:
    return {
        name: [dict(zip(("_time", "k", "v", "w", "gone"), (t, *row), strict=True))
               for t, row in some]
        for name, some in events.items()
    }  # fmt: skip


def check(table: Table, reduced: Stream, events: Events, seed: int) -> None:
    outputs: dict[str, Stream | Table] = {"table": table, "reduced": reduced}
    job = millstream.compile_flow(**outputs)
    given_rows = {n: r for n, r in as_rows(events).items() if n in job.program.input_names}
    expected = job.run(given_rows, engine="reference")
    for other in (
        job.run(given_rows, engine="local"),
        job.run(given_rows, engine="actors", seed=seed),
    ):
        for name in outputs:
            assert expected.rows(name) == other.rows(name)


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


def test_combined_updates_and_filtered_changelogs_are_the_same_for_all() -> None:
    """What counts as an update, and what a filter says of a row that leaves it and comes back."""
    rows = algebra.table("left", key="k", deleted="gone", k="text", v="integer", w="integer",
                         gone="boolean")  # fmt: skip
    shown = rows.filter(lambda r: r.v > 1)
    counted = shown.combine_updates({"n": 0}, lambda s, _: {"n": s.n + 1})
    told = shown.changelog().merge(
        counted.map(lambda r: {"v": r.n, "w": r.n}).changelog(),
    )
    values = [("a", 1), ("a", 2), ("a", 2), ("b", 3), ("a", 0), ("b", 3), ("a", 5), ("b", None)]
    events: Rows = [
        {"_time": 1 + n // 2, "k": k, "v": v, "w": n, "gone": v is None}
        for n, (k, v) in enumerate(values)
    ]
    job = millstream.compile_flow(counted=counted, told=told, again=told.to_table("k"))
    expected = job.run({"left": events}, engine="reference")
    assert all(expected.rows(name) for name in job.program.outputs)
    for seed in range(5):
        acted = job.run({"left": events}, engine="actors", seed=seed)
        for name in job.program.outputs:
            assert expected.rows(name) == acted.rows(name)
    here = job.run({"left": events}, engine="local")
    for name in job.program.outputs:
        assert expected.rows(name) == here.rows(name)


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(1_000, 20))
def test_three_interpretations_agree_on_many_programs(number: int) -> None:
    seeded(number, 20)(given(st.data())(agree))()
