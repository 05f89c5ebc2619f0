"""Cubes in CQL and in projects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import millstream
from millstream.errors import MillstreamError
from millstream.olap.program import served

CONFIG = """\
Dimensions = part | customer
TimeGrain = Second
CWindow = 3
OutputVertices = part
Measures = total: sum(amount), n: count()
"""
STREAM = "CREATE STREAM sales (part TEXT, customer TEXT, amount INTEGER, at TIMESTAMP) TIME at;\n"
SALES = [("a", "x", 1, 1), ("b", "x", 2, 2), ("a", "y", 4, 1_500_000), ("a", "y", 4, 4_000_000)]
EXPECTED = [
    (1_000_000, 1, "a", 0, 1, 1), (1_000_000, 1, "b", 0, 2, 1),
    (2_000_000, 1, "a", 1_000_000, 4, 1),
    (4_000_000, -1, "a", 0, 1, 1), (4_000_000, -1, "b", 0, 2, 1),
]  # fmt: skip


def written(folder: Path, **files: str) -> Path:
    rows = [
        json.dumps(dict(zip(("part", "customer", "amount", "at"), r, strict=True))) for r in SALES
    ]
    (folder / "sales.jsonl").write_text("\n".join(rows))
    (folder / "c.conf").write_text(CONFIG)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def rows_of(path: Path) -> list[tuple[object, ...]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [(r["_time"], r["_weight"], r["part"], r["time"], r["total"], r["n"]) for r in lines]


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize(
    "query", ["sales", "SELECT * FROM sales [Unbounded]", "SELECT ISTREAM(*) FROM sales [Now]"]
)
def test_a_cube_of_a_query(tmp_path: Path, engine: str, query: str) -> None:
    text = f"{STREAM}CREATE CUBE c FROM {query} WITH 'c.conf';"
    job = millstream.compile(written(tmp_path, c_cql=text) / "c.cql")
    out = tmp_path / "out.jsonl"
    job.run(engine=engine, inputs={"sales": tmp_path / "sales.jsonl"}, outputs={"c": out})
    assert EXPECTED == rows_of(out)


def test_variances_of_integers_are_those_of_numbers(tmp_path: Path) -> None:
    text = f"{STREAM}CREATE CUBE c FROM sales WITH 'v.conf';"
    measures = "Measures = variance(amount), var_pop(amount), n: count()"
    conf = CONFIG.replace("OutputVertices = part", "OutputVertices = all")
    conf = conf.replace("Measures = total: sum(amount), n: count()", measures)
    job = millstream.compile(written(tmp_path, c_cql=text, v_conf=conf) / "c.cql")
    out = tmp_path / "out.jsonl"
    job.run(engine="reference", inputs={"sales": tmp_path / "sales.jsonl"}, outputs={"c": out})
    first, *_ = (json.loads(line) for line in out.read_text().splitlines())
    assert (0.5, 0.25, 2) == (first["variance_amount"], first["var_pop_amount"], first["n"])


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_cube_over_the_output_of_a_node(tmp_path: Path, engine: str) -> None:
    project = """
        [stream.sales]
        source = "sales.jsonl"
        columns = { part = "text", customer = "text", amount = "integer", at = "time" }
        time = "at"
        [node.big]
        cql = "big.cql"
        [cube.c]
        over = "Big"
        config = "c.conf"
        [sink.c]
        to = "out.jsonl"
    """
    query = f"{STREAM}CREATE OUTPUT Big AS SELECT ISTREAM(*) FROM sales [Now];"
    written(tmp_path, millstream_toml=project, big_cql=query)
    millstream.compile(tmp_path).run(engine=engine)
    assert EXPECTED == rows_of(tmp_path / "out.jsonl")


def complaint(path: Path) -> str:
    with pytest.raises(MillstreamError) as caught:
        millstream.compile(path)
    return str(caught.value)


def test_a_cube_of_a_relation_is_told_to_take_what_comes(tmp_path: Path) -> None:
    text = f"{STREAM}CREATE CUBE c FROM SELECT * FROM sales [Rows 5] WITH 'c.conf';"
    told = complaint(written(tmp_path, c_cql=text) / "c.cql")
    assert "a cube is made of a stream, but this query is a relation" in told
    assert "ISTREAM(*)" in told


def test_faults_of_a_configuration_are_told_with_those_of_the_query(tmp_path: Path) -> None:
    text = f"{STREAM}CREATE CUBE c FROM SELECT part FROM sales [Unbounded] WITH 'c.conf';"
    told = complaint(written(tmp_path, c_cql=text + "SELECT prat FROM sales;") / "c.cql")
    assert 'c.conf:1:21: unknown attribute "customer"' in told
    assert 'c.conf:5:23: unknown column "amount"' in told
    assert 'unknown column "prat"' in told


def test_a_missing_configuration_is_told_where_it_is_named(tmp_path: Path) -> None:
    text = f"{STREAM}CREATE CUBE c FROM SELECT * FROM sales [Unbounded]"
    written(tmp_path, c_cql=f"{text} WITH 'd.conf';", d_cql=f"{text};")
    told = complaint(tmp_path / "c.cql")
    assert 'c.cql:2:57: cannot read "d.conf"' in told
    assert "expected WITH 'config.conf'" in complaint(tmp_path / "d.cql")


def test_rows_that_cancel_out_are_warned_of(tmp_path: Path) -> None:
    text = f"{STREAM}CREATE CUBE c FROM SELECT ISTREAM(*) FROM sales [Rows 5] WITH 'c.conf';"
    job = millstream.compile(written(tmp_path, c_cql=text) / "c.cql")
    (warning,) = job.warnings()
    assert "misses rows that are equal to one that leaves" in warning.message


def test_a_cube_in_a_project_needs_a_stream_and_a_file(tmp_path: Path) -> None:
    told = complaint(written(tmp_path, millstream_toml="[cube.c]\nofer = 'x'\n"))
    assert 'unknown key "ofer" in [cube.c]' in told
    assert '[cube.c] needs "over"' in told and '[cube.c] needs "config"' in told
    (tmp_path / "millstream.toml").write_text(
        "[node.c]\ncube = 'c.conf'\nover='s'\ninputs.s = 't'\n"
    )
    assert 'a cube has no "inputs"' in complaint(tmp_path)
    alone = complaint(tmp_path / "c.conf")
    assert "a configuration is of a cube over a stream" in alone


@pytest.mark.parametrize("outputs", ["OutputVertices = none", ""])
def test_a_cube_that_nothing_leaves_is_there_to_be_asked(tmp_path: Path, outputs: str) -> None:
    conf = CONFIG.replace("OutputVertices = part", outputs)
    text = f"{STREAM}CREATE CUBE c FROM sales WITH 'n.conf';"
    folder = written(tmp_path, c_cql=text, n_conf=conf)
    project = """
        [stream.sales]
        source = "sales.jsonl"
        columns = { part = "text", customer = "text", amount = "integer", at = "time" }
        time = "at"
        [cube.c]
        over = "sales"
        config = "n.conf"
    """
    (folder / "millstream.toml").write_text(project)
    for path in (folder, folder / "c.cql"):
        compiled = millstream.compile(path)
        assert () == compiled.program.outputs
        given = {"sales": folder / "sales.jsonl"}
        for engine in ("reference", "local"):
            counts = compiled.run(engine=engine, inputs=given).report.inputs["sales"]
            assert (4, 4) == (counts.read, counts.processed)
        _, (cube,) = served(compiled.program, ())
        assert ("c", ()) == (cube.name, cube.function.outputs)


def test_counts_of_all_rows_may_have_a_star(tmp_path: Path) -> None:
    conf = CONFIG.replace("n: count()", "n: count( * ), sum(*)")
    text = f"{STREAM}CREATE CUBE c FROM sales WITH 'n.conf';"
    told = complaint(written(tmp_path, c_cql=text, n_conf=conf) / "c.cql")
    assert "sum is of a column" in told and 1 == told.count("n.conf")
