"""The workbooks of the examples as loops that a skilled user of numba writes.

Each gets the columns of its inputs as arrays, texts as numbers in a dictionary, and fills all
columns of its output, `sent`, which is there already: to touch fresh memory would take longer
than the fastest of these loops. Times leave as they came, except where two inputs are merged.
Keys are numbers below `KEYS`, so that state lies in plain
arrays. Sums of windows are plain floats, which drift; those of the sheets are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

KEYS = 1000


@njit(cache=True)
def rounded(x: float, scale: float) -> float:
    return np.floor(abs(x) * scale + 0.5) / scale * (1.0 if x >= 0 else -1.0)


@njit(cache=True)
def kalman(targets: Any, positions: Any, sent: Any) -> Any:
    estimate, uncertainty = np.zeros(KEYS), np.ones(KEYS)
    for n in range(targets.size):
        k = targets[n]
        predicted, p = estimate[k], uncertainty[k] + 0.01
        gain = p / (p + 0.25)
        estimate[k] = predicted + gain * (positions[n] - predicted)
        uncertainty[k] = (1 - gain) * p
        sent[0, n], sent[1, n], sent[2, n] = k, estimate[k], uncertainty[k]
    return sent


@njit(cache=True)
def vwap(
    times: Any, keys: Any, prices: Any, volumes: Any, other_times: Any, others: Any, asked: Any,
    sellers: Any, sent: Any, sent_times: Any,
) -> Any:  # fmt: skip
    """Positions of each key's trades in a chain; what is older than five minutes is taken off."""
    following = np.full(times.size, -1, np.int64)
    oldest, newest = np.full(KEYS, -1, np.int64), np.full(KEYS, -1, np.int64)
    money, volume, average = np.zeros(KEYS), np.zeros(KEYS), np.full(KEYS, np.nan)
    price, seller = np.full(KEYS, np.nan), np.full(KEYS, -1, np.int64)
    i = j = 0
    while i < times.size or j < other_times.size:
        n = i + j
        if j < other_times.size and (i >= times.size or other_times[j] < times[i]):
            k, sent_times[n] = others[j], other_times[j]
            price[k], seller[k] = asked[j], sellers[j]
            j += 1
        else:
            k, sent_times[n] = keys[i], times[i]
            if oldest[k] < 0:
                oldest[k] = i
            else:
                following[newest[k]] = i
            newest[k] = i
            money[k] += prices[i] * volumes[i]
            volume[k] += volumes[i]
            while times[oldest[k]] <= times[i] - 300_000_000:
                first = oldest[k]
                money[k] -= prices[first] * volumes[first]
                volume[k] -= volumes[first]
                oldest[k] = following[first]
            average[k] = money[k] / volume[k]
            i += 1
        sent[0, n], sent[1, n] = k, seller[k]
        sent[2, n], sent[3, n] = average[k], price[k] < average[k]
    return sent


@njit(cache=True)
def average(values: Any, sent: Any) -> Any:
    history = np.zeros(6)
    for n in range(values.size):
        for k in range(5, 0, -1):
            history[k] = history[k - 1]
        history[0] = values[n]
        weighted = plain = 0.0
        for k in range(6):
            weighted += history[k] * (6 - k)
            plain += history[k]
        sent[0, n], sent[1, n] = weighted / 21, (history[0] - history[5]) / 5
        sent[2, n] = plain / 6
    return sent


@njit(cache=True)
def forecast(keys: Any, values: Any, sent: Any) -> Any:
    history = np.zeros((KEYS, 6))
    for n in range(values.size):
        mine = history[keys[n]]
        for k in range(5, 0, -1):
            mine[k] = mine[k - 1]
        mine[0] = values[n]
        total = products = 0.0
        for k in range(6):
            total += mine[k]
            products -= k * mine[k]
        slope = (6 * products + 15 * total) / (6 * 55.0 - 225.0)
        base = (total + 15 * slope) / 6
        sent[0, n] = keys[n]
        sent[1, n], sent[2, n] = rounded(base + slope, 1e6), rounded(base + 3 * slope, 1e6)
    return sent


@njit(cache=True)
def tax(names: Any, incomes: Any, above: Any, base: Any, rate: Any, sent: Any) -> Any:
    for n in range(incomes.size):
        taxable = max(0.0, incomes[n] - 12000)
        k = 0
        while k + 1 < above.size and above[k + 1] <= taxable:
            k += 1
        owed = rounded(base[k] + (taxable - above[k]) * rate[k], 1e2)
        sent[0, n], sent[1, n], sent[3, n] = names[n], owed, incomes[n] - owed
        sent[2, n] = rounded(owed / incomes[n], 1e4) if incomes[n] > 0 else 0.0
    return sent


@njit(cache=True)
def pong(games: Any, xs: Any, ys: Any, vxs: Any, vys: Any, sent: Any) -> Any:
    paddles, scores = np.full(KEYS, 30.0), np.zeros(KEYS)
    for n in range(games.size):
        g, x, vx = games[n], xs[n], vxs[n]
        steps = (100 - x) / vx if vx > 0 else (-x / vx if vx < 0 else 0.0)
        unfolded = ys[n] + vys[n] * steps
        bounces = np.floor(unfolded / 60)
        rest = unfolded - bounces * 60
        hit = rest if bounces % 2 == 0 else 60 - rest
        way, reach = hit - paddles[g], 1.5 * steps
        paddles[g] += way if abs(way) <= reach else np.sign(way) * reach
        there = min(max(paddles[g], 6.0), 54.0)
        is_caught = abs(hit - there) <= 6 + 2.6e-15  # a sheet compares fifteen digits
        scores[g] += is_caught
        sent[0, n], sent[1, n] = g, rounded(there, 1e4)
        sent[2, n], sent[3, n] = is_caught, scores[g]
    return sent


@njit(cache=True)
def twitter(times: Any, languages: Any, texts: Any, lengths: Any, sent: Any) -> Any:
    """Average lengths of five minutes by language, and the three greatest of all of those.

    Equal averages are a chain. Only those are kept that three later ones do not exceed: others
    are never again among the greatest.
    """
    size = times.size
    following = np.full(size, -1, np.int64)
    oldest, newest = np.full(KEYS, -1, np.int64), np.full(KEYS, -1, np.int64)
    total, count = np.zeros(KEYS), np.zeros(KEYS)
    value, exceeded, number = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    head, tail = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    after = np.full(size, -1, np.int64)
    best, held = np.empty(3, np.int64), 0
    for n in range(size):
        k, limit = languages[n], times[n] - 300_000_000
        if oldest[k] < 0:
            oldest[k] = n
        else:
            following[newest[k]] = n
        newest[k] = n
        total[k] += lengths[texts[n]]
        count[k] += 1
        while times[oldest[k]] <= limit:
            total[k] -= lengths[texts[oldest[k]]]
            count[k] -= 1
            oldest[k] = following[oldest[k]]
        x = total[k] / count[k]
        left, is_new = 0, True
        for p in range(held):
            while number[p] > 0 and times[head[p]] <= limit:
                head[p] = after[head[p]]
                number[p] -= 1
            more = exceeded[p] + (value[p] < x)
            if more < 3 and number[p] > 0:
                if value[p] == x:
                    is_new, more = False, 0
                    after[tail[p]] = n
                    tail[p] = n
                    number[p] += 1
                value[left], exceeded[left], number[left] = value[p], more, number[p]
                head[left], tail[left] = head[p], tail[p]
                left += 1
        if is_new:
            value[left], exceeded[left], number[left] = x, 0, 1
            head[left] = tail[left] = n
            left += 1
        held = left
        best[:] = -1
        for p in range(held):
            for _ in range(min(number[p], 3)):
                if best[0] < 0 or value[p] > value[best[0]]:
                    best[0], best[1], best[2] = p, best[0], best[1]
                elif best[1] < 0 or value[p] > value[best[1]]:
                    best[1], best[2] = p, best[1]
                elif best[2] < 0 or value[p] > value[best[2]]:
                    best[2] = p
        for place in range(3):
            p = best[place]
            sent[2 * place, n] = languages[head[p]] if p >= 0 else -1
            sent[2 * place + 1, n] = value[p] if p >= 0 else 0.0
    return sent


@njit(cache=True)
def linearroad(times: Any, segments: Any, speeds: Any, sent: Any) -> Any:
    """The fastest of the last 30 s by a queue of candidates; all else by chains as in vwap."""
    size = times.size
    following = np.full(size, -1, np.int64)
    newest = np.full(KEYS, -1, np.int64)
    short, long = np.full(KEYS, -1, np.int64), np.full(KEYS, -1, np.int64)
    cars, count, total = np.zeros(KEYS), np.zeros(KEYS), np.zeros(KEYS)
    # Candidates are a chain as well: each knows the one that came before it and after it.
    before, after = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    top, last = np.full(KEYS, -1, np.int64), np.full(KEYS, -1, np.int64)
    for n in range(size):
        k = segments[n]
        if newest[k] >= 0:
            following[newest[k]] = n
        newest[k] = n
        if short[k] < 0:
            short[k] = n
        if long[k] < 0:
            long[k] = n
        cars[k] += 1
        count[k] += 1
        total[k] += speeds[n]
        while times[short[k]] <= times[n] - 30_000_000:
            if top[k] == short[k]:
                top[k] = after[top[k]]
            short[k] = following[short[k]]
            cars[k] -= 1
        while times[long[k]] <= times[n] - 300_000_000:
            total[k] -= speeds[long[k]]
            count[k] -= 1
            long[k] = following[long[k]]
        if top[k] >= 0:
            p = last[k]
            while p >= 0 and p >= top[k] and speeds[p] <= speeds[n]:
                p = before[p] if p != top[k] else -1
            before[n] = p
            if p >= 0:
                after[p] = n
            else:
                top[k] = n
        else:
            top[k] = n
        last[k] = n
        mean = total[k] / count[k]
        is_accident = speeds[top[k]] == 0 and cars[k] >= 2
        is_free = is_accident or mean >= 40 or cars[k] <= 4
        sent[0, n], sent[1, n] = k, rounded(mean, 1e3)
        sent[2, n] = 0.0 if is_free else 2 * (cars[k] - 4) ** 2
    return sent


@njit(cache=True)
def mandelbrot(res: Any, ims: Any, sent: Any) -> Any:
    for n in range(res.size):
        a, b, steps = res[n], ims[n], 0
        size = a * a + b * b
        while steps < 98 and size <= 4:
            a, b = a * a - b * b + res[n], 2 * a * b + ims[n]
            size = a * a + b * b
            steps += 1
        sent[0, n], sent[1, n] = steps * 5 % 256, steps * 7 % 256
        sent[2, n] = steps * 11 % 256 if size > 4 else 0.0
    return sent
