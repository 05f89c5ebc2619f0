"""Files are read in time order by tasks and in batches, whenever a run is taken up again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.connectors.blocks import is_ours
from millstream.connectors.chunks import Chunk, Rejected
from millstream.connectors.location import parse_location
from millstream.connectors.memory import MemoryReader
from millstream.engine.arrangement import Arrangement
from millstream.engine.job import InputCounts
from millstream.engine.planning import taken_so_far
from millstream.engine.storage.files import LocalFiles
from millstream.languages.brook.load import load
from millstream.plan.batch import empty_batch
from millstream.source import Source
from tests.engine.bench import Bench

PROGRAM = load(
    Source("test.brook", "output out; input in(n integer) time at; (out) <- Filter[n >= 0](in);")
)
(INPUT,) = PROGRAM.inputs


def write(path: Path, rows: list[tuple[int, int]]) -> None:
    path.write_text("at,n\n" + "".join(f"{at},{n}\n" for at, n in rows))


class Runs:
    """Mutable: runs of one job on one checkpoint; all that came out."""

    def __init__(self, folder: Path, batch_bytes: int = 1 << 20) -> None:
        (folder / "in").mkdir()
        self.folder = folder
        self.batch_bytes = batch_bytes
        self.out: list[int] = []
        self.late: list[int] = []
        self.last: Bench | None = None

    def start(self, *, follows: bool = False) -> Bench:
        location = parse_location("in/*.csv", self.folder)
        checkpoint = self.folder / "checkpoint"
        if not follows:
            files = LocalFiles(checkpoint)
            arrangement = Arrangement.of(files)
            arrangement.arrange(INPUT, location, taken_so_far(files).get("in", {}))
            arrangement.save()
        job = Bench(PROGRAM, {"in": location}, checkpoint, batch_bytes=self.batch_bytes,
                    piece_bytes=20, is_following=follows)  # fmt: skip
        if not follows:
            job.planner.freeze()
        self.last = job
        return job

    def run(self, batches: int = 1 << 30, *, follows: bool = False) -> None:
        """To the end, or until it is killed after so many batches."""
        job = self.start(follows=follows)
        for _ in range(batches):
            if not job.batch():
                break
        self.out += [n for (n,) in job.sinks["out"].rows()]
        self.late += [n for (n,) in job.late["in"].rows()]

    @property
    def counts(self) -> InputCounts:
        assert self.last is not None
        return InputCounts(**self.last.last["counts"]["in"])


@settings(max_examples=40, deadline=None, derandomize=True, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(
    st.lists(st.lists(st.integers(0, 40), max_size=15), min_size=1, max_size=4),
    st.sampled_from((1, 30, 100, 10_000)),
    st.lists(st.integers(0, 4), max_size=3),
)
def test_whatever_files_hold_they_come_in_order_and_once_however_often_a_run_is_killed(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[int]],
    batch_bytes: int,
    kills: list[int],
) -> None:
    runs = Runs(tmp_path_factory.mktemp("case"), batch_bytes)
    rows: list[tuple[int, int]] = []
    for number, times in enumerate(files):
        some = [(at, len(rows) + n) for n, at in enumerate(times)]
        write(runs.folder / "in" / f"{number}.csv", some)
        rows += some
    for batches in kills:
        runs.run(batches)
    runs.run()
    assert (sorted(at for at, _ in rows), []) == ([dict_of(rows)[n] for n in runs.out], runs.late)
    assert sorted(n for _, n in rows) == sorted(runs.out)
    assert InputCounts(read=len(rows), processed=len(rows)) == runs.counts


def dict_of(rows: list[tuple[int, int]]) -> dict[int, int]:
    return {n: at for at, n in rows}


def test_lateness_is_for_what_comes_after_and_that_is_in_order_among_itself(
    tmp_path: Path,
) -> None:
    runs = Runs(tmp_path)
    write(tmp_path / "in" / "b.csv", [(10, 1), (20, 2)])
    runs.run()
    write(tmp_path / "in" / "a.csv", [(40, 5), (30, 3)])
    write(tmp_path / "in" / "c.csv", [(35, 4), (15, 0)])
    with (tmp_path / "in" / "b.csv").open("a") as file:
        file.write("50,6\n")
    runs.run()
    assert ([1, 2, 3, 4, 5, 6], [0]) == (runs.out, runs.late)
    runs.run()
    assert InputCounts(read=7, processed=6, late=1, behind=5) == runs.counts


def test_what_a_killed_run_has_left_is_finished_before_what_is_new(tmp_path: Path) -> None:
    """Its copy is not made anew, though a file has come that would have changed it."""
    runs = Runs(tmp_path, batch_bytes=1)
    write(tmp_path / "in" / "a.csv", [(3, 3), (1, 1), (2, 2)])
    write(tmp_path / "in" / "b.csv", [(4, 4), (5, 5)])
    runs.run(batches=1)
    write(tmp_path / "in" / "0.csv", [(9, 9), (6, 6)])
    runs.run()
    assert ([1, 2, 3, 4, 5, 6, 9], []) == (runs.out, runs.late)


def test_a_run_that_follows_takes_up_what_one_that_ended_has_copied(tmp_path: Path) -> None:
    runs = Runs(tmp_path, batch_bytes=1)
    write(tmp_path / "in" / "a.csv", [(3, 3), (1, 1), (2, 2)])
    runs.run(batches=1)
    with (tmp_path / "in" / "a.csv").open("a") as file:
        file.write("4,4\n")
    runs.run(follows=True)
    assert InputCounts(read=4, processed=3, waiting=1) == runs.counts
    assert [1, 2, 3] == runs.out


def test_rejected_rows_of_copies_are_counted_once_with_their_lines(tmp_path: Path) -> None:
    runs = Runs(tmp_path, batch_bytes=1)
    (tmp_path / "in" / "a.csv").write_text("at,n\n3,3\nx,0\n1,1\n2,y\n")
    runs.run(batches=1)
    first = runs.last
    runs.run()
    assert InputCounts(read=4, processed=2, rejected=2) == runs.counts
    assert first is not None
    assert runs.last is not None
    assert [
        'in/a.csv:3: at: expected a time, got "x"',
        'in/a.csv:5: n: expected an integer, got "y"',
    ] == [*first.report.first_rejections, *runs.last.report.first_rejections]


def test_copies_are_deleted_when_they_are_not_needed_and_not_made_again(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    write(tmp_path / "in" / "a.csv", [(3, 3), (1, 1)])
    runs.run()
    folder = tmp_path / "checkpoint" / "inputs"
    assert any(is_ours(path) for path in folder.iterdir())
    Arrangement(LocalFiles(tmp_path / "checkpoint")).forget_copies()
    runs.run()
    assert ([1, 3], False) == (runs.out, any(is_ours(path) for path in folder.iterdir()))


def test_rows_that_only_the_driver_can_read_are_copied_once(tmp_path: Path) -> None:
    class WithRejected(MemoryReader):
        def chunks(self):  # type: ignore[no-untyped-def]  # noqa: ANN202
            yield Chunk(empty_batch(INPUT.type), (Rejected("standard input", 2, "why", "x"),))
            yield from super().chunks()

    files = LocalFiles(tmp_path)
    arrangement = Arrangement.of(files)
    arrangement.keep(INPUT, WithRejected(INPUT, [(2, (2,)), (1, (1,))]), is_following=False)
    arrangement.save()
    again = Arrangement.of(files)
    again.keep(INPUT, MemoryReader(INPUT, []), is_following=False)
    assert arrangement.order == again.order
    job = Bench(PROGRAM, {"in": parse_location("parquet:inputs/in", tmp_path)}, tmp_path,
                is_following=False)  # fmt: skip
    job.planner.freeze()
    while job.batch():
        pass
    assert [1, 2] == [n for (n,) in job.sinks["out"].rows()]
    assert InputCounts(read=3, processed=2, rejected=1) == InputCounts(**job.last["counts"]["in"])
