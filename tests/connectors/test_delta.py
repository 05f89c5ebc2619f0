"""Tables of Delta Lake as inputs and outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import millstream
from millstream.calculus.types import INTEGER, QueueType, Schema
from millstream.cli.main import main
from millstream.connectors.elsewhere.delta import DeltaWriter
from millstream.connectors.elsewhere.write import open_elsewhere
from millstream.connectors.location import parse_location
from millstream.errors import RunError, UsageError
from millstream.plan.batch import batch_of
from tests.connectors.test_elsewhere import PROGRAM, START, numbers


def delta_rows(*values: int) -> Any:
    times = pa.array([START + n for n in values], pa.timestamp("us", "UTC"))
    return pa.table({"at": times, "n": list(values)})


def test_a_table_of_delta_lake_is_read_and_gone_on_with(tmp_path: Path) -> None:
    table = f"delta:{tmp_path}/t"
    kept: dict[str, Any] = {"checkpoint": tmp_path / "ck"}
    deltalake.write_deltalake(tmp_path / "t", delta_rows(2, 1))
    deltalake.write_deltalake(tmp_path / "t", delta_rows(3), mode="append")
    assert numbers(table, **kept) == [1, 2, 3]
    deltalake.write_deltalake(tmp_path / "t", delta_rows(4), mode="append")
    deltalake.DeltaTable(tmp_path / "t").optimize.compact()  # files change, rows do not
    deltalake.write_deltalake(tmp_path / "t", delta_rows(5, 6), mode="append")
    assert numbers(table, **kept) == [1, 2, 3, 4, 5, 6]
    brought = (tmp_path / "ck" / "incoming" / "trades").glob("0*")
    assert ["000000000003.parquet"] == [path.name for path in brought]  # the rest was taken
    deltalake.DeltaTable(tmp_path / "t").delete("n = 4")
    with pytest.raises(RunError, match="takes rows away or changes them"):
        numbers(table, **kept)


def test_results_become_versions_of_a_table_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = millstream.compile(text=PROGRAM)
    kept: dict[str, Any] = {"checkpoint": tmp_path / "ck"}
    (tmp_path / "in").mkdir()
    for number in range(3):
        if number < 2:  # the third time nothing has come
            text = f"at,n\n{START + number},{number}\n"
            (tmp_path / "in" / f"{number}.csv").write_text(text)
        job.run({"trades": f"{tmp_path}/in/*.csv"}, {"out": f"delta:{tmp_path}/t"}, **kept)
    assert standing_in(tmp_path / "t") == [0, 1]
    assert main(["read", f"delta:{tmp_path}/t"]) == 0
    assert ["0", "1"] == [text[-1] for text in capsys.readouterr().out.splitlines()[1:]]
    for _ in range(2):  # a run without a checkpoint replaces what was there
        job.run({"trades": f"{tmp_path}/in/1.csv"}, {"out": f"delta:{tmp_path}/t"})
        assert standing_in(tmp_path / "t") == [1]


def standing_in(path: Path) -> list[int]:
    table = deltalake.DeltaTable(path).to_pyarrow_table()
    found: list[int] = sorted(table["n"].to_pylist())
    return found


def test_a_batch_that_comes_again_changes_no_table(tmp_path: Path) -> None:
    location, shape = parse_location(f"delta:{tmp_path}/t", Path()), QueueType(Schema.of(n=INTEGER))
    for number, first in ((0, 0), (1, 1), (1, 2)):
        writer = open_elsewhere(location, "out", shape, is_following=True)
        assert isinstance(writer, DeltaWriter)
        assert writer.open("job", fresh=False) == first
        writer.write_batch(number, batch_of(shape, [number], [(number,)]))
        writer.close()
    assert standing_in(tmp_path / "t") == [0, 1]


@pytest.mark.parametrize("most", [100, 5])
def test_a_table_that_is_seldom_written_does_not_hold_a_job_up(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results of batches that it knows nothing of are kept, but not all of them for ever."""
    monkeypatch.setattr("millstream.connectors.elsewhere.versions._EMPTY_BATCHES", most)
    job = millstream.compile(text=PROGRAM.replace("n >= 0", "n == 3"))
    kept: dict[str, Any] = {"checkpoint": tmp_path / "ck", "snapshot_every": 2, "batch_bytes": 10}
    (tmp_path / "in").mkdir()
    for first in (0, 12):
        for n in range(first, first + 12):
            (tmp_path / "in" / f"{n:02}.csv").write_text(f"at,n\n{START + n},{n}\n")
        job.run({"trades": f"{tmp_path}/in/"}, {"out": f"delta:{tmp_path}/t"}, **kept)
    assert standing_in(tmp_path / "t") == [3]
    batches = sorted(p.name for p in (tmp_path / "ck" / "batches").iterdir())
    assert (int(batches[0]) <= 5) == (most == 100)


TOTALS = """
output out; input trades(n integer) time at;
(kinds) <- Map[kind = if(n % 3 == 0, null, n % 3)](trades);
(held, $w) <- Range[1000 d](kinds, $w);
(out, $t) <- Aggregate[by kind; c = count()](held, $t);
"""


def test_a_table_has_what_stands_after_each_batch(tmp_path: Path) -> None:
    """Rows that go are taken out, those that are null are known again, batches come once."""
    job = millstream.compile(text=TOTALS)
    kept: dict[str, Any] = {"checkpoint": tmp_path / "ck"}
    (tmp_path / "in").mkdir()
    for last, expected in ((4, [(1, 2), (2, 1), (None, 2)]), (8, [(1, 3), (2, 3), (None, 3)])):
        rows = "".join(f"{START + n},{n}\n" for n in range(last - 4 + (last > 4), last + 1))
        (tmp_path / "in" / f"{last}.csv").write_text(f"at,n\n{rows}")
        for _ in range(2):  # the second time nothing has come
            job.run({"trades": f"{tmp_path}/in/"}, {"out": f"delta:{tmp_path}/t?state"}, **kept)
            found = deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table()
            rows_found = zip(found["kind"].to_pylist(), found["c"].to_pylist(), strict=True)
            assert expected == sorted(rows_found, key=lambda row: (row[0] is None, row))
            assert [1] * 3 == found["_count"].to_pylist()
    with pytest.raises(UsageError, match='"out" is a stream, which has no state'):
        millstream.compile(text=PROGRAM).run(
            {"trades": f"{tmp_path}/in/"}, {"out": f"delta:{tmp_path}/s?state"}
        )


def test_tables_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", delta_rows(1))
    (tmp_path / "x.csv").write_text("at,n\n1,1\n")
    job = millstream.compile(text=PROGRAM)
    with pytest.raises(UsageError, match="not results of Millstream"):
        job.run({"trades": tmp_path / "x.csv"}, {"out": f"delta:{tmp_path}/t"})
    with pytest.raises(UsageError, match="there is no table of Delta Lake here"):
        numbers(f"delta:{tmp_path}/none")
    with pytest.raises(UsageError, match="names no table"):
        numbers("delta:")
