"""Views that come and go while a broker runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.broker_harness import events, lines, running
from tests.server.harness import wait_until

BIG = "SELECT b, rest FROM Rest WHERE rest > 5"
COUNT = "SELECT COUNT(*) AS n FROM Big"


def rows(client: httpx.Client, view: str) -> Any:
    """The rows of a view, or the status if it is not there."""
    reply = client.get(f"/views/{view}")
    if reply.status_code != 200:
        return reply.status_code
    names = [[v for n, v in row.items() if not n.startswith("_")] for row in reply.json()["rows"]]
    return sorted(names)


def test_a_view_that_is_added_has_all_that_is_known(tmp_path: Path) -> None:
    with running(tmp_path) as (client, _):
        client.post("/streams/B", content=lines({"b": 1, "k": 1, "bid": 9}))
        with events(client, "/views/Rest/changes") as told:
            assert client.put("/views/Big", content=BIG).status_code == 200
            assert rows(client, "Big") in (503, [[1, 9]])
            wait_until(lambda: rows(client, "Big") == [[1, 9]])
            assert client.put("/views/Count", content=COUNT).status_code == 200
            client.post("/streams/B", content=lines({"b": 2, "k": 1, "bid": 8}))
            wait_until(lambda: rows(client, "Count") == [[2]])
            # Those who listen to other views notice nothing.
            kinds, token = [], ""
            while not token:
                kind, told_by, data = next(told)
                kinds.append(kind)
                if any(c["row"]["b"] == 2 for c in data.get("changes", ())):
                    token = told_by
            assert "reset" not in kinds and kinds.count("state") == 1
        with events(client, "/views/Rest/changes", headers={"Last-Event-ID": token}) as told:
            assert next(told)[0] == "live"
    with running(tmp_path) as (client, _):
        wait_until(lambda: rows(client, "Count") == [[2]])
        used = client.delete("/views/Big")
        assert used.status_code == 409 and used.json()["error"] == "Count is made of Big"
        assert client.delete("/views/Count").status_code == 200
        assert client.delete("/views/Big").status_code == 200
        assert rows(client, "Big") == 404, "at once, though it is still being taken away"
        assert rows(client, "Rest") == [[1, 1, 9], [2, 1, 8]]


@pytest.mark.parametrize(("name", "query", "status", "message"), [
    ("Big", "SELECT b, rst FROM Rest", 400, 'unknown column "rst"'),
    ("Big", "SELECT * FROM Big", 400, "a view cannot be made of itself"),
    ("Big", "SELECT b FROM Rest; CREATE STREAM X (t: time -> k: integer)", 400, "one query"),
    ("Big", "SELECT b FROM Rest; subscriptions B", 400, "one query"),
    ("Big", "SELECT b FROM Rest); CREATE VIEW Y (SELECT b FROM B", 400, "end of the query"),
    ("Big", "SELECT COUNT(* AS n FROM Rest", 400, 'expected ")", found "AS"'),
    ("Big", "", 400, "expected"),
    ("Rest", "SELECT b FROM B", 409, "already"),
    ("B", "SELECT b FROM B", 409, "already"),
    ("a-b", "SELECT b FROM B", 400, "a name of letters"),
])  # fmt: skip
def test_what_cannot_be_a_view_is_told(
    client: httpx.Client, name: str, query: str, status: int, message: str
) -> None:
    position = client.get("/status").json()["position"]
    reply = client.put(f"/views/{name}", content=query)
    assert (reply.status_code, message in reply.json()["error"]) == (status, True), reply.text
    assert client.get("/status").json()["position"] == position


def test_views_of_the_file_stay(client: httpx.Client) -> None:
    assert client.delete("/views/Rest").status_code == 409
    assert client.delete("/views/None").status_code == 404


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with running(tmp_path_factory.mktemp("views")) as (client, _):
        yield client
