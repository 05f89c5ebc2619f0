"""Nets of filters on Spark beside hand-written jobs, in one run, with equal answers.

Every side is a process of its own, warmed up on a small input, then all of a finite input
counts, from the first row read to the last row written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds

from spark_measure import Figures, measured
from streamit_spark_data import Items
from streamit_spark_hand import JOBS

FILES, ROWS_PER_FILE = 8, 640_000


def answers(place: Path, order: str) -> Any:
    """What came out, in its order; rows of one time are in the order in which they lie."""
    table = ds.dataset(place, format="parquet").to_table()
    first = np.argsort(table[order].to_numpy(), kind="stable")
    return table["value"].to_numpy()[first]


def compared(program: str, scale: float) -> dict[str, Any]:
    items = Items(max(2, round(FILES * scale)), ROWS_PER_FILE)
    warm = Items(2, 64_000)
    sides: dict[str, tuple[Figures, Any]] = {}
    for side, order in (("ours", "_time"), ("hand", "n")):
        with measured(f"streamit_spark_{side}", program, items, files=0, warm=warm) as figures:
            sides[side] = figures, answers(figures.out, order)
    (mine, our_answers), (hand, their_answers) = sides["ours"], sides["hand"]
    return {
        "program": program,
        "items": items.rows,
        "items_per_s": round(items.rows / mine.seconds),
        "by_hand": round(items.rows / hand.seconds),
        "ours_is_faster": round(hand.seconds / mine.seconds, 2),
        "by_cpu": round(hand.cpu_seconds / mine.cpu_seconds, 2),
        "is_met": hand.seconds >= mine.seconds,
        "is_equal": np.array_equal(our_answers, their_answers),
    }


def streamit_spark(scale: float) -> list[dict[str, Any]]:
    """Five million items in eight files, on Spark with two cores."""
    return [compared(program, scale) for program in JOBS]


BENCHMARKS = {"streamit_spark": streamit_spark}
