"""Every example folder, on every engine, plain and optimised: one expected output.

Each day every example runs as a user would run it, and in one other way; by the reference it is
answered in tests/engine/reference/test_small.py too. All ways are tried in the campaigns.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from millstream.engines import ENGINES
from tests.examples.folders import example_folders, name_of, program_of
from tests.seeds import is_turn


def table(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


USUAL = ("local", True)
OTHERS = [
    (engine, optimise)
    for optimise in (False, True)
    for engine in ENGINES
    if engine != "spark" and (engine, optimise) != USUAL  # see tests/engine/spark
]
WAYS = [
    pytest.param(
        folder, engine, optimise,
        id=f"{name_of(folder)}-{engine}-{'optimised' if optimise else 'plain'}",
        marks=()
        if place < 0 or is_turn(number + place, len(OTHERS))
        else pytest.mark.proof,
    )
    for number, folder in enumerate(example_folders())
    for place, (engine, optimise) in enumerate([USUAL, *OTHERS], -1)
]  # fmt: skip


@pytest.mark.parametrize(("folder", "engine", "optimise"), WAYS)
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
