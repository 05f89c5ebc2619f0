"""Rows that meet values that change: how much memory that takes, in a process of its own.

A row each millisecond, a window of a second, and a value that changes with every row. Pairs of
rows and values are a thousand times as many as rows; none of this may be held at once. A process
that has loaded and compiled everything has some 250 MB.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.seeds import in_turn

MOST_MEGABYTES = 500

WINDOW = "S [Range 1 second]"
MEAN = f"(SELECT AVG(v) AS a FROM {WINDOW}) AS m"
QUERIES = {
    "more than the mean": f"SELECT k, v FROM {WINDOW} WHERE v > (SELECT AVG(v) FROM {WINDOW})",
    "at least all": f"SELECT k, v FROM {WINDOW} WHERE v >= ALL (SELECT v FROM {WINDOW})",
    "no more than any of a kind": f"""SELECT k, v FROM {WINDOW} AS s
        WHERE NOT EXISTS (SELECT k FROM {WINDOW} AS t WHERE t.k = s.k AND t.v > s.v)""",
    "a selective join": f"SELECT S.k, S.v, m.a FROM {WINDOW}, {MEAN} WHERE S.v > 2 * m.a - 1",
    "a difference": f"SELECT S.k, S.v FROM {WINDOW}, {MEAN} WHERE S.v - m.a > 490",
    "a join with a total": f"SELECT COUNT(*) AS n, MIN(a) AS l FROM {WINDOW}, {MEAN}",
    "all pairs of few keys": f"""SELECT COUNT(*) AS n FROM {WINDOW} AS s, {WINDOW} AS t
        WHERE s.k = t.k""",
    "the whole relation each time": f"SELECT Rstream(k, v) FROM {WINDOW}",
}

#: Runs a query on so many rows, some of them together at each instant; tells how many rows came
#: out, and the most memory it had.
CHILD = """
import json, sys
import numpy as np
from millstream.engine.job import Job
from millstream.engine.local.run import run
from millstream.connectors.chunks import Chunk
from millstream.languages.cql.load import load
from millstream.optimiser.optimise import optimise
from millstream.plan.batch import Batch, Vector
from millstream.source import Source

class Reader:
    def __init__(self, batch): self.batch = batch
    def chunks(self): yield Chunk(self.batch)
    def close(self): pass

class Writer:
    rows = 0
    def write(self, batch): self.rows += len(batch)

query, count, together = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
text = f"CREATE STREAM S (k INTEGER, v INTEGER); {query};"
program = optimise(load(Source("test.cql", text)).program)
(one,), (output,) = program.inputs, program.outputs
values = np.arange(count) % 7, np.random.default_rng(1).integers(0, 1000, count)
columns = tuple(Vector(f.type, v) for f, v in zip(one.type.schema, values))
batch = Batch(one.type, np.arange(count, dtype=np.int64) // together * 1000, columns)
writer = Writer()
run(Job(program, {one.name: Reader(batch)}, {output: writer}))
# Not getrusage: what that tells counts the process this one was born of.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([writer.rows, int(peak.split()[1]) // 1024]))
"""


def peak(query: str, rows: int, together: int = 1) -> tuple[int, int]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, query, str(rows), str(together)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    told, megabytes = json.loads(done.stdout.splitlines()[-1])
    return told, megabytes


@pytest.mark.parametrize("query", in_turn([*QUERIES], 3))
def test_values_that_change_with_every_row_take_little_memory(query: str) -> None:
    told, megabytes = peak(QUERIES[query], 20_000)
    assert told > 0
    assert megabytes < MOST_MEGABYTES


@pytest.mark.slow
@pytest.mark.parametrize("query", in_turn([*QUERIES]))
def test_ten_times_the_rows_take_no_more_memory(query: str) -> None:
    told, megabytes = peak(QUERIES[query], 200_000)
    assert told > 0
    assert megabytes < MOST_MEGABYTES


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.v, t.v AS w FROM S [Now] AS s, S [Now] AS t WHERE s.v + t.v = 1998",
        "SELECT MAX(s.v * t.v) AS most FROM S [Now] AS s, S [Now] AS t",
    ],
    ids=["a condition", "a sum"],
)
def test_all_pairs_of_the_rows_of_an_instant_are_never_there_at_once(query: str) -> None:
    """Of 4,000 rows of an instant there are 16 million pairs."""
    told, megabytes = peak(query, 8_000, together=4_000)
    assert told > 0
    assert megabytes < MOST_MEGABYTES
