"""Views of a broker against all histories of what is known, in whatever order rows arrive."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

from millstream.broker.asking import asked
from millstream.broker.compiled import Compiled
from millstream.broker.core import Broker, Silence
from millstream.broker.evaluate import Interpreted
from millstream.broker.evaluations import Maker
from tests.broker.world import CrashingDisk, SetClock, batch, opened, served
from tests.languages.smile.histories import Case, Row, Rows
from tests.languages.smile.test_histories import CASES, drawn
from tests.seeds import in_turn


def shown(broker: Broker, case: Case) -> dict[Row, dict[str, Any]]:
    view = broker.views[case.view]
    wanted = asked(view.view, has_ranges=True)
    open_ticks = wanted.open_ticks(broker.open_ticks)
    rows = wanted.records(wanted.bounded(wanted.shown(view.rows), open_ticks))
    by_key = {tuple(row[k] for k in case.key): row for row in rows}
    assert len(by_key) == len(rows), "a key has one row"
    return by_key


def histories(case: Case, known: Rows, silent: dict[str, int]) -> Iterator[Rows]:
    """All ways to fill the ticks that are not known."""
    slots = [
        (stream, t)
        for stream in case.domains
        for t in range(silent[stream] + 1, case.until + 1)
        if t not in known[stream]
    ]
    for chosen in itertools.product(*((None, *case.domains[stream]) for stream, _ in slots)):
        made = {stream: dict(ticks) for stream, ticks in known.items()}
        for (stream, tick), row in zip(slots, chosen, strict=True):
            if row is not None:
                made[stream][tick] = row
        yield made


def check(case: Case, seed: int, make: Maker) -> None:
    """Rows arrive in any order, and silence is declared in between."""
    chance = random.Random(seed)
    rows = drawn(case, seed)
    text = case.text.replace(f"UNTIL {case.until}", f"UNTIL {case.until} SLACK 1 SECOND")
    broker = opened(served(text), CrashingDisk(), SetClock(), make=make)
    coming = [(stream, t) for stream, ticks in rows.items() for t in ticks]
    chance.shuffle(coming)
    known: dict[str, dict[int, Row]] = {stream: {} for stream in case.domains}
    silent = dict.fromkeys(case.domains, 0)
    before: dict[Row, dict[str, Any]] = {}
    while coming or any(t < case.until for t in silent.values()):
        stream = chance.choice(list(case.domains))
        after = [t for name, t in coming if name == stream]
        if coming and chance.random() < 0.6:
            stream, tick = coming.pop()
            known[stream][tick] = rows[stream][tick]
            (answer,) = broker.commit([batch(stream, [(tick, *rows[stream][tick])])])
            assert "accepted" in str(answer)
        else:
            most = min(after, default=case.until + 1) - 1
            silent[stream] = max(silent[stream], min(most, silent[stream] + 1))
            broker.commit([Silence(stream, silent[stream])])
        broker.evaluate()
        now = shown(broker, case)
        expected = case.answer(known)
        values = {k: {n: row[n] for n in expected.get(k, {})} for k, row in now.items()}
        if broker.served.views[case.view].is_live:
            assert values == expected, known
        case._check_order(before, now)
        before = {**before, **now}
        for history in histories(case, known, silent):
            case._check_claims(now, case.answer(history), history)
    assert values == expected
    assert all(row["_final"] for row in now.values())


@pytest.mark.parametrize("seed", in_turn(range(2)))
@pytest.mark.parametrize("name", CASES)
def test_no_history_contradicts_a_view_as_rows_arrive(name: str, seed: int) -> None:
    check(CASES[name], seed, Interpreted)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(2, 60))
@pytest.mark.parametrize("name", CASES)
def test_no_history_contradicts_a_view_at_length(name: str, seed: int) -> None:
    check(CASES[name], seed, Compiled)


def test_all_these_views_are_live() -> None:
    """Only silence and what has no rule waits for the horizon."""
    for case in CASES.values():
        assert served(case.text).views[case.view].is_live, case.view


def test_the_first_rows_are_sure_below_the_horizon() -> None:
    text = """CREATE STREAM S (t: time -> x: integer) SLACK 1 SECOND;
        CREATE VIEW F (SELECT t, x FROM S ORDER BY t LIMIT 2); subscriptions F;"""
    broker = opened(served(text), CrashingDisk(), SetClock())
    wanted = asked(broker.views["F"].view)
    finals: list[list[tuple[int, bool]]] = []
    for request in (batch("S", [(5, 1), (9, 1)]), Silence("S", 6), batch("S", [(8, 1)])):
        broker.commit([request])
        broker.evaluate()
        rows = wanted.records(wanted.shown(broker.views["F"].rows))
        finals.append(sorted((row["t"], row["_final"]) for row in rows))
    assert finals == [
        [(5, False), (9, False)], [(5, True), (9, False)], [(5, True), (8, False)],
    ]  # fmt: skip
