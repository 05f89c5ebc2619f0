"""Streams of NATS as inputs, against a server of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nats
import pyarrow as pa
import pytest

import millstream
from millstream.connectors.elsewhere.bring import Bringing
from millstream.connectors.elsewhere.jetstream import JetStreamBringer
from millstream.connectors.location import parse_location
from millstream.errors import MillstreamError, RunError, UsageError

PROGRAM = "output out; input trades(n integer) time at; (out) <- Filter[n >= 0](trades);"
PROGRAM_OF_NATS = Path(sys.executable).with_name("nats-server")
START = 1_767_225_600_000_000


class Server:
    """A server of NATS, and what a publisher does with it."""

    def __init__(self, folder: Path, port: str = "-1") -> None:
        self.process = subprocess.Popen(
            [PROGRAM_OF_NATS, "-a", "127.0.0.1", "-p", port, "-js", "-sd", folder / "js",
             "--ports_file_dir", folder],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            self.address = self._address(folder)
        except BaseException:
            self.process.kill()
            raise

    def _address(self, folder: Path) -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for file in folder.glob("nats-server_*.ports"):
                text = file.read_text()
                if text.endswith("}"):
                    return str(json.loads(text)["nats"][0])
            time.sleep(0.02)
        raise AssertionError("the server has not started")

    def do(self, work: Any) -> None:
        async def done() -> None:
            connection = await nats.connect(self.address)
            try:
                await work(connection.jetstream())
            finally:
                await connection.close()

        asyncio.run(done())

    def make(self, stream: str) -> str:
        """The address of a new stream."""

        async def made(js: Any) -> None:
            await js.add_stream(name=stream, subjects=[f"{stream}.*"])

        self.do(made)
        return f"{self.address}/{stream}"

    def publish(self, subject: str, *messages: bytes) -> None:
        async def published(js: Any) -> None:
            for message in messages:
                await js.publish(subject, message)

        self.do(published)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    one = Server(tmp_path_factory.mktemp("nats"))
    yield one
    one.process.kill()
    one.process.wait()


def line(n: int) -> bytes:
    return json.dumps({"at": START + n, "n": n}).encode()


def numbers(place: str, **options: Any) -> list[Any]:
    result = millstream.compile(text=PROGRAM).run({"trades": place}, **options)
    return [row["n"] for row in result.rows("out")]


def test_each_line_of_a_message_is_a_row(server: Server) -> None:
    place = server.make("lines")
    assert [] == numbers(place)
    server.publish("lines.a", line(0), line(1) + b"\n" + line(2) + b"\n", b"nonsense", line(3))
    server.publish("lines.b", line(4))
    assert [0, 1, 2, 3, 4] == numbers(place)
    assert [4] == numbers(f"{place}?subject=lines.b")


def test_messages_may_be_batches_of_arrow(server: Server) -> None:
    place = server.make("batches")
    at = pa.array([START, START + 1], pa.timestamp("us", "UTC"))
    table = pa.table({"at": at, "n": [5, 6]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    server.publish("batches.a", sink.getvalue().to_pybytes(), b"no batch")
    assert [5, 6] == numbers(f"{place}?format=arrow")


def test_a_checkpoint_goes_on_behind_the_last_message(server: Server, tmp_path: Path) -> None:
    place = server.make("kept")
    kept: dict[str, Any] = {"checkpoint": tmp_path / "ck"}
    server.publish("kept.a", line(0), line(1))
    assert [0, 1] == numbers(place, **kept)
    assert [0, 1] == numbers(place, **kept)
    server.publish("kept.a", line(2))
    assert [0, 1, 2] == numbers(place, **kept)

    async def purged(js: Any) -> None:
        await js.publish("kept.a", line(3))
        await js.purge_stream("kept", seq=5)

    server.publish("kept.a", line(3))
    server.do(purged)
    with pytest.raises(RunError, match="messages from 4 on are gone: it has 5 to 5"):
        numbers(place, **kept)


def test_a_run_that_follows_hears_what_comes_later(server: Server, tmp_path: Path) -> None:
    place = server.make("later")
    server.publish("later.a", line(0))
    location = parse_location(place, tmp_path)
    bringing = Bringing(location, tmp_path / "spool", is_following=True)
    try:
        assert isinstance(bringing.bringer, JetStreamBringer)
        server.publish("later.a", line(1))
        waited(lambda: getattr(bringing.bringer, "_last", None) == 2)
    finally:
        bringing.close()
    assert [0, 1] == numbers(f"{tmp_path}/spool/*.jsonl.gz")


def test_a_server_that_was_away_is_taken_up_again(tmp_path: Path) -> None:
    said: list[str] = []
    first = Server(tmp_path)
    place = first.make("away")
    first.publish("away.a", line(0))
    location = parse_location(place, tmp_path)
    bringing = Bringing(location, tmp_path / "spool", is_following=True, say=said.append)
    second: Server | None = None
    try:
        first.process.kill()
        first.process.wait()
        waited(lambda: bool(said))
        next(tmp_path.glob("nats-server_*.ports")).unlink()
        second = Server(tmp_path, place.rpartition(":")[2].partition("/")[0])
        second.publish("away.a", line(1))
        waited(lambda: said[-1].endswith("rows come again"))
        waited(lambda: getattr(bringing.bringer, "_last", None) == 2)
    finally:
        bringing.close()
        if second is not None:
            second.process.kill()
            second.process.wait()
    assert [0, 1] == numbers(f"{tmp_path}/spool/*.jsonl.gz")
    assert "NATS cannot be read" in said[0]


def waited(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("{server}/nowhere", 'there is no stream "nowhere"'),
        ("{server}/", "this address names no stream"),
        ("{server}/x?format=avro", "cannot be read"),
        ("{server}/x?offset=3", "unknown setting"),
        ("nats://127.0.0.1:1/x?password=hidden", "NATS cannot be read"),
    ],
)
def test_what_is_wrong_with_an_address_is_told(server: Server, place: str, message: str) -> None:
    with pytest.raises(MillstreamError, match=message) as error:
        numbers(place.format(server=server.address))
    assert isinstance(error.value, (UsageError, RunError))
    assert "hidden" not in str(error.value)
