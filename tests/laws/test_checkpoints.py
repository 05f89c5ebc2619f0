"""Laws 2 and 7 on the local engine: cut into batches, stopped anywhere and started again, a job
gives what it gives in one go."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from millstream.api import Compiled
from millstream.calculus.graph import Program
from millstream.connectors.location import Location
from millstream.engine.job import InputCounts, Report
from millstream.engine.reference.feed import Event
from millstream.errors import AllRejected, PlanError, Stopped
from tests.engine.bench import Kept
from tests.engine.laid_out import laid_out_on
from tests.engine.written import written
from tests.generate import Case, cases
from tests.laws.runs import Collector, Rows
from tests.seeds import campaign, seeded


def in_one_go(
    program: Program, locations: dict[str, Location]
) -> tuple[dict[str, Rows], dict[str, InputCounts]]:
    collectors = {name: Collector() for name in program.outputs}
    finished = Compiled(program).run(locations, collectors, engine="reference", optimise=False)
    return {name: c.rows for name, c in collectors.items()}, finished.report.inputs


class Stopping:
    """Mutable: ends a run after some batches."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def __call__(self) -> bool:
        return self.left <= 0

    def take(self, _: Report) -> None:
        self.left -= 1


def in_many_goes(
    program: Program,
    locations: dict[str, Location],
    checkpoint: Path,
    chance: random.Random,
    *,
    relays: bool = False,
) -> tuple[dict[str, Rows], dict[str, InputCounts]]:
    """Every run stops after some batches; sinks remember what they have, or are filled anew.

    If it `relays`, the work of every other run is laid out anew, in any way there is.
    """
    kept = {name: Kept() for name in program.outputs}
    remembers = chance.random() < 0.5
    options: dict[str, Any] = {
        "engine": "local", "optimise": False, "checkpoint": checkpoint,
        "batch_bytes": chance.choice((1, 100, 300, 10_000)),
        "snapshot_every": chance.randint(1, 5),
    }  # fmt: skip
    for _ in range(1_000):
        plain = {name: Collector() for name in program.outputs}
        stopping = Stopping(chance.randint(1, 4))
        if relays:
            options["relayout"] = chance.random() < 0.5
            options["optimise"] = chance.random() < 0.5
        try:
            with laid_out_on(chance.choice((None, 2, 3, 5)) if relays else None):
                finished = Compiled(program).run(
                    locations, kept if remembers else plain, stopped=stopping,
                    progress=stopping.take, **options,
                )  # fmt: skip
        except Stopped:
            continue
        except PlanError:
            # Functions of Python have no text, so the program as it was begun is not known.
            assert not options.get("relayout", True)
            continue
        rows = {n: kept[n].items() if remembers else plain[n].rows for n in program.outputs}
        return rows, finished.report.inputs
    raise AssertionError("it does not end")


def agree(
    program: Program,
    events: dict[str, list[Event]],
    folder: Path,
    seed: int,
    *,
    relays: bool = False,
) -> None:
    chance = random.Random(seed)
    locations = written(program, events, folder, chance)
    try:
        expected = in_one_go(program, locations)
    except AllRejected:
        with pytest.raises(AllRejected):
            in_many_goes(program, locations, folder / "checkpoint", chance, relays=relays)
        return
    assert expected == in_many_goes(
        program, locations, folder / "checkpoint", chance, relays=relays
    )


def test_a_job_that_is_stopped_and_taken_up_gives_what_the_reference_gives(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    seeds = itertools.count()

    @seeded(0, 6, phases=[Phase.generate])
    @given(cases())
    def law(case: Case) -> None:
        program, events, _ = case
        agree(program, events, tmp_path_factory.mktemp("case"), next(seeds))

    law()


def test_a_job_that_is_laid_out_anew_again_and_again_gives_what_the_reference_gives(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    seeds = itertools.count()

    @seeded(1, 6, phases=[Phase.generate])
    @given(cases())
    def law(case: Case) -> None:
        program, events, _ = case
        agree(program, events, tmp_path_factory.mktemp("case"), next(seeds), relays=True)

    law()


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(80, 8))
def test_more_jobs_that_are_laid_out_anew_give_what_the_reference_gives(
    tmp_path_factory: pytest.TempPathFactory, number: int
) -> None:
    @seeded(number, 8)
    @given(cases(), st.integers(0, 1000))
    def law(case: Case, seed: int) -> None:
        program, events, _ = case
        agree(program, events, tmp_path_factory.mktemp("case"), seed, relays=True)

    law()


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(80, 8))
def test_more_jobs_that_are_stopped_and_taken_up_give_what_the_reference_gives(
    tmp_path_factory: pytest.TempPathFactory, number: int
) -> None:
    @seeded(number, 8)
    @given(cases(), st.integers(0, 1000))
    def law(case: Case, seed: int) -> None:
        program, events, _ = case
        agree(program, events, tmp_path_factory.mktemp("case"), seed)

    law()
