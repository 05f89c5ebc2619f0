"""The programs as jobs that a skilled user of PySpark writes, around the loops of `streamit_hand`.

They are finite jobs, not streaming ones: what they have read need not be kept, nor be carried
from batch to batch. Transforms take a file as it comes, with what is left of an Arrow batch put
before the next. The radio looks ahead, over the ends of files too, so its rows are cut into
blocks by their numbers, and the first rows of a block go to the one before as well.
"""

# ruff: noqa: TID251 - this is about pyspark

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody uses

import streamit_coefficients as coefficients
import streamit_hand as hand
from spark_hand import SETTINGS

RESULT = "n bigint, value double"
#: Rows that are one block of the radio, and how many of the next it looks at.
BLOCK, AHEAD = 80_000, 5 * 63 + 128

Loop = Callable[[Any, Any], int]


def session_for(spec: Mapping[str, Any], _folder: Path) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(spec["master"])
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def whole_blocks(size: int, loop: Loop) -> Callable[..., Iterator[pd.DataFrame]]:
    """A loop over whole blocks, as Spark calls it for the Arrow batches of a file."""

    def apply(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        numbers, values = np.zeros(0, np.int64), np.zeros(0, np.float32)
        for frame in frames:
            numbers = np.concatenate([numbers, frame["_time"].to_numpy()])
            values = np.concatenate([values, frame["value"].to_numpy().astype(np.float32)])
            whole = len(values) // size * size
            out = np.zeros(whole, np.float32)
            loop(values[:whole], out)
            yield pd.DataFrame({"n": numbers[:whole], "value": out.astype(np.float64)})
            numbers, values = numbers[whole:], values[whole:]

    return apply


def fft(rows: Any) -> Any:
    w = coefficients.turns()
    loop = whole_blocks(512, lambda x, out: hand.fft(x, len(x), w, out))
    return rows.mapInPandas(loop, RESULT)


def dct(rows: Any) -> Any:
    c = coefficients.cosines()
    loop = whole_blocks(64, lambda x, out: hand.dct(x, len(x), c, out))
    return rows.mapInPandas(loop, RESULT)


def radio_block() -> Callable[..., pd.DataFrame]:
    """The radio over one block and what it sees of the next, as Spark calls it."""
    front, bands = coefficients.equalizer()

    def apply(key: tuple[int], frame: pd.DataFrame) -> pd.DataFrame:
        order = np.argsort(frame["_time"].to_numpy())
        x = frame["value"].to_numpy()[order].astype(np.float32)
        out, *room = (np.zeros(len(x) + 64, np.float32) for _ in range(4))
        count = min(hand.fm_radio(x, len(x), front, bands, out, *room), BLOCK // 5)
        n = key[0] * (BLOCK // 5) + np.arange(count)
        return pd.DataFrame({"n": n, "value": out[:count].astype(np.float64)})

    return apply


def fm_radio(rows: Any) -> Any:
    mine = F.floor(F.col("_time") / BLOCK)
    is_shared = (F.col("_time") % BLOCK < AHEAD) & (mine > 0)
    places = F.when(is_shared, F.array(mine - 1, mine)).otherwise(F.array(mine))
    cut = rows.select("_time", "value", F.explode(places).alias("block"))
    return cut.groupBy("block").applyInPandas(radio_block(), RESULT)


JOBS = {"fm radio": fm_radio, "fft": fft, "dct": dct}


def run(session: Any, spec: Mapping[str, Any], rows: Path, folder: Path) -> Path:
    out = folder / "out"
    JOBS[spec["job"]](session.read.parquet(str(rows))).write.parquet(str(out))
    return out
