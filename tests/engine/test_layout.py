"""Where a chain of stages runs."""

from __future__ import annotations

from pathlib import Path

from millstream.algebra import program_of, table
from millstream.connectors.location import parse_location
from millstream.engine.layout import LONGEST_CHAIN, layout_for, layout_of
from millstream.optimiser.optimise import optimise
from tests.engine.bench import Bench

VESSELS = table("vessels", key="mmsi", mmsi="integer", berth="integer")
BERTHS = table("berths", key="berth_id", berth_id="integer", sensor="integer")
TIDES = table("tides", key="id", id="integer", height="integer")
KNOWN = VESSELS.foreign_join(BERTHS, on="berth").foreign_join(TIDES, on="sensor")
PROGRAM = optimise(program_of(known=KNOWN, heights=TIDES))


def test_a_chain_is_spread_if_there_are_as_many_cores_as_stages() -> None:
    assert 3 == len(layout_of(PROGRAM).stages)
    assert not layout_for(PROGRAM, 3, None).is_together
    one = layout_for(PROGRAM, 2, None)
    assert one.is_together and 1 == len(one.stages) and one.has_one_bucket(0)
    assert LONGEST_CHAIN > 3


def test_a_checkpoint_keeps_the_layout_it_was_begun_with() -> None:
    for begun, now in ((2, 3), (3, 2)):
        first = layout_for(PROGRAM, begun, None)
        assert first == layout_for(PROGRAM, now, first.shape)


def test_in_one_place_the_answers_are_the_same(tmp_path: Path) -> None:
    rows = {
        "vessels": "_time,mmsi,berth\n1,1,10\n4,2,20\n7,1,20\n",
        "berths": "_time,berth_id,sensor\n2,10,5\n5,20,6\n8,20,5\n",
        "tides": "_time,id,height\n3,5,100\n6,6,200\n9,5,300\n",
    }
    for name, text in rows.items():
        (tmp_path / f"{name}.csv").write_text(text)
    locations = {name: parse_location(f"{name}.csv", tmp_path) for name in rows}
    found = []
    for is_together in (False, True):
        job = Bench(
            PROGRAM, locations, tmp_path / f"c{is_together}", batch_bytes=1, is_following=False,
            is_together=is_together,
        )  # fmt: skip
        job.planner.freeze()
        while job.batch():
            pass
        found.append({name: job.sinks[name].items() for name in PROGRAM.outputs})
    assert found[0]["known"] and found[0] == found[1]
