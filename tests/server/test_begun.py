"""Work that is begun at once: done where nobody has to be waited for, and awaited where one has."""

from __future__ import annotations

import asyncio

import pytest

from millstream.server.begun import begun


def test_what_need_not_wait_is_done() -> None:
    done: list[int] = []

    async def work() -> None:
        done.append(1)

    assert begun(work()) is None
    assert done == [1]


def test_what_has_to_wait_is_awaited_to_its_end() -> None:
    asyncio.run(_to_its_end())


async def _to_its_end() -> None:
    first, second, done = asyncio.Event(), asyncio.Event(), []

    async def work() -> None:
        await first.wait()
        done.append(1)
        await second.wait()
        done.append(2)

    rest = begun(work())
    assert rest is not None
    task = asyncio.ensure_future(_awaited(rest))
    for event, stand in ((first, [1]), (second, [1, 2])):
        await asyncio.sleep(0)
        event.set()
        await asyncio.sleep(0.01)
        assert done == stand
    await task


async def _awaited(rest: object) -> None:
    await rest  # type: ignore[misc]


def test_who_gives_up_waiting_ends_the_work() -> None:
    asyncio.run(_given_up())


async def _given_up() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    rest = begun(work())
    task = asyncio.ensure_future(_awaited(rest))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


def test_a_failure_is_for_whoever_awaits() -> None:
    asyncio.run(_failed())


async def _failed() -> None:
    async def work() -> None:
        raise OSError("gone")

    rest = begun(work())
    assert rest is not None
    with pytest.raises(OSError, match="gone"):
        await rest
