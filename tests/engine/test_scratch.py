"""What runs leave in the folder for temporary files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from millstream.engine.scratch import has_room_for_sockets

MAKING = """
import os, signal, sys
from millstream.engine.scratch import scratch_folder
folder = scratch_folder()
assert folder == scratch_folder()
(folder / "large").mkdir()
print(folder, flush=True)
if sys.argv[1:]:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def made(temporary: Path, *how: str) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", MAKING, *how],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return Path(done.stdout.strip())


def test_a_process_takes_its_folder_with_it(tmp_path: Path) -> None:
    assert made(tmp_path).parent == tmp_path.resolve()
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_has_left_is_removed_by_the_next(tmp_path: Path) -> None:
    left = made(tmp_path, "killed")
    assert left.exists()
    others = tmp_path / "millstream-run-of-somebody"
    others.mkdir()
    living = tmp_path / f"millstream-run-{os.getpid()}-x"
    living.mkdir()
    made(tmp_path)
    assert not left.exists()
    assert others.exists()
    assert living.exists()


@pytest.mark.parametrize("length", [10, 200])
def test_a_socket_needs_a_short_path(length: int) -> None:
    folder = Path(tempfile.gettempdir()) / ("x" * length)
    assert has_room_for_sockets(folder) == (length == 10)
