"""Imports flow one way."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from tests.architecture.modules import FILES, ROOT, imports, name_of, nodes_of

#: From the ground up: a part may import parts of its own layer's row only if it is the
#: same part, and anything from earlier rows.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("source", "cache", "cold", "lending", "wildcards"),
    ("errors", "compiled", "locks"),
    ("tables", "words64", "blocks64"),
    ("values",),
    ("calculus",),
    ("meaning",),
    ("optimiser", "plan", "draw"),
    ("tracing",),
    ("kernels", "connectors", "queries"),
    ("languages",),
    ("engine", "project"),
    ("explain", "olap", "broker"),
    ("finished", "engines"),
    ("live",),
    ("api",),
    ("embeddings",),
    ("algebra", "rules", "sheets", "streamit"),
    ("server", "client"),
    ("cli",),
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


def test_imports_flow_one_way() -> None:
    upwards = []
    for path in FILES:
        mine = part_of(path)
        for module in imports(path) if mine != "__init__" else ():
            names = module.split(".")
            if names[0] != "millstream" or len(names) == 1 or names[1] not in LEVELS:
                continue
            theirs = part_named(names[1:])
            is_own = theirs == mine or (mine, theirs) in LAZY
            if not is_own and LEVELS[theirs] >= LEVELS[mine]:
                upwards.append(f"{name_of(path)} must not import {module}")
    assert not upwards


def test_languages_and_engines_never_import_each_other() -> None:
    across = []
    for path in FILES:
        parts = path.relative_to(ROOT).parts
        if len(parts) < 3 or parts[0] not in ("languages", "engine"):
            continue
        siblings = LAUNCHERS if parts[0] == "engine" else LANGUAGES
        for module in imports(path) if parts[1] in siblings else ():
            names = module.split(".")
            is_near = names[:2] == ["millstream", parts[0]] and len(names) > 2
            if is_near and names[2] in siblings - {parts[1]}:
                across.append(f"{name_of(path)} must not import {module}")
    assert not across


def test_what_serves_all_launchers_knows_none_of_them() -> None:
    """Batches, clock, manifest, state and delivery are the same whoever runs them."""
    known = {
        (str(path.relative_to(ROOT)), module)
        for path in FILES
        if (parts := path.relative_to(ROOT).parts)[0] == "engine" and parts[1] not in LAUNCHERS
        for module in imports(path)
        if module.split(".")[:2] == ["millstream", "engine"] and module.split(".")[2:3]
        and module.split(".")[2] in LAUNCHERS
    }  # fmt: skip
    assert not known


def test_heavy_packages_are_imported_only_at_home() -> None:
    abroad = [
        f"{name_of(path)} must not import {module}"
        for path in FILES
        for module in imports(path)
        if (home := HEAVY_HOMES.get(module.split(".")[0])) and not name_of(path).startswith(home)
    ]
    assert not abroad


def test_nothing_turns_text_into_code() -> None:
    """No eval, exec, pickle or spark.sql on anything; generated kernels are imported files."""
    turns = [
        f"{name_of(path)}, line {node.lineno}: {name}"
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, (ast.Name, ast.Attribute))
        and (name := ast.unparse(node.func)) in TURNS_TEXT_INTO_CODE
    ]
    assert not turns


TURNS_TEXT_INTO_CODE = ("eval", "exec", "pickle.loads", "pickle.load", "spark.sql")

#: From the ground up, inside `kernels`: what lies in none of the rooms puts all together.
ROOMS: tuple[tuple[str, ...], ...] = (
    ("runtime",),
    ("windows",),
    ("loop", "relational", "records"),
    ("judge", "sheets", "nets", "cube", "scripts"),
)
ROOM_LEVELS = {room: level for level, row in enumerate(ROOMS) for room in row}


def test_kernels_have_rooms_and_their_imports_flow_one_way() -> None:
    faults = []
    for path in sorted((ROOT / "kernels").rglob("*.py")):
        mine = path.relative_to(ROOT / "kernels").parts[0]
        if mine not in ROOM_LEVELS:
            faults += [f"{mine} is a room without a level"] if not mine.endswith(".py") else []
            continue
        for module in imports(path):
            names = module.split(".")
            if names[:2] != ["millstream", "kernels"] or len(names) < 3 or names[2] == mine:
                continue
            if names[2] not in ROOM_LEVELS:
                faults.append(f"{name_of(path)}: {module} is above all rooms")
            elif ROOM_LEVELS[names[2]] >= ROOM_LEVELS[mine]:
                faults.append(f"{name_of(path)} must not import {module}")
    assert not faults


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
NAMES_LANGUAGES = (
    "__init__.py", "algebra.py", "rules.py", "sheets.py", "streamit.py", "cli/demo.py",
)  # fmt: skip
