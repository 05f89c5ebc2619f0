"""The pages of Python: what they show runs, and the list of all calls is up to date."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.python_reference import page
from tests.docs.test_documentation import blocks

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "python-reference.md"


def test_the_page_of_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in blocks((ROOT / "docs" / "python.md").read_text()):
        exec(compile(block, "docs/python.md", "exec"), names)  # noqa: S102 - our own page
    told = capsys.readouterr().out
    assert "2026-01-31 12:00:00+00:00    IBM       7       2" in told
    assert "IBM no longer 3\nIBM now 7\n" in told


def test_the_list_of_all_calls_is_golden() -> None:
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        REFERENCE.write_text(page())
    assert page() == REFERENCE.read_text(), "run make golden"
