"""The Spark engine gives what the reference gives, however the input is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream
from tests.examples.folders import example_folders, name_of, program_of
from tests.examples.test_examples import table
from tests.seeds import TODAY, some_of_each

pytestmark = pytest.mark.spark


#: Some examples of every language each day, in another number of partitions each time; without a
#: JVM all are tried, see tests/engine/test_partitions.py.
DAYS = 3
PARTITIONS = (1, 4, 16)
TRIED = some_of_each(example_folders(), lambda folder: folder.parent, DAYS)
PLACED = [
    pytest.param(
        folder, partitions, id=f"{name_of(folder)}-{partitions}",
        marks=()
        if folder in TRIED and place == (number + TODAY // DAYS) % len(PARTITIONS)
        else pytest.mark.proof,
    )
    for number, folder in enumerate(example_folders())
    for place, partitions in enumerate(PARTITIONS)
]  # fmt: skip


@pytest.mark.parametrize(("folder", "partitions"), PLACED)
def test_example_gives_the_expected_output(
    folder: Path, partitions: int, spark: Any, tmp_path: Path
) -> None:
    compiled = program_of(folder)
    outputs = {q: tmp_path / f"{q}.csv" for q in compiled.program.outputs}
    compiled.run(outputs=outputs, engine="spark", session=spark, partitions=partitions)
    expected = {p.stem: table(p) for p in (folder / "expected").glob("*.csv")}
    assert expected == {q: table(path) for q, path in outputs.items()}


def test_what_is_made_of_the_rows_of_an_instant_is_in_their_order(
    spark: Any, tmp_path: Path
) -> None:
    """A map turns the order of values round, and rows come from several places."""
    compiled = millstream.compile(
        text="output out; input rows(k integer, v integer);"
        "(t, $t) <- Latest[by k](rows, $t); (c, $c) <- Istream(t, $c);"
        "(out) <- Map[n = neg(k)](c);",
        language="brook",
    )
    rows = "".join(f"{n // 8},{n % 16},{n}\n" for n in range(60))
    (tmp_path / "rows.csv").write_text("_time,k,v\n" + rows)
    given_ = {"rows": tmp_path / "rows.csv"}
    found = compiled.run(
        given_, engine="spark", session=spark, partitions=2, buckets=4, batch_bytes=100
    )
    assert compiled.run(given_, engine="reference").rows("out") == found.rows("out")
