"""Rows that need not move stay, and others come to them: fewer stages, equal answers."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream
from millstream.engine.layout import Choice, Layout, layout_as, layout_for
from millstream.engine.local import batches as local
from tests.engine.test_partitions import in_tasks

#: The windows of rows come to the groups of groups, which stay where they have come.
DRAWN = """
output out; input s(k text, x integer);
(a, b) <- Duplicate(s);
(wa, $wa) <- Range[7 s](a, $wa);
(sums, $s) <- Aggregate[by k; all = sum(x)](wa, $s);
(again, $g) <- Aggregate[by all; many = count()](sums, $g);
(moved) <- Map[x, l = k](b);
(wb, $wb) <- Range[3 s](moved, $wb);
(out, $i, $j) <- Join[on x = all](wb, again, $i, $j);
"""
#: Of equal rows in several buckets each one is told.
RSTREAM = """
output out; input s(k text, x integer);
(w, $w) <- Range[7 s](s, $w);
(sums, $a) <- Aggregate[by k; all = sum(x)](w, $a);
(few) <- Map[all = all % 3](sums);
(out, $o) <- Rstream(few, $o);
"""
#: What goes and comes at one instant has one `k`, which is known when the groups have asked for it.
ASKED_LATER = """
output told, out; input s(k text, x integer);
(a, b) <- Duplicate(s);
(now, $n) <- Range[0 s](a, $n);
(doubled) <- Map[k, y = 2 * x](now);
(told, $t) <- Istream(doubled, $t);
(w, $w) <- Range[7 s](b, $w);
(out, $a) <- Aggregate[by k; all = sum(x)](w, $a);
"""
#: Nothing is known of where a row of two relations has come from: equal ones are told in one place.
MERGED = """
output out; input s(k text, x integer);
(w, $w) <- Range[7 s](s, $w);
(sums, $a) <- Aggregate[by k; all = sum(x)](w, $a);
(one, other) <- Duplicate(sums);
(again, $c) <- Aggregate[by all; many = count()](other, $c);
(told) <- Map[k = text(many), all](again);
(both, $m, $n) <- Merge(one, told, $m, $n);
(few) <- Map[all = all % 3](both);
(out, $o) <- Rstream(few, $o);
"""
PROGRAMS = {"drawn": DRAWN, "rstream": RSTREAM, "asked later": ASKED_LATER, "merged": MERGED}
FIRST_RULES = Choice.read({"together": False, "copied": []})


def compiled_of(text: str, folder: Path) -> millstream.Compiled:
    (folder / "test.brook").write_text(text)
    # Now and then a row comes again when the one before it has just gone.
    times = [n // 2 * 900_000 + n % 2 for n in range(120)]
    lines = [f"{at},k{n // 2 * 13 % 11},{n // 2 * 37 % 9 - 4}" for n, at in enumerate(times)]
    (folder / "s.csv").write_text("\n".join(["_time,k,x", *lines, ""]))
    return millstream.compile(folder / "test.brook")


def laid_out(text: str, choice: Choice | None = None) -> Layout:
    program = millstream.compile(text=text).program
    return layout_for(program, {"s": 1e9}) if choice is None else layout_as(program, choice)


@pytest.mark.parametrize(
    ("text", "before", "now"),
    [(DRAWN, 3, 2), (RSTREAM, 2, 1), (ASKED_LATER, 2, 1), (MERGED, 4, 3)],
    ids=list(PROGRAMS),
)
def test_a_stage_is_made_only_where_rows_must_change_their_place(
    text: str, before: int, now: int
) -> None:
    assert before == len(laid_out(text, FIRST_RULES).stages)
    assert now == len(laid_out(text).stages)


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=list(PROGRAMS))
def test_a_checkpoint_goes_on_by_the_rules_that_it_was_begun_by(text: str) -> None:
    chosen = laid_out(text)
    assert chosen == laid_out(text, Choice.read(chosen.choice.written()))
    assert Choice.read(FIRST_RULES.written()) == FIRST_RULES != chosen.choice


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=list(PROGRAMS))
def test_the_answers_are_those_of_one_place(
    text: str, partitions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compiled_of(text, tmp_path)
    whole = compiled.run(engine="reference").rows("out")
    assert whole
    monkeypatch.setattr(local, "run_batches", in_tasks(partitions))
    spread = compiled.run(engine="local", checkpoint=tmp_path / "state", batch_bytes=300)
    assert whole == spread.rows("out")


def test_rows_do_not_come_to_a_stage_that_others_wait_for() -> None:
    """The groups of groups would wait for what is made of them."""
    text = DRAWN.replace("output out;", "output last;") + (
        "(third, $u) <- Aggregate[by many; n = count()](out, $u);"
        "(last, $p, $q) <- Join[on n = all](third, sums, $p, $q);"
    )
    text = text.replace("(again, $g) <- Aggregate[by all; many = count()](sums, $g)",
                        "(sums, one) <- Duplicate(summed);"
                        "(again, $g) <- Aggregate[by all; many = count()](one, $g)")  # fmt: skip
    text = text.replace("(sums, $s) <- Aggregate", "(summed, $s) <- Aggregate")
    stages = laid_out(text).stages
    made: set[str] = {"s"}
    for stage in stages:
        assert made.issuperset(stage.inputs)
        made |= {q for step in stage.steps for q in step.outputs}
