"""What people would write instead of a Sawzall program: loops of numba, Polars, DuckDB, `re`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numba import njit

#: Origins and targets by whole degree, the top 10 queries, and how many users there were.
Answer = tuple[dict[tuple[int, int], int], dict[tuple[int, int], int], list[tuple[str, int]], int]

PATTERN = r'^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) ([^ ?"]+)[^"]*" (\d+) (\d+)'


@njit(cache=True)
def _count(
    lat: Any, lon: Any, host_lat: Any, host_lon: Any, user: Any, query: Any, size: int
) -> Any:
    origins = np.zeros((181, 361), np.int64)
    targets = np.zeros((181, 361), np.int64)
    queries = np.zeros(size, np.int64)
    users = set([np.int64(-1)])  # noqa: C405 (what numba reads)
    for n in range(len(lat)):
        origins[int(np.floor(lat[n])) + 90, int(np.floor(lon[n])) + 180] += 1
        targets[int(np.floor(host_lat[n])) + 90, int(np.floor(host_lon[n])) + 180] += 1
        queries[query[n]] += 1
        users.add(user[n])
    return origins, targets, queries, len(users) - 1


def by_numba(path: Path) -> Answer:
    table = pq.read_table(path, use_threads=False)
    texts = table["query"].combine_chunks().dictionary_encode()
    names = ("lat", "lon", "host_lat", "host_lon", "user")
    columns = [table[name].to_numpy() for name in names]
    codes = texts.indices.to_numpy()
    origins, targets, queries, users = _count(*columns, codes, len(texts.dictionary))
    named = texts.dictionary.to_pylist()
    best = sorted(range(len(named)), key=lambda n: (-queries[n], named[n]))[:10]
    return _cells(origins), _cells(targets), [(named[n], int(queries[n])) for n in best], int(users)


def _cells(counts: Any) -> dict[tuple[int, int], int]:
    rows, columns = np.nonzero(counts)
    values = counts[rows, columns].tolist()
    keys = zip((rows - 90).tolist(), (columns - 180).tolist(), strict=True)
    return dict(zip(keys, values, strict=True))


def by_polars(path: Path) -> Answer:
    rows = pl.read_parquet(path)

    def places(lat: str, lon: str) -> dict[tuple[int, int], int]:
        whole = (pl.col(c).floor().cast(pl.Int64).alias(c) for c in (lat, lon))
        counts = rows.select(*whole).group_by(lat, lon).len()
        return {(a, o): n for a, o, n in counts.iter_rows()}

    best = rows.group_by("query").len().sort(["len", "query"], descending=[True, False]).head(10)
    return (
        places("lat", "lon"), places("host_lat", "host_lon"),
        list(best.iter_rows()), rows["user"].n_unique(),
    )  # fmt: skip


def by_duckdb(path: Path) -> Answer:
    con = duckdb.connect(config={"threads": 1})

    def places(lat: str, lon: str) -> dict[tuple[int, int], int]:
        columns = f"floor({lat})::bigint, floor({lon})::bigint, count(*)"
        asked = f"select {columns} from read_parquet(?) group by 1, 2"  # noqa: S608
        return {(a, o): n for a, o, n in con.execute(asked, [str(path)]).fetchall()}

    best = con.execute(
        "select query, count(*) as n from read_parquet(?) group by 1 order by n desc, 1 limit 10",
        [str(path)],
    ).fetchall()
    users = con.execute("select count(distinct user) from read_parquet(?)", [str(path)]).fetchone()
    assert users is not None
    return places("lat", "lon"), places("host_lat", "host_lon"), best, users[0]


def lines_by_re(path: Path) -> dict[str, int]:
    """The lines of a log, counted by method and status, by page, and added up by method."""
    pattern = re.compile(PATTERN)
    found: dict[str, int] = defaultdict(int)
    with path.open() as file:
        for line in file:
            match = pattern.search(line.rstrip("\n"))
            if match:
                found[f"hits[{match[3]}][{int(match[5])}]"] += 1
                found[f"pages[{match[4]}]"] += 1
                found[f"sent[{match[3]}]"] += int(match[6])
    return dict(found)


def words_by_re(path: Path) -> dict[str, int]:
    pattern = re.compile(r"[A-Za-z]+")
    found: dict[str, int] = defaultdict(int)
    with path.open() as file:
        for line in file:
            for word in pattern.findall(line):
                found[f"count[{word.lower()}]"] += 1
    return dict(found)


def pairs_by_re(path: Path) -> dict[str, int]:
    word = re.compile("error")
    return _pairs(path, lambda line: word.search(line) is not None)


def pairs_by_in(path: Path) -> dict[str, int]:
    """The word is looked for without a pattern."""
    return _pairs(path, lambda line: "error" in line)


def _pairs(path: Path, has_word: Callable[[str], bool]) -> dict[str, int]:
    first, second = re.compile(r"^\S+"), re.compile(r"status=(\d+)")
    found: dict[str, int] = defaultdict(int)
    with path.open() as file:
        for line in file:
            if not has_word(line):
                continue
            host, status = first.search(line), second.search(line)
            if host and status:
                found[f"errors[{host[0]}][{int(status[1])}]"] += 1
    return dict(found)
