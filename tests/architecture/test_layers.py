"""Imports flow one way."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "millstream"

#: From the ground up: a part may import parts of its own layer's row only if it is the
#: same part, and anything from earlier rows.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("source", "cache", "wildcards"),
    ("errors", "compiled"),
    ("tables",),
    ("values",),
    ("calculus",),
    ("meaning", "optimiser", "plan", "draw"),
    ("tracing",),
    ("kernels", "connectors"),
    ("languages",),
    ("engine", "project"),
    ("explain",),
    ("api",),
    ("embeddings",),
    ("algebra", "rules", "sheets"),
    ("server", "cli"),
    ("__main__",),
)
#: What of a language stands on the API instead of under it: its Python, and its views.
EMBEDDINGS = {"embedded", "situation", "watch"}
LEVELS = {part: level for level, row in enumerate(LAYERS) for part in row}
#: `explain` is a call of the API that knows the engines; the API loads it when asked.
LAZY = {("api", "explain")}
HEAVY_HOMES = {
    "pyspark": "engine/spark",
    "openpyxl": "languages/sheets",
    "pint": "languages/rules",
}


LANGUAGES = {p.name for p in (ROOT / "languages").iterdir() if p.is_dir()} - {"__pycache__"}
#: The ways to run a program; the rest of `engine` serves all of them.
LAUNCHERS = {"local", "spark", "reference"}


def part_of(path: Path) -> str:
    return part_named(path.relative_to(ROOT).with_suffix("").parts)


def part_named(names: Sequence[str]) -> str:
    """The part of the house that a module belongs to."""
    is_above = names[0] == "languages" and len(names) > 2 and names[2] in EMBEDDINGS
    return "embeddings" if is_above else names[0]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_flow_one_way(path: Path) -> None:
    mine = part_of(path)
    if mine == "__init__":
        return
    for module in imports(path):
        names = module.split(".")
        if names[0] != "millstream" or len(names) == 1 or names[1] not in LEVELS:
            continue
        theirs = part_named(names[1:])
        if theirs == mine or (mine, theirs) in LAZY:
            continue
        assert LEVELS[theirs] < LEVELS[mine], f"{mine} must not import {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_languages_and_engines_never_import_each_other(path: Path) -> None:
    parts = path.relative_to(ROOT).parts
    if len(parts) < 3 or parts[0] not in ("languages", "engine"):
        return
    for module in imports(path):
        names = module.split(".")
        if names[:2] == ["millstream", parts[0]] and len(names) > 2:
            siblings = LAUNCHERS if parts[0] == "engine" else LANGUAGES
            is_apart = parts[1] in siblings and names[2] in siblings - {parts[1]}
            assert not is_apart, module


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_heavy_packages_are_imported_only_at_home(path: Path) -> None:
    for module in imports(path):
        home = HEAVY_HOMES.get(module.split(".")[0])
        assert home is None or str(path.relative_to(ROOT)).startswith(home), module


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_nothing_turns_text_into_code(path: Path) -> None:
    """No eval, exec, pickle or spark.sql on anything; generated kernels are imported files."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in ("eval", "exec", "pickle.loads", "pickle.load", "spark.sql"), (
                f"line {node.lineno}: {name}"
            )


#: From the ground up, inside `kernels`: what lies in none of the rooms puts all together.
ROOMS: tuple[tuple[str, ...], ...] = (
    ("runtime",),
    ("windows",),
    ("loop", "relational"),
    ("judge", "sheets"),
)
ROOM_LEVELS = {room: level for level, row in enumerate(ROOMS) for room in row}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "kernels").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT))
)
def test_kernels_have_rooms_and_their_imports_flow_one_way(path: Path) -> None:
    mine = path.relative_to(ROOT / "kernels").parts[0]
    if mine not in ROOM_LEVELS:
        assert mine.endswith(".py"), f"{mine} is a room without a level"
        return
    for module in imports(path):
        names = module.split(".")
        if names[:2] != ["millstream", "kernels"] or len(names) < 3 or names[2] == mine:
            continue
        assert names[2] in ROOM_LEVELS, f"{module} is above all rooms"
        assert ROOM_LEVELS[names[2]] < ROOM_LEVELS[mine], f"{mine} must not import {module}"


def test_languages_are_named_only_at_home() -> None:
    """Outside its folder, and Excel's values, nothing names a language."""
    named = {
        (str(path.relative_to(ROOT)), module)
        for path in FILES
        for module in imports(path)
        if module.startswith("millstream.languages.")
        and (language := module.split(".")[2]) in LANGUAGES
        and path.relative_to(ROOT).parts[:2] != ("languages", language)
        and not str(path.relative_to(ROOT)).startswith(NAMES_LANGUAGES)
    }
    assert not named


#: The public names of the embeddings, and a demonstration.
NAMES_LANGUAGES = ("__init__.py", "algebra.py", "rules.py", "sheets.py", "cli/demo.py")
