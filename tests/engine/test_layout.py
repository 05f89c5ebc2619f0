"""Where a chain of stages runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.algebra import program_of, table
from millstream.connectors.location import parse_location
from millstream.engine.layout import Choice, Layout, layout_as, layout_for
from millstream.engine.spark.session import cores_of
from millstream.optimiser.optimise import optimise
from millstream.plan.keys import EVERYWHERE, Key
from tests.engine.bench import Bench

VESSELS = table("vessels", key="mmsi", mmsi="integer", berth="integer")
BERTHS = table("berths", key="berth_id", berth_id="integer", sensor="integer")
TIDES = table("tides", key="id", id="integer", height="integer")
KNOWN = VESSELS.foreign_join(BERTHS, on="berth").foreign_join(TIDES, on="sensor")
PROGRAM = optimise(program_of(known=KNOWN, heights=TIDES))


def sized(**sizes: float) -> dict[str, float]:
    return {"vessels": 1.0, "berths": 1.0, "tides": 1.0} | sizes


def keys(layout: Layout) -> list[dict[str, Key]]:
    return [dict(stage.keys) for stage in layout.stages]


def test_what_is_small_beside_others_is_copied_and_these_stay_where_they_are() -> None:
    assert 3 == len(layout_as(PROGRAM, Choice()).stages)
    small = layout_for(PROGRAM, sized(vessels=1000.0))
    assert {"berths", "tides"} == small.choice.copied
    assert [{"vessels": ("mmsi",), "berths": EVERYWHERE, "tides": EVERYWHERE}] == keys(small)


def test_what_is_large_is_not_copied() -> None:
    large = layout_for(PROGRAM, sized(tides=1000.0, vessels=1000.0))
    assert {"berths"} == large.choice.copied
    assert 2 == len(large.stages)
    assert EVERYWHERE not in keys(large)[1].values()


def test_a_checkpoint_keeps_the_layout_it_was_begun_with() -> None:
    for sizes in (sized(), sized(vessels=1000.0), sized(tides=1000.0)):
        first = layout_for(PROGRAM, sizes)
        assert first == layout_as(PROGRAM, Choice.read(first.choice.written()))


def test_wherever_it_runs_the_answers_are_the_same(tmp_path: Path) -> None:
    rows = {
        "vessels": "_time,mmsi,berth\n1,1,10\n4,2,20\n7,1,20\n",
        "berths": "_time,berth_id,sensor\n2,10,5\n5,20,6\n8,20,5\n",
        "tides": "_time,id,height\n3,5,100\n6,6,200\n9,5,300\n",
    }
    for name, text in rows.items():
        (tmp_path / f"{name}.csv").write_text(text)
    locations = {name: parse_location(f"{name}.csv", tmp_path) for name in rows}
    found = []
    choices = (
        Choice(),
        Choice(is_together=True),
        Choice(copied=frozenset(("tides",))),
        Choice(copied=frozenset(("berths", "tides"))),
        Choice(copied=frozenset(("vessels",))),
    )
    for number, choice in enumerate(choices):
        job = Bench(
            PROGRAM, locations, tmp_path / f"c{number}", batch_bytes=1, is_following=False,
            is_together=choice.is_together, copied=choice.copied,
        )  # fmt: skip
        job.planner.freeze()
        while job.batch():
            pass
        found.append({name: job.sinks[name].items() for name in PROGRAM.outputs})
    assert found[0]["known"] and all(one == found[0] for one in found)


def test_a_master_tells_how_many_tasks_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    masters = ("local[3]", "local[2,4]", "local", "local-cluster[4,2,1024]", "local[*,4]")
    assert [3, 2, 1, 8, 6] == [cores_of(master) for master in masters]
    assert 6 == cores_of("spark://somewhere:7077")
