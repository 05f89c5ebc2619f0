"""Generated programs, cut and run batch by batch as on Spark, give what the reference gives.

Without Spark itself, so many more can be tried than with it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from millstream.calculus.graph import Program
from millstream.connectors.location import parse_location
from millstream.engine.job import InputCounts, Report
from millstream.engine.parcels import Parcel, in_turns
from millstream.engine.reference.feed import Event
from millstream.languages.brook.load import load
from millstream.languages.cql.load import load as load_query
from millstream.languages.rules.load import translated
from millstream.optimiser.optimise import optimise
from millstream.source import Source
from tests.engine.bench import Bench
from tests.engine.written import written
from tests.generate import Case, cases
from tests.kernels.relational_cases import History
from tests.kernels.test_pieces import PROGRAMS, events, small_rooms
from tests.languages.cql.generate import Inputs, Query, inputs, queries
from tests.languages.rules.generate import events_for, rule_texts
from tests.languages.rules.test_laws import checked_or_none
from tests.laws.runs import on_reference
from tests.seeds import seeded

__all__ = ["small_rooms"]


@pytest.mark.slow
def test_generated_programs_in_batches_give_what_the_reference_gives(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    seeds = itertools.count()

    @seeded(0, 20, phases=[Phase.generate])
    @given(cases())
    def law(case: Case) -> None:
        program, events, _ = case
        check(program, events, tmp_path_factory.mktemp("case"), next(seeds))

    law()


@settings(
    max_examples=12, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(queries(), inputs(), st.integers(0, 1000))
@pytest.mark.slow
def test_generated_queries_in_batches_give_what_the_reference_gives(
    tmp_path_factory: pytest.TempPathFactory, query: Query, given_: Inputs, seed: int
) -> None:
    program = optimise(load_query(Source("generated.cql", query.cql)).program)
    events = {one.name: given_[one.name] for one in program.inputs}
    check(program, events, tmp_path_factory.mktemp("case"), seed)


@settings(
    max_examples=3, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(st.data(), st.integers(0, 1000))
@pytest.mark.slow
def test_generated_rules_in_batches_give_what_the_reference_gives(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, seed: int
) -> None:
    checked = checked_or_none(data.draw(rule_texts()))
    assume(checked is not None)
    assert checked is not None
    program = optimise(translated(checked).program)
    events = data.draw(events_for(program))
    # Who reads files rejects rows without a key; their counts differ.
    agreed(program, events, tmp_path_factory.mktemp("case"), seed)


def check(program: Program, events: dict[str, list[Event]], folder: Path, seed: int) -> None:
    """Run a program in batches, cut as a seed says, and by the reference."""
    job, report = agreed(program, events, folder, seed)
    found = {name: InputCounts(**counts) for name, counts in job.last["counts"].items()}
    assert report.inputs == found


def agreed(
    program: Program, events: dict[str, list[Event]], folder: Path, seed: int
) -> tuple[Bench, Report]:
    expected, report = on_reference(program, events)
    chance = random.Random(seed)
    locations = written(program, events, folder, chance)
    job = Bench(
        program, locations, folder / "checkpoint", partitions=chance.randint(1, 3),
        batch_bytes=chance.choice((1, 100, 300, 10_000)), snapshot_every=chance.randint(1, 5),
        piece_bytes=chance.choice((1, 50, 4 << 20)),
        is_following=False, forgets=chance.random() < 0.5, is_together=chance.random() < 0.2,
        copied=frozenset(name for name in program.input_names if chance.random() < 0.3),
    )  # fmt: skip
    job.planner.freeze()
    with held(0 if chance.random() < 0.5 else None):
        while job.batch():
            pass
    assert expected == {name: job.sinks[name].items() for name in program.outputs}
    return job, report


@contextmanager
def held(most: int | None) -> Iterator[None]:
    """As if more than so many rows were very many: they are sent and taken in pieces."""
    with ExitStack() as stack:
        for name in ("_MOST_HELD", "_MOST_ROWS") if most is not None else ():
            stack.enter_context(patch(f"millstream.engine.parcels.{name}", most))
        yield


@pytest.mark.usefixtures("small_rooms")
@pytest.mark.parametrize("text", [PROGRAMS["a join of joins"], PROGRAMS["tables of sums"]])
@given(a=events, b=events, seed=st.integers(0, 1000))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_products_are_sent_and_taken_in_pieces(
    tmp_path_factory: pytest.TempPathFactory, text: str, a: History, b: History, seed: int
) -> None:
    rows = {"a": a, "b": b}
    given_ = {
        name: [Event(t, row) for t, row in sorted(some, key=lambda e: e[0])]  # type: ignore[misc]
        for name, some in rows.items()
    }
    check(load(Source("test.brook", text)), given_, tmp_path_factory.mktemp("case"), seed)


def test_parcels_are_taken_in_the_order_of_their_times() -> None:
    parcels = [Parcel(0, 0, 10, oldest, None) for oldest in (5, 1, 3, 3, 9)]
    with held(15):
        turns = list(in_turns(parcels, 7))
    # Of time 3 one is there already, which waits for the other.
    assert [([1, 2], 2), ([0, 3, 4], 7)] == turns


PASSING = "output out; input in(n integer) slack 5 us; (out) <- Filter[n >= 0](in);"


@settings(max_examples=40, deadline=None, derandomize=True, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(
    st.lists(st.integers(0, 40), max_size=60),
    st.sampled_from((1, 30, 100, 10_000)),
    st.sampled_from((1, 20, 4 << 20)),
    st.integers(1, 3),
    st.sampled_from((None, 0, 3)),
)
def test_lateness_does_not_depend_on_tasks_or_batches(
    tmp_path_factory: pytest.TempPathFactory,
    times: list[int],
    batch_bytes: int,
    piece_bytes: int,
    partitions: int,
    most: int | None,
) -> None:
    folder: Path = tmp_path_factory.mktemp("case")
    lines = "".join(f"{time},{n}\n" for n, time in enumerate(times))
    (folder / "in.csv").write_text("_time,n\n" + lines)
    job = Bench(
        load(Source("test.brook", PASSING)), {"in": parse_location("in.csv", folder)},
        folder / "checkpoint", partitions=partitions, batch_bytes=batch_bytes,
        piece_bytes=piece_bytes, is_following=False,
    )  # fmt: skip
    job.planner.freeze()
    with held(most):
        while job.batch():
            pass
    seen = [max(times[:n], default=0) for n in range(len(times))]
    late = [n for n, time in enumerate(times) if time < seen[n] - 5]
    accepted = sorted((time, n) for n, time in enumerate(times) if n not in set(late))
    assert [n for _, n in accepted] == [n for (n,) in job.sinks["out"].rows()]
    assert late == [n for (n,) in job.late["in"].rows()]
    assert job.report.inputs["in"].is_conserved
    assert max((seen[n] - times[n] for n in late), default=0) == job.report.inputs["in"].behind
