"""Every example folder, on every engine, plain and optimised: one expected output."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from millstream.api import ENGINES
from tests.examples.folders import example_folders, name_of, program_of


def table(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("optimise", [False, True], ids=["plain", "optimised"])
@pytest.mark.parametrize("engine", [e for e in ENGINES if e != "spark"])  # see tests/spark
@pytest.mark.parametrize("folder", example_folders(), ids=name_of)
def test_example_gives_the_expected_output(
    folder: Path, engine: str, optimise: bool, tmp_path: Path
) -> None:
    compiled = program_of(folder)
    if engine == "actors" and compiled.program.shared_variables():
        pytest.skip("which message arrives first decides what comes out")
    outputs = {q: tmp_path / f"{q}.csv" for q in compiled.program.outputs}
    compiled.run(outputs=outputs, engine=engine, optimise=optimise)
    expected = {p.stem: table(p) for p in (folder / "expected").glob("*.csv")}
    assert expected == {q: table(path) for q, path in outputs.items()}
    assert expected, "an example without expected output proves nothing"
