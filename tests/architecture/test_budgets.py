"""Files and functions stay small; those that are longer are named here with the reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "millstream"
FILES = sorted(ROOT.rglob("*.py"))

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 50

LONGER: dict[str, str] = {}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_FILE_LINES


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef, text: list[str]) -> int:
    """Lines that are not blank, comment or docstring."""
    body = function.body
    first = body[0]
    skipped: set[int] = set()
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        skipped = set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = range(function.lineno, (function.end_lineno or function.lineno) + 1)
    return sum(
        1
        for n in lines
        if n not in skipped and text[n - 1].strip() and not text[n - 1].strip().startswith("#")
    )


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_functions_are_short(path: Path) -> None:
    text = path.read_text().splitlines()
    for node in ast.walk(ast.parse("\n".join(text))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = f"{path.relative_to(ROOT)}:{node.name}"
            length = code_lines(node, text)
            assert length <= MAX_FUNCTION_LINES or name in LONGER, f"{name}: {length} lines"
