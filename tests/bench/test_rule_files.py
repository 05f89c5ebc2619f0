"""What `millstream bench rule_files` compares is the same computation, on both sides."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest


@pytest.mark.proof
def test_rules_by_hand_give_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    bench = importlib.import_module("rule_files")
    data = importlib.import_module("rule_files_data")
    for text, judge, _ in bench.FILES.values():
        program = data.compiled(text)
        _, restricted, changes = bench.by_hand(judge, data.Load(program, 60), 1, 400)
        assert bench.is_equal(program, 60, 400, changes)
        assert changes and 0.1 < restricted < 0.9
