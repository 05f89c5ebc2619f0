"""Small jobs of the local engine: the same rows and counts, and nothing is compiled."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream import engines
from millstream.api import Compiled, Finished
from millstream.connectors.location import parse_location
from millstream.engine import warm
from millstream.engine.reference import small
from tests.examples.folders import example_folders, name_of, program_of
from tests.examples.test_examples import table

VOLUMES = """
output totals; input trades(symbol text, volume integer) slack 1 s;
(recent, $w) <- Range[1 s](trades, $w);
(totals, $a) <- Aggregate[by symbol; volume = sum(volume)](recent, $a);
"""


@pytest.fixture
def is_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """However long a small job takes, with nothing compiled yet."""
    monkeypatch.setenv(warm.SETTING, "inf")
    monkeypatch.setattr(warm, "cache_directory", lambda: tmp_path / "cache")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The engines that are started for what is run."""
    names: list[str] = []
    engine = engines.engine_named

    def noted(name: str) -> Callable[..., Any]:
        names.append(name)
        return engine(name)

    monkeypatch.setattr(engines, "engine_named", noted)
    return names


def trades(count: int) -> list[dict[str, Any]]:
    return [
        {"_time": n * 300_000, "symbol": "ab"[n % 2], "volume": 2**62 if n == 4 else n}
        for n in range(count)
    ]


def run(job: Compiled, rows: Any, **outputs: Any) -> Finished:
    return job.run({"trades": rows}, outputs, engine="local")


@pytest.mark.usefixtures("is_tried")
@pytest.mark.parametrize("folder", example_folders(), ids=name_of)
def test_examples_are_answered_without_compiled_loops(
    folder: Path, tmp_path: Path, started: list[str]
) -> None:
    compiled = program_of(folder)
    outputs = {q: tmp_path / f"{q}.csv" for q in compiled.program.outputs}
    compiled.run(outputs=outputs, engine="local")
    expected = {p.stem: table(p) for p in (folder / "expected").glob("*.csv")}
    assert expected == {q: table(path) for q, path in outputs.items()}
    assert not started


def test_the_first_run_of_a_small_program_compiles_nothing(tmp_path: Path) -> None:
    program = tmp_path / "totals.brook"
    program.write_text(VOLUMES)
    (tmp_path / "trades.csv").write_text("_time,symbol,volume\n1,a,2\n2,a,3\n")
    code = (
        "import sys; from millstream.cli.main import main; "
        f"status = main(['run', {str(program)!r}, '--engine', 'local']); "
        "assert 'numba' not in sys.modules; sys.exit(status)"
    )
    cache = tmp_path / "cache"
    environment = os.environ | {warm.SETTING: "inf", "MILLSTREAM_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "2,1,a,5"
    assert not cache.exists()


@pytest.mark.usefixtures("is_tried")
def test_late_and_rejected_rows_go_where_those_of_compiled_runs_go(
    tmp_path: Path, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tmp_path / "trades.csv"
    lines = ["9000000,a,1", "1,a,2", "9000001,a,x", "9500000,b,9223372036854775807", "9500001,b,1"]
    rows.write_text("\n".join(["_time,symbol,volume", *lines]))
    job = millstream.compile(text=VOLUMES)

    def told(engine: str) -> tuple[Any, ...]:
        outputs = {
            name: tmp_path / f"{engine}_{name}.csv" for name in ("totals", "late", "rejected")
        }
        report = job.run({"trades": rows}, outputs, engine="local").report
        return report, [path.read_text() for path in outputs.values()]

    interpreted = told("first")
    assert not started
    monkeypatch.setenv(warm.SETTING, "0")
    assert told("second") == interpreted
    assert started == ["local"]


@pytest.mark.usefixtures("is_tried")
def test_a_job_that_takes_long_is_given_up_and_nothing_of_it_is_kept(
    monkeypatch: pytest.MonkeyPatch, started: list[str]
) -> None:
    job = millstream.compile(text=VOLUMES)
    expected = run(job, trades(200)).rows("totals")
    assert not started
    monkeypatch.setenv(warm.SETTING, "1e-9")
    assert run(job, trades(200)).rows("totals") == expected
    assert started == ["local"]


@pytest.mark.usefixtures("is_tried")
def test_what_has_run_compiled_stays_so(
    started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = millstream.compile(text=VOLUMES)
    monkeypatch.setenv(warm.SETTING, "0")
    expected = run(job, trades(3)).rows("totals")
    monkeypatch.setenv(warm.SETTING, "inf")
    assert run(job, trades(3)).rows("totals") == expected
    assert started == ["local", "local"]


@pytest.mark.usefixtures("is_tried")
@pytest.mark.parametrize(
    "rows", [trades(small.MOST_ROWS + 1), iter(trades(3))], ids=["many", "once"]
)
def test_others_are_run_compiled(rows: Any, started: list[str]) -> None:
    run(millstream.compile(text=VOLUMES), rows)
    assert started == ["local"]


@pytest.mark.usefixtures("is_tried")
def test_a_large_program_is_not_tried(monkeypatch: pytest.MonkeyPatch, started: list[str]) -> None:
    monkeypatch.setattr(warm, "MOST_OPERATORS", 1)
    run(millstream.compile(text=VOLUMES, language="brook"), trades(3))
    assert ["local"] == started


def test_a_small_file_may_hold_many_rows(tmp_path: Path, started: list[str]) -> None:
    path = tmp_path / "trades.csv.gz"
    text = "_time,symbol,volume\n" + "5,a,1\n" * (small.MOST_ROWS + 1)
    path.write_bytes(gzip.compress(text.encode()))
    assert small.is_small([parse_location(str(path), Path())])
    rows = run(millstream.compile(text=VOLUMES), path).rows("totals")
    assert rows == [{"_time": 5, "_weight": 1, "symbol": "a", "volume": small.MOST_ROWS + 1}]
    assert started == ["local"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("generator:rows=10", True),
        (f"generator:rows={small.MOST_ROWS + 1}", False),
        ("-", False),
        ("nowhere.csv", True),  # whoever reads it says so
    ],
)
def test_sizes_are_known_before_anything_is_read(text: str, answer: bool) -> None:
    assert small.is_small([parse_location(text, Path())]) is answer
