"""Inputs from elsewhere: object stores, Kafka, posts; against servers of the libraries' own."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.cli.main import main
from millstream.connectors.elsewhere.bring import Bringing
from millstream.connectors.elsewhere.kafka import KafkaBringer
from millstream.connectors.elsewhere.objects import file_system
from millstream.connectors.elsewhere.objects_out import ObjectFolderWriter
from millstream.connectors.elsewhere.posted import PostedBringer
from millstream.connectors.elsewhere.spool import Spool
from millstream.connectors.elsewhere.write import open_elsewhere
from millstream.connectors.location import parse_location
from millstream.errors import MillstreamError, RunError, UsageError
from millstream.plan.batch import empty_batch
from tests.connectors.object_servers import serving

PROGRAM = "output out; input trades(n integer) time at; (out) <- Filter[n >= 0](trades);"
START = 1_767_225_600_000_000


def line(n: int) -> str:
    return json.dumps({"at": START + n, "n": n})


def numbers(place: str, **options: Any) -> list[Any]:
    result = millstream.compile(text=PROGRAM).run({"trades": place}, **options)
    return [row["n"] for row in result.rows("out")]


# --- object stores ---


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """The address of an S3 server of moto's."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}" if host == "0.0.0.0" else f"http://{host}:{port}"  # noqa: S104
    server.stop()


@pytest.fixture
def bucket(store: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of an empty bucket `data`."""
    import boto3

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "one")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "two")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client = boto3.client("s3", endpoint_url=store, region_name="us-east-1")
    client.create_bucket(Bucket="data")
    yield client
    for one in client.list_objects_v2(Bucket="data").get("Contents", []):
        client.delete_object(Bucket="data", Key=one["Key"])
    client.delete_bucket(Bucket="data")


def test_objects_are_read_as_files_are(store: str, bucket: Any, tmp_path: Path) -> None:
    at = f"endpoint={store}&region=us-east-1"
    for number in range(3):
        rows = f"at,n\n{START + number},{number}\n"
        bucket.put_object(Bucket="data", Key=f"days/{number}.csv", Body=rows.encode())
    bucket.put_object(Bucket="data", Key="days/deep/9.csv", Body=b"at,n\n1,9\n")
    assert numbers(f"s3://data/days/*.csv?{at}") == [0, 1, 2]
    assert numbers(f"s3://data/days/1.csv?{at}") == [1]
    assert numbers(f"s3://data/*/deep/*.csv?{at}") == [9]
    kept: dict[str, Any] = {"checkpoint": tmp_path / "ck"}
    assert numbers(f"s3://data/days/*.csv?{at}", **kept) == [0, 1, 2]
    bucket.put_object(Bucket="data", Key="days/3.csv", Body=f"at,n\n{START + 3},3\n".encode())
    assert numbers(f"s3://data/days/*.csv?{at}", **kept) == [0, 1, 2, 3]
    bucket.put_object(Bucket="data", Key="days/2.csv", Body=b"at,n\n5,5\n6,6\n")
    with pytest.raises(RunError, match="has changed since it was read"):
        numbers(f"s3://data/days/*.csv?{at}", **kept)


def test_results_become_objects(
    store: str, bucket: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = f"endpoint={store}&region=us-east-1"
    (tmp_path / "t.csv").write_text("at,n\n" + "".join(f"{START + n},{n}\n" for n in range(5)))
    job, given = millstream.compile(text=PROGRAM), {"trades": tmp_path / "t.csv"}
    job.run(given, {"out": f"s3://data/one.csv?{at}"})
    assert numbers_of(bucket, "one.csv") == [0, 1, 2, 3, 4]
    for _ in range(2):  # another run takes the place of the first
        job.run(given, {"out": f"s3://data/results.csv/?{at}"})
        assert keys(bucket) == {"one.csv", "results.csv/.millstream.json",
                                "results.csv/part-000000000.csv"}  # fmt: skip
    for place in ("one.csv", "results.csv/"):
        assert main(["read", f"s3://data/{place}?{at}", "--limit", "2"]) == 0
        assert capsys.readouterr().out == f"_time,n\n{START},0\n{START + 1},1\n"
    with pytest.raises(UsageError, match="not results of Millstream: one"):
        job.run(given, {"out": f"s3://data//?{at}"})
    with pytest.raises(UsageError, match="needs a folder of objects"):
        job.run(given, {"out": f"s3://data/one.csv?{at}"}, follow=True)


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_other_stores_are_read_and_written_alike(
    scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("AZURE_STORAGE_KEY", "a2V5")
    job = millstream.compile(text=PROGRAM)
    kept: dict[str, Any] = {"checkpoint": tmp_path / "ck"}
    with serving(scheme) as endpoint:
        at = f"endpoint={endpoint}&" + ("anonymous=true" if scheme == "gs" else "account=me")
        given = f"{scheme}://data/days/*.csv?{at}"
        with pytest.raises(UsageError, match="no object matches this address"):
            numbers(given)
        for number in range(3):
            (tmp_path / "t.csv").write_text(f"at,n\n{START + number},{number}\n")
            job.run({"trades": tmp_path / "t.csv"},
                    {"out": f"{scheme}://data/days/{number}.csv?{at}"})  # fmt: skip
            read = millstream.compile(text=PROGRAM.replace("time at", "time _time"))
            found = read.run({"trades": given}, {"out": f"{scheme}://data/all.csv/?{at}"}, **kept)
            assert found.report.outputs["out"] == number + 1
        assert main(["read", f"{scheme}://data/all.csv/?{at}"]) == 0
        lines = "".join(f"{START + n},{n}\n" for n in range(3))
        assert capsys.readouterr().out == f"_time,n\n{lines}"


def test_batches_of_a_job_appear_once_as_objects(store: str, bucket: Any, tmp_path: Path) -> None:
    at = f"endpoint={store}&region=us-east-1"
    job = millstream.compile(text=PROGRAM)
    kept: dict[str, Any] = {"checkpoint": tmp_path / "ck"}
    (tmp_path / "in").mkdir()
    for number in range(3):
        if number < 2:  # the third time nothing has come
            text = f"at,n\n{START + number},{number}\n"
            (tmp_path / "in" / f"{number}.csv").write_text(text)
        job.run({"trades": f"{tmp_path}/in/*.csv"}, {"out": f"s3://data/r.csv/?{at}"}, **kept)
    found = [n for key in sorted(keys(bucket)) if "part" in key for n in numbers_of(bucket, key)]
    assert found == [0, 1]
    job.run({"trades": f"{tmp_path}/in/0.csv"}, {"out": f"s3://data/r.csv/?{at}"})
    location, shape = (
        parse_location(f"s3://data/r.csv/?{at}", Path()), job.program.queue_types()["out"],
    )  # fmt: skip
    writer = open_elsewhere(location, "out", shape, is_following=False)
    assert isinstance(writer, ObjectFolderWriter)
    writer.open("mine", fresh=True)
    job.run({"trades": f"{tmp_path}/in/0.csv"}, {"out": f"s3://data/r.csv/?{at}"})
    with pytest.raises(RunError, match="has taken this place over"):
        writer.write_batch(0, empty_batch(shape))
    writer.abort()


def keys(bucket: Any) -> set[str]:
    """Without the marks of folders, which Arrow leaves."""
    found = {one["Key"] for one in bucket.list_objects_v2(Bucket="data")["Contents"]}
    return {key for key in found if not key.endswith("/")}


def numbers_of(bucket: Any, key: str) -> list[int]:
    body = bucket.get_object(Bucket="data", Key=key)["Body"].read().decode()
    return [int(row.split(",")[1]) for row in body.splitlines()[1:]]


def test_a_store_of_azure_may_be_another_than_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_KEY", "a2V5")
    text = "az://box/1.csv?account=one&endpoint=http://127.0.0.1:10000"
    place = parse_location(text, Path()).elsewhere
    assert place is not None
    (made,) = file_system(place, text).__reduce__()[1]
    assert ("127.0.0.1:10000", "http", "a2V5") == (
        made["blob_storage_authority"], made["blob_storage_scheme"], made["account_key"],
    )  # fmt: skip


def test_a_wrong_address_of_objects_is_told(store: str, bucket: Any) -> None:
    at = f"endpoint={store}&region=us-east-1"
    bucket.put_object(Bucket="data", Key="days/1.csv", Body=b"at,n\n1,x\n")
    for place, message in (
        (f"s3://data/days/2.csv?{at}", "no object matches this address"),
        (f"s3://none/days/1.csv?{at}", "no object matches|the store says"),
        ("s3://data/days/1", "cannot tell the format"),
        ("s3://b", "names no object"),
        (f"s3://data/days/1.csv?{at}&colour=blue", 'unknown setting "colour"'),
        (f"s3://data/days/1.csv?{at}", r"days/1\.csv.*expected an integer"),
    ):
        with pytest.raises(MillstreamError, match=message):
            numbers(place)


def test_secrets_of_an_address_are_never_shown() -> None:
    written = "s3://data/x.csv?access_key=AKIA1&secret_key=abc%2Fd&region=eu"
    location = parse_location(written, Path())
    assert location.text == "s3://data/x.csv?access_key=***&secret_key=***&region=eu"
    assert "abc" not in repr(location)
    kafka = parse_location("kafka://b:1/t?sasl.username=me&sasl.password=abc", Path())
    assert "abc" not in repr(kafka)


# --- Kafka ---


class Cluster:
    """Mutable: a broker of librdkafka's own, inside of this process."""

    def __init__(self) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({
            "bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0,
        })  # fmt: skip
        (broker,) = self._producer.list_topics(timeout=30).brokers.values()
        self.address = f"{broker.host}:{broker.port}"

    def send(self, topic: str, values: list[tuple[int, bytes | None]], first: int = 0) -> None:
        """Messages as pairs of a partition and a value, with times that rise."""
        for number, (partition, value) in enumerate(values, first):
            self._producer.produce(topic, value, partition=partition, timestamp=1_000 + number)
        assert self._producer.flush(30) == 0


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


def test_a_topic_is_read_to_where_it_ends_and_gone_on_with(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.send("one", [(n % 3, line(n).encode()) for n in range(100)])
    place = f"kafka://{cluster.address}/one"
    assert numbers(place) == list(range(100))
    kept: dict[str, Any] = {"checkpoint": tmp_path / "ck"}
    assert numbers(place, **kept) == list(range(100))
    cluster.send("one", [(n % 3, line(n).encode()) for n in range(100, 120)])
    results = tmp_path / "out"
    job = millstream.compile(text=PROGRAM)
    for _ in range(2):  # the second time nothing has come
        report = job.run({"trades": place}, {"out": f"{results}/"}, **kept).report
    assert report.inputs["trades"].read == 120


def test_messages_of_avro_are_read_by_their_schema(cluster: Cluster, tmp_path: Path) -> None:
    fields = [{"name": "at", "type": "long"}, {"name": "n", "type": "long"}]
    schema = tmp_path / "trades.avsc"
    schema.write_text(json.dumps({"type": "record", "name": "trade", "fields": fields}))
    cluster.send("avro", [(0, b"\x02\x04"), (0, b"\0\0\0\0\1\x04\x06"), (0, b"\xff")])
    place = f"kafka://{cluster.address}/avro?format=avro&schema={schema}"
    finished = millstream.compile(text=PROGRAM).run({"trades": place})
    assert [row["n"] for row in finished.rows("out")] == [2, 3]
    assert finished.report.inputs["trades"].rejected == 1


def test_messages_that_are_no_rows_are_rejected(cluster: Cluster) -> None:
    cluster.send("odd", [(0, b'{"at": 1,\r\n "n": 1}'), (0, None), (0, b"x"), (0, b'{"n": 2}')])
    place = f"kafka://{cluster.address}/odd"
    finished = millstream.compile(text=PROGRAM).run({"trades": place})
    assert [row["n"] for row in finished.rows("out")] == [1]
    assert finished.report.inputs["trades"].rejected == 3


def test_partitions_are_merged_by_the_times_of_messages(cluster: Cluster, tmp_path: Path) -> None:
    """A backlog of one partition would else make the rows of the other late."""
    cluster.send("two", [(0, line(n).encode()) for n in range(0, 60, 2)], first=0)
    cluster.send("two", [(1, line(n).encode()) for n in range(1, 60, 2)], first=0)
    location = parse_location(f"kafka://{cluster.address}/two", Path())
    assert location.elsewhere is not None
    spool = Spool(tmp_path / "spool", "x")
    bringer = KafkaBringer(location.elsewhere, spool, "x", is_following=True)
    while sum(spool.position().values()) < 60:
        bringer.fetch()
    bringer.close()
    spool.close()
    import gzip

    segments = sorted((tmp_path / "spool").glob("*.gz"))
    rows = b"".join(gzip.decompress(path.read_bytes()) for path in segments).splitlines()
    assert [json.loads(row)["n"] for row in rows] == [
        n for i in range(30) for n in (2 * i, 2 * i + 1)
    ]


def test_offsets_that_are_gone_are_told(cluster: Cluster, tmp_path: Path) -> None:
    cluster.send("short", [(0, line(1).encode())])
    location = parse_location(f"kafka://{cluster.address}/short", Path())
    folder = tmp_path / "spool"
    spool = Spool(folder, "x")
    spool.add_lines(b"", {"0": 7})
    spool.close()
    with pytest.raises(RunError, match="messages of partition 0 from 7 on are not there any more"):
        Bringing(location, folder, is_following=False)


class Message:
    """A message, or a fault of a partition, as confluent-kafka gives it."""

    def __init__(self, offset: int, code: int | None = None) -> None:
        from confluent_kafka import KafkaError

        self._offset = offset
        self._error = None if code is None else KafkaError(code)

    def error(self) -> Any:
        return self._error

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 1, self._offset

    def value(self) -> bytes:
        return line(self._offset).encode()


class Consumer:
    """Mutable: gives what it was made with, then nothing."""

    def __init__(self, *batches: list[Message]) -> None:
        self._batches = list(batches)

    def consume(self, most: int, seconds: float) -> list[Message]:
        return self._batches.pop(0) if self._batches else []

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("is_following", [False, True])
def test_a_fault_between_messages_loses_none(
    cluster: Cluster, tmp_path: Path, is_following: bool
) -> None:
    from confluent_kafka import KafkaError

    cluster.send("torn", [(0, line(n).encode()) for n in range(4)])
    location = parse_location(f"kafka://{cluster.address}/torn", Path())
    assert location.elsewhere is not None
    spool = Spool(tmp_path / "spool", "x")
    bringer = KafkaBringer(location.elsewhere, spool, "x", is_following=is_following)
    bringer._consumer.close()
    gone = Message(0, KafkaError._AUTO_OFFSET_RESET)
    end = Message(4, KafkaError._PARTITION_EOF)
    bringer._consumer = Consumer([Message(0), gone, Message(1)], [Message(2), end])
    with pytest.raises(RunError, match="are gone"):
        bringer.fetch()
    bringer.fetch()
    spool.close()
    assert numbers(f"{tmp_path}/spool/*.jsonl.gz") == [0, 1, 2]
    # The last offset was a mark of a transaction: a run that ends has passed it.
    assert spool.position()["0"] == (3 if is_following else 4)


def test_a_broker_that_is_away_is_told_until_it_is_back(cluster: Cluster, tmp_path: Path) -> None:
    from confluent_kafka import KafkaError, KafkaException

    class Away(Consumer):
        is_away = True

        def list_topics(self, topic: str, timeout: float) -> None:
            if self.is_away:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    cluster.send("away", [(0, line(0).encode())])
    location = parse_location(f"kafka://{cluster.address}/away", Path())
    assert location.elsewhere is not None
    spool = Spool(tmp_path / "spool", "x")
    bringer = KafkaBringer(location.elsewhere, spool, "x", is_following=True)
    bringer._consumer.close()
    bringer._consumer = away = Away([Message(0), Message(0, KafkaError._PARTITION_EOF)])
    bringer._note(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    with pytest.raises(RunError, match="Kafka cannot be reached"):
        bringer.fetch()
    away.is_away = False
    bringer.fetch()
    assert spool.position()["0"] == 1
    spool.close()


def test_wrong_addresses_of_topics_are_told(cluster: Cluster) -> None:
    for place, message in (
        (f"kafka://{cluster.address}/t?colour=blue", 'unknown setting "colour"'),
        (f"kafka://{cluster.address}/t?security.protocol=blue", "librdkafka says"),
        (f"kafka://{cluster.address}/t?format=xml", '"xml" cannot be read yet'),
        (f"kafka://{cluster.address}/t?format=avro", "have a schema, in a file"),
        (f"kafka://{cluster.address}/t?format=avro&schema=no.avsc", "cannot be read: No such"),
        (f"kafka://{cluster.address}", "names no topic"),
        ("kafka:///t", "names no host"),
    ):
        with pytest.raises(UsageError, match=message):
            numbers(place)


# --- posts ---


@pytest.fixture
def posted(tmp_path: Path) -> Iterator[PostedBringer]:
    location = parse_location("http://127.0.0.1:0/trades", Path())
    bringing = Bringing(location, tmp_path / "spool", is_following=True)
    assert isinstance(bringing.bringer, PostedBringer)
    yield bringing.bringer
    bringing.close()


def post(
    to: PostedBringer, body: str, path: str = "/trades", key: str | None = None
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", to.port, timeout=30)
    headers = {} if key is None else {"Idempotency-Key": key}
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    return answer.status, told


def test_posts_are_kept_when_they_are_answered(posted: PostedBringer, tmp_path: Path) -> None:
    assert post(posted, f"{line(1)}\n{line(2)}") == (200, {"rows": 2})
    assert post(posted, f"{line(3)}\n", key="a/b") == (200, {"rows": 1})
    assert post(posted, f"{line(3)}\n", key="a/b") == (200, {"rows": 1, "was_there": True})
    assert post(posted, f"{line(4)}\n", path="/other")[0] == 404
    assert post(posted, "") == (200, {"rows": 0})
    spool = tmp_path / "spool"
    assert sorted(numbers(f"{spool}/*.jsonl.gz")) == [1, 2, 3]


def test_a_post_that_was_taken_is_known_to_the_next_run(tmp_path: Path) -> None:
    location = parse_location("http://127.0.0.1:0/trades", Path())
    for was_there in (False, True):
        bringing = Bringing(location, tmp_path / "spool", is_following=True)
        assert isinstance(bringing.bringer, PostedBringer)
        _, told = post(bringing.bringer, line(1), key="k")
        assert told.get("was_there", False) == was_there
        bringing.close()


def test_posts_need_a_run_that_follows_and_this_machine(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only to a run that follows"):
        numbers("http://127.0.0.1:0/trades")
    for place in ("http://0.0.0.0:80/x", "http://example.org:80/x", "http://127.0.0.1/x"):
        with pytest.raises(UsageError, match="to this machine only"):
            numbers(place, follow=True)


def test_one_run_takes_the_rows_of_a_place(posted: PostedBringer, tmp_path: Path) -> None:
    location = parse_location("http://127.0.0.1:0/trades", Path())
    with pytest.raises(UsageError, match="another run takes the rows"):
        Bringing(location, tmp_path / "spool", is_following=True)


def test_a_missing_library_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    with pytest.raises(UsageError) as caught:
        numbers("kafka://localhost:1/t")
    assert caught.value.faults[0].hint == "pip install 'millstream[kafka]'"


def test_an_unknown_kind_of_address_is_told() -> None:
    with pytest.raises(UsageError, match='unknown kind of address "ftp://"'):
        parse_location("ftp://host/x.csv", Path())
