"""The programs of `streamit_programs` as loops that a skilled person writes, in numba.

Each gets its items, all coefficients and room for what it gives, and says how many it gave.
They calculate in the same order, so that answers are equal bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

F = np.float32


def low_pass(rate: float, cutoff: float, taps: int) -> Any:
    """As the filter does it: in single precision after every operation."""
    pi, coeff = F(np.pi), np.zeros(taps, F)
    w = F(F(F(2) * pi) * F(cutoff)) / F(rate)
    for i in range(taps):
        x = F(i) - F(F(taps - 1) / F(2))
        if x == 0:
            coeff[i] = w / pi
            continue
        turn = F(np.cos(np.float64(F(F(F(F(2) * pi) * F(i)) / F(taps - 1)))))
        first = F(F(F(np.sin(np.float64(F(w * x)))) / pi) / x)
        coeff[i] = first * F(F(0.54) - F(F(0.46) * turn))
    return coeff


@njit(cache=True)
def fir(x: Any, n: int, h: Any, step: int, out: Any) -> int:
    count = 0
    at = 0
    while at + h.size <= n and at + step <= n:
        total = F(0)
        for i in range(h.size):
            total += x[at + i] * h[i]
        out[count] = total
        count += 1
        at += step
    return count


@njit(cache=True)
def fm_radio(x: Any, n: int, front: Any, bands: Any, out: Any, a: Any, b: Any, c: Any) -> int:
    count = fir(x, n, front, 5, a)
    for i in range(count - 1):
        b[i] = F(39.788735) * F(np.arctan(np.float64(a[i] * a[i + 1])))
    count -= 1
    given = 0
    for k in range(4):
        given = fir(b, count, bands[2 * k], 1, a)
        fir(b, count, bands[2 * k + 1], 1, c)
        gain = F(1.0) + F(k)
        for i in range(given):
            v = (c[i] - a[i]) * gain
            out[i] = F(0) + v if k == 0 else out[i] + v
    return given


@njit(cache=True)
def fft(x: Any, n: int, w: Any, out: Any) -> int:
    """Blocks of 256, in place."""
    size = 256
    given = 0
    for block in range(n // (2 * size)):
        base = block * 2 * size
        for i in range(size):
            to = 0
            rest = i
            for _ in range(8):
                to = to * 2 + rest % 2
                rest //= 2
            out[base + 2 * i] = x[base + 2 * to]
            out[base + 2 * i + 1] = x[base + 2 * to + 1]
        level = 0
        m = 2
        while m <= size:
            for start in range(base, base + 2 * size, 2 * m):
                for i in range(m // 2):
                    p, q = start + 2 * i, start + m + 2 * i
                    wr, wi = w[level, 2 * i], w[level, 2 * i + 1]
                    tr = out[q] * wr - out[q + 1] * wi
                    ti = out[q] * wi + out[q + 1] * wr
                    ar, ai = out[p], out[p + 1]
                    out[p], out[p + 1] = ar + tr, ai + ti
                    out[q], out[q + 1] = ar - tr, ai - ti
            level += 1
            m *= 2
        given += 2 * size
    return given


@njit(cache=True)
def bitonic(x: Any, n: int, out: Any) -> int:
    size = 32
    for base in range(0, n // size * size, size):
        for i in range(size):
            out[base + i] = x[base + i]
        k = 2
        while k <= size:
            j = k // 2
            while j > 0:
                for i in range(size):
                    other = i ^ j
                    if other > i:
                        a, b = out[base + i], out[base + other]
                        if (a > b) == ((i & k) == 0):
                            out[base + i], out[base + other] = b, a
                j //= 2
            k *= 2
    return n // size * size


@njit(cache=True)
def filter_bank(x: Any, n: int, first: Any, second: Any, out: Any, a: Any, b: Any) -> int:
    given = 0
    for k in range(8):
        count = fir(x, n, first[k], 1, a) // 8
        for i in range(count):
            b[8 * i] = a[8 * i]
            for j in range(1, 8):
                b[8 * i + j] = F(0)
        given = fir(b, 8 * count, second[k], 1, a)
        for i in range(given):
            out[i] = F(0) + a[i] if k == 0 else out[i] + a[i]
    return given


@njit(cache=True)
def dct(x: Any, n: int, c: Any, out: Any) -> int:
    t = np.zeros(64, np.float32)
    for base in range(0, n // 64 * 64, 64):
        for row in range(8):
            for u in range(8):
                s = F(0)
                for k in range(8):
                    s += c[u, k] * x[base + 8 * row + k]
                t[8 * u + row] = s
        for row in range(8):
            for u in range(8):
                s = F(0)
                for k in range(8):
                    s += c[u, k] * t[8 * row + k]
                out[base + 8 * u + row] = s
    return n // 64 * 64


@njit(cache=True)
def beamformer(x: Any, n: int, fronts: Any, steer: Any, backs: Any, out: Any, a: Any, b: Any,
               c: Any) -> int:  # fmt: skip
    rows = n // 12
    count = 0
    for k in range(12):
        for i in range(rows):
            b[i] = x[12 * i + k]
        count = fir(b, rows, fronts[k], 2, c)
        for i in range(count):
            a[12 * i + k] = c[i]
    given = 0
    for beam in range(4):
        for i in range(count):
            s = F(0)
            for k in range(12):
                s += steer[beam, k] * a[12 * i + k]
            b[i] = s
        given = fir(b, count, backs[beam], 1, c)
        for i in range(given):
            out[4 * i + beam] = c[i] * c[i]
    return 4 * given


@njit(cache=True)
def vocoder(x: Any, n: int, bands: Any, last: Any, out: Any, a: Any, b: Any) -> int:
    given = 0
    for k in range(6):
        count = fir(x, n, bands[2 * k], 1, a)
        fir(x, n, bands[2 * k + 1], 1, b)
        for i in range(count):
            a[i] = abs(b[i] - a[i])
        given = fir(a, count, last, 50, b)
        for i in range(given):
            out[6 * i + k] = b[i]
    return 6 * given
