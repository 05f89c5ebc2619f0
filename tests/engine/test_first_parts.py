"""The first rows and the extremes of all are made of those of each bucket, and only these move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import millstream
from millstream.calculus.functions import Aggregate, Top
from millstream.calculus.graph import Program
from millstream.engine.layout import Choice, Layout, layout_as, layout_for
from millstream.engine.local import batches as local
from millstream.plan import first_parts
from millstream.plan.first_parts import firsts_in_parts, partial_firsts
from tests.engine.test_partitions import in_tasks

GROUPS = """
output out; input s(k text, x integer);
(w, $w) <- Range[7 s](s, $w);
(sums, $a) <- Aggregate[by k; all = sum(x), n = count()](w, $a);
(out, $b) <- Top[3 by all; descending all](sums, $b);
"""
WINDOW = """
output out; input s(k text, x integer);
(w, $w) <- Range[7 s](s, $w);
(out, $b) <- Top[4 by x](w, $b);
"""
RELATION = """
output out; input s relation(k text, x integer);
(out, $b) <- Top[4 by x](s, $b);
"""
EXTREMES = """
output out; input s(k text, x integer);
(w, $w) <- Range[3 s](s, $w);
(some) <- Filter[x % 7 != 0 or k == "k3"](w);
(out, $b) <- Aggregate[low = min(100 / x), high = max(x), last = max(k)](some, $b);
"""
EXTREMES_OF_GROUPS = """
output out; input s(k text, x integer);
(w, $w) <- Range[7 s](s, $w);
(sums, $a) <- Aggregate[by k; all = sum(x)](w, $a);
(out, $b) <- Aggregate[high = max(all), low = min(all)](sums, $b);
"""
EXTREMES_OF_A_RELATION = """
output out; input s relation(k text, x integer);
(out, $b) <- Aggregate[high = max(x), last = max(k)](s, $b);
"""
PROGRAMS = {
    "groups": GROUPS, "window": WINDOW, "relation": RELATION, "extremes": EXTREMES,
    "extremes of groups": EXTREMES_OF_GROUPS, "extremes of a relation": EXTREMES_OF_A_RELATION,
}  # fmt: skip
#: What goes is met where it came: a row that is merged from elsewhere may come anywhere.
ELSEWHERE = """
output out; input s(k text, x integer);
(w, $w) <- Range[7 s](s, $w);
(sums, $a) <- Aggregate[by k; all = sum(x)](w, $a);
(one, other) <- Duplicate(sums);
(again, $c) <- Aggregate[by all; many = count()](other, $c);
(told) <- Map[k = text(many), all](again);
(both, $m, $n) <- Merge(one, told, $m, $n);
(out, $b) <- Top[3 by all](both, $b);
"""


def compiled_of(text: str, folder: Path) -> millstream.Compiled:
    (folder / "top.brook").write_text(text)
    rows = [(n * 700_000, f"k{n * 13 % 11},{n * 37 % 23 - 9}") for n in range(160)]
    if "relation" in text:
        # Of two rows each, one goes soon after.
        changes = [(at, f"{row},1") for at, row in rows]
        changes += [(at + 2_000_000, f"{row},-1") for at, row in rows[::2]]
        lines = ["_time,k,x,_weight", *(f"{at},{row}" for at, row in sorted(changes))]
    else:
        lines = ["_time,k,x", *(f"{at},{row}" for at, row in rows)]
    (folder / "s.csv").write_text("".join(f"{line}\n" for line in lines))
    return millstream.compile(folder / "top.brook")


def tops_of(layout: Layout) -> list[bool]:
    """For each stage that chooses first rows or extremes, whether it does so in one place."""
    return [
        layout.has_one_bucket(number)
        for number, stage in enumerate(layout.stages)
        for step in stage.steps
        if isinstance(function := step.operators[-1].function, Top)
        or (isinstance(function, Aggregate) and not function.by)
    ]


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=list(PROGRAMS))
def test_rows_stay_where_they_are_and_the_first_of_them_move(text: str) -> None:
    layout = layout_for(millstream.compile(text=text).program, {"s": 1e9})
    assert tops_of(layout) == [False, True]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("text", [*PROGRAMS.values(), ELSEWHERE], ids=[*PROGRAMS, "elsewhere"])
def test_the_first_of_the_first_are_the_first_of_all(
    text: str, partitions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compiled_of(text, tmp_path)
    whole = compiled.run(engine="reference").rows("out")
    assert whole
    monkeypatch.setattr(local, "run_batches", in_tasks(partitions))
    assert whole == spread(compiled, tmp_path / "state")


def spread(compiled: millstream.Compiled, place: Path) -> Sequence[Mapping[str, object]]:
    return compiled.run(engine="local", checkpoint=place, batch_bytes=300).rows("out")


def test_what_is_in_one_place_is_not_cut() -> None:
    text = WINDOW.replace("Top[4 by x](w", "Aggregate[x = sum(x)](w") + (
        "(first, $c) <- Top[1 by x](out, $c);"
    )
    program = millstream.compile(text=text.replace("output out", "output first")).program
    assert firsts_in_parts(program) is program


def test_what_is_in_parts_is_not_cut_again() -> None:
    parted = firsts_in_parts(millstream.compile(text=GROUPS).program)
    assert len(partial_firsts(parted)) == 1
    assert firsts_in_parts(parted) is parted


def test_a_checkpoint_that_was_begun_whole_stays_whole() -> None:
    program = millstream.compile(text=GROUPS).program
    assert tops_of(layout_as(program, Choice.read({"together": False, "copied": []}))) == [True]
    chosen = layout_for(program, {"s": 1e9}).choice
    assert Choice.read(chosen.written()) == chosen
    assert tops_of(layout_as(program, chosen)) == [False, True]


def test_a_checkpoint_of_which_only_first_rows_were_cut_stays_so() -> None:
    program = millstream.compile(text=EXTREMES).program
    before = Choice.read({"together": False, "copied": [], "tops": True})
    assert tops_of(layout_as(program, before)) == [True]
    assert tops_of(layout_as(program, layout_for(program, {"s": 1e9}).choice)) == [False, True]


@pytest.mark.parametrize("of", ["sum(x)", "count()", "avg(x)"])
def test_what_each_row_changes_is_not_told_by_parts(of: str) -> None:
    """Each row of a part would tell two changes where it could have gone itself."""
    program = millstream.compile(text=EXTREMES.replace("max(x)", of)).program
    assert firsts_in_parts(program) is program


def test_rows_that_come_anywhere_are_looked_at_in_one_place() -> None:
    """What goes would not be where it came, so no part would be a bag."""
    layout = layout_for(millstream.compile(text=ELSEWHERE).program, {"s": 1e9})
    assert set(tops_of(layout)) == {True}


OTHERS = {
    "fewer rows": ("Top[2 by x]", "Top[3 by x]"),
    "another order": ("Top[3 by x]", "Top[3 by x; descending x]"),
    "other columns": ("Top[3 by x]", "Top[3 by k]"),
}


@pytest.mark.parametrize(("first", "second"), OTHERS.values(), ids=list(OTHERS))
def test_first_rows_of_other_first_rows_are_those_of_all_of_these(
    first: str, second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each place would tell rows of its own that are not among the first of all."""
    compiled = compiled_of(
        f"""
        output out; input s(k text, x integer);
        (w, $w) <- Range[7 s](s, $w);
        (parts, $a) <- {first}(w, $a); (out, $b) <- {second}(parts, $b);
        """,
        tmp_path,
    )
    assert not partial_firsts(compiled.program)
    monkeypatch.setattr(local, "run_batches", in_tasks(3))
    whole = compiled.run(engine="reference").rows("out")
    assert whole == spread(compiled, tmp_path / "as it is")

    def all_but_the_last(program: Program) -> frozenset[str]:
        return frozenset(op.id for op in program.operators if "parts" in op.outputs)

    monkeypatch.setattr("millstream.plan.placing.partial_firsts", all_but_the_last)
    monkeypatch.setattr(first_parts, "partial_firsts", all_but_the_last)
    assert whole != spread(compiled, tmp_path / "forced")
