"""Rounds that are under way at the same time pass each place one after the other."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from millstream.engine.local.turns import NoTurn, Turns


def test_all_pass_each_place_in_order_whoever_is_quicker() -> None:
    turns = Turns(2)
    passed: list[tuple[int, int]] = []

    def go(number: int) -> None:
        for place in range(2):
            time.sleep(0.002 * (3 - number % 4))  # the first of four are the slowest
            with turns.turn(place, number):
                passed.append((place, number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(go, range(12)))
    for place in range(2):
        assert [number for at, number in passed if at == place] == list(range(12))


def test_a_fault_is_told_after_those_before_it_and_lets_nobody_wait_for_ever() -> None:
    turns = Turns(2)
    has_failed = threading.Event()

    def go(number: int) -> None:
        try:
            with turns.turn(0, number):
                if number == 1:
                    raise ValueError(number)
            has_failed.wait(10)
            with turns.turn(1, number):
                pass
        except ValueError:
            turns.stop_after(number)
            has_failed.set()
            raise

    with ThreadPoolExecutor(3) as pool:
        first, second, third = (pool.submit(go, number) for number in range(3))
        first.result()
        with pytest.raises(ValueError, match="1"):
            second.result()
        with pytest.raises(NoTurn):
            third.result()
