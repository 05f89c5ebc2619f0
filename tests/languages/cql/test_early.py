"""EMIT EARLY: at each time the query over the rows that came, in the end the exact answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

import millstream
from millstream.calculus.graph import Program
from millstream.calculus.types import Row
from millstream.engine.reference.feed import Event
from millstream.errors import CheckError, ParseError
from tests.laws.runs import Rows, on_local, on_reference

SLACK = 6
DECLARED = f"""CREATE STREAM s (k TEXT, v INTEGER, ts TIME) TIME ts SLACK {SLACK} us;
CREATE STREAM r (k TEXT, w INTEGER, at TIME) TIME at SLACK 3 us;
CREATE VIEW sums AS SELECT k, SUM(v) AS total FROM s [Range 5 us] GROUP BY k;
"""
QUERIES = {
    "all": "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s GROUP BY k",
    "rows": "SELECT k, v FROM s WHERE v > 1",
    "range": "SELECT k, v FROM s [Range 4 us]",
    "now": "SELECT k, COUNT(*) AS n FROM s [Now] GROUP BY k",
    "tumble": "SELECT window_start, k, SUM(v) AS total FROM TUMBLE(s, 4 us) "
    "GROUP BY window_start, window_end, k",
    "hop": "SELECT window_start, MAX(v) AS high FROM HOP(s, ts, 2 us, 4 us) [Range 9 us] "
    "GROUP BY window_start, window_end",
    "view": "SELECT k, total FROM sums WHERE total > 2",
    "join": "SELECT s.k, v, w FROM s [Range 4 us], r [Range 6 us] WHERE s.k = r.k",
    "first": "SELECT k, FIRST(v ORDER BY v, ts) AS f, STRING_AGG(k) AS all_k FROM s GROUP BY k",
    "times": "SELECT k, MAX(_time) AS newest FROM s GROUP BY k",
    "with": "WITH big AS (SELECT k, v FROM s [Range 3 us] WHERE v > 1) SELECT * FROM big",
    "outer": "SELECT s.k, w FROM s [Range 4 us] LEFT JOIN r ON s.k = r.k",
    "top": "SELECT k, v FROM s ORDER BY v DESC LIMIT 2",
    "places": "SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY ts, v) AS before FROM s",
}


def program_of(query: str) -> Program:
    text = f"{DECLARED}CREATE OUTPUT o AS {query};"
    return millstream.compile(text=text, language="cql").program


def events_of(seed: int, count: int = 14) -> dict[str, list[Event]]:
    """Rows that come out of order, some of them too late."""
    random = Random(seed)
    made: dict[str, list[Event]] = {}
    for name in ("s", "r"):
        now, made[name] = 0, []
        for _ in range(random.randint(1, count)):
            now += random.choice([0, 1, 1, 2, 4])
            time = now - random.choice([0, 0, 1, 2, 3, 5, 8])
            row: Row = (random.choice(["a", "b", None]), random.choice([None, 1, 2, 5]), time)
            made[name].append(Event(time, row))
    return made


def state(rows: Rows, until: int | None = None) -> Counter[Row]:
    there: Counter[Row] = Counter()
    for time, weight, row in rows:
        if until is None or time <= until:
            there[row] += weight
    assert min(there.values(), default=0) >= 0
    return +there


def came_until(events: list[Event], slack: int, frontier: int) -> list[Event]:
    """The rows that are not late, of those that came before the time of any was later."""
    kept: list[Event] = []
    largest: int | None = None
    for event in events:
        is_late = largest is not None and event.time < largest - slack
        largest = event.time if largest is None else max(largest, event.time)
        if largest > frontier:
            break
        kept += [] if is_late else [event]
    return sorted(kept, key=lambda e: e.time)


def used(program: Program, events: dict[str, list[Event]]) -> dict[str, list[Event]]:
    return {one.name: events[one.name] for one in program.inputs}


@pytest.mark.parametrize("name", QUERIES)
def test_in_the_end_it_is_the_exact_answer(name: str) -> None:
    exact, early = program_of(QUERIES[name]), program_of(f"{QUERIES[name]} EMIT EARLY")
    assert all(one.is_early for one in early.inputs)
    for seed in range(25):
        events = used(exact, events_of(seed))
        in_the_end, told = on_reference(exact, events)
        rows, report = on_reference(early, events)
        assert state(in_the_end["o"]) == state(rows["o"])
        assert {n: c.late for n, c in told.inputs.items()} == {
            n: c.late for n, c in report.inputs.items()
        }


@pytest.mark.parametrize("name", QUERIES)
def test_at_each_time_it_is_the_query_over_what_came(name: str) -> None:
    exact, early = program_of(QUERIES[name]), program_of(f"{QUERIES[name]} EMIT EARLY")
    slacks = {one.name: one.slack for one in exact.inputs}
    for seed in range(6):
        events = used(exact, events_of(seed, 8))
        rows, _ = on_reference(early, events)
        for frontier in sorted({e.time for some in events.values() for e in some}):
            came = {n: came_until(some, slacks[n], frontier) for n, some in events.items()}
            if not any(came.values()):
                continue
            there = as_of(exact, used(exact, came), frontier)
            assert there == state(rows["o"], frontier), (seed, frontier)


def as_of(program: Program, events: dict[str, list[Event]], instant: int) -> Counter[Row]:
    """The state of the exact answer at an instant, though no row is as late."""
    longer = replace(program, inputs=tuple(replace(i, ends=instant) for i in program.inputs))
    rows, _ = on_reference(longer, events)
    return state(rows["o"], instant)


@pytest.mark.parametrize("name", ["range", "hop", "view", "join", "outer"])
def test_local_tells_what_the_reference_tells(name: str) -> None:
    early = program_of(f"{QUERIES[name]} EMIT EARLY")
    for seed in range(8):
        events = used(early, events_of(seed))
        meant, _ = on_reference(early, events)
        rows, _ = on_local(early, events, cuts=[1, 3, 4, 8])
        assert sorted(meant["o"], key=repr) == sorted(rows["o"], key=repr)


REFUSED = {
    "SELECT k FROM s [Rows 2]": "a window of rows cannot be told with EMIT EARLY",
    "SELECT Istream(k) FROM s": "Istream cannot be told with EMIT EARLY",
    "SELECT k FROM s [Range 4 us Slide 2 us]": "a window that slides cannot",
    "SELECT window_start, COUNT(*) FROM SESSION(s, 3 us) GROUP BY window_start, window_end":
    "SESSION cannot be told with EMIT EARLY",
}  # fmt: skip


@pytest.mark.parametrize("query", REFUSED)
def test_what_cannot_be_told_early_is_refused(query: str) -> None:
    with pytest.raises(CheckError) as fault:
        program_of(f"{query} EMIT EARLY")
    assert REFUSED[query] in str(fault.value)


def test_a_stream_is_waited_for_or_not() -> None:
    with pytest.raises(CheckError, match="and without it by others"):
        program_of("SELECT k FROM s EMIT EARLY; CREATE OUTPUT p AS SELECT k FROM s")
    with pytest.raises(CheckError, match="waits for its slack"):
        program_of("SELECT k FROM s EMIT EARLY; CREATE OUTPUT p AS SELECT k FROM r")


def test_it_stands_behind_an_output() -> None:
    with pytest.raises(CheckError, match="EMIT EARLY is of what leaves"):
        program_of("SELECT k FROM (SELECT k FROM s EMIT EARLY) AS q")
    with pytest.raises(ParseError, match="FINAL, CHANGES or EARLY after EMIT"):
        program_of("SELECT k FROM s EMIT SOON")


def test_rows_that_do_not_say_when_they_happened_are_refused() -> None:
    text = "CREATE STREAM s (k TEXT) TIME at SLACK 2 us; SELECT k FROM s EMIT EARLY;"
    with pytest.raises(CheckError, match="do not say when they happened"):
        millstream.compile(text=text, language="cql")
