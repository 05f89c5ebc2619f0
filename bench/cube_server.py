"""Questions to cubes: all vertices beside Polars, and by HTTP while rows come."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cube import ROWS, SECOND, SIZES, WINDOW, batches_of, program, sales
from millstream.olap.answer import answer
from millstream.olap.groups import Limits
from millstream.olap.program import served
from millstream.olap.question import read_question
from millstream.olap.store import CubeStore

CLIENTS, SECONDS, RATE = 8, 10.0, 200_000
_UNBOUNDED = Limits(groups=10**8, cells=10**8, seconds=3600)
_PROJECT = """
[stream.Sales]
source = "generator"
rows = 1000000000
seed = 1
rate = {rate}
interval = "5 us"
columns = {{ customer = "integer", part = "integer", supplier = "integer", store = "integer", \
amount = "integer" }}
generate = {{ customer = {{ min = 0, max = 2999 }}, part = {{ min = 0, max = 1999 }}, \
supplier = {{ min = 0, max = 199 }}, store = {{ min = 0, max = 49 }}, \
amount = {{ min = 1, max = 999 }} }}

[cube.c]
over = "Sales"
config = "cube.conf"
"""
_CONF = """
Dimensions = customer | part | supplier | store
TimeGrain = Second
CWindow = 10
MVertices = supplier, store | customer | part | supplier | store
OutputVertices = all
Measures = total: sum(amount), n: count()
"""


def queries(scale: float) -> list[dict[str, Any]]:
    """All 16 vertices of the window after a million sales, in milliseconds of processor time.

    Beside them Polars groups the same rows of the window (strings as categories). Best of five; the
    first time cells of kept vertices are put together is not counted.
    """
    columns, times = sales(int(ROWS * scale))
    made = program()
    _, (cube,) = served(made, ())
    store = CubeStore(cube)
    for batch in batches_of(made.inputs[0], columns, times):
        store.write(batch)
    first = (int(times[-1]) // SECOND - WINDOW) * SECOND
    frame = pl.DataFrame({"t": times, "amount": columns["amount"], **{
        name: pl.Series(columns[name]).cast(pl.Categorical) for name in SIZES}})  # fmt: skip
    window = frame.filter(pl.col("t") >= first)
    result = []
    for size in range(5):
        for by in itertools.combinations(SIZES, size):
            question = read_question({"rows": list(by)}, cube.function, cube.schema)
            answer(store.version, question, _UNBOUNDED)
            ours = [_timed(lambda q=question: answer(store.version, q, _UNBOUNDED))
                    for _ in range(5)]  # fmt: skip
            theirs = [_timed(lambda by=by: _grouped(window, by)) for _ in range(5)]
            made_by = min(ours)[1].answering["attributes"]
            assert np.isclose(
                sum(ours[0][1].cells.vectors[-2].values), float(window["amount"].sum())
            )
            result.append({
                "vertex": ", ".join(by) or "all", "cells": len(ours[0][1].cells),
                "kept": list(by) == made_by, "ms": round(min(t for t, _ in ours), 2),
                "polars ms": round(min(t for t, _ in theirs), 2),
            })  # fmt: skip
    return result


class _Timed(tuple[float, Any]):
    """Compared by the time alone."""

    __slots__ = ()

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        return bool(self[0] < other[0])


def _timed(action: Any) -> _Timed:
    given = time.process_time()
    made = action()
    return _Timed((1000 * (time.process_time() - given), made))


def _grouped(window: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    measures = (pl.col("amount").sum().alias("total"), pl.len().alias("n"))
    return window.group_by(by).agg(*measures) if by else window.select(*measures)


def by_http(scale: float) -> list[dict[str, Any]]:
    """Eight clients that ask for up to 1,000 cells while 200,000 rows a second come.

    Ingest is told beside what it is when nobody asks, in the same run.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "millstream.toml").write_text(_PROJECT.format(rate=int(RATE * scale)))
        Path(folder, "cube.conf").write_text(_CONF)
        command = [sys.executable, "-m", "millstream", "serve", folder, "--port", "0", "--follow"]
        server = subprocess.Popen(  # noqa: S603 - our own command
            command, stderr=subprocess.PIPE, text=True, env=os.environ
        )
        try:
            assert server.stderr is not None
            port = int(re.search(r":(\d+)$", server.stderr.readline().strip())[1])  # type: ignore[index]
            token = server.stderr.readline().split()[1]
            return [_asked(port, token)]
        finally:
            server.terminate()
            server.wait(60)


def _asked(port: int, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    while _read(port, headers) < 100_000:
        time.sleep(0.2)
    alone = _rate(port, headers, time.sleep)
    taken: list[float] = []

    def ask(seconds: float) -> None:
        end = time.perf_counter() + seconds
        threads = [threading.Thread(target=_client, args=(port, headers, end, taken, n))
                   for n in range(CLIENTS)]  # fmt: skip
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    asked = _rate(port, headers, ask)
    return {
        "questions": len(taken), "p50 ms": round(float(np.percentile(taken, 50)), 2),
        "p99 ms": round(float(np.percentile(taken, 99)), 2), "rows/s alone": int(alone),
        "rows/s asked": int(asked), "ratio": round(asked / alone, 2),
    }  # fmt: skip


def _rate(port: int, headers: dict[str, str], during: Any) -> float:
    before, started = _read(port, headers), time.perf_counter()
    during(SECONDS)
    return (_read(port, headers) - before) / (time.perf_counter() - started)


def _read(port: int, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/status", headers=headers)
    inputs = json.loads(connection.getresponse().read()).get("inputs", {})
    connection.close()
    return int(inputs["Sales"]["read"]) if inputs else 0


def _client(
    port: int, headers: dict[str, str], end: float, taken: list[float], number: int
) -> None:
    questions = [
        {"rows": ["supplier"]}, {"rows": ["store"], "grain": "Second"}, {"rows": []},
        {"rows": ["supplier"], "where": {"store": [1, 2, 3]}, "order": ["-total"], "limit": 20},
    ]  # fmt: skip
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for place in itertools.count(number):
        if time.perf_counter() > end:
            break
        started = time.perf_counter()
        body = json.dumps(questions[place % len(questions)])
        connection.request("POST", "/cubes/c/query", body, headers)
        reply = connection.getresponse()
        content = reply.read()
        assert reply.status == 200, content
        taken.append(1000 * (time.perf_counter() - started))
    connection.close()


BENCHMARKS = {"cube_queries": queries, "cube_http": by_http}
