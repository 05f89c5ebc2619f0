"""The end of a finite run: tables are told, and windows beside them stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream

PROJECT = """
[stream.Sales]
source = "sales/*.csv"
columns = { shop = "text", amount = "integer" }

[node.windows]
cql = "windows.cql"

[node.tables]
sawzall = "tables.szl"
inputs.input = "Sales"

[node.after]
cql = "after.cql"
"""
WINDOWS = """
CREATE STREAM Sales (shop TEXT, amount INTEGER);
CREATE OUTPUT Recent AS SELECT shop, amount FROM Sales [Range 10 microseconds];
"""
TABLES = """
total: table sum[shop: string] of amount: int;
best: table maximum(1)[shop: string] of amount: int weight w: int;
r: { shop: string, amount: int } = input;
emit total[r.shop] <- r.amount;
emit best[r.shop] <- r.amount weight r.amount;
"""
AFTER = """
CREATE RELATION total (shop TEXT, value INTEGER);
CREATE STREAM Sales (shop TEXT, amount INTEGER);
CREATE OUTPUT Both AS
SELECT s.shop, amount, value FROM Sales [Range 10 microseconds] AS s, total
WHERE s.shop = total.shop;
"""
FIRST = "_time,shop,amount\n1,a,5\n2,b,7\n11,a,1\n14,b,2\n"
THEN = "_time,shop,amount\n20,a,3\n21,c,9\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "sales").mkdir()
    for name, text in {
        "millstream.toml": PROJECT, "windows.cql": WINDOWS, "tables.szl": TABLES,
        "after.cql": AFTER, "sales/1.csv": FIRST,
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    return tmp_path


def _state(finished: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in finished.state(name))


def _is_as_after_the_first_file(finished: Any) -> None:
    assert [("a", 1), ("b", 2)] == _state(finished, "Recent")
    assert [1, 2, 11, 12, 13, 14] == sorted(row["_time"] for row in finished.rows("Recent"))
    assert [("a", 5, 5), ("b", 7, 7)] == _state(finished, "best")
    assert [("a", 1, 6), ("b", 2, 9)] == _state(finished, "Both")


@pytest.mark.parametrize("most", [0, 1_000], ids=["compiled", "walked"])
@pytest.mark.parametrize("options", [{"engine": "reference"}, {"engine": "actors"},
                                     {"engine": "local"}, {"engine": "local", "threads": 2}],
                         ids=str)  # fmt: skip
def test_tables_are_told_and_windows_beside_them_do_not_expire(
    project: Path, options: dict[str, Any], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.engine.reference.small.MOST_ROWS", most)
    _is_as_after_the_first_file(millstream.compile(project).run(**options))


def test_a_run_that_goes_on_after_the_end_tells_what_has_changed(
    project: Path, launched: dict[str, Any], tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    _is_as_after_the_first_file(millstream.compile(project).run(checkpoint=kept, **launched))
    (project / "sales/2.csv").write_text(THEN)
    finished = millstream.compile(project).run(checkpoint=kept, **launched)
    assert [("a", 1), ("a", 3), ("b", 2), ("c", 9)] == _state(finished, "Recent")
    assert [("a", 5, 5), ("b", 7, 7), ("c", 9, 9)] == _state(finished, "best")
    assert [("a", 1, 9), ("a", 3, 9), ("b", 2, 9), ("c", 9, 9)] == _state(finished, "Both")
