"""HTTP in which all that is written in one turn of the event loop goes out at its end.

Headers and body of an answer are written one after the other. Each is a call into the system that
lets go of Python's lock, and beside a thread that computes it takes half a millisecond to have it
back. So an answer is one call, and one that keeps the lock: a socket that does not block has the
bytes in some microseconds, or takes none.
"""

from __future__ import annotations

import asyncio
import ctypes
from typing import Any
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.auto import AutoHTTPProtocol

_AutoHTTP: Any = AutoHTTPProtocol  # one of two classes, by what is installed

_send: Any = ctypes.PyDLL(None).send
_send.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int)
_send.restype = ctypes.c_ssize_t


class _Turn:
    """Mutable: who has written in this turn of a loop."""

    def __init__(self) -> None:
        self._written: list[_Corked] = []

    def add(self, transport: _Corked) -> None:
        if not self._written:
            asyncio.get_running_loop().call_soon(self._end)
        self._written.append(transport)

    def _end(self) -> None:
        written, self._written = self._written, []
        for transport in written:
            transport.flush()


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turn] = WeakKeyDictionary()


class _Corked:
    """Mutable: a transport, and what is to be written at the end of this turn."""

    def __init__(self, plain: asyncio.Transport) -> None:
        self.plain = plain
        self._parts: list[bytes] = []
        self._turn = _turns.setdefault(asyncio.get_running_loop(), _Turn())
        is_encrypted = plain.get_extra_info("ssl_object") is not None
        self._socket = None if is_encrypted else plain.get_extra_info("socket")

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._turn.add(self)
        self._parts.append(data)

    def flush(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts = []
            taken = self._taken(data)
            if taken < len(data):
                self.plain.write(data[taken:])

    def _taken(self, data: bytes) -> int:
        """How much the socket takes at once; what is wrong with it is found by the next write."""
        if self._socket is None or self.plain.is_closing() or self.plain.get_write_buffer_size():
            return 0
        taken: int = _send(self._socket.fileno(), data, len(data), 0)
        return max(0, taken)

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

    #: How many there were that are no more.
    gone = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(_Corked(transport))

    def connection_lost(self, error: Exception | None) -> None:
        CorkedHTTP.gone += 1
        super().connection_lost(error)
