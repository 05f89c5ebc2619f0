"""A checkpoint that is laid out anew: its log is read again, and nothing is told twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.api import Compiled
from millstream.calculus.functions import Opaque
from millstream.calculus.graph import Operator
from millstream.connectors.location import parse_location
from millstream.engine.job import Report
from tests.engine.laid_out import laid_out_on
from tests.engine.running import INPUTS, OUTPUTS, Job, difference, make_job, parts_in
from tests.generate_opaque import Repeated

FILES = 8


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = make_job(tmp_path, "folder", files=FILES, rows=30, batch_bytes=400, seed=5)
    yield made
    made.close()


@contextmanager
def only_files(job: Job, count: int) -> Iterator[None]:
    """With so many files of each input there; the others come later."""
    away = [path for name in INPUTS for path in sorted((job.folder / name).iterdir())[count:]]
    for path in away:
        path.rename(job.folder / f"{path.parent.name}-{path.name}")
    yield
    for path in away:
        (job.folder / f"{path.parent.name}-{path.name}").rename(path)


def run(job: Job, label: str = "kept", **options: Any) -> Report:
    given = {"engine": "local", "checkpoint": job.checkpoint, "batch_bytes": job.batch_bytes}
    return millstream.compile(job.folder / "job.brook").run(
        {name: parse_location(f"{name}/", job.folder) for name in INPUTS},
        {name: f"{job.folder / label}-{name}/" for name in OUTPUTS},
        **{**given, **options},
    ).report  # fmt: skip


def rows(job: Job, label: str) -> dict[str, Any]:
    return {name: [row for part in parts_in(job.folder / f"{label}-{name}").values()
                   for row in part] for name in OUTPUTS}  # fmt: skip


def settled(job: Job) -> dict[str, Any]:
    """What runs on the same files give that are never laid out anew."""
    for count in (3, 5, FILES):
        with only_files(job, count):
            run(job, "peace", checkpoint=job.folder / "peace")
    return rows(job, "peace")


#: The layouts of runs one after the other: so many buckets, or one place.
LAYOUTS = [(4, None, 5), (None, 4, None), (3, 7, 2)]


@pytest.mark.parametrize("buckets", LAYOUTS)
def test_every_layout_takes_up_every_other(job: Job, buckets: tuple[int | None, ...]) -> None:
    for number, (count, some) in enumerate(zip((3, 5, FILES), buckets, strict=True)):
        with only_files(job, count), laid_out_on(some):
            report = run(job, relayout=True)
            assert bool(number) == any("laid out anew" in note for note in report.notes)
            assert not run(job, relayout=True).notes  # it is as it is to be
    assert not difference(settled(job), rows(job, "kept"))
    assert not (job.checkpoint / "relayout").exists()
    assert 1 == len(list((job.checkpoint / "state").iterdir()))


PASSES = """
output large, few;
input trades(symbol text, volume integer, note text),
      prices(symbol text, price number, note text);
variable $n(n integer = 0);
(recent, $w)  <- Range[50 us](trades, $w);
(some)        <- Filter[volume > 10](recent);
(totals, $t)  <- Aggregate[by symbol; volume = sum(volume)](some, $t);
(changes, $i) <- Istream(totals, $i);
(a)           <- Filter[volume > 20](changes);
(b)           <- Filter[volume < 250](a);
(large, $n)   <- Fold[set $n.n = $n.n + 1; emit symbol, volume, seen = $n.n](b, $n);
(dear)        <- Filter[price > 20](prices);
(few, $l)     <- Latest[by symbol](dear, $l);
"""


def test_other_passes_take_up_what_was_begun_without(tmp_path: Path) -> None:
    folder, text = tmp_path, PASSES
    job = make_job(folder, "folder", files=FILES, rows=30, batch_bytes=400, seed=5)
    program = millstream.compile(text=text)

    def made(label: str, **options: Any) -> millstream.api.Finished:
        return program.run(
            {name: parse_location(f"{name}/", folder) for name in INPUTS},
            {name: f"{folder / label}-{name}/" for name in ("large", "few")},
            engine="local", checkpoint=folder / label, batch_bytes=400, **options,
        )  # fmt: skip

    with only_files(job, 5):
        made("peace")
        made("kept", only=[])
        assert not made("kept").report.notes
        assert made("kept", relayout=True).report.notes
        assert made("kept", relayout=True, without=["hoist_select"]).report.notes
    made("peace")
    made("kept")
    for name in ("large", "few"):
        assert parts_in(folder / f"peace-{name}") == parts_in(folder / f"kept-{name}")


@pytest.mark.parametrize("begun", [True, False])
def test_functions_of_python_are_gone_on_with_under_the_usual_passes_and_none(
    begun: bool, tmp_path: Path
) -> None:
    """They have no text that could be read again, but what the passes make of them is the same."""
    text = """output out; input s(k integer, x integer);
    (some) <- Filter[x > 1 + 2](s); (held, $w) <- Range[5 us](some, $w);
    (out, $t) <- Aggregate[by k; n = count()](held, $t);"""
    program = millstream.compile(text=text).program
    repeated = Opaque("Repeated", program.inputs[0].type.schema, Repeated(2))
    called = Operator(repeated, ("s",), ("again",), (), ())
    first, *others = program.operators
    program = replace(program, operators=(called, replace(first, inputs=("again",)), *others))
    path = tmp_path / "s.csv"
    path.write_text("_time,k,x\n" + "".join(f"{n},{n % 3},{n % 7}\n" for n in range(20)))

    def run_it(**options: Any) -> Any:
        return Compiled(program).run({"s": path}, engine="local", **options).rows("out")

    whole = run_it()
    assert whole
    checkpoint = tmp_path / "checkpoint"
    assert whole == run_it(checkpoint=checkpoint, optimise=begun)
    assert whole == run_it(checkpoint=checkpoint, optimise=not begun)


def test_killed_while_the_log_is_read_again_it_goes_on(job: Job, tmp_path: Path) -> None:
    job.engine = "local"
    job.more = ("--relayout",)
    with laid_out_on(3), only_files(job, 5):
        run(job)
        before = job.batches()
    points = ("mid-task@1", "after-manifest@3", "before-sink@4",
              f"before-laid-out@{before[-1]}", f"after-laid-out@{before[-1]}")  # fmt: skip
    for point in points:
        running = job.start(point)
        assert running.finish() == -9, running.errors()
        assert "laid out anew" in running.errors()
        assert before == job.batches()
    job.start().succeed()
    assert not difference(settled_in_two(job), rows(job, "kept"))


def settled_in_two(job: Job) -> dict[str, Any]:
    for count in (5, FILES):
        with only_files(job, count):
            run(job, "peace", checkpoint=job.folder / "peace")
    return rows(job, "peace")


def test_where_the_log_is_gone_the_layout_stays_and_it_is_said(job: Job) -> None:
    with only_files(job, 3), laid_out_on(4):
        run(job)
        run(job, "peace", checkpoint=job.folder / "peace")
    gone = job.folder / "prices" / "001.csv"
    gone.unlink()
    (note,) = run(job, relayout=True).notes
    assert f"the work stays laid out as it was: {gone} is not there any more" == note
    run(job, "peace", checkpoint=job.folder / "peace")
    assert not difference(rows(job, "peace"), rows(job, "kept"))


def test_what_gives_other_rows_than_it_did_is_not_taken(job: Job) -> None:
    with only_files(job, 3), laid_out_on(4):
        run(job)
        run(job, "peace", checkpoint=job.folder / "peace")
    changed = job.folder / "trades" / "001.csv"
    changed.write_text(changed.read_text().replace("S1", "S2"))
    (note,) = run(job, relayout=True).notes
    assert "the work stays laid out as it was: read again, the inputs give" in note
    run(job, "peace", checkpoint=job.folder / "peace")
    assert not difference(rows(job, "peace"), rows(job, "kept"))


def test_rows_that_were_put_in_order_are_put_in_order_again(job: Job) -> None:
    for name in INPUTS:  # files that overlap are copied, sorted, as long as they are needed
        for path in (job.folder / name).iterdir():
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join([lines[0], *reversed(lines[1:])]))
    with only_files(job, 3), laid_out_on(4):
        run(job)
    assert ["order"] == [path.name for path in (job.checkpoint / "inputs").iterdir()]
    with only_files(job, 3):
        (note,) = run(job, relayout=True).notes
        assert "laid out anew" in note
    run(job)
    with only_files(job, 3):
        run(job, "peace", checkpoint=job.folder / "peace")
    run(job, "peace", checkpoint=job.folder / "peace")
    assert not difference(rows(job, "peace"), rows(job, "kept"))


@pytest.mark.spark
def test_engines_lay_out_anew_what_the_other_has_begun(job: Job, spark: Any) -> None:
    on_spark = {"engine": "spark", "session": spark, "partitions": 2}
    with only_files(job, 3):
        run(job)
    with only_files(job, 5):
        (note,) = run(job, relayout=True, **on_spark).notes
        assert "laid out anew" in note
        assert not run(job, relayout=True, **on_spark).notes
        (note,) = run(job, relayout=True, buckets=5, **on_spark).notes
        assert "laid out anew" in note
    (note,) = run(job, relayout=True).notes
    assert "laid out anew" in note
    assert not difference(settled(job), rows(job, "kept"))


@pytest.mark.slow
@pytest.mark.spark
def test_killed_on_spark_while_the_log_is_read_again_it_goes_on(job: Job) -> None:
    with only_files(job, 5):
        run(job, job.kept)
    before = job.batches()
    job.more = ("--relayout",)
    for point in ("mid-task@1", f"before-laid-out@{before[-1]}"):
        running = job.start(point)
        assert running.finish() == -9, running.errors()
        assert before == job.batches()
    job.start().succeed()
    assert not difference(settled_in_two(job), rows(job, "spark"))
