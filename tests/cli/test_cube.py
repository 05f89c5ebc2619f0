"""`millstream cube`: answers and plans in the terminal, without a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from millstream.cli.main import main

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "cube" / "figure_3")


def test_a_question_is_answered_and_planned(capsys: pytest.CaptureFixture[str]) -> None:
    question = '{"rows": ["part"], "measures": ["amount"], "totals": true}'
    assert main(["cube", "query", EXAMPLE, question, "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (total,) = answer["totals"]
    assert total["amount"] == sum(cell["amount"] for cell in answer["cells"]) > 0
    assert answer["answered_by"]["attributes"] == ["part", "customer"]
    assert main(["cube", "plan", EXAMPLE, question]) == 0
    assert "answered by: part, customer" in capsys.readouterr().out


def test_what_is_wrong_with_a_question_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cube", "query", EXAMPLE, '{"rows": ["prt"]}']) == 2
    assert 'Did you mean "part"?' in capsys.readouterr().err
    assert main(["cube", "query", EXAMPLE, "{"]) == 2
    assert "no JSON" in capsys.readouterr().err
    assert main(["cube", "query", EXAMPLE, "{}", "--cube", "Windw"]) == 2
    assert 'Did you mean "Window"?' in capsys.readouterr().err
