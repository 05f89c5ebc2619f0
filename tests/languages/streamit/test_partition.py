"""A node with a partition has an instance of its program for every key."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from millstream.cli.main import main

SMOOTH = """int->int pipeline Smooth {
    add splitjoin { split duplicate; add Total; add Identity<int>; join roundrobin; };
    add int->int filter { work pop 2 peek 4 push 1 { push(peek(0) + peek(3)); pop(); pop(); } };
}
int->int filter Total { int sum; work pop 1 push 1 { sum += pop(); push(sum); } }
"""
PROJECT = """[stream.Trades]
source = "trades.csv"
columns = { sym = "text", value = "integer" }
[node.smooth]
streamit = "smooth.str"
inputs.items = "Trades"
partition = "sym"
outputs.Smooth = "out"
[sink.Smooth]
to = "smooth.csv"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smooth.str").write_text(SMOOTH)
    (tmp_path / "millstream.toml").write_text(PROJECT)
    rows = [f"{n},{'ABC'[n * n % 5 % 3]},{n * 7 % 10}" for n in range(30)]
    (tmp_path / "trades.csv").write_text("\n".join(["_time,sym,value", *rows, ""]))
    return tmp_path


def expected(folder: Path) -> list[str]:
    """Every key for itself, in plain Python."""
    seen: dict[str, list[int]] = defaultdict(list)
    lines = []
    for row in (folder / "trades.csv").read_text().splitlines()[1:]:
        time, key, value = row.split(",")
        before = list(seen[key])
        seen[key].append(int(value))
        if before:
            lines.append(f"{time},{key},{sum(before) + int(value)}")
    return lines


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_every_key_has_an_instance(folder: Path, engine: str) -> None:
    assert 0 == main(["run", ".", "--engine", engine])
    assert expected(folder) == (folder / "smooth.csv").read_text().splitlines()[1:]


@pytest.mark.spark
def test_every_key_has_an_instance_on_spark(folder: Path) -> None:
    """In a process of its own: at its end it would stop the session of other tests."""
    subprocess.run([sys.executable, "-m", "millstream", "run", "."], cwd=folder, check=True)
    assert expected(folder) == (folder / "smooth.csv").read_text().splitlines()[1:]


def test_what_has_no_key_is_told(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = PROJECT.replace('partition = "sym"', 'partition = "sim"')
    (folder / "millstream.toml").write_text(text)
    assert 2 == main(["check", "."])
    assert 'items has no column "sim"' in capfd.readouterr().err
    (folder / "smooth.str").write_text("void->void filter F { work { println(1); } }")
    assert 2 == main(["check", "."])
    assert "takes items and gives items" in capfd.readouterr().err
