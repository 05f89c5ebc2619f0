"""Programs as people write them print what plain Python works out of the same lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.languages.sawzall import (  # noqa: F401 (they fill CASES)
    oracles_logs,
    oracles_mixed,
    oracles_paper,
    oracles_shop,
    oracles_trees,
    oracles_values,
)
from tests.languages.sawzall.oracles import CASES, Case
from tests.languages.sawzall.programs import printed, run_text


def _text(case: Case, tmp_path: Path, engine: str) -> tuple[list[str], int]:
    finished = run_text(tmp_path, case.program, case.lines, engine=engine, names=dict(case.names))
    shown = printed(finished).replace(f"{tmp_path}/", "")
    return shown.splitlines(), finished.report.inputs["input"].rejected


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_program_prints_what_python_works_out(tmp_path: Path, name: str, engine: str) -> None:
    case = CASES[name]
    shown, rejected = _text(case, tmp_path, engine)
    assert list(case.oracle(case.lines)) == shown
    assert case.rejected == rejected
