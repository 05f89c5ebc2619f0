"""Every kind of file of a checkpoint, damaged in every way: equal rows or a clear refusal."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.connectors.location import parse_location
from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.files import LocalFiles, NotedFiles
from millstream.errors import MillstreamError
from millstream.languages.brook.load import load
from millstream.source import Source
from tests.engine.bench import Bench
from tests.seeds import is_turn

pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]
Launched = dict[str, Any]

PROGRAM = """
output sums;
input trades(symbol text, volume integer, note text);
variable $s(total integer = 0);
(sums, $s) <- Fold[by symbol; set $s.total = $s.total + volume;
                   emit symbol, total = $s.total, note](trades, $s);
"""


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 16]) + data[middle + 1 :] if data else b"x"


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "emptied": lambda _: b"",
    "truncated": lambda data: data[: len(data) * 2 // 3],
    "flipped": flipped,
    "removed": lambda _: None,
}

#: The newest file of each kind, as a pattern.
KINDS = ["job", "sources/*.plan", "state/stage-0/*.delta", "state/stage-0/*.snapshot",
         "exchange/*", "outputs/*", "batches/*"]  # fmt: skip
CASES = list(itertools.product(KINDS, DAMAGES))
#: So long that rows travel in files.
NOTE = "long " * 8_000
#: One file a batch.
BATCH_BYTES = 300_000


@pytest.fixture(scope="module", autouse=True)
def rows_travel_in_files() -> Iterator[None]:
    """Also where one process does everything, and would keep more in its messages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NotedFiles, "small", LocalFiles.small)
        yield


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory, launched: Launched) -> Path:
    """A job that has run over six files in six batches, with two more files to come."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "trades").mkdir()
    (folder / "job.brook").write_text(PROGRAM)
    for number in range(6):
        write(folder, number)
    run(folder, launched)
    return folder


def write(folder: Path, number: int) -> None:
    rows = "".join(f"{number * 10 + n},S{n % 3},{number + n},{NOTE}\n" for n in range(8))
    (folder / "trades" / f"{number}.csv").write_text("_time,symbol,volume,note\n" + rows)


def run(folder: Path, launched: Launched, **options: Any) -> Rows:
    finished = millstream.compile(folder / "job.brook").run(
        {"trades": parse_location("trades/", folder)}, batch_bytes=BATCH_BYTES, snapshot_every=4,
        checkpoint=folder / "checkpoint", **launched, **options,
    )  # fmt: skip
    return finished.rows("sums")


def copied(stopped: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    shutil.copytree(stopped, folder)
    for number in (6, 7):
        write(folder, number)
    return folder


@pytest.fixture(scope="module")
def expected(stopped: Path, launched: Launched, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    folder = copied(stopped, tmp_path_factory.mktemp("whole"))
    rows = run(folder, launched)
    assert 8 * 8 == len(rows)
    return rows


def _on_spark(kind: str, damage: str) -> Any:
    """Few with Spark, each kind that it has to do with in one way a day; all by `make proof`."""
    is_spark = kind.startswith(("job", "batches"))
    is_today = is_turn(KINDS.index(kind) + [*DAMAGES].index(damage), len(DAMAGES))
    marks = () if is_spark and is_today else (pytest.mark.proof,)
    return pytest.param(kind, damage, marks=marks, id=f"{kind}-{damage}")


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["spark"], indirect=True)
@pytest.mark.parametrize(("kind", "damage"), list(itertools.starmap(_on_spark, CASES)))
def test_damage_is_noticed_on_spark_or_changes_nothing(
    kind: str, damage: str, stopped: Path, expected: Rows, launched: Launched, tmp_path: Path
) -> None:
    assert expected == after_damage(kind, damage, stopped, launched, tmp_path)


@pytest.mark.parametrize("engine", ["local"], indirect=True)
@pytest.mark.parametrize(("kind", "damage"), CASES)
def test_damage_is_noticed_by_the_local_engine_or_changes_nothing(
    kind: str, damage: str, stopped: Path, expected: Rows, launched: Launched, tmp_path: Path
) -> None:
    assert expected == after_damage(kind, damage, stopped, launched, tmp_path)


def after_damage(kind: str, damage: str, stopped: Path, launched: Launched, tmp_path: Path) -> Rows:
    """The rows of a job one of whose files was damaged, computed again if that is noticed."""
    folder = copied(stopped, tmp_path)
    victim = max((folder / "checkpoint").glob(kind))
    data = DAMAGES[damage](victim.read_bytes())
    if data is None:
        victim.unlink()
    else:
        victim.write_bytes(data)
    told = "nothing, because nothing has changed"
    try:
        rows = run(folder, launched)
    except MillstreamError as refusal:
        told, rows = str(refusal), run(folder, launched, rebuild=True)
    assert "Traceback" not in told
    return rows


OWN = [k for k in KINDS if k != "job"]


def bench(folder: Path) -> Bench:
    location = parse_location("csv:trades/", folder)
    program = load(Source("job.brook", PROGRAM))
    return Bench(program, {"trades": location}, folder / "checkpoint", snapshot_every=4,
                 batch_bytes=BATCH_BYTES)  # fmt: skip


def in_batches(folder: Path, first: int, last: int) -> Bench:
    """Files first..last, each a batch of its own; a new process each time it is called."""
    job = bench(folder)
    for number in range(first, last):
        write(folder, number)
        assert job.batch()
    while job.batch():
        pass
    return job


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    whole = tmp_path_factory.mktemp("whole")
    (whole / "trades").mkdir()
    rows = in_batches(whole, 0, 8).sinks["sums"].rows()
    folder = tmp_path_factory.mktemp("six")
    (folder / "trades").mkdir()
    in_batches(folder, 0, 6)
    return folder, rows


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", OWN)
def test_damage_is_never_a_silent_difference(
    kind: str, damage: str, undamaged: tuple[Path, list[Any]], tmp_path: Path
) -> None:
    """Every single file of a kind, without Spark."""
    source, expected = undamaged
    for name in sorted(p.relative_to(source) for p in (source / "checkpoint").glob(kind)):
        folder = tmp_path / str(name).replace("/", "-")
        shutil.copytree(source, folder)
        data = DAMAGES[damage]((folder / name).read_bytes())
        if data is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(data)
        told, rows = goes_on(folder)
        assert "of the checkpoint is" in told or (expected[-len(rows) :] == rows and rows), name


def goes_on(folder: Path) -> tuple[str, list[Any]]:
    """The refusal, or the rows of the last batches."""
    try:
        return "", in_batches(folder, 6, 8).sinks["sums"].rows()
    except DamagedState as refusal:
        return str(refusal), []
