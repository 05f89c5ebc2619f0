"""Row kernels: compiled code is kept on disk, and a broken cache breaks nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from millstream import cache
from millstream.cache import cache_directory, digest_of_parts
from tests.seeds import in_turn

RUN = """
import sys

from millstream.kernels.loop.cache import compiled
from tests.kernels.test_rows import kernel_of, rows_of

kernel = kernel_of(
    "output out; input a(x integer); (b) <- Filter[x > 1](a); (out) <- Map[y = x * x](b);"
)
print(rows_of(kernel, (1,), (2,), (3,)))
stats = compiled(kernel.source).stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
print("compiler" if "numba.cpython.charseq" in sys.modules else "no compiler")
"""
ANSWER = "[(4,), (9,)]"


def run(folder: Path) -> list[str]:
    """What a fresh process prints: the answer, how often it found compiled code or not, and
    whether it has loaded all that numba compiles with."""
    environment = {**os.environ, "MILLSTREAM_CACHE": str(folder)}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN],
        env=environment, cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "" == done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    assert [ANSWER, "0 1", "compiler"] == run(folder)
    return folder


def kept(folder: Path, pattern: str) -> list[Path]:
    return sorted((folder / "kernels").rglob(pattern))


def test_a_second_process_compiles_nothing(filled: Path) -> None:
    assert [ANSWER, "1 0", "no compiler"] == run(filled)


@pytest.mark.parametrize("pattern", in_turn(["*.nbi", "*.nbc", "*.py", "*.sum"], days=2))
def test_a_damaged_cache_is_mended(filled: Path, pattern: str) -> None:
    files = kept(filled, pattern)
    assert files
    for damaged in files:
        content = damaged.read_bytes()
        damaged.write_bytes(content[:40] + b"\0" * (len(content) - 40))
    assert ANSWER == run(filled)[0]
    assert [ANSWER, "1 0", "no compiler"] == run(filled)


def test_a_folder_that_cannot_be_written_breaks_nothing(tmp_path: Path) -> None:
    not_a_folder = tmp_path / "file"
    not_a_folder.write_text("")
    assert [ANSWER, "0 1", "compiler"] == run(not_a_folder)


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MILLSTREAM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert Path("/somewhere/millstream") == cache_directory()
    monkeypatch.setenv("MILLSTREAM_CACHE", "/elsewhere")
    assert Path("/elsewhere") == cache_directory()


def test_what_is_kept_follows_what_it_is_compiled_with_and_nothing_else() -> None:
    source = "from millstream.kernels.loop.scalar_numbers import *\n"
    reached = {path.name for path in cache._reached(cache._imported(source))}
    assert reached >= {"scalar_numbers.py", "scalar_arrays.py", "scalar_lift.py", "compiled.py"}
    assert "cube.py" not in reached
    assert digest_of_parts(source) != digest_of_parts("from millstream.kernels.windows import tree")
    # What is inlined from elsewhere, and numbers of elsewhere, belong to it.
    sums = "from millstream.kernels.windows import sums\n"
    inside = {path.name for path in cache._reached(cache._imported(sums))}
    assert inside >= {"sums.py", "rounding.py", "aggregation.py"}
    windows = {path.name for path in cache._imported("from millstream.kernels.windows import (\n")}
    assert "tree.py" in windows  # a package gives modules of any name
