"""Sawzall on the local engine beside what people would write by hand, with equal answers.

Figures are processor time, best of several, of one core each; reading the files is part of it.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sawzall_hand import (
    PATTERN,
    Answer,
    by_duckdb,
    by_numba,
    by_polars,
    lines_by_re,
    pairs_by_in,
    pairs_by_re,
    words_by_re,
)

T = TypeVar("T")
REPEATS = 3
QUERIES = """
r: {query: string, user: int, lat: float, lon: float, host_lat: float, host_lon: float} = input;
origins: table sum[lat: int][lon: int] of count: int;
targets: table sum[lat: int][lon: int] of count: int;
queries: table top(10) of query: string weight count: int;
users: table unique(1000000) of user: int;
emit origins[int(floor(r.lat))][int(floor(r.lon))] <- 1;
emit targets[int(floor(r.host_lat))][int(floor(r.host_lon))] <- 1;
emit queries <- r.query weight 1;
emit users <- r.user;
"""
LINES = f"""
hits: table sum[method: string][status: int] of int;
pages: table sum[page: string] of int;
sent: table sum[method: string] of int;
m := matchstrs(`{PATTERN}`, string(input));
if (len(m) > 0) {{
  emit hits[m[3]][int(m[5])] <- 1;
  emit pages[m[4]] <- 1;
  emit sent[m[3]] <- int(m[6]);
}}
"""
WORDS = """
count: table sum[word: string] of int;
words := sawzall(string(input), `[A-Za-z]+`);
for (i := 0; i < len(words); i++) emit count[lowercase(words[i])] <- 1;
"""
PAIRS = r"""
errors: table sum[host: string][status: int] of int;
line := string(input);
if (!match(`error`, line)) return;
host := saw(line, `^\S+`);
status := saw(line, skip `status=`, `^\d+`);
if (len(host) == 1 && len(status) == 1) emit errors[host[0]][int(status[0])] <- 1;
"""


def query_log(scale: float) -> list[dict[str, Any]]:
    """2 M queries in Parquet: origins and targets by whole degree, top 10 queries, all users."""
    rows = int(2_000_000 * scale)
    with tempfile.TemporaryDirectory() as folder:
        log, program = Path(folder, "log.parquet"), Path(folder, "log.szl")
        write_queries(log, rows)
        program.write_text(QUERIES)
        sides: dict[str, Callable[[], Answer | list[str]]] = {
            "Millstream": lambda: printed(program, log), "numba by hand": lambda: by_numba(log),
            "Polars": lambda: by_polars(log), "DuckDB": lambda: by_duckdb(log),
        }  # fmt: skip
        return compared(sides, rows, places_and_tops)


def lines(scale: float) -> list[dict[str, Any]]:
    """A program of one pattern with groups on the lines of a web log, beside Python with `re`."""
    return of_lines(LINES, write_access, {"re": lines_by_re}, scale)


def words(scale: float) -> list[dict[str, Any]]:
    """All words of lines, in lower case, counted; beside Python with `re`."""
    return of_lines(WORDS, write_text, {"re": words_by_re}, scale)


def pairs(scale: float) -> list[dict[str, Any]]:
    """Lines with a word, then two patterns on them; beside Python with `re`."""
    sides = {"re": pairs_by_re, "re, and in": pairs_by_in}
    return of_lines(PAIRS, write_errors, sides, scale)


def of_lines(
    text: str, write: Callable[[Path, int], None],
    by_hand: dict[str, Callable[[Path], dict[str, int]]], scale: float,
) -> list[dict[str, Any]]:  # fmt: skip
    rows = int(1_000_000 * scale)
    with tempfile.TemporaryDirectory() as folder:
        log, program = Path(folder, "lines.txt"), Path(folder, "lines.szl")
        write(log, rows)
        program.write_text(text)

        sides: dict[str, Callable[[], Any]] = {
            "Millstream": lambda: printed(program, log),
            **{name: partial(side, log) for name, side in by_hand.items()},
        }  # fmt: skip
        return compared(sides, rows, sums)


def sums(shown: list[str]) -> dict[str, int]:
    return {key: int(value) for key, value in (line.rsplit(" = ", 1) for line in shown)}


def compared(
    sides: dict[str, Callable[[], Any]], rows: int, read: Callable[[list[str]], Any]
) -> list[dict[str, Any]]:
    """What Millstream has printed is read again to be compared, which is not measured."""
    measured = {name: best(side) for name, side in sides.items()}
    mine = measured["Millstream"]
    expected = read(mine[1])
    for name, (_, answer) in measured.items():
        assert name == "Millstream" or answer == expected, f"{name} gives another answer"
    return [
        {"side": name, "rows": rows, "seconds": round(seconds, 3),
         "rows/s": int(rows / seconds), "Millstream is": f"{seconds / mine[0]:.2f} times as fast"}
        for name, (seconds, _) in measured.items()
    ]  # fmt: skip


def best(work: Callable[[], T]) -> tuple[float, T]:
    times = []
    work()  # what is compiled is compiled
    gc.freeze()  # as the command does: nobody looks for garbage among modules
    for _ in range(REPEATS):
        begun = time.process_time()
        answer = work()
        times.append(time.process_time() - begun)
    gc.unfreeze()
    return min(times), answer


# --- Millstream -----------------------------------------------------------------------------------


def places_and_tops(shown: list[str]) -> Answer:
    origins: dict[tuple[int, int], int] = {}
    targets: dict[tuple[int, int], int] = {}
    queries: list[tuple[str, int]] = []
    users = 0
    for line in shown:
        where, what = line.split(" = ")
        if where.startswith(("origins", "targets")):
            lat, lon = where[8:-1].split("][")
            (origins if where[0] == "o" else targets)[int(lat), int(lon)] = int(what)
        elif where == "queries[]":
            query, count, _ = what.split(", ")
            queries.append((query, int(count)))
        else:
            users = int(what)
    return origins, targets, queries, users


def printed(program: Path, log: Path) -> list[str]:
    from millstream.cli.main import main as millstream

    with caught() as file:
        status = millstream(["run", str(program), "--engine", "local", "--in", f"input={log}"])
    assert status == 0
    return file.read_text().splitlines()


@contextmanager
def caught() -> Iterator[Path]:
    """What is printed goes to a file."""
    handle, name = tempfile.mkstemp()
    kept = os.dup(1)
    sys.stdout.flush()
    os.dup2(handle, 1)
    try:
        yield Path(name)
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(handle)
        os.close(kept)


# --- data -----------------------------------------------------------------------------------------


def write_queries(path: Path, rows: int) -> None:
    chance = np.random.default_rng(3)
    share = 1 / np.arange(1, 50_001)
    codes = chance.choice(50_000, rows, p=share / share.sum())
    texts = pa.array([f"how to {n:x} the {n % 97}" for n in range(50_000)]).take(pa.array(codes))
    columns = {
        "query": texts, "user": chance.integers(0, 200_000, rows),
        "lat": chance.normal(40, 15, rows).clip(-90, 89.9),
        "lon": chance.normal(-60, 50, rows).clip(-180, 179.9),
        "host_lat": chance.normal(37, 5, rows).clip(-90, 89.9),
        "host_lon": chance.normal(-100, 20, rows).clip(-180, 179.9),
    }  # fmt: skip
    pq.write_table(pa.table(columns), path)


def write_access(path: Path, count: int) -> None:
    chance = random.Random(7)
    with path.open("w") as file:
        for _ in range(count):
            host = ".".join(str(chance.randrange(256)) for _ in range(4))
            request = f"{chance.choice(['GET', 'POST', 'PUT'])} /page{chance.randrange(1000)}.html"
            file.write(
                f'{host} - - [10/Oct/2025:13:55:36 +0000] "{request}?x=1&y=2 HTTP/1.0" '
                f"{chance.choice([200, 200, 404, 500])} {chance.randrange(100000)} "
                '"http://example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"\n'
            )


def write_text(path: Path, count: int) -> None:
    chance = random.Random(8)
    letters = str.maketrans("0123456789", "klmnopqrst")
    known = [f"{chance.choice('abcDEFgh')}{n:x}".translate(letters) for n in range(5000)]
    with path.open("w") as file:
        for _ in range(count):
            file.write(" ".join(chance.choices(known, k=8)) + ".\n")


def write_errors(path: Path, count: int) -> None:
    chance = random.Random(9)
    with path.open("w") as file:
        for _ in range(count):
            word = chance.choice(["error", "info", "debug"])
            file.write(
                f"web{chance.randrange(200)} 2026-02-10T12:00:00 {word}: took "
                f"{chance.random():.6f} status={chance.choice([200, 404, 500, 503])} "
                f"path=/a/b/c/{chance.randrange(9999)}\n"
            )


BENCHMARKS = {
    "sawzall queries": query_log, "sawzall lines": lines, "sawzall words": words,
    "sawzall pairs": pairs,
}  # fmt: skip
