"""Completion in shells, which are asked what they would offer."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from millstream.cli.main import COMMANDS, main
from millstream.cli.shipped import starters
from millstream.engines import ENGINES

ASKING = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _millstream; printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> Path:
    assert main(["completion", request.param]) == 0
    path = tmp_path / "script"
    path.write_text(capsys.readouterr().out)
    return path


@pytest.mark.parametrize("script", ["bash"], indirect=True)
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ([""], set(COMMANDS)),
        (["exa"], {"examples"}),
        (["run", "--eng"], {"--engine"}),
        (["run", "job.cql", "--engine", ""], set(ENGINES)),
        (["init", ""], set(starters())),
        (["run", "trades"], {""}),  # then the shell offers files
    ],
)
def test_bash_offers(script: Path, words: list[str], offered: set[str]) -> None:
    command = ["bash", "-c", ASKING, "bash", str(script), "millstream", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(done.stdout.split("\n")[:-1]) == offered


@pytest.mark.parametrize("script", ["bash", "zsh", "fish"], indirect=True)
def test_scripts_have_all_commands_and_can_be_read(
    script: Path, request: pytest.FixtureRequest
) -> None:
    shell = request.node.callspec.params["script"]
    text = script.read_text()
    assert all(name in text for name in COMMANDS)
    assert "checkpoint" in text
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", str(script)], check=True)
