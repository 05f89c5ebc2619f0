"""Folds that begin anew at every instant: which they are, and what goes wrong with others."""

from __future__ import annotations

import pytest

from millstream import api
from millstream.calculus.graph import Program
from millstream.engine.local import threads as on_threads
from millstream.engine.reference.feed import Event
from millstream.languages.brook.load import load
from millstream.plan import placing
from millstream.plan.instants import folds_by_instants
from millstream.source import Source
from tests.laws.runs import Rows, on_local

NEVER = "time(-9223372036854775808)"


def program_of(
    last: str = "if(x > $v.last, x, $v.last)",
    number: str = "if(x > $v.last, 1, $v.n + 1)",
    first: str = NEVER,
) -> Program:
    """Rows that are numbered within their instant, if nothing else is said."""
    text = f"""
        output out; input in(x time) time x;
        variable $v(last time = {first}, n integer = 0);
        (out, $v) <- Fold[set $v.last = {last}, $v.n = {number}; emit x, n = $v.n](in, $v);
    """
    return load(Source("fold.brook", text))


def on_threads_of(program: Program, threads: int) -> Rows:
    times = [n // 2 for n in range(60)]
    rows, _ = on_local(program, {"in": [Event(t, (t,), 1) for t in times]}, threads=threads)
    return rows["out"]


@pytest.fixture
def always_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_threads, "_is_worth_it", lambda *_: True)


def test_rows_of_an_instant_are_numbered_wherever_they_are(always_shared: None) -> None:
    program = program_of()
    assert {"in"} == {op.inputs[0] for op in program.operators if op.id in _folds(program)}
    assert [(n // 2, 1, (n // 2, n % 2 + 1)) for n in range(60)] == on_threads_of(program, 1)
    assert on_threads_of(program, 1) == on_threads_of(program, 3)


def _folds(program: Program) -> dict[str, str]:
    return folds_by_instants(program)


UNSOUND = {
    "last is moved by more than the time": {"last": "if(x > $v.last, x, $v.last + 1 us)"},
    "last begins after some times": {"first": "time(1000)"},
    "something is kept from before": {"number": "$v.n + 1"},
}


@pytest.mark.parametrize("why", UNSOUND)
def test_others_stay_in_one_place_and_would_give_other_rows(
    why: str, always_shared: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_of(**UNSOUND[why])
    assert {} == _folds(program)
    expected = on_threads_of(program, 1)
    assert expected == on_threads_of(program, 3)
    forced = {op.id: "x" for op in program.operators}
    monkeypatch.setattr(placing, "folds_by_instants", lambda _: forced)
    assert expected != on_threads_of(program, 3)


def test_a_variable_that_others_use_ties_their_rows_together() -> None:
    shared = """
        output out, other; input in(x time) time x, more(y time) time y;
        variable $v(last time = time(-9223372036854775808));
        (out, $v) <- Fold[set $v.last = if(x > $v.last, x, $v.last); emit x](in, $v);
        (other) <- Fold[emit y, last = $v.last](more, $v);
    """
    assert {} == _folds(load(Source("shared.brook", shared)))


def test_the_time_is_known_behind_a_selection() -> None:
    text = """
        output out; input in(x time, a number) time x;
        variable $v(last time = time(-9223372036854775808), n integer = 0);
        (some) <- Filter[a > 1](in); (named) <- Map[at = x](some);
        (out, $v) <- Fold[set $v.last = if(at > $v.last, at, $v.last),
                              $v.n = if(at > $v.last, 1, $v.n + 1); emit at, n = $v.n](named, $v);
    """
    assert ["at"] == list(_folds(load(Source("behind.brook", text))).values())


def test_a_stream_of_smile_is_shared_by_its_ticks() -> None:
    shown = api.compile(
        text="CREATE STREAM Bids (t: time -> issue: string, bid: shares);"
        "CREATE VIEW Best (SELECT issue, MAX(bid) AS best FROM Bids GROUP BY issue);"
        "subscriptions Best;",
        language="smile",
    ).explain("plan", "text", "spark")
    assert "exchange: Bids, by t" in shown
    assert "by issue" in shown
