"""Error messages, word for word. `make golden` writes them anew; read the difference."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from millstream.cli.main import main

FOLDER = Path(__file__).parent / "errors"


ENDINGS = ("brook", "cql", "rules", "smile", "str", "szl")
PROGRAMS = sorted(p for ending in ENDINGS for p in FOLDER.glob(f"*.{ending}"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_golden_error_message(
    program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER)
    status = main(["check", program.name])
    captured = capsys.readouterr()
    golden = program.with_suffix(".txt")
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        golden.write_text(captured.err)
    assert (2, "") == (status, captured.out)
    assert golden.read_text() == captured.err
