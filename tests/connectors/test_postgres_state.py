"""What stands of a relation, as a table of PostgreSQL."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.calculus.types import INTEGER, NUMBER, TEXT, TIME, QueueType, Row, Schema
from millstream.connectors.location import parse_location
from millstream.connectors.outputs import writer_of
from millstream.errors import RunError, UsageError
from millstream.plan.batch import Batch, batch_of
from tests.connectors.database import server

postgres = pytest.importorskip("millstream.connectors.postgres")
TYPE = QueueType(Schema.of(k=TEXT, x=NUMBER, at=TIME), is_relation=True)
NAMES = itertools.count()
Change = tuple[Row, int]


def changes(*given: Change) -> Batch:
    rows = [row for row, _ in given]
    return batch_of(TYPE, list(range(len(rows))), rows, [weight for _, weight in given])


@pytest.fixture
def place() -> str:
    return f"{server()}&table=state_{next(NAMES)}"


def writer_at(place: str) -> Any:
    return writer_of("out", parse_location(f"{place}&state", Path()), TYPE, is_following=True)


def standing(place: str) -> list[tuple[Any, ...]]:
    location = parse_location(place, Path())
    assert location.database is not None
    with postgres.connect(location) as connection:
        asked = f"SELECT k, x, _count FROM {location.database.table} ORDER BY k, x"
        found: list[tuple[Any, ...]] = connection.execute(asked).fetchall()
    return found


A, B, N = ("a", 0.1, 5), ("b", float("nan"), None), (None, -0.0, 5)


def test_changes_are_added_once_with_their_batch(place: str) -> None:
    writer = writer_at(place)
    assert writer.open("job", fresh=True) == 0
    first = changes((A, 1), (A, 1), (B, 1), (N, 1))
    writer.write_batch(0, first)
    writer.write_batch(0, first)
    assert [row[::2] for row in standing(place)] == [("a", 2), ("b", 1), (None, 1)]
    writer.close()
    again = writer_at(place)
    assert again.open("job", fresh=False) == 1
    again.write_batch(1, changes((A, -1), (B, -1), (N, -1), (("c", 1.0, 1), 1)))
    assert standing(place) == [("a", 0.1, 1), ("c", 1.0, 1)]
    assert again.open("other", fresh=True) == 0
    again.write_batch(0, changes((B, 1)), [changes((A, 1)), changes((B, -1))])
    assert standing(place) == [("a", 0.1, 1)]
    again.close()


def test_a_batch_that_fails_leaves_what_stood(place: str) -> None:
    writer = writer_at(place)
    writer.open("job", fresh=True)
    writer.write_batch(0, changes((A, 1)))
    with pytest.raises(RunError, match="PostgreSQL cannot store"):
        writer.write_batch(1, changes((A, -1), (("\0", 1.0, 1), 1)))
    assert standing(place) == [("a", 0.1, 1)]
    writer.abort()


def test_a_run_writes_what_stands_at_its_end(place: str, tmp_path: Path) -> None:
    (tmp_path / "q.cql").write_text(
        "CREATE STREAM t (k TEXT, n INTEGER) TIME at;"
        "CREATE OUTPUT out AS SELECT k, SUM(n) AS x FROM t GROUP BY k;"
    )
    (tmp_path / "t.csv").write_text("at,k,n\n1,a,1\n2,b,2\n3,a,3\n")
    for _ in range(2):
        millstream.compile(tmp_path / "q.cql").run(outputs={"out": f"{place}?state"})
        assert standing(place) == [("a", 4, 1), ("b", 2, 1)]


def test_a_stream_and_another_table_are_refused(place: str) -> None:
    stream = QueueType(Schema.of(k=INTEGER))
    location = parse_location(f"{place}&state", Path())
    with pytest.raises(UsageError, match="is a stream, which has no state"):
        writer_of("out", location, stream, is_following=False)
    plain = writer_of("out", parse_location(place, Path()), TYPE, is_following=False)
    plain.close()
    with pytest.raises(UsageError, match='it has no column "_count"'):
        writer_at(place)
