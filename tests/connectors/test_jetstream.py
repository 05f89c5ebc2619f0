"""Streams of NATS as inputs and outputs, against a server of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats
import pyarrow as pa
import pytest

import millstream
from millstream.calculus.types import INTEGER, TEXT, QueueType, Schema
from millstream.connectors.elsewhere.bring import Bringing
from millstream.connectors.elsewhere.jetstream import JetStreamBringer
from millstream.connectors.elsewhere.jetstream_out import JetStreamWriter
from millstream.connectors.location import parse_location
from millstream.connectors.outputs import writer_of
from millstream.errors import MillstreamError, RunError, UsageError
from millstream.plan.batch import batch_of

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


# --- outputs ---

SHAPE = QueueType(Schema.of(n=INTEGER, t=TEXT))


def sent(server: Server, stream: str) -> list[tuple[dict[str, str], bytes]]:
    """All messages of a stream, as anybody reads them."""
    found = []

    async def read(js: Any) -> None:
        info = await js.stream_info(stream)
        for number in range(info.state.first_seq, info.state.last_seq + 1):
            message = await js.get_msg(stream, number)
            found.append((message.headers or {}, message.data or b""))

    server.do(read)
    return found


def rows_of(*numbers: int, text: str = "") -> Any:
    return batch_of(SHAPE, list(numbers), [(n, text) for n in numbers])


@contextmanager
def writer_to(place: str) -> Iterator[JetStreamWriter]:
    writer = writer_of("out", parse_location(place, Path()), SHAPE, is_following=True)
    assert isinstance(writer, JetStreamWriter)
    try:
        yield writer
    finally:
        writer.abort()


def numbers_in(messages: list[tuple[dict[str, str], bytes]]) -> list[list[int]]:
    return [[json.loads(one)["n"] for one in body.splitlines()] for _, body in messages if body]


@pytest.mark.parametrize("format_", ["json", "arrow"])
def test_what_is_sent_can_be_read_again(format_: str, server: Server, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(f"at,n\n{START},7\n{START + 1},8\n")
    place = f"{server.make(f'again-{format_}')}?subject=again-{format_}.x&format={format_}"
    for times in (1, 2):
        millstream.compile(text=PROGRAM).run({"trades": tmp_path / "in.csv"}, {"out": place})
        reader = millstream.compile(text=PROGRAM.replace("time at", ""))
        rows = reader.run({"trades": place}).rows("out")
        expected = [(START, 7)] * times + [(START + 1, 8)] * times  # a file is in the order of time
        assert expected == [(r["_time"], r["n"]) for r in rows]


def test_a_job_that_goes_on_sends_every_batch_once(server: Server, tmp_path: Path) -> None:
    place = f"{server.make('once')}?subject=once.x"
    job = millstream.compile(text=PROGRAM)
    (tmp_path / "in").mkdir()
    for number in range(4):
        if number != 2:  # the third time nothing has come
            (tmp_path / "in" / f"{number}.csv").write_text(f"at,n\n{START + number},{number}\n")
        job.run({"trades": f"{tmp_path}/in/"}, {"out": place}, checkpoint=tmp_path / "ck")
    assert [[0], [1], [3]] == numbers_in(sent(server, "once"))
    job.run({"trades": f"{tmp_path}/in/"}, {"out": place}, checkpoint=tmp_path / "ck", rebuild=True)
    whole = [n for body in numbers_in(sent(server, "once")) for n in body]
    assert [0, 1, 3, 0, 1, 3] == whole


def test_a_large_batch_is_cut_and_taken_up_in_the_middle(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.connectors.elsewhere.jetstream_out._MOST_BYTES", 4096 + 400)
    place = f"{server.make('large')}?subject=large.x"
    batch, more = rows_of(*range(10), text="x" * 60), [rows_of(*range(10, 25), text="y")]
    for killed_after in (3, 2, None):
        with writer_to(place) as writer:
            assert 0 == writer.open("job", fresh=killed_after == 3)
            if killed_after is None:
                writer.write_batch(0, batch, more)
                writer.write_batch(1, rows_of(25))
            else:
                count_down(monkeypatch, writer, killed_after)
                with pytest.raises(KeyboardInterrupt):
                    writer.write_batch(0, batch, more)
    found = sent(server, "large")
    assert list(range(26)) == [n for body in numbers_in(found) for n in body]
    assert all(len(body) <= 400 for _, body in found)
    assert len(found) >= 8
    with_rows = [headers for headers, body in found if body]
    assert ["0"] * (len(with_rows) - 1) + ["1"] == [one["Millstream-Batch"] for one in with_rows]
    with writer_to(place) as writer, pytest.raises(RunError, match="bytes does not fit"):
        writer.write(rows_of(1, text="z" * 600))


def count_down(patch: pytest.MonkeyPatch, writer: JetStreamWriter, left: int) -> None:
    real = writer._send

    def send(*arguments: Any, **more: Any) -> None:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        real(*arguments, **more)

    patch.setattr(writer, "_send", send)


def test_who_writes_beside_a_job_is_found_out(server: Server) -> None:
    place = f"{server.make('beside')}?subject=beside.x"
    with writer_to(place) as writer:
        writer.open("job", fresh=True)
        server.publish("beside.y", b"another subject is no harm")
        writer.write_batch(0, rows_of(0))
        server.publish("beside.x", b"{}")
        with pytest.raises(RunError, match="somebody else writes to"):
            writer.write_batch(1, rows_of(1))
    with writer_to(place) as writer, pytest.raises(RunError, match="others write here") as error:
        writer.open("job", fresh=False)
    assert "--rebuild" in error.value.faults[0].render()


def test_batches_without_rows_are_told_of_at_last(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.connectors.elsewhere.jetstream_out._EMPTY_BATCHES", 5)
    place = f"{server.make('empty')}?subject=empty.x"
    with writer_to(place) as writer:
        writer.open("job", fresh=True)
        for number in range(8):
            writer.write_batch(number, rows_of())
        assert 6 == writer.wanted_from
    with writer_to(place) as writer:
        assert 6 == writer.open("job", fresh=False)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("", "messages need one subject"),
        ("?subject=wrong.*", "messages need one subject"),
        ("?subject=elsewhere", 'no stream takes "elsewhere"'),
        ("?subject=wrong.x&format=csv", 'messages in "csv" cannot be written'),
    ],
)
def test_what_is_wrong_with_an_output_is_told(
    server: Server, setting: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text(f"at,n\n{START},7\n")
    place = f"{wrong_of(server)}{setting}"
    with pytest.raises(MillstreamError, match=message):
        millstream.compile(text=PROGRAM).run({"trades": tmp_path / "in.csv"}, {"out": place})


def wrong_of(server: Server) -> str:
    async def made(js: Any) -> None:
        await js.add_stream(name="wrong", subjects=["wrong.*", "right"])

    server.do(made)
    return f"{server.address}/wrong"


# --- bad addresses ---


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
