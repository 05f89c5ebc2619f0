"""A connection to a server of NATS, used without `await`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from millstream.connectors.elsewhere.address import Elsewhere, refuse_settings
from millstream.connectors.elsewhere.extras import optional
from millstream.connectors.elsewhere.messages import FORMATS
from millstream.errors import RunError, UsageError, listing

#: How long a server may take to answer.
SECONDS = 5.0
_LOGIN = ("user", "password", "token")


class Nats:
    """Mutable: an address of a stream, and a connection that may be lost and made again."""

    def __init__(self, place: Elsewhere, text: str, *, what_fails: str) -> None:
        self.library = optional("nats", "nats")
        refuse_settings(place, ("subject", "format", *_LOGIN), text)
        self.stream = place.path.strip("/")
        self.text = text
        self.subject = place.settings.get("subject")
        self.format = place.settings.get("format", FORMATS[0])
        if self.format not in FORMATS:
            raise UsageError(f'messages in "{self.format}" {what_fails}',
                             place=text, hint=f"formats are: {listing(FORMATS)}")  # fmt: skip
        self._login = {k: v for k, v in place.settings.items() if k in _LOGIN}
        self._server = f"nats://{place.user}{'@' if place.user else ''}{place.host}"
        self._what_fails = what_fails
        self._loop = asyncio.new_event_loop()
        self.connection: Any = None
        try:
            self.run(self.connected())
        except BaseException:
            self.close()
            raise

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What NATS says is told as ours."""
        try:
            return self._loop.run_until_complete(work)
        except (self.library.errors.Error, OSError) as error:
            why = str(error).split("\n", 1)[0] or type(error).__name__
            raise RunError(f"NATS {self._what_fails}: {why}", place=self.text) from None

    async def connected(self) -> None:
        """Who is away is told at once: whoever wants to tries again."""
        patience = {"connect_timeout": SECONDS, "max_reconnect_attempts": 1,
                    "reconnect_time_wait": 0.2, "allow_reconnect": False}  # fmt: skip
        self.connection = await self.library.connect(
            self._server, error_cb=_ignored, **patience, **self._login
        )

    async def info(self) -> Any:
        """What the server knows of the stream."""
        try:
            return await self.connection.jetstream().stream_info(self.stream)
        except self.library.js.errors.NotFoundError:
            raise UsageError(f'there is no stream "{self.stream}"', place=self.text) from None

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.run_until_complete(self._ended())
        self._loop.close()

    async def _ended(self) -> None:
        if self.connection is not None:
            await self.connection.close()
            self.connection = None
        # What works for the connection ends only when it is waited for.
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def _ignored(_: Exception) -> None:
    """What an answer fails by is told there."""
