"""Pipes: queries 2 and 3 of the paper, steps as in CQL, and what is wrong at its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.errors import MillstreamError
from millstream.olap.program import served

PROJECT = """
    [stream.LINEORDER]
    source = "orders.jsonl"
    columns = { CustomerID = "integer", PartID = "integer", SupplierID = "integer", StoreID = "integer", ExtendedPrice = "number", at = "time" }
    time = "at"
    [relation.CUSTOMER]
    source = "customer.jsonl"
    columns = { CustomerID = "integer", CName = "text" }
    once = true
    [relation.PART]
    source = "part.jsonl"
    columns = { PartID = "integer", PName = "text" }
    once = true
    [node.q]
    pipes = "q.jaql"
"""  # noqa: E501
QUERY_2 = """
    stream1 = readFromWrapper("LINEORDER");
    dim1 = read("CUSTOMER");
    dim2 = read("PART");
    tmp1 = stream1 -> window[rows n];
    j1 = join f in tmp1, d1 in dim1 where f.CustomerID == d1.CustomerID
         into {d1.CName, f.PartID, f.StoreID, f.ExtendedPrice};
    j2 = join r in j1, d2 in dim2 where r.PartID == d2.PartID
         into {r.CName, d2.PName, r.StoreID, r.ExtendedPrice};
    j2 -> istream -> cubify(config.conf);
"""
CONFIG = """
    Dimensions = CName | PName | StoreID
    TimeGrain = Second
    CWindow = 5
    OutputVertices = CName
    Measures = total: sum(ExtendedPrice), n: count()
"""
ORDERS = [(1, 10, 5, 7, 2.5, 1), (2, 10, 5, 7, 1.0, 2), (1, 11, 5, 8, 4.0, 900_000),
          (1, 11, 5, 8, 8.0, 1_200_000), (1, 10, 5, 8, 8.0, 7_100_000)]  # fmt: skip


def lines(names: str, rows: list[tuple[Any, ...]]) -> str:
    return "\n".join(json.dumps(dict(zip(names.split(), row, strict=True))) for row in rows)


def written(folder: Path, query: str, config: str = CONFIG) -> Path:
    columns = "CustomerID PartID SupplierID StoreID ExtendedPrice at"
    (folder / "orders.jsonl").write_text(lines(columns, ORDERS))
    (folder / "customer.jsonl").write_text(lines("CustomerID CName", [(1, "ann"), (2, "bob")]))
    (folder / "part.jsonl").write_text(lines("PartID PName", [(10, "nut"), (11, "bolt")]))
    (folder / "millstream.toml").write_text(PROJECT)
    (folder / "q.jaql").write_text(query)
    (folder / "config.conf").write_text(config)
    return folder


def run(folder: Path, output: str, engine: str = "local", **names: str) -> list[dict[str, Any]]:
    out = folder / "out.jsonl"
    millstream.compile(folder, names=names).run(engine=engine, outputs={output: out})
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_query_2_makes_a_cube_of_joined_rows(tmp_path: Path, engine: str) -> None:
    rows = run(written(tmp_path, QUERY_2), "cube", engine, n="10000")
    told = [(r["_time"], r["_weight"], r["CName"], r["time"], r["total"], r["n"]) for r in rows]
    assert [
        (1_000_000, 1, "ann", 0, 6.5, 2), (1_000_000, 1, "bob", 0, 1.0, 1),
        (2_000_000, 1, "ann", 1_000_000, 8.0, 1),
        (6_000_000, -1, "ann", 0, 6.5, 2), (6_000_000, -1, "bob", 0, 1.0, 1),
        (7_000_000, -1, "ann", 1_000_000, 8.0, 1),
    ] == told  # fmt: skip


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_query_3_streams_what_comes_into_a_cube(tmp_path: Path, engine: str) -> None:
    query = 'stream = readFromWrapper("LINEORDER", true); stream -> cubify(config.conf) -> istream;'
    config = CONFIG.replace("CName | PName | StoreID", "StoreID").replace("= CName", "= StoreID")
    rows = run(written(tmp_path, query, config), "cube", engine)
    assert [(1_000_000, 7, 3.5), (1_000_000, 8, 4.0), (2_000_000, 8, 8.0)] == [
        (r["_time"], r["StoreID"], r["total"]) for r in rows
    ]


def test_steps_mean_what_they_mean_in_cql(tmp_path: Path) -> None:
    query = """
        s = readFromWrapper("LINEORDER") -> filter $.StoreID == 8 and $.ExtendedPrice > 2
            -> transform {$.PartID, twice: $.ExtendedPrice * 2};
        s -> window[range 1 second] -> group by part = $.PartID into {part, total: sum($[*].twice),
            n: count($[*])} -> istream;
    """
    rows = run(written(tmp_path, query), "query1")
    assert [(900_000, 11, 8.0, 1), (1_200_000, 11, 24.0, 2), (1_900_001, 11, 16.0, 1),
            (7_100_000, 10, 16.0, 1)] == [
        (r["_time"], r["part"], r["total"], r["n"]) for r in rows
    ]  # fmt: skip


def complaint(folder: Path, query: str, config: str = CONFIG, **names: str) -> str:
    with pytest.raises(MillstreamError) as caught:
        millstream.compile(written(folder, query, config), names=names)
    return str(caught.value)


def test_a_name_that_is_not_set_is_told(tmp_path: Path) -> None:
    told = complaint(tmp_path, QUERY_2)
    assert 'q.jaql:5:35: "n" is not set' in told and "--set n=10000" in told
    assert "unknown name" not in told


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ('s = readFromWrapper("LINEORDER"); t -> istream;', '1:35: unknown name "t"'),
        ('readFromWrapper("LINEORDER") -> fliter $.at;', "expected a step"),
        ('readFromWrapper("LINEORDER") -> filter $.StorID == 1;', 'unknown column "StorID"'),
        ('readFromWrapper("LINEORDER") -> filter $.PartID > least;', "--set least=10000"),
        ('readFromWrapper("LINEORDER") -> istream;', "istream takes a relation"),
        ('readFromWrapper("LINORDER") -> filter $.a == 1;', 'columns of "LINORDER" are not known'),
        ('read("PART") -> window[now];', "a window is of a stream"),
        ('readFromWrapper("LINEORDER") -> window[rows 3] -> cubify(config.conf);',
         "a cube is made of a stream, but this is a relation"),
        ('readFromWrapper("LINEORDER") -> cubify(none.conf);', 'cannot read "none.conf"'),
        ('readFromWrapper("LINEORDER") -> cubify();', "cubify needs a configuration"),
        ('readFromWrapper("LINEORDER") -> cubify("");', "cubify needs a configuration"),
        ('readFromWrapper("LINEORDER") -> cubify(config.conf);', 'unknown attribute "CName"'),
        ('readFromWrapper("PART") -> filter true; read("PART");', "as a stream and as a relation"),
        ("", "this file has no pipe"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(tmp_path: Path, query: str, told: str) -> None:
    assert told in complaint(tmp_path, query)


def test_a_relation_is_told_to_become_a_stream_first(tmp_path: Path) -> None:
    query = 'readFromWrapper("LINEORDER") -> window[rows 3] -> cubify(config.conf);'
    assert "-> istream -> cubify(...)" in complaint(tmp_path, query)


def test_values_of_names_are_for_programs_that_take_them(tmp_path: Path) -> None:
    file = tmp_path / "q.cql"
    file.write_text("CREATE STREAM S (a INTEGER); SELECT a FROM S [Rows 3];")
    with pytest.raises(MillstreamError, match="no program here takes n"):
        millstream.compile(file, names={"n": "3"})


def test_rows_that_cancel_out_are_warned_of(tmp_path: Path) -> None:
    job = millstream.compile(written(tmp_path, QUERY_2), names={"n": "10000"})
    (warning,) = job.warnings()
    assert "misses rows that are equal to one that leaves" in warning.message


def test_a_project_sets_names_and_gives_streams_others(tmp_path: Path) -> None:
    written(tmp_path, QUERY_2.replace('"LINEORDER"', '"Orders"'))
    more = 'set = { n = 3 }\n    inputs = { Orders = "LINEORDER" }\n'
    (tmp_path / "millstream.toml").write_text(f"{PROJECT}    {more}")
    assert 6 == len(run(tmp_path, "cube"))


def test_a_name_that_nothing_is_made_of_is_told(tmp_path: Path) -> None:
    named = 'total = readFromWrapper("LINEORDER") -> window[rows 3] -> filter $.PartID == 10;'
    with pytest.raises(MillstreamError) as caught:
        millstream.compile(written(tmp_path, named))
    assert "write the name alone" in str(caught.value)
    both = f'{named} other = readFromWrapper("LINEORDER"); other -> transform {{$.PartID}};'
    (warning,) = millstream.compile(written(tmp_path, both)).warnings()
    assert warning.message == 'nothing is made of "total"'
    assert not millstream.compile(written(tmp_path, f"{named} total;")).warnings()


def test_what_is_joined_may_be_pipes_and_keys_stand_in_expressions(tmp_path: Path) -> None:
    query = """
        // a comment, isn't it
        s = readFromWrapper("LINEORDER");
        j = join f in s -> window[now] -> filter $.ExtendedPrice > least,
                 c in read("CUSTOMER") -> filter $.CName == "ann"
            where f.CustomerID == c.CustomerID into {c.*, f.PartID, f.ExtendedPrice} -> istream;
        j -> window[unbounded] -> group by part = $.PartID % 10, who = $.CName
          into {name: concat(who, text(part)), odd: part == 1, all: sum($[*].ExtendedPrice) * part}
          -> istream;
    """
    rows = run(written(tmp_path, query), "query1", "reference", least="-2.5")
    assert [
        (1, "ann0", False, 0.0), (900_000, "ann1", True, 4.0), (1_200_000, "ann1", True, 12.0)
    ] == [(r["_time"], r["name"], r["odd"], r["all"]) for r in rows]  # fmt: skip
    kept = run(written(tmp_path, query), "query1", "reference", least="4.5")
    assert [(1_200_000, "ann1"), (7_100_000, "ann0")] == [(r["_time"], r["name"]) for r in kept]


def test_a_cube_inside_of_a_join_is_told_to_have_a_name(tmp_path: Path) -> None:
    query = 'j = join a in readFromWrapper("LINEORDER") -> cubify(config.conf), b in read("PART");'
    assert "a cube cannot be made inside of a join" in complaint(tmp_path, query)


def test_a_cube_may_be_there_to_be_asked_alone(tmp_path: Path) -> None:
    config = CONFIG.replace("OutputVertices = CName", "LatticeOutputVertices = none")
    compiled = millstream.compile(written(tmp_path, QUERY_2, config), names={"n": "3"})
    assert () == compiled.program.outputs
    compiled.run(engine="reference")
    _, (cube,) = served(compiled.program, ())
    assert ("cube", ()) == (cube.name, cube.function.outputs)
