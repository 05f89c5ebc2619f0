"""The ticks that have rows, and the next free one, beside a plain set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millstream.broker.ticks import TakenTicks

SMALL = st.integers(0, 12)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "free", "forget", "take back"]), SMALL), max_size=60
)


@given(steps=STEPS)
def test_it_is_a_set_that_knows_the_next_free_tick(steps: list[tuple[str, int]]) -> None:
    ticks, plain, horizon = TakenTicks(), set[int](), -1
    for step, tick in steps:
        if step == "add" and tick > horizon:
            ticks.add(tick)
            plain.add(tick)
        elif step == "forget":  # as when all up to a tick are known
            horizon = max(horizon, tick)
            for passed in range(horizon + 1):
                ticks.forget(passed)
            plain = {t for t in plain if t > horizon}
        elif step == "take back":
            ticks.take_back([tick])
            plain.discard(tick)
        elif tick > horizon:
            assert ticks.free(tick) == next(t for t in range(tick, 100) if t not in plain)
        assert set(ticks) == plain and len(ticks) == len(plain)
        assert all((t in ticks) == (t in plain) for t in range(14))


def test_rows_of_one_tick_cost_no_more_each_the_more_they_are() -> None:
    """Each has asked all before it: a minute for these."""
    ticks = TakenTicks()
    for _ in range(100_000):
        ticks.add(ticks.free(7))
    assert ticks.free(7) == 100_007
