"""Programs that run by their meanings until their loops are compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.engine.local import changeover
from millstream.engine.local.compile_aside import CompileAside
from millstream.kernels.rounds import StepRunner
from tests.engine.laid_out import laid_out_on

#: A join with a table, totals, and a window that rows leave: what kernels keep in many ways.
PROGRAM = """
output totals, late;
input trades(k text, n integer) time at;
(a, b) <- Duplicate(trades);
(held, $w) <- Range[40 us](a, $w);
(totals, $t) <- Aggregate[by k; s = sum(n), c = count()](held, $t);
(newest, $l) <- Latest[by k](b, $l);
(late, $d) <- Aggregate[s = sum(n)](newest, $d);
"""
ROWS = [{"at": 3 * n + n % 2, "k": "abc"[n * n % 3], "n": n % 7} for n in range(300)]


class Patient:
    """Mutable: stands for who compiles; it is over when it has been asked so often."""

    asked = 0

    def __init__(self, make: Callable[[], Any], rounds: object, read: object) -> None:
        self.left = Patient.asked

    def is_over(self) -> bool:
        self.left -= 1
        return self.left < 0

    def wait(self, seconds: float) -> None:
        """It is asked again."""

    def close(self) -> None:
        """Nothing is open."""


def answers(**options: Any) -> dict[str, list[Any]]:
    job = millstream.compile(text=PROGRAM)
    found = job.run({"trades": ROWS}, engine="local", **options)
    return {name: found.rows(name) for name in ("totals", "late")}


@pytest.fixture
def _cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changeover, "CompileAside", Patient)
    monkeypatch.setattr(changeover, "_MOST", 16)
    monkeypatch.setattr("millstream.engine.warm.may_interpret", lambda _: True)
    monkeypatch.setattr("millstream.engine.reference.small.may_interpret", lambda _: False)


@pytest.mark.usefixtures("_cold")
@pytest.mark.parametrize("asked", [0, 1, 4, 1_000])
@pytest.mark.parametrize("is_kept", [False, True])
def test_whenever_kernels_take_over_the_rows_are_the_same(
    asked: int, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In rounds, and in batches on a checkpoint."""
    expected = answers(threads=1)
    monkeypatch.setattr(Patient, "asked", asked)
    options: dict[str, Any] = {"checkpoint": tmp_path / "ck"} if is_kept else {"threads": 1}
    assert expected == answers(**options)


@pytest.mark.usefixtures("_cold")
def test_work_that_is_laid_out_on_several_places_waits_for_its_loops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a checkpoint that Spark has begun: no stage sees the rows of all inputs."""
    monkeypatch.setattr(Patient, "asked", 1)
    with laid_out_on(3):
        assert answers() == answers(checkpoint=tmp_path / "ck")


@pytest.mark.usefixtures("_cold")
def test_a_job_that_was_never_compiled_is_taken_up_by_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state cannot be written whole, but what came is kept."""
    (tmp_path / "in").mkdir()
    job = millstream.compile(text=PROGRAM)
    options: dict[str, Any] = {"checkpoint": tmp_path / "ck", "batch_bytes": 400}
    for number, asked in enumerate((1_000_000, 0)):
        monkeypatch.setattr(Patient, "asked", asked)
        lines = [f"{row['at']},{row['k']},{row['n']}\n" for row in ROWS[150 * number :][:150]]
        (tmp_path / "in" / f"{number}.csv").write_text("".join(["at,k,n\n", *lines]))
        found = job.run({"trades": f"{tmp_path}/in/"}, engine="local", **options)
    assert answers(threads=1) == {name: found.rows(name) for name in ("totals", "late")}


def test_another_process_compiles_and_ends() -> None:
    from functools import partial

    from millstream.engine.local.run import plan_for

    plan = plan_for(millstream.compile(text=PROGRAM).program)
    aside = CompileAside(partial(StepRunner, plan), [])
    try:
        aside.wait(60)
        assert aside.is_over()
        assert 0 == aside._process.returncode
    finally:
        aside.close()


def test_what_cannot_be_sent_is_compiled_here() -> None:
    aside = CompileAside(lambda: None, [])
    try:
        aside.wait(60)
        assert aside.is_over()
    finally:
        aside.close()
