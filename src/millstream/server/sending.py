"""Answers in one piece: what uvicorn writes of a response leaves with its body.

Each write lets other threads run, who may be long in giving way again, and wakes who waits for the
answer. So the headers are held until there is a body, or there will be none; of an answer that is
still being made they leave after a moment.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Headers without a body leave after so many seconds.
_MOMENT = 0.005
_BEGIN = b"HTTP/1.1 "
#: Such as 100: the answer itself comes later.
_INTERIM = b"HTTP/1.1 1"


class _Whole:
    """Mutable: a transport that holds the headers of an answer for a moment."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.transport = transport
        self._loop = loop
        self._held = b""
        self._later: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def write(self, data: bytes) -> None:
        is_begin = data.startswith(_BEGIN) and not data.startswith(_INTERIM)
        if is_begin and not self._held:
            self._held = data
            self._later = self._loop.call_later(_MOMENT, self.flush)
        else:
            self.transport.write(self._taken() + data)

    def flush(self) -> None:
        if held := self._taken():
            self.transport.write(held)

    def _taken(self) -> bytes:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        held, self._held = self._held, b""
        return held

    def close(self) -> None:
        self.flush()
        self.transport.close()


class WholeAnswers(HttpToolsProtocol):
    """Mutable: a connection whose answers leave whole."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", _Whole(transport, self.loop)))

    def handle_websocket_upgrade(self) -> None:
        # What is talked then leaves as it comes.
        self.transport = cast("_Whole", self.transport).transport
        super().handle_websocket_upgrade()

    def on_response_complete(self) -> None:
        cast("_Whole", self.transport).flush()
        super().on_response_complete()
