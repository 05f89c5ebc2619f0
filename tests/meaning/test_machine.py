"""Cases that once went wrong on the machine."""

from __future__ import annotations

from millstream.languages.brook.load import load

from millstream.engine.reference.feed import Event
from millstream.source import Source
from tests.laws.runs import on_local, on_reference


def test_a_fold_that_sends_nothing_is_not_mistaken_for_the_one_that_feeds_it() -> None:
    program = load(
        Source(
            "test.brook",
            """
            output out;
            input in(a integer, b integer);
            variable $u(n integer = 0), $v(n integer = 0);
            (x, out) <- Duplicate(in);
            (y) <- Fold[emit b](x, $u);
            () <- Fold[when $v.n > b](y, $v);
            """,
        )
    )
    rows, _ = on_reference(program, {"in": [Event(1, (1, 2))]})
    assert {"out": [(1, 1, (1, 2))]} == rows


def test_feedback_adds_what_comes_round_the_loop() -> None:
    """Each sample waits for the sum of those before it, which comes back through the loop."""
    program = load(
        Source(
            "test.brook",
            """
            output out;
            input in(x integer);
            variable $sum(x integer = 0);
            (a, $in, $loop, $turn) <- RoundRobinJoin[2, 1](in, back, $in, $loop, $turn);
            (sums, $sum) <- Fold[set $sum.x = $sum.x + x; emit x = $sum.x](a, $sum);
            (out, looped) <- Duplicate(sums);
            (taken, rest, $c) <- RoundRobinSplit[1, 2](looped, $c);
            (back) <- Map[x = x * 10](taken);
            () <- Fold[when x > 0](rest);
            """,
        )
    )
    rows, _ = on_reference(program, {"in": [Event(n, (n,)) for n in range(1, 5)]})
    # 1, then 2 (sum 3), then the first sum times ten (13), then 3 (16), 4 (20), 13 * 10 ...
    assert [1, 3, 13, 16, 20, 180] == [row[0] for _, _, row in rows["out"]][:6]


def test_a_deletion_of_what_is_not_there_is_rejected_on_every_engine() -> None:
    program = load(
        Source(
            "test.brook",
            "output out; input r relation(k text, x number);"
            "(out, $a) <- Aggregate[by k; n = count(), s = sum(x), m = max(x)](r, $a);",
        )
    )
    events = {
        "r": [Event(1, ("a", 2.0), -1), Event(1, ("a", 3.0), 1), Event(2, ("a", 3.0), -1),
              Event(2, ("a", 3.0), 1), Event(3, ("a", 2.0), 1)]
    }  # fmt: skip
    for run in (on_reference, on_local):
        rows, report = run(program, events)
        assert [(1, 1, ("a", 1, 3.0, 3.0)), (3, -1, ("a", 1, 3.0, 3.0)),
                (3, 1, ("a", 2, 5.0, 3.0))] == rows["out"]  # fmt: skip
        counts = report.inputs["r"]
        assert (5, 4, 1) == (counts.read, counts.processed, counts.rejected)


def test_faults_are_counted_alike_on_every_engine() -> None:
    program = load(
        Source(
            "test.brook",
            "output out; input r(k text, x integer);"
            "(w, $w) <- Range[1 us](r, $w);"
            "(out, $a) <- Aggregate[by k; s = sum(x), t = max(x + 1)](w, $a);",
        )
    )
    large = 2**63 - 1
    events = {"r": [Event(n, ("a", x)) for n, x in enumerate([large, large, 1, 1])]}
    expected = on_reference(program, events)[1].faults
    assert {"integer overflow in s": 2, "integer overflow in x + 1": 4} == expected
    assert expected == on_local(program, events)[1].faults


def test_a_row_without_meaning_still_tells_the_time() -> None:
    program = load(
        Source(
            "test.brook",
            "output out, r2; input a(x integer), r relation(x integer);"
            "(out, $n) <- Now(a, $n); (r2) <- Map[x](r);",
        )
    )
    events = {"a": [Event(0, (1,))], "r": [Event(5, (1,), -1)]}
    expected, _ = on_reference(program, events)
    assert {"out": [(0, 1, (1,)), (1, -1, (1,))], "r2": []} == expected
    assert expected == on_local(program, events)[0]
