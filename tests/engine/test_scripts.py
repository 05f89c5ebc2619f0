"""Scripts that follow their input, and that are killed: nothing is lost, nothing counted twice."""

from __future__ import annotations

import csv
import signal
from collections import Counter
from pathlib import Path

import pytest

from millstream.api import Compiled
from millstream.connectors.location import parse_location
from millstream.engine.points import VARIABLE
from millstream.languages.sawzall.translate import ProgramSettings, translated
from millstream.source import Source
from tests.engine.following import Following
from tests.engine.running import Commands

COUNTS = "n: table sum[word: string] of int;\nemit n[string(input)] <- 1;\n"


def changes_told(words: list[str], every: int, until: int) -> list[tuple[int, str, int, int]]:
    """What a table of counts tells at each multiple of `every`: what goes, and what comes."""
    before: Counter[str] = Counter()
    told = []
    for instant in range(every, until + 1, every):
        now = Counter(words[:instant])
        for word in sorted(now):
            if now[word] != before[word]:
                told += [(instant, word, before[word], -1)] if before[word] else []
                told.append((instant, word, now[word], 1))
        before = now
    return told


def test_tables_are_told_now_and_then_while_an_input_is_followed(tmp_path: Path) -> None:
    words = list("abacabadabacab")
    more = list("bbbcdaaaxyz!")  # the last one only shows that time has come so far
    folder = tmp_path / "lines"
    folder.mkdir()
    (folder / "1.txt").write_text("".join(f"{word}\n" for word in words))
    program = translated(Source("n.szl", COUNTS), tmp_path, ProgramSettings(every=5), {}).program
    given = {"inputs": {"input": parse_location("*.txt", folder)}, "engine": "local"}
    with Following(Compiled(program), given, tmp_path / "kept") as following:
        following.wait("read", len(words))
        (tmp_path / "2.txt").write_text("".join(f"{word}\n" for word in more))
        (tmp_path / "2.txt").rename(folder / "2.txt")
        following.wait("read", len(words) + len(more))
        following.finish()
    found = [(time, row[0], row[1], weight) for time, weight, row in following.rows("n")]
    assert changes_told(words + more, 5, 25) == sorted(found, key=lambda c: (c[0], c[1], c[3]))


PROGRAM = r"""
n: table sum[k: string] of int;
best: table maximum(3) of line: string weight w: int;
often: table top(2) of k: string weight w: int;
words := saw(string(input), `\w+`, `\d+$`);
assert(len(words) == 2, "no number");
emit n[words[0]] <- int(words[1]);
emit best <- string(input) weight int(words[1]);
emit often <- words[0] weight 1;
"""
LINES = [f"k{n % 7} {n * 37 % 101}" if n % 10 else f"bad {n}x" for n in range(1, 301)]


def expected() -> tuple[dict[str, int], list[str], list[str]]:
    sums: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    weighed = []
    for line in LINES:
        word, number = line.split()
        if not number.isdigit():
            continue
        sums[word] += int(number)
        counts[word] += 1
        weighed.append((-int(number), line))
    tops = sorted(counts, key=lambda w: (-counts[w], w))[:2]
    return dict(sums), [line for _, line in sorted(weighed)[:3]], tops


POINTS = ["mid-task@0", "after-manifest@2", "after-sink@3"]
ENGINES = [
    pytest.param("local", POINTS, id="local"),
    pytest.param("spark", ["mid-task@0", "after-manifest@1"], id="spark",
                 marks=[pytest.mark.spark, pytest.mark.proof]),
]  # fmt: skip


@pytest.mark.parametrize(("launcher", "points"), ENGINES)
def test_killed_script_loses_and_repeats_nothing(
    launcher: str, points: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "p.szl").write_text(PROGRAM)
    for number in range(6):
        part = LINES[50 * number : 50 * number + 50]
        (tmp_path / f"lines{number}.txt").write_text("".join(f"{line}\n" for line in part))
    commands = Commands(tmp_path)
    request.addfinalizer(commands.close)
    given = ["p.szl", "--in", "input=lines*.txt", "--engine", launcher, "--checkpoint", "kept"]
    given += [w for t in ("n", "best", "often") for w in ("--out", f"{t}={t}.csv")]
    armed = tmp_path / "armed"
    for point in points:
        environment = {"MILLSTREAM_BATCH_BYTES": "400", VARIABLE: f"{point}:{armed}"}
        running = commands.start(*given, environment=environment)
        armed.write_text(str(running.pid))
        assert running.finish() == -signal.SIGKILL, f"{point}: {running.errors()}"
    last = commands.start(*given, environment={"MILLSTREAM_BATCH_BYTES": "400"})
    assert last.finish() == 0, last.errors()
    sums, best, tops = expected()
    assert sums == {row["k"]: int(row["value"]) for row in rows_of(tmp_path / "n.csv")}
    assert sorted(best) == sorted(row["value"] for row in rows_of(tmp_path / "best.csv"))
    assert sorted(tops) == sorted(row["value"] for row in rows_of(tmp_path / "often.csv"))
    assert "30 rows were rejected" in last.errors()


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))
