"""Views as of an acknowledgement, in several forms; quotas of tokens; certificates."""

from __future__ import annotations

import io
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
import uvicorn

from millstream.client import Client
from millstream.errors import UsageError
from millstream.server.app import make_app
from millstream.server.broker_run import BrokerRun
from millstream.server.brokers import BROKER_ROUTES
from millstream.server.listen import Address, bound, config_of
from millstream.server.quotas import Allowance, Quota
from millstream.server.routes import Refusal, TokenScope
from millstream.server.tokens import Tokens, read_tokens
from tests.broker.world import served
from tests.server.broker_harness import BOTH, TEXT, lines, running
from tests.server.harness import wait_until

#: A certificate for localhost that nobody has signed, and its key.
CERTIFICATE = Path(__file__).parent / "tls" / "localhost.pem"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with running(tmp_path_factory.mktemp("broker")) as (made, _):
        yield made


def test_a_view_has_what_was_acknowledged(client: httpx.Client) -> None:
    for n in range(5):
        row = {"t": 1000 + n, "b": 7, "sold": 1}
        position = client.post("/streams/M", content=lines(row)).json()["position"]
        answer = client.get(f"/views/Sold?position={position}").json()
        assert answer["position"] >= position
        assert [one["total"] for one in answer["rows"] if one["b"] == 7] == [n + 1]


@pytest.mark.parametrize("position", ["x", "-1", "9" * 30, "999999"])
def test_a_position_that_is_none_is_told(client: httpx.Client, position: str) -> None:
    assert client.get(f"/views/Sold?position={position}").status_code == 400


class Chunks(io.RawIOBase):
    """Mutable: what comes of an answer, as a file."""

    def __init__(self, reply: httpx.Response) -> None:
        self.parts, self.left = reply.iter_bytes(), b""

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        self.left = self.left or next(self.parts, b"")
        size = min(len(room), len(self.left))
        room[:size], self.left = self.left[:size], self.left[size:]
        return size


def test_changes_can_be_had_as_arrow(client: httpx.Client) -> None:
    answer = client.post("/streams/B", content=lines({"b": 100, "k": 9, "bid": 7})).json()
    client.get(f"/views/Rest?position={answer['position']}")
    said: list[dict[str, Any]] = []
    path, kind = "/views/Rest/changes?where=k=9", "application/vnd.apache.arrow.stream"
    with client.stream("GET", path, headers={"Accept": kind}) as reply:
        assert reply.headers["content-type"] == kind
        for batch in pa.ipc.open_stream(io.BufferedReader(Chunks(reply))):
            said += batch.to_pylist()
            if said[-1]["_event"] == "live":
                client.post("/streams/M", content=lines({"t": 300, "b": 100, "sold": 2}))
            if said[-1]["_event"] == "changes":
                break
    told = [
        (r["_event"], r["_weight"], r["k"], r["rest"]) for r in said if r["_event"] != "progress"
    ]
    assert told == [("state", 1, 9, 7), ("live", 0, None, None), ("changes", -1, 9, 7),
                    ("changes", 1, 9, 5)]  # fmt: skip
    after = client.get("/views/Rest?where=k=9").json()["token"]
    assert said[-1]["_token"] == after


def test_a_view_can_be_had_as_arrow_and_as_csv(client: httpx.Client) -> None:
    answer = client.post("/streams/M", content=lines({"t": 2000, "b": 8, "sold": 333}))
    path = f"/views/Sold?where=total = 333&mask=1&position={answer.json()['position']}"
    arrow = client.get(path, headers={"Accept": "application/vnd.apache.arrow.stream"})
    table = pa.ipc.open_stream(io.BytesIO(arrow.content)).read_all()
    assert table.select(["total", "n", "_mask"]).to_pylist() == [
        {"total": 333, "n": 1, "_mask": "T"}
    ]
    assert int(arrow.headers["millstream-position"]) >= 2
    csv = client.get(path, headers={"Accept": "text/csv"}).text.splitlines()
    assert csv[0].startswith("b,total,n") and len(csv) == 2


def test_a_quota_is_full_again_after_a_second() -> None:
    now = [100.0]
    allowance = Allowance(Quota(rows=10), lambda: now[0])
    allowance.take("requests", 1_000)
    allowance.take("rows", 10)
    with pytest.raises(Refusal, match="10 rows a second") as refused:
        allowance.take("rows")
    assert refused.value.status == 429
    now[0] += 0.125
    allowance.take("rows")
    now[0] += 60
    allowance.take("rows", 35)  # more than a second allows is paid for afterwards
    now[0] += 2.5
    with pytest.raises(Refusal):
        allowance.take("rows")
    now[0] += 0.25
    allowance.take("rows")


def test_quotas_stand_behind_scopes(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"{BOTH} read, publish rows=1 requests=3\n{BOTH}x read\n")
    file.chmod(0o600)
    tokens = read_tokens(file)
    tokens.allowance(BOTH).take("rows", 500)
    with pytest.raises(Refusal):
        tokens.allowance(BOTH).take("rows", 1)
    tokens.allowance(f"{BOTH}x").take("rows", 10**9)
    for wrong in ("rows=0", "rows=", "rows=-1", "rows=x", "lines=3"):
        file.write_text(f"{BOTH} read {wrong}\n")
        with pytest.raises(UsageError, match="line 1"):
            read_tokens(file)


@pytest.fixture
def bounded(tmp_path: Path) -> Iterator[tuple[str, ssl.SSLContext]]:
    """A broker with a certificate, whose token may publish one row a second."""
    run = BrokerRun(served(TEXT), tmp_path, compiles=False)
    run.start(lambda: None)
    own = bound(0)
    host = f"127.0.0.1:{own.getsockname()[1]}"
    scopes = frozenset({TokenScope.READ, TokenScope.PUBLISH})
    tokens = Tokens({BOTH: scopes}, {BOTH: Quota(requests=1_000, rows=1)})
    app = make_app(run, tokens, frozenset({host}), BROKER_ROUTES)
    server = uvicorn.Server(config_of(app, Address(certificate=CERTIFICATE)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
    thread.start()
    wait_until(lambda: server.started and run.broker.evaluations is not None)
    try:
        yield f"https://{host}", ssl.create_default_context(cafile=CERTIFICATE)
    finally:
        server.should_exit = True
        thread.join(20)
        run.stop()


def test_tls_and_quotas_are_kept(bounded: tuple[str, ssl.SSLContext]) -> None:
    address, trusting = bounded
    headers = {"Authorization": f"Bearer {BOTH}"}
    with httpx.Client(base_url=address, headers=headers, verify=trusting, timeout=60) as client:
        rows = [{"t": n, "b": 1, "sold": 1} for n in range(1, 601)]
        assert client.post("/streams/M", content=lines(*rows)).status_code == 200
        refused = client.post("/streams/M", content=lines({"t": 999, "b": 1, "sold": 1}))
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 100
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        Client(address, BOTH).rows("Sold")


def test_a_certificate_that_is_none_is_told(tmp_path: Path) -> None:
    Address(certificate=CERTIFICATE).check()
    with pytest.raises(UsageError, match="certificate"):
        Address(certificate=tmp_path / "none.pem").check()
    (tmp_path / "wrong.pem").write_text("-----BEGIN CERTIFICATE-----\nx\n")
    with pytest.raises(UsageError, match="certificate"):
        Address(certificate=tmp_path / "wrong.pem").check()
    with pytest.raises(UsageError, match="--tls-cert"):
        Address(key=CERTIFICATE).check()
