"""Imports flow one way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "millstream"

#: From the ground up: a part may import parts of its own layer's row only if it is the
#: same part, and anything from earlier rows.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("source", "cache", "wildcards"),
    ("errors", "compiled"),
    ("formulas",),
    ("calculus",),
    ("environment",),
    ("trace",),
    ("algebra",),
    ("languages", "optimiser", "plan", "draw"),
    ("kernels", "state", "connectors"),
    ("engine",),
    ("project", "backends"),
    ("explain", "sheets"),
    ("api",),
    ("flow", "rules"),
    ("server", "cli"),
    ("__main__",),
)
LEVELS = {part: level for level, row in enumerate(LAYERS) for part in row}
#: `explain` is a call of the API that knows the engines; the API loads it when asked.
LAZY = {("api", "explain"), ("__init__", "api"), ("__init__", "flow")}
HEAVY_HOMES = {
    "pyspark": "backends/spark",
    "openpyxl": "languages/sheets",
    "pint": "languages/rules",
}


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


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
        theirs = names[1]
        if theirs == mine or (mine, theirs) in LAZY:
            continue
        assert LEVELS[theirs] < LEVELS[mine], f"{mine} must not import {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_languages_and_backends_never_import_each_other(path: Path) -> None:
    parts = path.relative_to(ROOT).parts
    if len(parts) < 3 or parts[0] not in ("languages", "backends"):
        return
    for module in imports(path):
        names = module.split(".")
        if names[:2] == ["millstream", parts[0]] and len(names) > 2:
            siblings = {p.name for p in (ROOT / parts[0]).iterdir() if p.is_dir()}
            assert names[2] == parts[1] or names[2] not in siblings, module


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
