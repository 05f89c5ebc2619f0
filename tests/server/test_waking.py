"""Who waits for news: those it is for at once, and all others in turn."""

from __future__ import annotations

import asyncio

from millstream.server.waking import Waking


def test_those_with_rows_come_first_and_the_others_in_turn() -> None:
    asyncio.run(_first_and_others())


async def _first_and_others() -> None:
    waking = Waking()
    news = {who: waking.add(who) for who in range(100)}
    waking.wake([70, 71, 200])
    await asyncio.sleep(0)
    woken = {who for who, event in news.items() if event.is_set()}
    assert {70, 71} <= woken and len(woken) <= 22, "the rest wait for their turn"
    waking.remove(50)
    for who in news.keys() - {50}:
        await asyncio.wait_for(news[who].wait(), 60)
    assert not news[50].is_set()


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
    assert all(one.is_set() for one in news)
