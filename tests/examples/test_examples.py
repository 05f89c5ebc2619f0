"""Every example folder, on every engine, plain and optimised: one expected output."""

from __future__ import annotations

import csv
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

import millstream
from millstream.api import ENGINES, Compiled

ROOT = Path(__file__).parents[2] / "examples"


def example_folders() -> list[Path]:
    return sorted(p.parent for p in ROOT.glob("*/*/expected"))


def program_of(folder: Path) -> Compiled:
    if (folder / "millstream.toml").exists():
        return millstream.compile(folder)
    (file,) = (p for p in folder.iterdir() if p.stem == folder.name)
    if file.suffix == ".py":
        return written_in_python(file)
    return millstream.compile(file)


def written_in_python(file: Path) -> Compiled:
    """The program that a script builds, which finds its inputs beside it."""
    made: Compiled = runpy.run_path(str(file))["program"]()
    return replace(made, base=file.parent)


def table(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("optimise", [False, True], ids=["plain", "optimised"])
@pytest.mark.parametrize("engine", [e for e in ENGINES if e != "spark"])  # see tests/spark
@pytest.mark.parametrize("folder", example_folders(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_example_gives_the_expected_output(
    folder: Path, engine: str, optimise: bool, tmp_path: Path
) -> None:
    compiled = program_of(folder)
    outputs = {q: tmp_path / f"{q}.csv" for q in compiled.program.outputs}
    compiled.run(outputs=outputs, engine=engine, optimise=optimise)
    expected = {p.stem: table(p) for p in (folder / "expected").glob("*.csv")}
    assert expected == {q: table(path) for q, path in outputs.items()}
    assert expected, "an example without expected output proves nothing"
