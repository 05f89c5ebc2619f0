"""What a kernel gives in pieces is what it would give at once, wherever pieces end."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.functions import Function, Join
from millstream.calculus.types import INTEGER, QueueType, Schema
from millstream.kernels.relational.join import JoinKernel
from millstream.kernels.relational.pieces import Piecewise
from millstream.kernels.rounds import NO_TICKS
from millstream.kernels.runtime.consolidate import summed
from millstream.kernels.runtime.gathered import Gathered
from millstream.kernels.runtime.kernel import Kernel, Round
from millstream.kernels.table import kernel_for
from millstream.languages.brook.load import load
from millstream.plan.batch import batch_of
from millstream.source import Source
from tests.kernels.relational_cases import (
    Change,
    History,
    bags,
    batch,
    cuts,
    marks,
    relations,
    run,
    same,
)
from tests.kernels.test_relational_reference import CASES, END, outputs_of
from tests.laws.runs import on_local, on_reference

PIECEWISE = [
    (function, types)
    for function, types in CASES
    if isinstance(kernel_for(type(function))(function, types, outputs_of(function)), Piecewise)
]


@pytest.fixture(params=[1, 3])
def small_rooms(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Piecewise, "room", lambda *_: request.param)
    monkeypatch.setattr("millstream.kernels.runtime.gathered._MOST", 2)


@pytest.mark.parametrize(("function", "types"), PIECEWISE)
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_pieces_are_the_whole(
    function: Function, types: tuple[QueueType, ...], data: st.DataObject
) -> None:
    histories = [data.draw(relations(t.schema, small=True, size=12)) for t in types]
    ends = marks(data.draw(cuts), END)
    ticks = sorted({time for h in histories for time, _, _ in h})

    def make(room: int) -> Kernel:
        kernel = kernel_for(type(function))(function, types, 1)
        kernel.room = lambda _: room
        made: Kernel = kernel
        return made

    (expected,) = run(make(100_000), types, histories, ends, ticks=ticks)
    (actual,) = run(make(1), types, histories, ends, ticks=ticks)
    instants = range(-5, END)
    if function.output_types(types, 1)[0].is_relation:
        assert Counter(map(told, expected)) == Counter(map(told, actual))
        assert bags(expected, instants) == bags(actual, instants)
    else:
        assert [told(c) for c in expected] == [told(c) for c in actual]


def told(change: Change) -> Change:
    time, row, weight = change
    return time, same(row), weight


@pytest.mark.parametrize(
    ("room", "expected"),
    [(4, [(3, 1), (3, 2), (3, 9)]), (2, [(2, 0), (2, 1), (2, 2), (2, 2), (1, 9)])],
)
def test_a_piece_says_up_to_when_everything_has_been_given(
    room: int, expected: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An instant is in one piece if there is room for it."""
    type_ = QueueType(Schema.of(a=INTEGER), is_relation=True)
    other = QueueType(Schema.of(b=INTEGER), is_relation=True)
    kernel = JoinKernel(Join(), (type_, other), 1)
    monkeypatch.setattr(kernel, "room", lambda _: room)
    left: History = [(t, (t,), 1) for t in (1, 2, 3)]
    right: History = [(0, (n,), 1) for n in range(3)]
    inputs = (batch(type_, left), batch(other, right))
    pieces = list(kernel.pieces(inputs, Round(9, NO_TICKS)))
    assert expected == [(len(p.batch), p.until) for p in pieces]
    assert sorted(t for p in pieces for t in p.batch.time.tolist()) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


PROGRAMS = {
    "a join and what is selected of it": """
        output out; input a(x integer, k integer), b(y integer, k integer);
        (wa, $s1) <- Range[3 us](a, $s1); (wb, $s2) <- Range[unbounded](b, $s2);
        (mb) <- Map[y, l = k](wb);
        (j, $s3, $s4) <- Join[where x != y](wa, mb, $s3, $s4);
        (out) <- Map[k, l](j);
    """,
    "what comes of a join goes two ways and meets again": """
        output out, other; input a(x integer, k integer), b(y integer, k integer);
        (wa, $s1) <- Range[3 us](a, $s1); (wb, $s2) <- Rows[2 by k](b, $s2);
        (j, $s3, $s4) <- Join[on k](wa, wb, $s3, $s4);
        (j1, j2) <- Duplicate(j);
        (other, $s5) <- Istream(j1, $s5);
        (n, $s6) <- Aggregate[by k; n = count(), s = sum(x)](j2, $s6);
        (out, $s7) <- Rstream(n, $s7);
    """,
    "a join of joins": """
        output out; input a(x integer, k integer), b(y integer, k integer);
        (wa, $s1) <- Range[3 us](a, $s1); (wb, $s2) <- Range[2 us](b, $s2);
        (a1, a2) <- Duplicate(wa); (m) <- Map[z = x, k](a2);
        (j, $s3, $s4) <- Join[on k](a1, wb, $s3, $s4);
        (l, $s7, $s8) <- Lookup[found; where x <= z](j, m1, $s7, $s8);
        (m1, m2) <- Duplicate(m);
        (i, $s5, $s6) <- Join[on k](l, m2, $s5, $s6);
        (r, $s9) <- Rstream(i, $s9);
        (w, $s10) <- Range[1 us](r, $s10);
        (out, $s11) <- Aggregate[by k; n = count()](w, $s11);
    """,
    "each row of an instant with each": """
        output out; input a(x integer, k integer), b(y integer, k integer);
        (wa, $s1) <- Now(a, $s1); (wb, $s2) <- Now(b, $s2);
        (mb) <- Map[y](wb);
        (j, $s3, $s4) <- Join(wa, mb, $s3, $s4);
        (d, $s5) <- Distinct(j, $s5);
        (out, $s6) <- Aggregate[n = count(), s = sum(x * y)](d, $s6);
    """,
    "tables of sums": """
        output out; input a(x integer, k integer), b(y integer, k integer);
        (wa, $s1) <- Range[3 us](a, $s1); (wb, $s2) <- Range[2 us; slide 2 us](b, $s2);
        (sa, $s6) <- Aggregate[by x, k; n = count()](wa, $s6);
        (sb, $s7) <- Aggregate[by k; y = sum(y), m = max(y)](wb, $s7);
        (j, $s3, $s4) <- Join[on k](sa, sb, $s3, $s4);
        (d, $s8) <- Distinct(j, $s8); (m) <- Map[l = x, k, o = n](d);
        (t, $s9) <- Aggregate[by l; o = sum(o)](m, $s9);
        (a2, $s10) <- Aggregate[x = max(x)](wb2, $s10);
        (wb2) <- Map[x = l](t);
        (out, $s5) <- Rstream(a2, $s5);
    """,
    "tables": """
        output out; input a(x integer, k integer), b(y integer, k integer);
        (wa, $s1) <- Latest[by x](a, $s1); (wb, $s2) <- Latest[by k](b, $s2);
        (j, $s3, $s4) <- Join[on k](wa, wb, $s3, $s4);
        (out, $s5) <- Dstream(j, $s5);
    """,
}

values = st.tuples(st.sampled_from([0, 1, 2, None]), st.sampled_from([0, 1]))
events = st.lists(st.tuples(st.integers(0, 6), values), max_size=9)


@pytest.mark.usefixtures("small_rooms")
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
@given(a=events, b=events, cut=st.lists(st.integers(0, 9), max_size=2))
@settings(max_examples=25, deadline=None)
def test_programs_whose_steps_give_pieces_mean_the_same(
    text: str, a: History, b: History, cut: list[int]
) -> None:
    from millstream.engine.reference.feed import Event

    program = load(Source("test.brook", text))
    given_ = {
        name: [Event(t, row) for t, row in sorted(rows, key=lambda e: e[0])]  # type: ignore[misc]
        for name, rows in (("a", a), ("b", b))
    }
    assert on_reference(program, given_)[0] == on_local(program, given_, cut)[0]


def test_of_an_instant_that_goes_on_only_sums_are_kept() -> None:
    type_ = QueueType(Schema.of(a=INTEGER), is_relation=True)
    gathered = Gathered()
    for number in range(100):
        rows = [(n % 7,) for n in range(10_000)]
        gathered.add({"q": batch_of(type_, [5] * 10_000, rows, [1 if number % 2 else 2] * 10_000)})
        if gathered.size > gathered.most:
            assert 0 == len(gathered.up_to(4)["q"])
            assert 7 == gathered.size
    whole = gathered.up_to(5)["q"]
    assert whole.weight is not None
    assert 1_500_000 == whole.weight.sum()


def test_changes_that_undo_each_other_are_not_kept() -> None:
    type_ = QueueType(Schema.of(a=INTEGER), is_relation=True)
    history: History = [(1, (1,), 1), (1, (2,), 3), (1, (1,), -1), (1, (2,), -1)]
    found = summed(batch(type_, history))
    assert found.weight is not None
    assert ([(2,)], [2]) == (found.rows(), found.weight.tolist())
