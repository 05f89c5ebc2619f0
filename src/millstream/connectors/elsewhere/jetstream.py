"""A stream of NATS JetStream: the lines of a message are rows in JSON, or it is an Arrow stream.

The position is the number of a message in its stream, which is written down with the rows
(`spool`): the server need not remember us. A consumer of NATS is made for a run and forgotten.
"""

from __future__ import annotations

import asyncio
import json
import time
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from millstream.connectors.elsewhere.address import Elsewhere, refuse_settings
from millstream.connectors.elsewhere.extras import optional
from millstream.connectors.elsewhere.spool import Spool
from millstream.errors import RunError, UsageError

_SECONDS = 5.0
_SILENCE = 30.0
_MESSAGES = 1_000
#: A segment is full with so many bytes.
_SEGMENT_BYTES = 4 << 20
_MICROSECOND = timedelta(microseconds=1)


class JetStreamBringer:
    """Mutable: a connection, a consumer, and the number of the last message that was brought."""

    def __init__(self, place: Elsewhere, spool: Spool, text: str, *, is_following: bool) -> None:
        self._nats = optional("nats", "nats")
        refuse_settings(place, ("subject", "format", "user", "password", "token"), text)
        self._settings = dict(place.settings)
        if self._settings.get("format", "json") not in ("json", "arrow"):
            raise UsageError(f'messages in "{self._settings["format"]}" cannot be read',
                             place=text, hint="formats are: json, arrow")  # fmt: skip
        self._server = f"nats://{place.host}"
        self._stream = place.path.strip("/")
        self._text = text
        self._spool = spool
        self._is_following = is_following
        self._loop = asyncio.new_event_loop()
        self._connection: Any = None
        self._consumer: Any = None
        position = spool.position()
        self._last: int | None = None if position is None else position["sequence"]
        try:
            self._run(self._connected())
            #: A run that ends has all that was there when it began.
            self._end = self._run(self._known())
        except BaseException:
            self.close()
            raise

    def _run(self, work: Any) -> Any:
        """What NATS says is told as ours."""
        try:
            return self._loop.run_until_complete(work)
        except (self._nats.errors.Error, OSError) as error:
            self._consumer = None  # another one is made when it is back
            why = str(error).split("\n", 1)[0] or type(error).__name__
            raise RunError(f"NATS cannot be read: {why}", place=self._text) from None

    async def _connected(self) -> None:
        login = {k: v for k, v in self._settings.items() if k in ("user", "password", "token")}
        # Who is away is told at once; `bring` tries again.
        patience = {"connect_timeout": _SECONDS, "max_reconnect_attempts": 1,
                    "reconnect_time_wait": 0.2, "allow_reconnect": False}  # fmt: skip
        self._connection = await self._nats.connect(
            self._server, error_cb=_ignored, **patience, **login
        )

    async def _known(self) -> int:
        """The last message there is; those that we have not seen must still be there."""
        try:
            info = await self._connection.jetstream().stream_info(self._stream)
        except self._nats.js.errors.NotFoundError:
            raise UsageError(f'there is no stream "{self._stream}"', place=self._text) from None
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
        api = self._nats.js.api
        start = (self._last or 0) + 1
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=start,
            ack_policy=api.AckPolicy.NONE, inactive_threshold=60,
        )  # fmt: skip
        subject = self._settings.get("subject", ">")
        return await self._connection.jetstream().pull_subscribe(
            subject, stream=self._stream, config=config
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
            if not self._connection.is_connected:
                await self._connected()
            await self._known()
            self._consumer = await self._subscribed()
        deadline = time.monotonic() + _SILENCE
        while True:
            try:
                return list(await self._consumer.fetch(_MESSAGES, timeout=0.2))
            except (TimeoutError, self._nats.errors.TimeoutError):
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
        if self._settings.get("format", "json") == "json":
            return data.rstrip(b"\r\n").replace(b"\r\n", b"\n") + b"\n"
        try:
            rows = pa.ipc.open_stream(data).read_all().to_pylist()
        except pa.ArrowInvalid:
            return b"this message is no Arrow stream\n"  # rejected as a line that is no JSON
        return b"".join(json.dumps(row, default=_plain).encode() + b"\n" for row in rows)

    def close(self) -> None:
        if self._connection is not None:
            self._loop.run_until_complete(self._connection.close())
        self._loop.close()


async def _ignored(_: Exception) -> None:
    """What a read fails by is told there."""


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
