"""The inputs and the expected outputs of these examples, calculated without StreamIt.

Numbers are rounded to 32 bits after every operation, as the language wants it.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
F = np.float32


def write(name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with (HERE / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([columns, *rows])


def number(value: Any) -> str:
    text = repr(float(value))
    return text.removesuffix(".0")


def fibonacci() -> None:
    # Nothing comes out until there are two numbers: the k-th sum comes with turn k + 1.
    numbers = [0, 1]
    for _ in range(10):
        numbers.append(numbers[-1] + numbers[-2])
    rows = [(k + 2, f"{value}\n") for k, value in enumerate(numbers[2:])]
    write("fibonacci/expected/printed.csv", ("_time", "text"), rows)


def echo() -> None:
    heard = [F(1 if n % 8 == 0 else 0.25 * (n % 3)) for n in range(24)]
    said: list[Any] = []
    for n, value in enumerate(heard):
        said.append(value + F(0.6) * (said[n - 3] if n >= 3 else F(0)))
    write("echo/items.csv", ("_time", "value"), [(n, number(v)) for n, v in enumerate(heard)])
    write("echo/expected/out.csv", ("_time", "value"), [(n, number(v)) for n, v in enumerate(said)])


def moving_average() -> None:
    items = [F(round(10 * math.sin(n / 3), 2)) for n in range(20)]
    rows = []
    for n in range(4, 20):
        total = F(0)
        for value in items[n - 4 : n + 1]:
            total = total + value
        rows.append((n, number(total / F(5))))
    write("moving_average/items.csv", ("_time", "value"),
          [(n, number(v)) for n, v in enumerate(items)])  # fmt: skip
    write("moving_average/expected/out.csv", ("_time", "value"), rows)


def merge_sort() -> None:
    items = [n * n * 7 % 101 - 50 for n in range(27)]
    write("merge_sort/items.csv", ("_time", "value"), list(enumerate(items)))
    # Eight leave when the last of them has come; three are left over.
    rows = [(8 * block + 7, v) for block in range(3)
            for v in sorted(items[8 * block : 8 * block + 8])]  # fmt: skip
    write("merge_sort/expected/out.csv", ("_time", "value"), rows)


def low_pass(cutoff: float) -> list[Any]:
    taps, rate, pi = 16, F(250000), F(math.pi)
    m = F(taps - 1)
    w = F(2) * pi * F(cutoff) / rate
    coefficients = []
    for i in range(taps):
        x = F(i) - m / F(2)
        window = F(0.54) - F(0.46) * F(math.cos(F(2) * pi * F(i) / m))
        coefficients.append(w / pi if x == 0 else F(math.sin(w * x)) / pi / x * window)
    return coefficients


def filtered(items: Sequence[Any], cutoff: float, step: int) -> list[Any]:
    coefficients = low_pass(cutoff)
    out = []
    for first in range(0, len(items) - len(coefficients) + 1, step):
        total = F(0)
        for item, c in zip(items[first:], coefficients, strict=False):
            total = total + item * c
        out.append(total)
    return out


def fm_radio() -> None:
    aerial = np.array([math.sin(0.2 * n + 2 * math.sin(0.01 * n)) for n in range(400)], "<f4")
    (HERE / "fm_radio/aerial.in").write_bytes(aerial.tobytes())
    low = filtered(list(aerial), 108000, 4)
    gain = F(250000) / (F(27000) * F(math.pi))
    demodulated = [gain * F(math.atan(a * b)) for a, b in itertools.pairwise(low)]
    bands = []
    for i in range(3):
        high, lower = (filtered(demodulated, 5000 * (i + k), 1) for k in (2, 1))
        weight = F(1) / F(i + 1)
        bands.append([(a - b) * weight for a, b in zip(high, lower, strict=True)])
    rows = []
    for n in range(10):
        total = F(0)
        for band in bands:
            total = total + band[n]
        # The last sample that is looked at: 16 of the low-pass, then 4 for each further one.
        rows.append((16 + 4 * (n + 16), number(total)))
    write("fm_radio/expected/sound_out.csv", ("_time", "value"), rows)


def mpeg_decoder() -> None:
    codes = [(n * 37 + 11) % 256 for n in range(21)]
    write("mpeg_decoder/items.csv", ("_time", "value"), list(enumerate(codes)))
    picture, rows = 0, []
    for n in range(1, len(codes), 2):
        difference = int((codes[n - 1] - 128) * 3 / 2)
        vector = (codes[n] >> 4) - (codes[n] & 15)
        picture = max(0, min(255, picture + vector + difference))
        rows.append((n, picture))
    write("mpeg_decoder/expected/out.csv", ("_time", "value"), rows)


if __name__ == "__main__":
    for make in (fibonacci, echo, moving_average, merge_sort, fm_radio, mpeg_decoder):
        make()
