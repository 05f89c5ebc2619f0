"""What the sheets compute, as a skilled user of PySpark writes it in NumPy, without Spark.

A step gets a key, its state (nothing at first) and its new rows in the order of time, as
columns; it gives what they lead to, and the state that is kept. Within a key and a batch all
is vectorised where values do not depend on those before them; where they do, a plain loop
over Python floats is the fastest there is. States are tuples that Spark stores without
looking inside: windows are packed into bytes.

Sums over windows are differences of running sums, so they are only right as long as those are
exact, which they are for the data of these benchmarks; sheets always add up exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

Columns = dict[str, Any]
State = tuple[Any, ...]
Step = Callable[[Any, State | None, Columns], tuple[Columns, State]]

MINUTES = 300_000_000
HALF_MINUTE = 30_000_000


# --- windows ----------------------------------------------------------------------------


def pack(times: Any, *values: Any) -> bytes:
    return np.stack([times.view(np.float64), *values]).tobytes()


def unpack(packed: Any, count: int) -> tuple[Any, ...]:
    """Times and so many columns."""
    times, *values = np.frombuffer(bytes(packed)).reshape(count + 1, -1)
    return times.view(np.int64), *values


def opened(state: State | None, count: int) -> tuple[Any, ...]:
    if state is None:
        return np.zeros(0, np.int64), *(np.zeros(0) for _ in range(count))
    return unpack(state[0], count)


def sums(values: Any) -> Any:
    """Of all values before each place, and of all."""
    return np.concatenate([[0.0], np.cumsum(values)])


def half_up(values: Any, digits: int) -> Any:
    """Rounded as people do it: NumPy rounds halves to even numbers, and sees 0.0125 as less."""
    scale = 10.0**digits
    return np.floor(values * scale + 0.5 + 1e-9) / scale


# --- windows of time --------------------------------------------------------------------


def vwap(key: Any, state: State | None, rows: Columns) -> tuple[Columns, State]:
    """Trades have a volume, quotes have none; the window is that of the last trade so far."""
    ts, price, vol, seller = (rows[name] for name in ("ts", "price", "vol", "seller"))
    is_trade = ~np.isnan(vol)
    old_times, old_money, old_volume = opened(state, 2)
    asked, last = (np.nan, None) if state is None else state[1:]
    times = np.concatenate([old_times, ts[is_trade]])
    money = sums(np.concatenate([old_money, (price * vol)[is_trade]]))
    volume = sums(np.concatenate([old_volume, vol[is_trade]]))
    end = len(old_times) + np.cumsum(is_trade)
    newest = times[np.maximum(end - 1, 0)] if len(times) else np.zeros(len(ts), np.int64)
    start = np.searchsorted(times, newest - MINUTES, side="right")
    with np.errstate(invalid="ignore"):
        average = (money[end] - money[start]) / (volume[end] - volume[start])
    quote = np.maximum.accumulate(np.where(is_trade, -1, np.arange(len(ts))))
    asks = np.where(quote < 0, asked, price[quote])
    sellers = np.where(quote < 0, last, seller[quote])
    kept = np.searchsorted(times, times[-1] - MINUTES, side="right") if len(times) else 0
    window = pack(times[kept:], np.diff(money)[kept:], np.diff(volume)[kept:])
    found = {
        "ts": ts, "sym": np.where(sellers == None, None, key),  # noqa: E711  one by one
        "seller": sellers, "vwap": average,
        "bargain": np.nan_to_num(asks) < np.nan_to_num(average),
    }  # fmt: skip
    return found, (window, float(asks[-1]), sellers[-1])


def linearroad(key: Any, state: State | None, rows: Columns) -> tuple[Columns, State]:
    """Speeds are never negative: the fastest stands if all together have none."""
    old_times, old_speeds = opened(state, 1)
    times = np.concatenate([old_times, rows["ts"]])
    speeds = np.concatenate([old_speeds, rows["speed"]])
    total = sums(speeds)
    end = np.arange(len(old_times), len(times)) + 1
    long = np.searchsorted(times, rows["ts"] - MINUTES, side="right")
    short = np.searchsorted(times, rows["ts"] - HALF_MINUTE, side="right")
    cars = end - short
    mean = (total[end] - total[long]) / (end - long)
    is_accident = (total[end] == total[short]) & (cars >= 2)
    is_free = is_accident | (mean >= 40) | (cars <= 4)
    found = {
        "ts": rows["ts"], "segment": np.full(len(end), float(key)), "mean": half_up(mean, 3),
        "toll": np.where(is_free, 0.0, 2.0 * (cars - 4.0) ** 2),
    }  # fmt: skip
    return found, (pack(times[long[-1] :], speeds[long[-1] :]),)


# --- the three greatest of a window -----------------------------------------------------


class Greatest:
    """Where the greatest value of any range lies, and the first of equal ones.

    For each place there is kept the greatest of the next 1, 2, 4, 8, ... values, so that
    a range is two of these that overlap.
    """

    def __init__(self, values: Any) -> None:
        order = np.lexsort((-np.arange(len(values)), values))
        rank = np.empty(len(values), np.int32)
        rank[order] = np.arange(len(values), dtype=np.int32)
        self.order = order
        self.levels = [rank]
        width = 1
        while 2 * width <= len(values):
            below = self.levels[-1]
            self.levels.append(np.maximum(below[:-width], below[width:]))
            width *= 2

    def ranks(self, start: Any, end: Any) -> Any:
        """The rank of the greatest in each [start, end), or -1 where there is none."""
        found = np.full(len(start), -1, np.int32)
        level = np.frexp(np.maximum(end - start, 0).astype(float))[1] - 1
        for n in np.unique(level[level >= 0]):
            some = np.flatnonzero(level == n)
            below = self.levels[n]
            found[some] = np.maximum(below[start[some]], below[end[some] - (1 << n)])
        return found


def three_greatest(values: Any, start: Any, end: Any) -> tuple[Any, Any, Any]:
    """Where the three greatest of each range are found, -1 where there is none.

    Of equal values a sheet finds the first, in each of the three places.
    """
    greatest = Greatest(values)
    first = greatest.order[greatest.ranks(start, end)]
    rank = np.maximum(greatest.ranks(start, first), greatest.ranks(first + 1, end))
    second = greatest.order[rank]
    low, high = np.minimum(first, second), np.maximum(first, second)
    last = np.maximum(greatest.ranks(start, low), greatest.ranks(low + 1, high))
    last = np.maximum(last, greatest.ranks(high + 1, end))
    third = greatest.order[last]
    for other in (second, first):
        third = np.where(values[third] == values[other], other, third)
    second = np.where(values[second] == values[first], first, second)
    count = end - start
    return first, np.where(count > 1, second, -1), np.where(count > 2, third, -1)


def averages(times: Any, lengths: Any, codes: Any, first: int) -> Any:
    """The average length over five minutes of the language of each tweet from the first on."""
    found = np.zeros(len(times))
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order], append=-1)) + 1
    for begin, stop in zip([0, *ends[:-1]], ends, strict=True):
        mine = order[begin:stop]
        total = sums(lengths[mine])
        start = np.searchsorted(times[mine], times[mine] - MINUTES, side="right")
        end = np.arange(1, len(mine) + 1)
        found[mine] = (total[end] - total[start]) / (end - start)
    return found[first:]


def twitter(key: Any, state: State | None, rows: Columns) -> tuple[Columns, State]:
    """The tweets of five minutes with the average that each has led to, in one window."""
    old_times, old_lengths, old_codes, old_averages = opened(state, 3)
    names = [] if state is None else state[1].split(",")
    new, known = pd.factorize(np.concatenate([np.array(names, object), rows["lang"]]))
    times = np.concatenate([old_times, rows["ts"]])
    lengths = np.concatenate([old_lengths, rows["length"]])
    codes = np.concatenate([old_codes, new[len(names) :]])
    count = len(old_times)
    every = np.concatenate([old_averages, averages(times, lengths, codes, count)])
    end = np.arange(count, len(times)) + 1
    start = np.searchsorted(times, rows["ts"] - MINUTES, side="right")
    found = {"ts": rows["ts"]}
    places = three_greatest(every, start, end)
    for name, place in zip(("first", "second", "third"), places, strict=True):
        found[name] = np.where(place < 0, "", known[codes[place].astype(int)])
        found[f"{name}_average"] = np.where(place < 0, 0.0, every[place])
    kept = start[-1]
    window = pack(times[kept:], lengths[kept:], codes[kept:], every[kept:])
    return found, (window, ",".join(known))


# --- a few values back ------------------------------------------------------------------


def last_six(state: State | None, values: Any) -> tuple[Any, bytes]:
    """Each value with the five before it, zeros at first: a row per value, the oldest first."""
    old = np.zeros(5) if state is None else np.frombuffer(bytes(state[0]))
    every = np.concatenate([old, values])
    return np.lib.stride_tricks.sliding_window_view(every, 6), every[-5:].tobytes()


def average(key: Any, state: State | None, rows: Columns) -> tuple[Columns, State]:
    six, kept = last_six(state, rows["value"])
    found = {
        "ts": rows["ts"], "weighted": six @ np.arange(1.0, 7.0) / 21,
        "trend": (six[:, 5] - six[:, 0]) / 5, "plain": six @ np.ones(6) / 6,
    }  # fmt: skip
    return found, (kept,)


def forecast(key: Any, state: State | None, rows: Columns) -> tuple[Columns, State]:
    """The line through the last six by least squares, one step on and three."""
    six, kept = last_six(state, rows["temperature"])
    total, products = six @ np.ones(6), six @ np.arange(-5.0, 1.0)
    slope = (6 * products + 15 * total) / 105
    base = (total + 15 * slope) / 6
    found = {
        "ts": rows["ts"], "location": np.full(len(total), key, object),
        "next": np.round(base + slope, 6), "later": np.round(base + 3 * slope, 6),
    }  # fmt: skip
    return found, (kept,)


# --- what depends on what was before ----------------------------------------------------


def kalman(key: Any, state: State | None, rows: Columns) -> tuple[Columns, State]:
    estimate, uncertainty = (0.0, 1.0) if state is None else state
    estimates, uncertainties = [], []
    for position in rows["position"].tolist():
        predicted = uncertainty + 0.01
        gain = predicted / (predicted + 0.25)
        estimate += gain * (position - estimate)
        uncertainty = (1 - gain) * predicted
        estimates.append(estimate)
        uncertainties.append(uncertainty)
    found = {
        "ts": rows["ts"], "target": np.full(len(estimates), float(key)),
        "estimate": np.array(estimates), "uncertainty": np.array(uncertainties),
    }  # fmt: skip
    return found, (estimate, uncertainty)


def pong(key: Any, state: State | None, rows: Columns) -> tuple[Columns, State]:
    """Where balls hit does not depend on the paddle, which goes as far as it comes."""
    x, vx = rows["x"], rows["vx"]
    wall = np.where(vx > 0, 100 - x, -x)
    steps = np.divide(wall, vx, out=np.zeros(len(x)), where=vx != 0)
    unfolded = rows["y"] + rows["vy"] * steps
    bounces = np.floor(unfolded / 60)
    rest = unfolded - bounces * 60
    hit = np.where(bounces % 2 == 0, rest, 60 - rest)
    paddle, score = (30.0, 0.0) if state is None else state
    paddles = []
    for goal, reach in zip(hit.tolist(), (1.5 * steps).tolist(), strict=True):
        way = goal - paddle
        paddle += way if -reach <= way <= reach else reach if way > 0 else -reach
        paddles.append(paddle)
    there = np.clip(np.array(paddles), 6, 54)
    is_caught = np.abs(hit - there) <= 6 + 1e-12
    scores = score + np.cumsum(is_caught)
    found = {
        "ts": rows["ts"], "game": np.full(len(x), float(key)), "paddle": half_up(there, 4),
        "caught": is_caught, "score": scores,
    }  # fmt: skip
    return found, (paddle, float(scores[-1]))


# --- without state ----------------------------------------------------------------------


def mandelbrot(re: Any, im: Any) -> Columns:
    """All points at once, 98 steps; those that have left are taken out."""
    steps, is_out = np.full(len(re), 98.0), np.zeros(len(re), bool)
    places, a, b, c, d = np.arange(len(re)), re, im, re, im
    for step in range(99):
        squares = a * a, b * b
        inside = squares[0] + squares[1] <= 4
        if not inside.all():
            gone = places[~inside]
            steps[gone], is_out[gone] = step, True
            places, a, b, c, d = (one[inside] for one in (places, a, b, c, d))
            squares = squares[0][inside], squares[1][inside]
        a, b = squares[0] - squares[1] + c, 2 * a * b + d
    return {
        "red": steps * 5 % 256, "green": steps * 7 % 256,
        "blue": np.where(is_out, steps * 11 % 256, 0.0),
    }  # fmt: skip
