"""A node with a partition has an instance of its program for every key."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.cli.main import main
from millstream.engine.local import batches as local
from tests.engine.test_partitions import in_tasks

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


#: How often a value stands in a row: how many items that takes, nobody knows beforehand.
RUNS = """int->int filter Runs {
    work pop [1, *] push 2 {
        int value = pop(), count = 1;
        while (peek(0) == value) { pop(); count++; }
        push(value); push(count);
    }
}
"""
MORE = """[stream.Halves]
source = "halves.csv"
columns = { value = "integer" }
[node.runs]
streamit = "runs.str"
inputs.items = "Halves"
outputs.Runs = "out"
[sink.Runs]
to = "runs.csv"
"""


def keys_and_changing_rates(folder: Path, **launched: Any) -> None:
    (folder / "runs.str").write_text(RUNS)
    halves = [n * 7 % 10 // 5 for n in range(30)]
    rows = [f"{n},{half}" for n, half in enumerate(halves)]
    (folder / "halves.csv").write_text("\n".join(["_time,value", *rows, ""]))
    (folder / "millstream.toml").write_text(PROJECT + MORE)
    millstream.compile(folder).run(**launched)
    assert expected(folder) == (folder / "smooth.csv").read_text().splitlines()[1:]
    runs = [n for value, run in groupby(halves) for n in (value, len(list(run)))]
    written = [int(row.split(",")[1]) for row in (folder / "runs.csv").read_text().splitlines()[1:]]
    assert runs[:-2] == written  # whether the last run goes on is not known


def test_keys_and_changing_rates_in_one_project(folder: Path) -> None:
    keys_and_changing_rates(folder, engine="local")


def test_what_has_no_key_is_told(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = PROJECT.replace('partition = "sym"', 'partition = "sim"')
    (folder / "millstream.toml").write_text(text)
    assert 2 == main(["check", "."])
    assert 'items has no column "sim"' in capfd.readouterr().err
    (folder / "smooth.str").write_text("void->void filter F { work { println(1); } }")
    assert 2 == main(["check", "."])
    assert "takes items and gives items" in capfd.readouterr().err


COPIES = """output copies; input Trades(sym text, value integer);
(copies) <- FlatMap[emit sym, value; when value > 3 emit sym = "X", value = 1 - value;
    emit sym = "Y", value = 7](Trades);
"""


@pytest.mark.parametrize("partitions", [1, 4])
def test_rows_made_of_one_keep_their_order_when_keys_part_them(
    folder: Path, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one rank once left several places in the order of these."""
    (folder / "copies.brook").write_text(COPIES)
    node = '[node.copies]\nbrook = "copies.brook"\ninputs.Trades = "Trades"\n'
    node += 'outputs.Copies = "copies"\n[node.smooth]'
    text = PROJECT.replace("[node.smooth]", node).replace('items = "Trades"', 'items = "Copies"')
    (folder / "millstream.toml").write_text(text)
    assert 0 == main(["run", ".", "--engine", "reference"])
    meant = (folder / "smooth.csv").read_text()
    monkeypatch.setattr(local, "run_batches", in_tasks(partitions))
    assert 0 == main(["run", ".", "--engine", "local", "--checkpoint", "state"])
    assert meant == (folder / "smooth.csv").read_text()
