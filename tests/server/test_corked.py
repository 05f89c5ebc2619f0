"""What is written in one turn of the event loop is one write."""

from __future__ import annotations

import asyncio
from typing import Any

from millstream.server.corked import _Corked


class _Transport:
    """Mutable: notes what is done with it."""

    def __init__(self) -> None:
        self.done: list[Any] = []

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
