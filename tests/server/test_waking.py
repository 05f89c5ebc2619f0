"""Who waits for news: those it is for at once, and all others in turn."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from millstream.server import waking as waking_module
from millstream.server.waking import PAUSE_SECONDS, Waking


def test_those_with_rows_come_first_and_the_others_in_turn() -> None:
    asyncio.run(_first_and_others())


async def _first_and_others() -> None:
    waking = Waking()
    news = {who: waking.add(who) for who in range(100)}
    waking.wake([70, 71, 200])
    await asyncio.sleep(0)
    woken = {who for who, one in news.items() if one.news.is_set()}
    assert {70, 71} <= woken and len(woken) <= 22, "the rest wait for their turn"
    waking.remove(50)
    for who in news.keys() - {50}:
        await asyncio.wait_for(news[who].wait(), 60)
    assert not news[50].news.is_set()


def test_news_that_come_meanwhile_leave_nobody_out() -> None:
    asyncio.run(_nobody_left_out())


async def _nobody_left_out() -> None:
    waking = Waking()
    news = {who: waking.add(who) for who in range(60)}
    for _ in range(5):
        waking.wake([0])  # one has rows all the time
        await asyncio.sleep(0)
    await asyncio.gather(*(asyncio.wait_for(one.wait(), 60) for one in news.values()))
    assert len(waking) == 60


def test_all_are_woken_at_once_when_a_view_goes() -> None:
    asyncio.run(_all_at_once())


async def _all_at_once() -> None:
    waking = Waking()
    waking.wake_all()  # nobody is there yet
    news = [waking.add(who) for who in range(500)]
    waking.wake_all()
    await asyncio.sleep(0)
    assert all(one.news.is_set() for one in news)


def test_who_is_idle_is_told_at_once_and_others_are_woken() -> None:
    asyncio.run(_at_once())


async def _at_once() -> None:
    waking, told, can = Waking(), [], [True]

    def tell() -> bool:
        told.append(can[0])
        return can[0]

    one = waking.add("one", tell)
    waking.wake(["one"])
    await asyncio.sleep(0)
    assert one.news.is_set() and not told, "who is not waiting is only woken"
    await one.wait()
    waiting = asyncio.ensure_future(one.wait())
    await asyncio.sleep(PAUSE_SECONDS)
    waking.wake(["one"])
    await asyncio.sleep(2 * PAUSE_SECONDS)
    assert told == [True] and not waiting.done()
    can[0] = False
    waking.wake(["one"])
    await asyncio.wait_for(waiting, 60)
    assert told == [True, False]


def test_news_in_a_row_are_told_together() -> None:
    asyncio.run(_together())


async def _together() -> None:
    waking, told = Waking(), Counter[str]()

    def tell() -> bool:
        told["one"] += 1
        return True

    one = waking.add("one", tell)
    waiting = asyncio.ensure_future(one.wait())
    await asyncio.sleep(0)
    for _ in range(10):
        waking.wake(["one"])
        await asyncio.sleep(0)
    await asyncio.sleep(3 * PAUSE_SECONDS)
    assert 1 <= told.total() <= 3
    waiting.cancel()


def test_who_is_silent_for_long_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waking_module, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(waking_module, "_LOOK_SECONDS", 0.01)
    asyncio.run(_silent())


async def _silent() -> None:
    waking = Waking()
    waiting = [waking.add(number) for number in range(3)]
    await asyncio.gather(*(asyncio.wait_for(one.wait(), 60) for one in waiting))
    await asyncio.gather(*(asyncio.wait_for(one.wait(), 60) for one in waiting))
