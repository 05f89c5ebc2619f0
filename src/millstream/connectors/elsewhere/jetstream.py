"""A stream of NATS JetStream: the lines of a message are rows in JSON, or it is an Arrow stream.

The position is the number of a message in its stream, which is written down with the rows
(`spool`): the server need not remember us. A consumer of NATS is made for a run and forgotten.
"""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from millstream.connectors.elsewhere.address import Elsewhere
from millstream.connectors.elsewhere.nats import Nats
from millstream.connectors.elsewhere.spool import Spool
from millstream.errors import RunError

_SILENCE = 30.0
_MESSAGES = 1_000
#: A segment is full with so many bytes.
_SEGMENT_BYTES = 4 << 20
_MICROSECOND = timedelta(microseconds=1)


class JetStreamBringer:
    """Mutable: a connection, a consumer, and the number of the last message that was brought."""

    def __init__(self, place: Elsewhere, spool: Spool, text: str, *, is_following: bool) -> None:
        self._nats = Nats(place, text, what_fails="cannot be read")
        self._text = text
        self._spool = spool
        self._is_following = is_following
        self._consumer: Any = None
        position = spool.position()
        self._last: int | None = None if position is None else position["sequence"]
        try:
            #: A run that ends has all that was there when it began.
            self._end = self._run(self._known())
        except BaseException:
            self.close()
            raise

    def _run(self, work: Any) -> Any:
        try:
            return self._nats.run(work)
        except RunError:
            self._consumer = None  # another one is made when it is back
            raise

    async def _known(self) -> int:
        """The last message there is; those that we have not seen must still be there."""
        info = await self._nats.info()
        first, last = info.state.first_seq, info.state.last_seq
        if self._last is None:
            self._last = max(first - 1, 0)
            self._spool.add_lines(b"", {"sequence": self._last})
        if not first - 1 <= self._last <= last:
            what = "are gone" if self._last < first else "are not there any more"
            raise RunError(
                f"messages from {self._last + 1} on {what}: it has {first} to {last}",
                place=self._text, hint="--rebuild takes what is there now from the beginning",
            )  # fmt: skip
        return int(last)

    async def _subscribed(self) -> Any:
        api = self._nats.library.js.api
        start = (self._last or 0) + 1
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=start,
            ack_policy=api.AckPolicy.NONE, inactive_threshold=60,
        )  # fmt: skip
        return await self._nats.connection.jetstream().pull_subscribe(
            self._nats.subject or ">", stream=self._nats.stream, config=config
        )

    def fetch(self) -> bool:
        """Bring what has come; whether there is more."""
        lines: list[bytes] = []
        size, last, has_more = 0, self._last or 0, True
        while size < _SEGMENT_BYTES and has_more:
            messages = self._run(self._next())
            has_more = bool(messages)
            for message in messages:
                number = message.metadata.sequence.stream
                if not self._is_following and number > self._end:
                    has_more = False
                    break
                last = number
                lines.append(self._lines(message.data))
                size += len(lines[-1])
        if lines:
            self._last = last
            self._spool.add_lines(b"".join(lines), {"sequence": last})
        return has_more

    async def _next(self) -> list[Any]:
        """The next messages; none if there is none, or while following if none has come."""
        if self._consumer is None:
            if not self._nats.connection.is_connected:
                await self._nats.connected()
            await self._known()
            self._consumer = await self._subscribed()
        deadline = time.monotonic() + _SILENCE
        while True:
            try:
                return list(await self._consumer.fetch(_MESSAGES, timeout=0.2))
            except (TimeoutError, self._nats.library.errors.TimeoutError):
                if self._is_following or not await self._is_behind():
                    return []
            if time.monotonic() > deadline:
                raise RunError(f"NATS has sent nothing for {_SILENCE:.0f} seconds",
                               place=self._text)  # fmt: skip

    async def _is_behind(self) -> bool:
        """Whether the stream has messages that were not sent yet."""
        info = await self._consumer.consumer_info()
        return bool(info.num_pending)

    def _lines(self, data: bytes) -> bytes:
        if self._nats.format == "json":
            lines = data.rstrip(b"\r\n").replace(b"\r\n", b"\n")
            return lines + b"\n" if lines else b""
        try:
            rows = pa.ipc.open_stream(data).read_all().to_pylist()
        except pa.ArrowInvalid:
            return b"this message is no Arrow stream\n"  # rejected as a line that is no JSON
        return b"".join(json.dumps(row, default=_plain).encode() + b"\n" for row in rows)

    def close(self) -> None:
        self._nats.close()


def _plain(value: Any) -> Any:
    """What JSON has no word for, as our readers take it."""
    match value:
        case datetime():
            return value.isoformat() if value.tzinfo is not None else f"{value.isoformat()}Z"
        case timedelta():
            return value // _MICROSECOND
        case bytes():
            return value.decode("utf-8", "replace")
        case _:
            return str(value)
