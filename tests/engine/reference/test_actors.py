"""Programs as actors: the same rows, whatever the delays of messages."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream
from millstream.cli.main import main
from millstream.engine.reference.actors import sharing

EXAMPLES = Path(__file__).parents[3] / "examples"
PROGRAMS = ("rules/late_tide/late_tide.rules", "brook/bargain_finder/bargain_finder.brook",
            "cql/two_streams/two_streams.cql")  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_actors_give_the_rows_of_the_reference(name: str) -> None:
    job = millstream.compile(EXAMPLES / name)
    expected = job.run(engine="reference")
    for seed in range(2):
        acted = job.run(engine="actors", seed=seed)
        for output in job.program.outputs:
            assert expected.rows(output) and expected.rows(output) == acted.rows(output)


def test_operators_that_share_a_variable_are_one_actor() -> None:
    job = millstream.compile(EXAMPLES / "brook/market_maker/market_maker.brook")
    shared = job.program.shared_variables()
    groups = sharing(job.program)
    for variable in shared:
        assert 1 == sum(any(variable in op.variables for op in group) for group in groups)
    assert shared and len(groups) < len(job.program.operators)


def test_actors_can_be_chosen_and_cannot_follow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "port.rules").write_text("require vessel.draught < 9 m\n")
    (tmp_path / "vessels.csv").write_text("_time,mmsi,name,draught,departed\n1,7,N,10,false\n")
    asked = ["run", str(tmp_path / "port.rules"), "--engine", "actors", "--out", "status=-",
             "--out", f"warnings={tmp_path}/warnings.csv"]  # fmt: skip
    assert 0 == main(asked)
    assert "restricted" in capsys.readouterr().out
    assert 2 == main([*asked, "--follow"])
    assert "the engine actors cannot follow" in capsys.readouterr().err
