"""A topic of Kafka: every message is a row, its value one object of JSON, or a record of Avro.

Offsets are written down with the rows (`spool`), not with the broker. Partitions are merged by the
times of their messages, so that a long backlog of one does not make the rows of the others late.
"""

from __future__ import annotations

import json
import time
from collections import deque
from pathlib import Path
from typing import Any

from millstream.connectors.elsewhere.address import Elsewhere
from millstream.connectors.elsewhere.avro import AvroSchema, NotAvro
from millstream.connectors.elsewhere.extras import optional
from millstream.connectors.elsewhere.spool import Spool
from millstream.errors import RunError, UsageError

_SECONDS = 10.0
#: A segment is full with so many bytes; a partition that is far ahead waits at so many messages.
_SEGMENT_BYTES = 4 << 20
_MOST_WAITING = 20_000
_WAIT_SECONDS = 0.1
#: A run that ends gives up if nothing comes for so long.
_SILENT_SECONDS = 30


class KafkaBringer:
    """Mutable: a consumer, and what it has read and not yet brought."""

    def __init__(self, place: Elsewhere, spool: Spool, text: str, *, is_following: bool) -> None:
        self._kafka = optional("confluent_kafka", "kafka")
        self._topic = place.path.strip("/")
        self._text = text
        self._spool = spool
        self._is_following = is_following
        self._faults: list[str] = []
        self._is_away = False
        self._schema = _schema_of(place, text)
        own = own_settings(place, ("format", "schema"), text)
        self._consumer = self._connected(place.host, own)
        self._waiting: dict[int, deque[Any]] = {}
        self._is_at_end: dict[int, bool] = {}
        self._paused: set[int] = set()
        self._offsets: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._begin()

    def _connected(self, brokers: str, own: dict[str, str]) -> Any:
        settings = {
            "bootstrap.servers": brokers, "group.id": "millstream", "enable.auto.commit": False,
            "enable.partition.eof": True, "auto.offset.reset": "error",
            "isolation.level": "read_committed", "error_cb": self._note, "log_level": 0, **own,
        }  # fmt: skip
        try:
            return self._kafka.Consumer(settings)
        except self._kafka.KafkaException as error:
            raise UsageError(f"librdkafka says: {reason_of(error)}", place=self._text) from None

    def _note(self, error: Any) -> None:
        self._faults = [*self._faults[-9:], error.str()]
        if error.code() == self._kafka.KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - its name
            self._is_away = True

    def _begin(self) -> None:
        """Take up the offsets that are written down, or the first there are."""
        known = self._spool.position() or {}
        try:
            topics = self._consumer.list_topics(self._topic, timeout=_SECONDS).topics
            partitions = sorted(topics[self._topic].partitions)
            if topics[self._topic].error is not None or not partitions:
                raise UsageError(f'there is no topic "{self._topic}"', place=self._text)
            for number in partitions:
                partition = self._kafka.TopicPartition(self._topic, number)
                low, high = self._consumer.get_watermark_offsets(partition, timeout=_SECONDS)
                self._start(number, low, high, known.get(str(number)))
        except self._kafka.KafkaException as error:
            self._consumer.poll(0)  # so that what happened is told
            why = why_of(self._faults, error)
            raise RunError(f"Kafka cannot be reached: {why}", place=self._text) from None
        self._consumer.assign(
            [self._kafka.TopicPartition(self._topic, n, o) for n, o in self._offsets.items()]
        )
        if self._spool.next == 0:
            self._spool.add_lines(b"", {str(n): o for n, o in self._offsets.items()})

    def _start(self, number: int, low: int, high: int, known: int | None) -> None:
        offset = low if known is None else known
        if not low <= offset <= high:
            what = "are gone" if offset < low else "are not there any more"
            raise RunError(
                f"messages of partition {number} from {offset} on {what}: it has {low} to {high}",
                place=self._text, hint="--rebuild takes what is there now from the beginning",
            )  # fmt: skip
        self._offsets[number], self._ends[number] = offset, high
        self._is_at_end[number] = offset >= high
        self._waiting[number] = deque()

    def fetch(self) -> bool:
        """Bring what has come; whether there is more."""
        self._look_whether_it_is_back()
        lines: list[bytes] = []
        try:
            is_full = self._read_into(lines)
        finally:  # what has been released is told nowhere else
            self._pass_what_is_over()
            if lines:
                offsets = {str(n): o for n, o in self._offsets.items()}
                self._spool.add_lines(b"".join(lines), offsets)
        return is_full if self._is_following else not self._is_over()

    def _read_into(self, lines: list[bytes]) -> bool:
        """Lines until a segment is full, or nothing more has come; whether it is full."""
        size = 0
        deadline = time.monotonic() + _SILENT_SECONDS
        while size < _SEGMENT_BYTES:
            faults = [self._take(one) for one in self._consumer.consume(2_000, _WAIT_SECONDS)]
            before = len(lines)
            for message in self._released():
                line = _line(message.value(), self._schema)
                lines.append(line)
                size += len(line)
                self._offsets[message.partition()] = message.offset() + 1
            fault = next((one for one in faults if one is not None), None)
            if fault is not None:
                raise fault
            if self._is_over() or (self._is_following and len(lines) == before):
                return False
            if len(lines) > before:
                deadline = time.monotonic() + _SILENT_SECONDS
            elif time.monotonic() > deadline:
                why = f": {self._faults[-1]}" if self._faults else ""
                message_ = f"Kafka has sent nothing for {_SILENT_SECONDS} seconds{why}"
                raise RunError(message_, place=self._text)
        return True

    def _look_whether_it_is_back(self) -> None:
        if not self._is_away:
            return
        try:
            self._consumer.list_topics(self._topic, timeout=2)
        except self._kafka.KafkaException:
            why = self._faults[-1] if self._faults else "no broker answers"
            raise RunError(f"Kafka cannot be reached: {why}", place=self._text) from None
        self._is_away = False

    def _is_over(self) -> bool:
        """Whether a run that ends has all that was there when it began."""
        return not self._is_following and all(
            not self._waiting[number] and (offset >= self._ends[number] or self._is_at_end[number])
            for number, offset in self._offsets.items()
        )

    def _pass_what_is_over(self) -> None:
        """The last offsets of a partition may be marks of transactions, which are no messages."""
        for number, end in self._ends.items():
            is_passed = self._is_at_end[number] and not self._waiting[number]
            if is_passed and not self._is_following:
                self._offsets[number] = max(self._offsets[number], end)

    def _take(self, message: Any) -> RunError | None:
        """Put a message where it waits; what cannot be gone on with is answered."""
        error, number = message.error(), message.partition()
        if error is None and (self._is_following or message.offset() < self._ends[number]):
            self._waiting[number].append(message)
            self._is_at_end[number] = False
            if len(self._waiting[number]) > _MOST_WAITING and number not in self._paused:
                self._consumer.pause([self._kafka.TopicPartition(self._topic, number)])
                self._paused.add(number)
        elif error is None or error.code() == self._kafka.KafkaError._PARTITION_EOF:  # noqa: SLF001
            self._is_at_end[number] = True
        elif error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - its name
            what = f"messages of partition {number} from {self._offsets[number]} on are gone"
            hint = "--rebuild takes what is there now from the beginning"
            return RunError(what, place=self._text, hint=hint)
        elif error.fatal():
            return RunError(f"Kafka says: {error.str()}", place=self._text)
        return None

    def _released(self) -> list[Any]:
        """The messages that no other partition can still have an older one for."""
        released: list[Any] = []
        waiting = self._waiting
        while True:
            heads = {n: queue[0].timestamp()[1] for n, queue in waiting.items() if queue}
            silent = any(not q and not self._is_at_end[n] for n, q in waiting.items())
            if not heads or (silent and self._is_following):
                break
            number = min(heads, key=lambda n: (heads[n], n))
            released.append(waiting[number].popleft())
        for number in [n for n in self._paused if len(waiting[n]) < _MOST_WAITING // 2]:
            self._consumer.resume([self._kafka.TopicPartition(self._topic, number)])
            self._paused.discard(number)
        return released

    def close(self) -> None:
        self._consumer.close()


def own_settings(place: Elsewhere, ours: tuple[str, ...], text: str) -> dict[str, str]:
    """The settings of an address that are librdkafka's: all of them have a dot."""
    own = {k: v for k, v in place.settings.items() if k not in ours}
    for key in own:
        if "." not in key:
            raise UsageError(f'unknown setting "{key}" of a topic', place=text,
                             hint=f"{', '.join(ours)}, and those of librdkafka, such as "
                             "security.protocol=SASL_SSL")  # fmt: skip
    return own


def _schema_of(place: Elsewhere, text: str) -> AvroSchema | None:
    """The schema by which messages are read, if they are not JSON."""
    format_, schema = place.settings.get("format", "json"), place.settings.get("schema")
    if format_ not in ("json", "avro"):
        raise UsageError(f'messages in "{format_}" cannot be read yet', place=text,
                         hint="format=json and format=avro are what can")  # fmt: skip
    if (format_ == "avro") != (schema is not None):
        hint = "write format=avro&schema=trades.avsc"
        raise UsageError("messages of Avro have a schema, in a file", place=text, hint=hint)
    return None if schema is None else AvroSchema.of_file(Path(schema), text)


def _line(value: bytes | None, schema: AvroSchema | None = None) -> bytes:
    """A message as a line: breaks in JSON are blanks; one without a value is rejected as `null`."""
    raw = b"null" if value is None else value
    if schema is not None and value is not None:
        try:
            return schema.line(value) + b"\n"
        except NotAvro as fault:
            # No object, so that it is rejected, and what is shown of it says why.
            return json.dumps(f"not Avro: {fault}").encode() + b"\n"
    return raw.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"


def why_of(faults: list[str], error: Any) -> str:
    """What happened to a connection, before what all of them together came to."""
    reasons = [fault for fault in faults if "failed:" in fault] or faults
    return reasons[-1] if reasons else reason_of(error)


def reason_of(error: Any) -> str:
    fault = error.args[0]
    return str(fault.str() if hasattr(fault, "str") else fault)
