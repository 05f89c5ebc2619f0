"""Bounds by open ticks: so much a tick, as much as some history reaches, and no row touched."""

from __future__ import annotations

from typing import Any

import pytest

import millstream
from millstream.broker.asking import asked
from millstream.broker.core import Broker, Silence
from millstream.broker.cursor import Subscriber
from tests.broker.world import CrashingDisk, SetClock, batch, opened, served
from tests.languages.smile.histories import Rows, counted
from tests.languages.smile.test_histories import CASES

TEXT = """
    CREATE TYPE few AS INTEGER BETWEEN {low} AND 5;
    CREATE STREAM B (b: time -> k: integer, bid: few) {ends};
    CREATE STREAM M (t: time -> b: time, sold: few) {ends};
    CREATE VIEW Sold (SELECT b, SUM(sold) AS total, COUNT(*) AS n FROM M GROUP BY b);
"""
REST = """CREATE VIEW Rest (SELECT b, bid - total AS rest, (bid - 2) * n AS worth
          FROM B JOIN Sold USING (b)); subscriptions Rest WITH RANGES;"""
ENDS = "UNTIL '1970-01-01T00:00:00.000100Z' SLACK 1 SECOND"
ROWS = {"B": [{"b": 10, "k": 1, "bid": 4}], "M": [{"t": 20, "b": 10, "sold": 3}]}


def last_of(text: str, view: str) -> dict[str, Any]:
    """The row of a view before time has passed the end of its streams."""
    changes = millstream.compile(text=text, language="smile").run(ROWS, engine="reference")
    rows: list[dict[str, Any]] = changes.rows(view)
    return [row for row in rows if row["_weight"] > 0 and not row["_final"]][-1]


def test_each_open_tick_may_add_what_the_type_allows() -> None:
    row = last_of(TEXT.format(low=-2, ends=ENDS) + REST, "Rest")
    told = {name: row[name] for name in row if "_per_" in name}
    assert told == {
        "rest_low_per_M": -5, "rest_high_per_M": 2, "worth_low_per_M": 0, "worth_high_per_M": 2,
    }  # fmt: skip
    assert (row["rest"], row["rest_high"]) == (1, None)


@pytest.mark.parametrize("ends", ["", "SLACK 1 SECOND"])
def test_ticks_without_an_end_are_not_counted(ends: str) -> None:
    assert not [n for n in last_of(TEXT.format(low=0, ends=ends) + REST, "Rest") if "_per_" in n]


def test_merged_streams_and_windows_count_all_rows_of_a_tick() -> None:
    row = last_of(
        TEXT.format(low=0, ends=ENDS) + """
        CREATE VIEW P (SELECT b, bid FROM B);
        CREATE VIEW Q (SELECT t, sold AS bid FROM M);
        CREATE VIEW W (SELECT WINDOW(t, 1 HOUR, 20 MINUTES) AS w, SUM(sold) AS s FROM M GROUP BY w);
        CREATE VIEW A (SELECT SUM(bid) AS s, COUNT(*) AS n FROM MERGE(P, Q));
        subscriptions A WITH RANGES, W WITH RANGES;""", "A",
    )  # fmt: skip
    told = {name: row[name] for name in row if "_per_" in name}
    assert told == {
        "s_high_per_B": 5, "s_high_per_M": 5, "n_high_per_B": 1, "n_high_per_M": 1,
    }  # fmt: skip


@pytest.mark.parametrize("rows", [{}, {1: (1, 2)}, {1: (1, 1), 2: (1, 2)}])
def test_some_history_reaches_the_bound(rows: dict[int, tuple[int, int]]) -> None:
    case = CASES["sums"]
    given: Rows = {"B": {}, "M": rows}
    for instant, shown in case.states(given, "reference").items():
        if instant in rows or not shown:
            continue  # its tick is counted until its silence is known
        row = counted(shown[0], dict.fromkeys(case.domains, case.until + 1 - instant))
        answers = [case.answer(one).get((1,)) for one in case.histories(given, instant)]
        totals = [one["total"] for one in answers if one is not None]
        assert row["total_high"] == max(totals) and row["total_low"] == min(totals)


def floor() -> Broker:
    text = TEXT.format(low=0, ends=ENDS) + REST
    return opened(served(text), CrashingDisk(), SetClock())


def shown(broker: Broker) -> dict[str, Any]:
    wanted = asked(broker.views["Rest"].view, has_ranges=True)
    ticks = wanted.open_ticks(broker.open_ticks)
    (row,) = wanted.records(wanted.bounded(wanted.shown(broker.views["Rest"].rows), ticks))
    return row


def test_a_broker_shows_bounds_of_the_ticks_that_are_open_now() -> None:
    broker = floor()
    broker.commit([batch("B", [(10, 1, 4)]), batch("M", [(30, 10, 3), (90, 10, 1)])])
    broker.commit([Silence("M", 19)])
    broker.evaluate()
    assert broker.open_ticks["M"] == 100 - 19 - 2
    assert shown(broker)["rest_low"] == 0 - 5 * 79 and shown(broker)["rest_high"] == 0
    broker.commit([Silence("M", 89)])
    broker.evaluate()
    assert broker.open_ticks["M"] == 10 and shown(broker)["rest_low"] == -50
    broker.commit([Silence("M", 100)])
    broker.evaluate()
    assert shown(broker)["rest_low"] == shown(broker)["rest_high"] == 0


def test_silence_travels_once_and_touches_no_row() -> None:
    broker = floor()
    broker.commit([batch("B", [(10, 1, 4)])])
    broker.evaluate()
    subscriber = Subscriber(broker, asked(broker.views["Rest"].view, has_ranges=True))
    state, live = subscriber.next()
    assert state.data["rows"][0]["rest_low_per_M"] == -5 and live.data["open"]["M"] > 100
    subscriber.next()
    broker.commit([Silence("M", 60)])
    broker.evaluate()
    (message,) = subscriber.next()
    assert message.kind == "progress" and message.data["open"] == {"M": 40}
