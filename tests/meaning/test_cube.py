"""What a cube means, on the reference and on the local engine."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from millstream.calculus.graph import Program
from millstream.engine.reference.feed import Event
from millstream.languages.brook.load import load
from millstream.source import Source
from tests.laws.runs import Rows, on_local, on_reference

MINUTE = 60_000_000


def program(*lines: str, outputs: int = 1, kept: int = 1) -> Program:
    """A cube over sales of parts to customers."""
    queues = ", ".join(f"q{n}" for n in range(outputs))
    state = ", ".join(f"$v{n}" for n in range(kept))
    body = ", ".join(f'"{line}"' for line in ("Dimensions = part | customer", *lines))
    return load(
        Source(
            "test.brook",
            f"output {queues}; input sales(part text, customer text, amount integer);"
            f"({queues}, {state}) <- Cubify[{body}](sales, {state});",
        )
    )


def both(made: Program, rows: list[tuple[int, Any]]) -> dict[str, Rows]:
    """What comes out on the reference, and the same in any cut on the local engine."""
    events = {"sales": [Event(time, row) for time, row in rows]}
    expected, _ = on_reference(made, events)
    for cuts in ((), tuple(range(len(rows))), (2, 3)):
        actual, _ = on_local(made, events, cuts)
        assert expected == actual
    return expected


#: The c-window of figure 3, with two sales that come while T9 is active.
FIGURE_3 = [
    (1 * MINUTE + 5, ("P3", "C1", 30)), (1 * MINUTE + 9, ("P2", "C2", 40)),
    (9 * MINUTE, ("P3", "C9", 11)), (9 * MINUTE + 1, ("P1", "C7", 35)),
]  # fmt: skip
END = (11 * MINUTE - 1, ("P0", "C0", 1))


def test_figure_3_the_completed_partition_comes_and_the_expired_one_goes() -> None:
    made = program("TimeGrain = Minute", "CWindow = 8", "Measures = total: sum(amount)",
                   "OutputVertices = part, customer")  # fmt: skip
    out = both(made, [*FIGURE_3, END])["q0"]
    assert [
        (2 * MINUTE, 1, ("P2", "C2", MINUTE, 40)),
        (2 * MINUTE, 1, ("P3", "C1", MINUTE, 30)),
        (10 * MINUTE, -1, ("P2", "C2", MINUTE, 40)),
        (10 * MINUTE, -1, ("P3", "C1", MINUTE, 30)),
        (10 * MINUTE, 1, ("P1", "C7", 9 * MINUTE, 35)),
        (10 * MINUTE, 1, ("P3", "C9", 9 * MINUTE, 11)),
    ] == out


def test_the_active_partition_grows_as_in_example_1_and_a_live_cube_tells() -> None:
    made = program("TimeGrain = Minute", "CWindow = 8", "Measures = total: sum(amount)",
                   "OutputVertices = part, customer", "Output = live")  # fmt: skip
    more = [(9 * MINUTE + 51, ("P3", "C9", 21)), (9 * MINUTE + 52, ("P8", "C9", 18))]
    out = both(made, [*FIGURE_3, *more, END])["q0"]
    assert [(9 * MINUTE + 51, -1, ("P3", "C9", 9 * MINUTE, 11)),
            (9 * MINUTE + 51, 1, ("P3", "C9", 9 * MINUTE, 32)),
            (9 * MINUTE + 52, 1, ("P8", "C9", 9 * MINUTE, 18)),
            (10 * MINUTE, -1, ("P2", "C2", MINUTE, 40)),
            (10 * MINUTE, -1, ("P3", "C1", MINUTE, 30))] == out[4:-1]  # fmt: skip


def present(rows: Rows, instant: int) -> dict[Any, int]:
    """A relation at an instant, from its changes."""
    counts: dict[Any, int] = defaultdict(int)
    for time, weight, row in rows:
        if time <= instant:
            counts[row] += weight
    return {row: count for row, count in counts.items() if count}


def test_a_coarse_cell_loses_its_oldest_minutes_one_by_one() -> None:
    made = program("TimeGrain = Minute", "CWindow = 60", "OutputVertices = part, Hour",
                   "Measures = sum(amount), min(amount), max(amount), avg(amount), count()",
                   )  # fmt: skip
    sales = [(n * MINUTE, ("P", "C", n)) for n in (0, 1, 2, 59, 61)]
    out = both(made, [*sales, (62 * MINUTE + 1, ("Q", "C", 5))])["q0"]
    hour = 60 * MINUTE
    assert {("P", 0, 62, 0, 59, 15.5, 4): 1} == present(out, 60 * MINUTE)
    assert {("P", 0, 62, 1, 59, 62 / 3, 3): 1} == present(out, 61 * MINUTE)
    assert {("P", 0, 61, 2, 59, 30.5, 2): 1, ("P", hour, 61, 61, 61, 61.0, 1): 1} == present(
        out, 62 * MINUTE
    )


def test_vertices_of_one_cube_have_a_queue_each() -> None:
    made = program("TimeGrain = Minute", "CWindow = 8", "Measures = count()",
                   "OutputVertices = customer | all", outputs=2)  # fmt: skip
    rows = both(made, [*FIGURE_3, END])
    assert {("C1", MINUTE, 1): 1, ("C2", MINUTE, 1): 1} == present(rows["q0"], 5 * MINUTE)
    assert {(MINUTE, 2): 1} == present(rows["q1"], 5 * MINUTE)


def test_a_null_member_is_a_member_and_null_values_are_passed_over() -> None:
    made = program("TimeGrain = Minute", "CWindow = 8", "OutputVertices = part",
                   "Measures = sum(amount), count(), n: count(amount)")  # fmt: skip
    out = both(made, [(1, (None, "C", None)), (2, (None, "C", 3)), END])["q0"]
    assert {(None, 0, 3, 2, 1): 1} == present(out, MINUTE)


@pytest.mark.parametrize(
    "kept", ["part | customer", "all | part, 2 Minutes", "customer, 4 Minutes"]
)
@pytest.mark.parametrize("live", ["live", "steps"])
def test_what_is_kept_never_changes_an_answer(kept: str, live: str) -> None:
    lines = ("TimeGrain = Minute", "CWindow = 4", f"Output = {live}",
             "Measures = sum(amount), max(amount)",
             "OutputVertices = part, 2 Minutes | customer, 4 Minutes | all")  # fmt: skip
    sales = [(n * 17_000_000, (f"P{n % 3}", f"C{n % 2}", n * 7 % 5)) for n in range(40)]
    plain = both(program(*lines, outputs=3), sales)
    count = 2 + kept.count("|")
    assert plain == both(program(*lines, f"MVertices = {kept}", outputs=3, kept=count), sales)


def test_an_overflow_is_null_and_counted_alike() -> None:
    made = program("TimeGrain = Minute", "CWindow = 8", "Measures = s: sum(amount)",
                   "OutputVertices = part")  # fmt: skip
    events = {"sales": [Event(1, ("P", "C", 2**62)), Event(2, ("P", "C", 2**62)),
                        Event(END[0], END[1])]}  # fmt: skip
    for run in (on_reference, on_local):
        rows, report = run(made, events)
        assert ("P", 0, None) == rows["q0"][0][2]
        assert {"integer overflow in s": 1} == dict(report.faults)


def test_the_least_of_all_integers_is_less_than_any_other() -> None:
    made = program("TimeGrain = Minute", "CWindow = 8", "OutputVertices = part",
                   "Measures = high: max(amount), low: min(amount)")  # fmt: skip
    out = both(made, [(1, ("P", "C", 0)), (2, ("P", "C", -(2**63))), END])["q0"]
    assert {("P", 0, 0, -(2**63)): 1} == present(out, MINUTE)
