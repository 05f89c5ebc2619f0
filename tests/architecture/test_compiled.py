"""Which compiled code belongs to the cache is declared, and complete."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from millstream.cache import COMPILED
from millstream.compiled import lent

ROOT = Path(__file__).parents[2] / "src" / "millstream"
DECORATORS = {"compiled", "tight", "inlined", "apart", "lent", "overload", "intrinsic"}
#: What never is another number, or another name.
FIXED = {"DAYS", "INT64_MAX", "INT64_MIN", "MONTHS"}


def test_whatever_is_compiled_belongs_to_the_cache() -> None:
    compiling = [
        p for p in ROOT.rglob("*.py") if "from millstream.compiled import" in p.read_text()
    ]
    outside = [p for p in compiling if not any(p.is_relative_to(place) for place in COMPILED)]
    assert compiling
    assert not outside


def test_what_does_not_belong_to_the_cache_is_not_compiled() -> None:
    def elsewhere(x: float) -> float:
        return x

    with pytest.raises(AssertionError, match="is not in COMPILED"):
        lent(elsewhere)


def test_numbers_that_are_compiled_into_loops_belong_to_the_cache() -> None:
    """Or a loop that is kept would go on with the numbers of before."""
    compiling = [p for p in ROOT.rglob("*.py") if _is_declared(p)]
    outside = {
        (str(file.relative_to(ROOT)), function.name, *source)
        for file in compiling
        for function in ast.walk(Module.of(file).tree)
        if isinstance(function, ast.FunctionDef) and _is_compiled(function)
        for statement in function.body
        for name in _names(statement)
        for source in _sources(file, name)
        if source[1] not in FIXED
    }
    assert compiling
    assert not outside


@dataclass(frozen=True)
class Module:
    """What a module takes from others of ours, by name, and what it gives names to."""

    tree: ast.Module
    imported: dict[str, tuple[str, str]]
    assigned: dict[str, ast.expr]

    @staticmethod
    @functools.cache
    def of(file: Path) -> Module:
        tree = ast.parse(file.read_text())
        imported = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("millstream")
            for alias in node.names
            if node.module is not None
        }
        assigned = {
            name: node.value
            for node in tree.body
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            for name in _names(target)
        }
        return Module(tree, imported, assigned)


def _is_declared(file: Path) -> bool:
    return any(file.is_relative_to(place) for place in COMPILED)


def _is_compiled(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(d).partition("(")[0] in DECORATORS for d in function.decorator_list)


def _names(node: ast.AST) -> Iterator[str]:
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def _sources(file: Path, name: str) -> Iterator[tuple[str, str]]:
    """Where a name of a module comes from, as far as that is outside of what is declared."""
    module = Module.of(file)
    if name in module.imported:
        place, real = module.imported[name]
        home = ROOT.joinpath(*place.split(".")[1:])
        if home.is_dir() and (home / f"{real}.py").exists():
            home, real = home / real, ""
        home = home / "__init__.py" if home.is_dir() else home.with_suffix(".py")
        if not _is_declared(home):
            yield place, real
        elif real:
            yield from _sources(home, real)
    elif name in module.assigned:
        for used in _names(module.assigned[name]):
            if used != name:
                yield from _sources(file, used)
