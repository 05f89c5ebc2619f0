"""What is written in one turn of the event loop is one write."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from millstream.server.corked import _Corked


class _Transport:
    """Mutable: notes what is done with it."""

    def __init__(self, own: socket.socket | None = None) -> None:
        self.done: list[Any] = []
        self.socket = own
        self.waiting = 0

    def get_extra_info(self, name: str) -> Any:
        return self.socket if name == "socket" else None

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def write(self, data: bytes) -> None:
        self.done.append(data)

    def close(self) -> None:
        self.done.append("closed")

    def is_closing(self) -> bool:
        return "closed" in self.done


def test_headers_and_body_are_one_write() -> None:
    plain: Any = _Transport()

    async def answer() -> None:
        corked = _Corked(plain)
        corked.write(b"head ")
        corked.write(b"body")
        assert plain.done == []
        await asyncio.sleep(0)
        corked.write(b"more")
        await asyncio.sleep(0)

    asyncio.run(answer())
    assert plain.done == [b"head body", b"more"]


def test_what_was_written_goes_out_before_the_end() -> None:
    plain: Any = _Transport()

    async def answer() -> None:
        corked = _Corked(plain)
        corked.write(b"last")
        corked.close()
        await asyncio.sleep(0)
        assert corked.is_closing()

    asyncio.run(answer())
    assert plain.done == [b"last", "closed"]


def test_a_socket_takes_what_it_can_and_the_rest_waits_in_order() -> None:
    own, other = socket.socketpair()
    own.setblocking(False)
    plain: Any = _Transport(own)
    large = b"x" * 10_000_000

    async def answer() -> None:
        corked = _Corked(plain)
        corked.write(b"small")
        corked.flush()
        assert other.recv(100) == b"small" and plain.done == []
        corked.write(large)
        corked.flush()
        (rest,) = plain.done
        assert 0 < len(rest) < len(large)
        plain.waiting = len(rest)
        corked.write(b"behind")
        corked.flush()
        assert plain.done == [rest, b"behind"]

    with own, other:
        asyncio.run(answer())


def test_who_has_gone_is_left_to_the_transport() -> None:
    own, other = socket.socketpair()
    plain: Any = _Transport(own)

    async def answer() -> None:
        corked = _Corked(plain)
        other.close()
        corked.write(b"last")
        await asyncio.sleep(0)

    with own:
        asyncio.run(answer())
    assert plain.done == [b"last"]
