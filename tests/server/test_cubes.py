"""Questions by HTTP, beside what DuckDB's GROUP BY gives for the same rows."""

from __future__ import annotations

import io
import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from httpx import Client

from millstream.olap.answer import answer
from millstream.olap.question import read_question
from millstream.server.serving import Serving, give_way
from tests.server.harness import add_file, project, running, wait_until

SECOND = 1_000_000
CUBE = "/cubes/Sales_cube"
Row = tuple[Any, ...]


def sales(count: int, seed: int = 1) -> list[Row]:
    """Rows in twenty seconds, with nulls, and a product that changes its kind."""
    rng = random.Random(seed)
    kinds = {"p": ["k"], "q": ["k", "l"], "r": ["l"], None: ["k"]}
    rows: list[Row] = []
    for time in sorted(rng.randrange(20 * SECOND) for _ in range(count)):
        product = rng.choice(["p", "q", "r", None])
        kind = rng.choice(kinds[product])
        rows.append((time, product, kind, rng.choice([1, 2, 3, None]), rng.randrange(-50, 100)))
    return rows


ROWS = sales(300)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Serving]]:
    with running(project(tmp_path_factory.mktemp("served"), ROWS)) as both:
        yield both


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE sales (t BIGINT, product TEXT, kind TEXT, shop BIGINT, amount BIGINT)"
    )
    connection.executemany("INSERT INTO sales VALUES (?, ?, ?, ?, ?)", [list(r) for r in ROWS])
    return connection


def ask(client: Client, question: dict[str, Any], path: str = "query") -> Any:
    reply = client.post(f"{CUBE}/{path}", json=question)
    assert reply.status_code == 200, reply.text
    return reply.json()


def grouped(
    database: duckdb.DuckDBPyConnection, by: list[str], first: int, last: int, where: str = "true",
    seconds: int = 0,
) -> Counter[Row]:  # fmt: skip
    """What DuckDB has of the partitions from the first to the last."""
    names = [*by, *([f"floor(t / {seconds * SECOND})::BIGINT * {seconds}"] if seconds else [])]
    keys = "".join(f"{n}, " for n in names)
    group = f"GROUP BY {', '.join(map(str, range(1, len(names) + 1)))}" if names else ""
    query = (
        f"SELECT {keys} sum(amount)::BIGINT, count(*), min(amount), max(amount), avg(amount) "
        f"FROM sales WHERE t >= {first * SECOND} AND t < {(last + 1) * SECOND} AND {where} {group}"
    )
    return Counter(database.execute(query).fetchall())


def cells(answer: Any, by: list[str]) -> Counter[Row]:
    names = [*by, "total", "n", "least", "most", "avg_amount"]
    return Counter(tuple(_seconds(c[n]) for n in names) for c in answer["cells"])


def _seconds(value: Any) -> Any:
    is_time = isinstance(value, str) and value.startswith("1970-01-01T00:00:")
    return int(value[17:19]) if is_time else value


LAST = ROWS[-1][0] // SECOND
VERTICES = [
    [], ["product"], ["kind"], ["shop"], ["product", "shop"], ["kind", "shop"], ["shop", "product"],
]  # fmt: skip


@pytest.mark.parametrize("by", VERTICES, ids=lambda by: "+".join(by) or "all")
def test_every_vertex_is_what_a_group_by_gives(
    asked: tuple[Client, Serving], database: duckdb.DuckDBPyConnection, by: list[str]
) -> None:
    """Whole window, by grains, and as of past steps."""
    client, _ = asked
    first = LAST - 5
    assert cells(ask(client, {"rows": by}), by) == grouped(database, by, first, LAST)
    for seconds, grain in ((1, "Second"), (2, "2 Seconds"), (5, "5 Seconds")):
        answer = ask(client, {"rows": by, "grain": grain})
        expected = grouped(database, by, first, LAST, seconds=seconds)
        assert cells(answer, [*by, "time"]) == expected
    for step in range(LAST - 3, LAST + 1):
        answer = ask(client, {"rows": by, "as_of": step * SECOND})
        assert cells(answer, by) == grouped(database, by, step - 5, step - 1)


def test_which_vertices_are_kept_shows_only_in_who_answers(
    asked: tuple[Client, Serving],
) -> None:
    client, _ = asked
    answer = ask(client, {"rows": ["kind"]})
    assert answer["asked"] == {"number": 2, "attributes": ["kind"], "grain": None}
    assert answer["answered_by"]["attributes"] == ["kind"]
    finer = ask(client, {"rows": ["kind"], "where": {"shop": [1, 2, 3, None]}})
    assert finer["answered_by"]["attributes"] == ["product", "shop"]
    assert finer["cells"] == answer["cells"]
    vertices = client.get(f"{CUBE}/lattice").json()["vertices"]
    assert [v["number"] for v in vertices if v["materialised"]] == [2, 3, 4]


def test_every_question_is_counted_also_one_that_is_asked_again(
    asked: tuple[Client, Serving],
) -> None:
    client, _ = asked

    def count() -> int:
        return int(client.get(f"{CUBE}/lattice").json()["vertices"][2]["asked"])

    before = count()
    assert ask(client, {"rows": ["kind"]}) == ask(client, {"rows": ["kind"]})
    assert count() == before + 2


WHERE: list[tuple[dict[str, Any], str]] = [
    ({"kind": "k"}, "kind = 'k'"),
    ({"product": ["p", None]}, "(product = 'p' OR product IS NULL)"),
    ({"product": {"not": ["p", None]}}, "NOT (coalesce(product, 'p') = 'p')"),
    ({"shop": {"from": 2}}, "shop >= 2"),
    ({"shop": {"from": 1, "to": 2}, "kind": {"like": "_"}}, "shop BETWEEN 1 AND 2"),
    ({"product": {"like": "q%"}}, "product LIKE 'q%'"),
    ({"product": {"from": "q"}}, "product >= 'q'"),
    ({"product": "' OR 1=1 --"}, "false"),
]


@pytest.mark.parametrize(("where", "sql"), WHERE)
def test_members_are_chosen_by_values_ranges_and_patterns(
    asked: tuple[Client, Serving], database: duckdb.DuckDBPyConnection,
    where: dict[str, Any], sql: str,
) -> None:  # fmt: skip
    client, _ = asked
    by = ["shop"]
    answer = ask(client, {"rows": by, "where": where})
    assert cells(answer, by) == grouped(database, by, LAST - 5, LAST, sql)


def test_times_are_chosen_by_partitions(
    asked: tuple[Client, Serving], database: duckdb.DuckDBPyConnection
) -> None:
    client, _ = asked
    answer = ask(client, {"rows": ["kind"], "time": {"last": 2}})
    assert cells(answer, ["kind"]) == grouped(database, ["kind"], LAST - 1, LAST)
    between = {"from": (LAST - 3) * SECOND, "to": (LAST - 1) * SECOND}
    answer = ask(client, {"rows": ["kind"], "time": between})
    assert cells(answer, ["kind"]) == grouped(database, ["kind"], LAST - 3, LAST - 2)


def test_the_first_of_each_parent_come_with_others_shares_and_totals(
    asked: tuple[Client, Serving], database: duckdb.DuckDBPyConnection
) -> None:
    client, _ = asked
    question = {
        "rows": ["kind", "shop"], "measures": ["n", "most"], "order": ["-n"], "limit": 2,
        "others": True, "share": ["n"], "totals": True,
    }  # fmt: skip
    answer = ask(client, question)
    expected = grouped(database, ["kind", "shop"], LAST - 5, LAST)
    for kind in ("k", "l"):
        counts = sorted((row[3] for row in expected if row[0] == kind), reverse=True)
        shown = [c for c in answer["cells"] if c["kind"] == kind]
        assert [c["n"] for c in shown] == [*counts[:2], sum(counts[2:])]
        assert [c["others"] for c in shown] == [None, None, len(counts) - 2]
        assert [c["n_share"] for c in shown] == [c["n"] / sum(counts) for c in shown]
        total = next(t for t in answer["totals"] if t.get("kind") == kind)
        assert total == {"kind": kind, "n": sum(counts), "most": max(c["most"] for c in shown)}
    assert answer["totals"][0]["n"] == sum(row[3] for row in expected)


def test_columns_are_members_and_an_earlier_period_stands_beside(
    asked: tuple[Client, Serving], database: duckdb.DuckDBPyConnection
) -> None:
    client, _ = asked
    answer = ask(client, {"rows": ["shop"], "columns": ["kind"], "measures": ["n"]})
    assert [c["name"] for c in answer["columns"]] == ["k / n", "l / n"]
    expected = {r[:2]: r[3] for r in grouped(database, ["shop", "kind"], LAST - 5, LAST)}
    assert {(c["shop"], k): c[f"{k} / n"] for c in answer["cells"] for k in "kl"} == {
        (s, k): expected.get((s, k)) for s in (1, 2, 3, None) for k in "kl"
    }
    question = {"rows": ["kind"], "measures": ["n"], "time": {"last": 2},
                "compare": {"earlier": "3 Seconds"}}  # fmt: skip
    before = {r[0]: r[2] for r in grouped(database, ["kind"], LAST - 4, LAST - 3)}
    for cell in ask(client, question)["cells"]:
        assert cell["n_before"] == before[cell["kind"]]
        assert cell["n_change"] == cell["n"] - cell["n_before"]


def test_steps_lead_from_one_question_to_the_next(asked: tuple[Client, Serving]) -> None:
    client, _ = asked
    query: dict[str, Any] = {"rows": ["product", "shop"], "measures": ["n"]}

    def step(kind: str, **what: Any) -> Any:
        made = ask(client, {"query": query, "step": what}, kind)
        assert made["answer"]["cells"] == ask(client, made["query"])["cells"]
        return made["query"]

    assert step("roll-up", attribute="product")["rows"] == ["kind", "shop"]
    assert step("roll-up", attribute="shop")["rows"] == ["product"]
    assert step("roll-up", dimension="kind")["rows"] == ["shop"]
    sliced = step("slice", attribute="shop", member=2)
    assert (sliced["rows"], sliced["where"]) == (["product"], {"shop": 2})
    diced = step("dice", where={"shop": [1, 2], "kind": "k"})
    assert diced["where"] == {"shop": [1, 2], "kind": "k"}
    assert step("pivot", attribute="shop")["columns"] == ["shop"]
    assert step("drill-down", grain=True)["grain"] == "Second"
    query = {"rows": ["kind"]}
    assert step("drill-down", attribute="kind")["rows"] == ["product"]
    assert step("drill-down", dimension="shop")["rows"] == ["kind", "shop"]
    vertices = client.get(f"{CUBE}/next?rows=kind").json()
    assert [v["attributes"] for v in vertices["up"]] == [[]]
    assert [v["attributes"] for v in vertices["down"]] == [["product"], ["kind", "shop"]]


def test_a_step_leaves_out_what_can_no_longer_be_asked(asked: tuple[Client, Serving]) -> None:
    client, _ = asked
    query = {
        "rows": ["kind", "shop"], "grain": "Second", "order": ["-shop", "time", "-n"], "limit": 2,
        "others": True, "share": ["n"],
    }  # fmt: skip

    def step(kind: str, given: Any, **what: Any) -> Any:
        return ask(client, {"query": given, "step": what}, kind)["query"]

    sliced = step("slice", query, attribute="shop", member=2)
    assert (sliced["order"], sliced["limit"]) == (["time", "-n"], 2)
    whole = step("roll-up", sliced, attribute="kind")
    assert whole["rows"] == [] and not {"limit", "others", "share"} & whole.keys()
    assert step("roll-up", sliced, grain=True) == {
        k: v for k, v in sliced.items() if k not in ("grain", "order")
    } | {"grain": None, "order": ["-n"]}
    assert step("pivot", query, attribute="kind")["order"] == ["-shop", "time", "-n"]


@pytest.mark.parametrize("as_of", [None, (LAST - 3) * SECOND])
def test_the_cells_behind_a_cell_add_up_to_it(
    asked: tuple[Client, Serving], as_of: int | None
) -> None:
    client, _ = asked
    question = {
        "rows": ["kind"], "grain": "2 Seconds", "where": {"shop": [1, 2]}, "as_of": as_of,
        "compare": {"earlier": 2}, "time": {"last": 3} if as_of is None else None, "share": True,
    }  # fmt: skip
    if as_of is not None:
        del question["compare"]
    for cell in ask(client, question)["cells"]:
        made = ask(client, {"query": question, "cell": cell}, "cells")
        assert sum(c["n"] for c in made["cells"]) == (cell["n"] or 0)
        assert min((c["least"] for c in made["cells"]), default=None) == cell["least"]
        assert {c["kind"] for c in made["cells"]} <= {cell["kind"]}
    first = ask(client, {"rows": ["kind"], "limit": 1, "others": True})["cells"][-1]
    body = {"query": {"rows": ["kind"]}, "cell": first}
    assert client.post(f"{CUBE}/cells", json=body).status_code == 400


def test_answers_come_as_arrow_and_as_csv(asked: tuple[Client, Serving]) -> None:
    client, _ = asked
    question = {"rows": ["product"], "measures": ["n", "avg_amount"], "grain": "Second"}
    records = ask(client, question)["cells"]

    def accepted(kind: str) -> Any:
        return client.post(f"{CUBE}/query", json=question, headers={"Accept": kind})

    arrow = accepted("application/vnd.apache.arrow.stream")
    table = pa.ipc.open_stream(io.BytesIO(arrow.content)).read_all()
    for name in ("product", "n", "avg_amount"):
        assert table.column(name).to_pylist() == [r[name] for r in records]
    text = accepted("text/csv;q=0.9")
    lines = text.text.splitlines()
    assert lines[0] == "product,time,n,avg_amount" and len(lines) == len(records) + 1
    assert int(text.headers["Millstream-version"]) == ask(client, question)["version"]
    assert accepted("image/png").status_code == 406
    other = accepted("application/json;q=0, text/csv")
    assert other.headers["content-type"].startswith("text/csv")
    assert accepted("text/csv; q=0.000").status_code == 406


def test_members_and_figures_are_told(asked: tuple[Client, Serving]) -> None:
    client, _ = asked
    assert client.get("/cubes").json()["cubes"][0]["name"] == "Sales_cube"
    about = client.get(CUBE).json()
    assert (about["grain"], about["window"], about["history"]) == ("Second", 5, 3)
    members = client.get(f"{CUBE}/members?attribute=product").json()
    assert members["members"] == ["p", "q", "r", None]
    like = client.get(f"{CUBE}/members?attribute=product&like=%25q%25").json()
    assert like["members"] == ["q"]
    status = client.get("/status").json()
    assert status["status"] == "ended" and status["inputs"]["Sales"]["conserved"]
    assert status["inputs"]["Sales"]["processed"] == len(ROWS)


def test_equal_questions_are_worked_out_once_and_counted_each(
    asked: tuple[Client, Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    worked_out = []

    def counted(*given: Any) -> Any:
        worked_out.append(given[1])
        return answer(*given)

    monkeypatch.setattr("millstream.server.cubes.answer", counted)
    client, serving = asked
    before = serving.stores["Sales_cube"].asked.all()
    question = {"rows": ["kind", "shop"], "measures": ["most"], "limit": 77}
    answers = [ask(client, question) for _ in range(5)]
    assert len(worked_out) == 1 and answers == [answers[0]] * 5
    assert sum((serving.stores["Sales_cube"].asked.all() - before).values()) == 5
    csv = client.post(f"{CUBE}/query", json=question, headers={"Accept": "text/csv"})
    assert csv.text.startswith("kind,shop,most\n") and len(worked_out) == 2


def test_what_was_asked_is_there_with_the_next_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def noted(*given: Any) -> Any:
        threads.append(threading.current_thread().name)
        return answer(*given)

    monkeypatch.setattr("millstream.server.cubes.answer", noted)
    question = {"rows": ["product"], "measures": ["n"]}
    with running(project(tmp_path, ROWS[:100]), follow=True) as (client, serving):
        store = serving.stores["Sales_cube"]
        wait_until(lambda: store.version.number == 0)
        before, first = ask(client, question), store.version
        assert before["version"] == 0 and len(threads) == 1
        add_file(tmp_path, "more.csv", ROWS[100:])
        wait_until(lambda: store.version is not first)
        assert len(threads) == 2 and threads[1] != threads[0]
        after = [ask(client, question) for _ in range(3)]
        assert len(threads) == 2 and after == [after[0]] * 3 and after[0]["version"] == 1
        known = read_question(question, store.cube.function, store.cube.schema)
        assert after[0]["cells"] == answer(store.version, known).cells.records()
        assert after[0]["cells"] != before["cells"]
        assert sum(store.asked.all().values()) == 4
        # What nobody has asked again is not worked out for ever.
        for number in range(2):
            newest = store.version
            add_file(tmp_path, f"more{number}.csv", [(30 * SECOND + number, "p", "k", 1, 1)])
            wait_until(lambda was=newest: store.version is not was)
        assert len(threads) == 3


def test_what_is_no_route_is_told_as_all_else(asked: tuple[Client, Serving]) -> None:
    client, _ = asked
    for path, status in (("/nothing", 404), (f"{CUBE}/query", 405)):
        reply = client.get(path)
        assert reply.status_code == status and reply.json()["hint"] == "GET / shows all of them"


def test_what_is_wrong_is_wrong_each_time(asked: tuple[Client, Serving]) -> None:
    client, _ = asked
    for _ in range(3):
        reply = client.post(f"{CUBE}/query", json={"rows": ["kinds"]})
        assert reply.status_code == 400 and "unknown attribute" in reply.json()["error"]


@pytest.mark.parametrize(
    ("question", "at", "wanted"),
    [
        ({"rows": "kind"}, "rows", "expected a list of names"),
        ({"rows": ["kind"], "order": "n"}, "order", "expected a list of names"),
        ({"measures": "n"}, "measures", "expected a list of names"),
        ({"rows": [["kind"]]}, "rows[0]", "expected a name"),
        ({"rows": ["kind"], "share": [1]}, "share[0]", "expected a name"),
        ({"rows": ["kind"], "order": [None]}, "order[0]", "expected a name"),
        ({"rows": ["kind"] * 200}, "rows", "more than 100 names"),
        ({"grain": 5}, "grain", "expected a grain"),
        ({"share": True}, "share", "a share is of the parent of a row, and there are no rows"),
        ({"rows": ["kind"], "others": 1}, "others", "expected true or false"),
    ],
)
def test_what_has_another_type_is_told_with_what_is_wanted(
    asked: tuple[Client, Serving], question: dict[str, Any], at: str, wanted: str
) -> None:
    client, _ = asked
    reply = client.post(f"{CUBE}/query", json=question)
    assert reply.status_code == 400
    assert [(f["at"], f["message"]) for f in reply.json()["faults"]] == [(at, wanted)]


@pytest.mark.parametrize(
    ("path", "more", "at", "wanted"),
    [
        ("slice", {"step": {"attribute": "shop", "member": [1, 2]}}, "step.member", "one member"),
        ("slice", {"step": {"attribute": "kind", "member": {"like": "%"}}}, "step.member", "one "),
        ("slice", {"step": {"attribute": "shop", "member": "x"}}, "where.shop", "an integer"),
        ("roll-up", {"step": {"attribute": ["shop"]}}, "step.attribute", "expected an attribute"),
        ("drill-down", {"step": {"attribute": "kind", "grain": True}}, "step", "moves one thing"),
        ("cells", {"cell": {"kind": {"like": "%"}}}, "cell.kind", "one member"),
        ("cells", {"cell": {"shop": [1, 2]}}, "cell.shop", "one member"),
    ],
)
def test_a_step_moves_one_thing_and_a_cell_has_one_member_of_each(
    asked: tuple[Client, Serving], path: str, more: dict[str, Any], at: str, wanted: str
) -> None:
    client, _ = asked
    reply = client.post(f"{CUBE}/{path}", json={"query": {"rows": ["kind", "shop"]}} | more)
    assert reply.status_code == 400, reply.text
    (fault,) = reply.json()["faults"]
    assert fault["at"] == at and wanted in fault["message"]


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a rank of their own on Linux")
def test_a_run_gives_way_to_those_who_ask() -> None:
    def rank() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def ran() -> int:
        give_way()
        return rank()

    before = rank()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(ran).result() > before
    assert before == rank()
