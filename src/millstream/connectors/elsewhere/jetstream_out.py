"""Results as messages of a stream of NATS JetStream, each batch once.

A message tells in its headers which job it is of, which batch, and how many rows of it there are up
to here; the last one of a batch says so. A run that goes on asks for the last message of its
subject, and goes on behind it, in the middle of a batch too. Each message names the one
that must be before it: whoever else writes to the subject is found out, not mixed in.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Any

from millstream.connectors.elsewhere.messages import CarriedRows, Messages
from millstream.connectors.elsewhere.nats import SECONDS, Nats
from millstream.connectors.location import Location
from millstream.connectors.shelf import new_job
from millstream.connectors.write import Shape
from millstream.errors import RunError, UsageError, listing
from millstream.plan.batch import Batch

JOB, BATCH = "Millstream-Job", "Millstream-Batch"
ROWS, IS_LAST = "Millstream-Rows", "Millstream-Last"
#: Of a message, whatever its server allows: what is larger is a burden to all who read.
_MOST_BYTES = 1 << 20
#: For headers.
_SPARE_BYTES = 4 << 10
#: After so many batches without rows a message without rows says that they are over.
_EMPTY_BATCHES = 100
#: A job that begins says so, that a run which goes on finds something of its own.
_BEGUN = -1
_ANOTHER = 10071
_SIZES = struct.Struct("<qq")


class JetStreamWriter:
    """Mutable: see `BatchWriter`; as a plain writer it sends the whole result on `close`."""

    def __init__(self, location: Location, output: str, shape: Shape) -> None:
        assert location.elsewhere is not None
        self._nats = Nats(location.elsewhere, location.text, what_fails="cannot be written")
        try:
            self._subject = self._subject_of(self._nats.run(self._nats.info()))
            most = min(_MOST_BYTES, self._nats.connection.max_payload) - _SPARE_BYTES
            self._messages = Messages(shape, self._nats.format, most, location.text)
        except BaseException:
            self._nats.close()
            raise
        self._output = output
        self._job: str | None = None
        self._next = 0
        #: The first batch of which no message tells that it is over.
        self.wanted_from = 0
        #: The number of the last message of the subject.
        self._last = 0
        #: Rows of the next batch that are there already.
        self._there = 0
        self._whole: IO[bytes] | None = None

    def _subject_of(self, info: Any) -> str:
        subjects = info.config.subjects or []
        given = self._nats.subject
        if given is None and len(subjects) == 1:
            given = subjects[0]
        if given is None or any(part in ("*", ">") for part in given.split(".")):
            raise UsageError(
                "messages need one subject", place=self._nats.text,
                hint=f"such as ?subject=results; the stream takes {listing(subjects)}",
            )  # fmt: skip
        return str(given)

    # --- as a sink of numbered batches ---

    def open(self, job: str, *, fresh: bool) -> int:
        self._job = f"{job} {self._output}"
        newest = self._nats.run(self._newest())
        headers = {} if newest is None else newest.headers or {}
        self._last = 0 if newest is None else newest.seq
        if fresh:
            self._send(_BEGUN, 0, b"", is_last=True)
            self._next = 0
        elif headers.get(JOB) != self._job:
            are_gone = newest is None
            what = "the messages of this job are gone" if are_gone else "others write here too"
            raise RunError(
                f'{what}: what is there on "{self._subject}" cannot be known',
                place=self._nats.text, hint="--rebuild sends all results again",
            )  # fmt: skip
        else:
            is_over = headers[IS_LAST] == "true"
            self._next = int(headers[BATCH]) + is_over
            self._there = 0 if is_over else int(headers[ROWS])
        self.wanted_from = self._next
        return self._next

    async def _newest(self) -> Any:
        js = self._nats.connection.jetstream()
        try:
            return await js.get_last_msg(self._nats.stream, self._subject)
        except self._nats.library.js.errors.NotFoundError:
            return None

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        if number < self._next:
            return
        rows = self._there
        messages = self._missing(chain((batch,), more))
        message = next(messages, None)
        if message is None and number - self.wanted_from >= _EMPTY_BATCHES:
            self._send(number, 0, b"", is_last=True)
        while message is not None:
            following = next(messages, None)
            rows += message.rows
            self._send(number, rows, message.body, is_last=following is None)
            message = following
        self._next = number + 1

    def _missing(self, batches: Iterable[Batch]) -> Iterator[CarriedRows]:
        """What is not there yet of a batch, whose end never is."""
        for batch in batches:
            skipped = min(self._there, len(batch))
            self._there -= skipped
            yield from self._messages.of(batch.slice(skipped, len(batch)))

    def _send(self, number: int, rows: int, body: bytes, *, is_last: bool) -> None:
        assert self._job is not None
        headers = {JOB: self._job, BATCH: str(number), ROWS: str(rows),
                   IS_LAST: "true" if is_last else "false"}  # fmt: skip
        self._last = self._nats.run(self._published(body, headers))
        if is_last:
            self.wanted_from = number + 1

    async def _published(self, body: bytes, headers: dict[str, str]) -> int:
        names = self._nats.library.js.api.Header
        behind = {names.EXPECTED_LAST_SUBJECT_SEQUENCE: str(self._last)}
        try:
            receipt = await self._nats.connection.jetstream().publish(
                self._subject, body, timeout=SECONDS, stream=self._nats.stream,
                headers=headers | behind,
            )  # fmt: skip
        except self._nats.library.js.errors.NoStreamResponseError:
            raise UsageError(f'no stream takes "{self._subject}"', place=self._nats.text) from None
        except self._nats.library.js.errors.APIError as error:
            if error.err_code == _ANOTHER:
                raise RunError(f'somebody else writes to "{self._subject}"',
                               place=self._nats.text) from None  # fmt: skip
            raise
        return int(receipt.seq)

    # --- as a plain writer ---

    def write(self, batch: Batch) -> None:
        if self._job is not None:
            if len(batch):
                self.write_batch(self._next, batch)
            return
        if self._whole is None:
            self._whole = tempfile.TemporaryFile()  # noqa: SIM115  closed by `abort`
        for message in self._messages.of(batch):
            self._whole.write(_SIZES.pack(message.rows, len(message.body)))
            self._whole.write(message.body)

    def close(self) -> None:
        try:
            if self._job is None and self._nats.connection is not None:
                self.open(new_job(), fresh=True)
                self._send_whole()
        finally:
            self.abort()

    def _send_whole(self) -> None:
        if self._whole is None:
            return
        end = self._whole.tell()
        self._whole.seek(0)
        rows = 0
        while self._whole.tell() < end:
            count, size = _SIZES.unpack(self._whole.read(_SIZES.size))
            rows += count
            body = self._whole.read(size)
            self._send(0, rows, body, is_last=self._whole.tell() == end)

    def abort(self) -> None:
        if self._whole is not None:
            self._whole.close()
            self._whole = None
        self._nats.close()
