"""Results as messages of a topic of Kafka: `kafka://brokers/topic?key=symbol`.

A batch is one transaction, and how far the results have come is an offset that is part of it (of
a group of consumers that nobody is in), so a batch that comes twice changes nothing for whoever
reads what is committed. A broker without transactions is given the last batch again after a crash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from millstream.connectors.elsewhere.extras import optional
from millstream.connectors.elsewhere.kafka import own_settings, reason_of, why_of
from millstream.connectors.elsewhere.staged import Staged
from millstream.connectors.location import Location
from millstream.connectors.shelf import new_job
from millstream.connectors.write import Shape, fields_of
from millstream.errors import RunError, UsageError, suggest
from millstream.plan.batch import Batch

_SECONDS = 30.0
_REACH_SECONDS = 10.0
_OURS = ("format", "key")


class KafkaWriter:
    """Mutable: see `BatchWriter`; as a plain writer the whole result is one transaction."""

    is_told_again: ClassVar[bool] = True

    def __init__(self, location: Location, output: str, shape: Shape) -> None:
        place = location.elsewhere
        assert place is not None
        self._kafka = optional("confluent_kafka", "kafka")
        self._topic, self._text = place.path.strip("/"), location.text
        self._output = output
        if place.settings.get("format", "json") != "json":
            raise UsageError("messages are written as JSON", place=self._text,
                             hint="leave out format")  # fmt: skip
        self._key = place.settings.get("key")
        names = [field.name for field in fields_of(shape)]
        if self._key is not None and self._key not in names:
            raise UsageError(f'the result has no column "{self._key}" for the keys of messages',
                             place=self._text, hint=suggest(self._key, names))  # fmt: skip
        own = own_settings(place, _OURS, self._text)
        self._settings = {"bootstrap.servers": place.host, "log_level": 0, **own}
        self._faults: list[str] = []
        self._producer: Any = None
        self._consumer: Any = None
        self._next = 0
        self._has_transactions = True
        self._look_for_topic()
        self._rows = Staged(location, shape)

    # --- as a sink of batches ---

    def open(self, job: str, *, fresh: bool) -> int | None:
        """Whoever wrote for this job before can do so no more."""
        name = f"millstream-{job}-{self._output}"
        with self._told():
            self._producer = self._made("Producer", {"transactional.id": name})
            try:
                self._producer.init_transactions(_SECONDS)
            except self._kafka.KafkaException as error:
                lacking = self._kafka.KafkaError._UNSUPPORTED_FEATURE  # noqa: SLF001 - its name
                if error.args[0].code() != lacking:
                    raise
                self._producer = self._made("Producer", {"enable.idempotence": True})
                self._has_transactions = False
                return None
            self._consumer = self._made("Consumer", {"group.id": name})
            (known,) = self._consumer.committed([self._position()], _SECONDS)
        if known.offset < 0:
            return None
        self._next = known.offset
        return self._next

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        if number < self._next:
            return
        self._send(number, self._rows.lines(batch if len(batch) else None, more))

    def _send(self, number: int, lines: Iterator[bytes]) -> None:
        with self._told():
            if self._has_transactions:
                self._transact(lines, number)
            else:
                self._produce(lines)
        self._next = number + 1

    def write(self, batch: Batch) -> None:
        if len(batch):
            self._rows.write(batch)

    def close(self) -> None:
        if self._rows.is_open and self._producer is None:
            self.open(new_job(), fresh=True)
            self._send(self._next, self._rows.lines())
        self.abort()

    def abort(self) -> None:
        self._rows.close()
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # --- with the broker ---

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Faults of Kafka in one sentence."""
        codes = self._kafka.KafkaError
        fenced = (codes._FENCED, codes.INVALID_PRODUCER_EPOCH)  # noqa: SLF001 - its name
        try:
            yield
        except self._kafka.KafkaException as error:
            message = f"Kafka says: {reason_of(error)}"
            if error.args[0].code() in fenced:
                message = "another run of the same checkpoint writes there"
            raise RunError(message, place=self._text) from None

    def _made(self, kind: str, settings: dict[str, object]) -> Any:
        try:
            return getattr(self._kafka, kind)(
                {"error_cb": self._note, **self._settings, **settings}
            )
        except self._kafka.KafkaException as error:
            raise UsageError(f"librdkafka says: {reason_of(error)}", place=self._text) from None

    def _note(self, error: Any) -> None:
        self._faults = [*self._faults[-9:], error.str()]

    def _look_for_topic(self) -> None:
        producer = self._made("Producer", {})
        try:
            topic = producer.list_topics(self._topic, timeout=_REACH_SECONDS).topics[self._topic]
        except self._kafka.KafkaException as error:
            producer.poll(0)  # so that what happened is told
            why = why_of(self._faults, error)
            raise RunError(f"Kafka cannot be reached: {why}", place=self._text) from None
        if topic.error is not None or not topic.partitions:
            raise UsageError(f'there is no topic "{self._topic}"', place=self._text)

    def _position(self, number: int = -1001) -> Any:
        return self._kafka.TopicPartition(self._topic, 0, number)

    def _transact(self, lines: Iterator[bytes], number: int) -> None:
        self._producer.begin_transaction()
        try:
            self._produce(lines)
            group = self._consumer.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(
                [self._position(number + 1)], group, _SECONDS
            )
            self._again(lambda: self._producer.commit_transaction(_SECONDS))
        except self._kafka.KafkaException as error:
            if not error.args[0].fatal():
                self._producer.abort_transaction(_SECONDS)
            raise

    def _again(self, call: Callable[[], None]) -> None:
        """What the broker says may be asked again, is asked once more."""
        try:
            call()
        except self._kafka.KafkaException as error:
            if not error.args[0].retriable():
                raise
            call()

    def _produce(self, lines: Iterator[bytes]) -> None:
        refused: list[Any] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                refused.append(error)

        for line in lines:
            key = None if self._key is None else _text_of(json.loads(line)[self._key])
            while True:
                try:
                    self._producer.produce(self._topic, line, key, on_delivery=delivered)
                except BufferError:  # what waits to be sent fills its memory
                    self._producer.poll(1.0)
                    continue
                break
            self._producer.poll(0)
        if left := self._producer.flush(_SECONDS):
            why = f": {self._faults[-1]}" if self._faults else ""
            raise RunError(f"Kafka has not taken {left} messages in {_SECONDS:g} seconds{why}",
                           place=self._text)  # fmt: skip
        if refused:
            raise self._kafka.KafkaException(refused[0])


def _text_of(value: object) -> bytes | None:
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value)).encode()
