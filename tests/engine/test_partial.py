"""Totals of parts are made where rows are, and only they move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import millstream
from millstream.engine.layout import layout_for
from millstream.engine.local import batches as local
from millstream.optimiser.optimise import optimise
from millstream.plan import partial
from millstream.plan.partial import partial_totals
from tests.engine.test_partitions import in_tasks

TOTALS = """
output out, groups; input s(k boolean, x integer);
(a, b) <- Duplicate(s);
(w, $w) <- Range[20 s; slide 10 s](a, $w);
(out, $o) <- Aggregate[n = count(), most = max(x), mean = avg(x)](w, $o);
(v, $v) <- Range[15 s; slide 5 s](b, $v);
(groups, $g) <- Aggregate[by k; n = count(), least = min(x), all = sum(x)](v, $g);
"""


def test_rows_stay_where_they_came_and_their_sums_move() -> None:
    program = optimise(millstream.compile(text=TOTALS).program)
    assert len(partial_totals(program)) == 2
    layout = layout_for(program, {"s": 1e9})
    first, second = layout.stages
    assert [key for _, key in first.keys] == [None]
    assert {key for _, key in second.keys} == {(), ("k",)}


@pytest.mark.parametrize("partitions", [1, 3])
def test_sums_of_what_is_in_many_places_are_those_of_all(
    partitions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ("true", "false", "")
    lines = [f"{n * 700_000},{keys[n % 3]},{n * 37 % 101}\n" for n in range(150)]
    (tmp_path / "s.csv").write_text("_time,k,x\n" + "".join(lines))
    (tmp_path / "totals.brook").write_text(TOTALS)
    compiled = millstream.compile(tmp_path / "totals.brook")
    whole = compiled.run(engine="reference", optimise=False)
    monkeypatch.setattr(local, "run_batches", in_tasks(partitions))
    spread = compiled.run(engine="local", checkpoint=tmp_path / "state", batch_bytes=700)
    for name in ("out", "groups"):
        assert spread.rows(name) == whole.rows(name)


NOT = {
    "numbers": "Aggregate[by k, j; t = sum(v)](w, $a)|Aggregate[by k; t = sum(t)](m, $b)",
    "other columns": "Aggregate[by k, j; n = count()](w, $a)|Aggregate[by k; t = max(j)](m, $b)",
    "finer groups": "Aggregate[by k; n = count()](w, $a)|Aggregate[by n; t = sum(n)](m, $b)",
    "means": "Aggregate[by k, j; n = avg(j)](w, $a)|Aggregate[by k; n = max(n)](m, $b)",
    "their number": "Aggregate[by k, j; n = count()](w, $a)|Aggregate[by k; n = count()](m, $b)",
    "all rows": "Aggregate[n = count()](w, $a)|Aggregate[n = sum(n)](m, $b)",
}


@pytest.mark.parametrize("functions", NOT.values(), ids=list(NOT))
def test_what_does_not_add_up_is_made_of_rows_that_come_together(functions: str) -> None:
    first, second = functions.split("|")
    text = f"""
        output out; input s(k text, j integer, v number);
        (w, $w) <- Range[10 s](s, $w); (m, $a) <- {first}; (out, $b) <- {second};
    """
    assert not partial_totals(millstream.compile(text=text).program)


FORCED = {
    "numbers": ("t = sum(v)", "t = sum(t)"),
    "their number": ("n = count()", "n = count()"),
    "means": ("m = avg(v)", "m = max(m)"),
}


@pytest.mark.parametrize(("first", "second"), FORCED.values(), ids=list(FORCED))
def test_what_does_not_add_up_would_else_come_to_something_else(
    first: str, second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""
        output out; input s(k text, v number);
        (numbered) <- Map[k, v, j = if(v == 3.0, 1, 0)](s);
        (w, $w) <- Range[unbounded](numbered, $w);
        (m, $a) <- Aggregate[by k, j; {first}](w, $a);
        (out, $b) <- Aggregate[by k; {second}](m, $b);
    """
    values = [1e16, 1.0, 3.0] * 20 + [-1e16] * 19
    lines = [f"{n * 1_000_000},a,{value!r}\n" for n, value in enumerate(values)]
    (tmp_path / "s.csv").write_text("_time,k,v\n" + "".join(lines))
    (tmp_path / "sums.brook").write_text(text)
    compiled = millstream.compile(tmp_path / "sums.brook")
    monkeypatch.setattr(local, "run_batches", in_tasks(3))

    def spread(place: str) -> Sequence[Mapping[str, object]]:
        checkpoint = tmp_path / place
        return compiled.run(engine="local", checkpoint=checkpoint, batch_bytes=200).rows("out")

    whole = compiled.run(engine="reference").rows("out")
    assert spread("as it is") == whole
    monkeypatch.setattr(partial, "_is_totalled_again", lambda *_: True)
    assert spread("forced") != whole
