"""HTTP in which all that is written in one turn of the event loop goes out at once.

Headers and body of an answer are written one after the other. Each is a call into the system that
lets go of Python's lock, and beside a thread that computes it takes half a millisecond to have it
back; so an answer is one call.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

_AutoHTTP: Any = AutoHTTPProtocol  # one of two classes, by what is installed


class _Corked:
    """Mutable: a transport, and what is to be written at the end of this turn."""

    def __init__(self, plain: asyncio.Transport) -> None:
        self.plain = plain
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            asyncio.get_running_loop().call_soon(self.flush)
        self._parts.append(data)

    def flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            self.plain.write(b"".join(parts))

    def close(self) -> None:
        self.flush()
        self.plain.close()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.flush()
        self.plain.set_protocol(protocol)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


class CorkedHTTP(_AutoHTTP):  # type: ignore[misc]
    """Mutable: one connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(_Corked(transport))
