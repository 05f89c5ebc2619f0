"""The examples, one folder each."""

from __future__ import annotations

import runpy
from pathlib import Path

import millstream
from millstream.api import Compiled

#: How often a program goes round that does so by itself.
ROUNDS = 10

ROOT = Path(__file__).parents[2] / "examples"


def example_folders() -> list[Path]:
    return sorted(p.parent for p in ROOT.glob("*/*/expected"))


def name_of(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def program_of(folder: Path) -> Compiled:
    if (folder / "millstream.toml").exists():
        return millstream.compile(folder)
    (file,) = (p for p in folder.iterdir() if p.stem == folder.name)
    if file.suffix == ".py":
        return written_in_python(file)
    compiled = millstream.compile(file)
    return compiled if compiled.rounds is None else compiled.with_rounds(ROUNDS)


def written_in_python(file: Path) -> Compiled:
    """The program that a script builds, which finds its inputs beside it."""
    made: Compiled = runpy.run_path(str(file))["program"]()
    return made.at(file.parent)
