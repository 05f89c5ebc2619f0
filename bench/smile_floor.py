"""Trade-Floor, as a program of SMILE and as a loop that somebody wrote by hand with Numba."""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from cql import Chunks, batches_of
from millstream.calculus.graph import Program
from millstream.engine.job import Job
from millstream.engine.local.run import run
from millstream.languages.smile.load import load
from millstream.optimiser.optimise import optimise
from millstream.plan.batch import Batch
from millstream.source import Source
from smile_served import ISSUES, PRICES, TRADE_FLOOR

#: What an event is.
_BUY, _SELL, _MATCH = 0, 1, 2
REPEATS = 3
#: A bid, a match, and what is left of each: the columns of a row of Matchable that can differ.
Rows = dict[tuple[int, ...], int]


def events(count: int, buckets: int = ISSUES * PRICES) -> Any:
    """Buys, sells and matches in turn: kind, tick, bucket, bid or traded, buy, sell."""
    chance = random.Random(7)
    rows: list[tuple[int, ...]] = []
    left: list[dict[int, int]] = [{}, {}]
    by_bucket: dict[tuple[int, int], list[int]] = {}
    tick = 0
    for _ in range(count // 3):
        for kind in (_BUY, _SELL):
            tick += 1
            bucket, bid = chance.randrange(buckets), chance.randint(100, 1000)
            rows.append((kind, tick, bucket, bid, 0, 0))
            left[kind][tick] = bid
            by_bucket.setdefault((kind, bucket), []).append(tick)
        tick += 1
        bucket = chance.randrange(buckets)
        sides = [[t for t in by_bucket.get((k, bucket), ()) if left[k][t]] for k in (_BUY, _SELL)]
        if all(sides):
            buy, sell = chance.choice(sides[0]), chance.choice(sides[1])
            traded = chance.randint(1, min(left[0][buy], left[1][sell]))
            left[0][buy] -= traded
            left[1][sell] -= traded
            rows.append((_MATCH, tick, bucket, traded, buy, sell))
    return np.array(rows, np.int64)


def lasting_events(count: int, open_bids: int, buckets: int = ISSUES * PRICES) -> Any:
    """As many events, of which never more than so many bids are open: some pair is then matched."""
    chance = random.Random(7)
    rows: list[tuple[int, ...]] = []
    waiting: list[tuple[int, int, int, int]] = []
    tick = 0
    while len(rows) < count:
        bucket, bid = chance.randrange(buckets), chance.randint(100, 1000)
        rows += [(_BUY, tick + 1, bucket, bid, 0, 0), (_SELL, tick + 2, bucket, bid, 0, 0)]
        waiting.append((bucket, bid, tick + 1, tick + 2))
        tick += 2
        if 2 * len(waiting) > open_bids:
            at = chance.randrange(len(waiting))
            waiting[at], waiting[-1] = waiting[-1], waiting[at]
            tick += 1
            rows.append((_MATCH, tick, *waiting.pop()))
    return np.array(rows, np.int64)


class Counted:
    """A writer that only counts."""

    def __init__(self) -> None:
        self.rows = 0

    def write(self, batch: Batch) -> None:
        self.rows += len(batch)

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


class Kept:
    """A writer that keeps what it is given; what that comes to is asked for afterwards."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def write(self, batch: Batch) -> None:
        self.batches.append(batch)

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass

    def net(self, names: tuple[str, ...]) -> Rows:
        made: Rows = {}
        for batch in self.batches:
            assert batch.weight is not None
            columns = [batch.column(name).values.tolist() for name in names]
            for *row, weight in zip(*columns, batch.weight.tolist(), strict=True):
                made[tuple(row)] = made.get(tuple(row), 0) + weight
        return {row: weight for row, weight in made.items() if weight}


def by_smile(given: Any, kept: Callable[[], Any] = Kept) -> Callable[[], dict[str, Any]]:
    program = optimise(load(Source("floor.smile", TRADE_FLOOR.read_text())).program)
    names = ("BuyBids", "SellBids", "Matches")
    return run_on_floor(program, given, names, bid="#bid", traded="#traded", kept=kept)


def run_on_floor(
    program: Program, given: Any, names: tuple[str, str, str], *, bid: str, traded: str,
    kept: Callable[[], Any] = Kept,
) -> Callable[[], dict[str, Any]]:  # fmt: skip
    """A run of a program that reads buys, sells and matches, whatever it calls them."""
    buckets = int(given[:, 2].max()) + 1
    issues = pa.array([f"I{n:02}" for n in range(-(-buckets // PRICES))])

    def bids(kind: int, key: str) -> tuple[dict[str, Any], Any]:
        rows = given[given[:, 0] == kind]
        of = pa.array(rows[:, 2] // PRICES, pa.int32())
        texts = pa.DictionaryArray.from_arrays(of, issues)
        columns = {key: rows[:, 1].copy(), "issue": texts, "price": rows[:, 2] % PRICES,
                   bid: rows[:, 3].copy()}  # fmt: skip
        return columns, rows[:, 1].copy()

    rows = given[given[:, 0] == _MATCH]
    matches = {"t": rows[:, 1].copy(), "buyid": rows[:, 4].copy(),
               "sellid": rows[:, 5].copy(), traded: rows[:, 3].copy()}  # fmt: skip
    found = (bids(_BUY, "buyid"), bids(_SELL, "sellid"), (matches, rows[:, 1].copy()))
    data = dict(zip(names, found, strict=True))

    def once() -> dict[str, Any]:
        readers = {one.name: Chunks(batches_of(one, *data[one.name])) for one in program.inputs}
        writers = {name: kept() for name in program.outputs}
        run(Job(program, readers, dict(writers)))
        return writers

    return once


@numba.njit(inline="always")
def _put(
    out: Any, at: Any, tick: Any, sign: Any, buy: Any, sell: Any, bucket: Any, left: Any, steps: Any
) -> None:
    out[at, 0], out[at, 1], out[at, 2], out[at, 3] = tick, sign, buy, sell
    out[at, 4], out[at, 5] = left[0, buy], left[1, sell]
    out[at, 6], out[at, 7] = steps[0, buy] + steps[1, sell], bucket


@numba.njit(cache=True)
def _floor(given: Any, left: Any, steps: Any, first: Any, following: Any, out: Any) -> Any:
    """All changes of Matchable: weight, buy, sell, and what is left of both."""
    size = 0
    for n in range(len(given)):
        kind, tick, bucket, count = given[n, 0], given[n, 1], given[n, 2], given[n, 3]
        buy, sell = tick, tick
        if kind == 2:
            buy, sell = given[n, 4], given[n, 5]
        for sign in (-1, 1):
            if sign == 1:
                if kind == 2:
                    left[0, buy] -= count
                    left[1, sell] -= count
                    steps[0, buy] += 1
                    steps[1, sell] += 1
                else:
                    left[kind, tick] = count
                    steps[kind, tick] = 1
                    following[kind, tick] = first[kind, bucket]
                    first[kind, bucket] = tick
            elif kind != 2:
                continue
            if kind != 1 and left[0, buy] > 0:
                other = first[1, bucket]
                while other:
                    if left[1, other] > 0:
                        _put(out, size, tick, sign, buy, other, bucket, left, steps)
                        size += 1
                    other = following[1, other]
            if kind != 0 and left[1, sell] > 0:
                other = first[0, bucket]
                while other:
                    if left[0, other] > 0 and (kind != 2 or other != buy):
                        _put(out, size, tick, sign, other, sell, bucket, left, steps)
                        size += 1
                    other = following[0, other]
        # Who is satisfied is not looked at again.
        if kind == 2:
            for side in range(2):
                gone = buy if side == 0 else sell
                if left[side, gone] == 0:
                    at = first[side, bucket]
                    if at == gone:
                        first[side, bucket] = following[side, gone]
                    else:
                        while following[side, at] != gone:
                            at = following[side, at]
                        following[side, at] = following[side, gone]
    return size


def by_hand(given: Any, room: int) -> Any:
    most = int(given[:, 1].max()) + 1
    left, steps, following = (np.zeros((2, most), np.int64) for _ in range(3))
    first = np.zeros((2, int(given[:, 2].max()) + 1), np.int64)
    out = np.empty((room, 8), np.int64)
    return out[: _floor(given, left, steps, first, following, out)]


def changes_of(told: Any) -> Rows:
    """What the changes of the loop by hand come to."""
    made: Rows = {}
    for _, weight, *row, _, _ in told.tolist():
        made[tuple(row)] = made.get(tuple(row), 0) + weight
    return {row: weight for row, weight in made.items() if weight}


def trade_floor(scale: float) -> list[dict[str, Any]]:
    """20,000 buys, sells and matches each: all changes of the three views of figure 2.

    Beside it a loop by hand with Numba, which gives the changes of Matchable alone, with equal
    answers. Processor time, best of three; rows are in memory on both sides.
    """
    given = events(int(60_000 * scale))
    once, count = by_smile(given), len(given)
    kept = once()
    room = 2 * sum(len(batch) for batch in kept["Matchable"].batches) + 1000
    told = by_hand(given, room)
    assert len(told) == sum(len(batch) for batch in kept["Matchable"].batches)
    names = ("buyid", "sellid", "buyremaining", "sellremaining")
    assert kept["Matchable"].net(names) == changes_of(told)
    ours = min(_taken(once) for _ in range(REPEATS))
    hand = min(_taken(lambda: by_hand(given, room)) for _ in range(REPEATS))
    return [{"events": count, "changes": len(told), "ours events/s": int(count / ours),
             "numba events/s": int(count / hand), "of numba": round(hand / ours, 3)}]  # fmt: skip


def lasting_floor(scale: float) -> list[dict[str, Any]]:
    """Trade-Floor for longer and longer with 20,000 open bids; changes are counted, not kept.

    Megabytes are those that the run has added to what the process had, events in memory included.
    """
    made = []
    for count in (60_000, 500_000, 2_000_000):
        given = lasting_events(int(count * scale), 20_000)
        once = by_smile(given, Counted)
        before = _megabytes()
        told = once()["Matchable"].rows
        added = _megabytes() - before
        taken = min(_taken(once) for _ in range(REPEATS))
        made.append({"events": len(given), "changes": told, "events/s": int(len(given) / taken),
                     "MB": added})  # fmt: skip
    return made


def _megabytes() -> int:
    """What the process has in memory now."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize() >> 20


def _taken(action: Callable[[], Any]) -> float:
    begun = time.process_time()
    action()
    return time.process_time() - begun
