"""Files and functions stay small; those that are longer are named here with the reason."""

from __future__ import annotations

import ast

from tests.architecture.modules import FILES, name_of, nodes_of

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 50

LONGER: dict[str, str] = {}


def test_files_are_short() -> None:
    lines = {name_of(path): len(path.read_text().splitlines()) for path in FILES}
    assert {name: n for name, n in lines.items() if n > MAX_FILE_LINES} == {}


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


def test_functions_are_short() -> None:
    longer = {}
    for path in FILES:
        text = path.read_text().splitlines()
        for node in nodes_of(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if (node.end_lineno or 0) - node.lineno < MAX_FUNCTION_LINES:
                    continue
                length = code_lines(node, text)
                if length > MAX_FUNCTION_LINES:
                    longer[f"{name_of(path)}:{node.name}"] = length
    assert {name: n for name, n in longer.items() if name not in LONGER} == {}
