"""`millstream demo`: a spreadsheet that finds bargains, on generated trades and quotes.

First the sheet of one symbol, as it changes with every row; then the same sheet for every
symbol, on Spark, or without a Java on the local engine.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from millstream import api
from millstream.cli.progress import Progress
from millstream.cli.run import has_spark
from millstream.cli.shipped import STARTERS
from millstream.cli.show import TableWriter, in_words
from millstream.connectors.location import Location, parse_location
from millstream.connectors.settings import settings_of
from millstream.engine.spark.java import find_java
from millstream.errors import MillstreamError
from millstream.languages.sheets.watch import replay
from millstream.plan.batch import Batch

WORKBOOK = STARTERS / "sheet" / "bargains.xlsx"
SYMBOLS = ("ACME", "BOLT", "CRUX", "DUNE", "ECHO", "FLUX", "GLOW", "HALO")
START = "2026-01-05T09:30:00Z"
SHOWN = 10
Column = dict[str, object]
Columns = dict[str, Column]
#: Enough for windows to fill, and short enough to be watched.
WATCHED_ROWS = 4_000


class Bargains(TableWriter):
    """Keeps the first quotes below the average price."""

    def write(self, batch: Batch) -> None:
        is_below = np.asarray(batch.column("bargain").values, np.bool_)
        # Before the first quote of a symbol there is nothing to be below the average.
        is_there = batch.column("seller").values.is_valid().to_numpy(zero_copy_only=False)
        super().write(batch.take(np.flatnonzero(is_below & is_there)))


def run(arguments: argparse.Namespace) -> int:
    is_text = arguments.format == "text"
    compiled = api.compile(WORKBOOK)
    engine = _engine()
    if is_text:
        print(
            "An analyst's workbook: the average price of the last five minutes, weighted by\n"
            "volume, and which quotes are below it. The sheet of one symbol:\n",
            flush=True,
        )
        replay(compiled, _inputs(WATCHED_ROWS), SYMBOLS[0])
        where = {
            "spark": "on Spark",
            "local": "here, because there is no Spark, or no Java for it",
        }[engine]
        print(f"\nThe same for every symbol, {where}. The first bargains:\n", flush=True)
    (name,) = compiled.program.outputs
    result = Bargains(name, compiled.program.queue_types()[name], SHOWN, is_json=not is_text)
    progress = Progress("auto", engine)
    start = time.perf_counter()
    with progress:
        finished = compiled.run(
            _inputs(arguments.rows), {name: result}, engine=engine, progress=progress
        )
    seconds = time.perf_counter() - start
    progress.finish(finished.report)
    rows = sum(c.processed for c in finished.report.inputs.values())
    sys.stdout.flush()
    if is_text:
        speed = f"{in_words(rows / seconds)} rows/s, with the start of the engine"
        print(f"\n{rows:,} trades and quotes in {seconds:.1f} s: {speed}")
    return 0


def _engine() -> str:
    if not has_spark():
        return "local"
    try:
        find_java()
    except MillstreamError:
        return "local"
    return "spark"


def _inputs(rows: int) -> dict[str, Location]:
    symbol: Column = {"values": list(SYMBOLS)}
    price: Column = {"min": 100.0, "max": 200.0, "walk": 0.5}
    trades: Columns = {"sym": symbol, "price": price, "vol": {"min": 1, "max": 1000}}
    sellers: Column = {"values": ["Alder", "Birch", "Cedar"]}
    quotes: Columns = {"sym": symbol, "price": price, "seller": sellers}
    return {"Trades": _generated(rows, 1, trades), "Quotes": _generated(rows, 2, quotes)}


def _generated(rows: int, seed: int, columns: Columns) -> Location:
    settings = settings_of(
        {"rows": rows, "seed": seed, "start": START, "interval": "100 ms", "columns": columns}
    )
    return replace(parse_location("generator", Path()), generator=settings)
