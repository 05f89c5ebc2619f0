"""`millstream demo`: the market maker on generated bids and asks."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from millstream import api
from millstream.cli.run import Progress
from millstream.cli.show import TableWriter, in_words
from millstream.connectors.location import Location, parse_location
from millstream.connectors.settings import settings_of

PROGRAM = """\
# Trades of IBM stock: a bid is matched with the latest ask if it offers enough.
# Two operators share $lastAsk, so the result depends on the order in which they fire;
# the engines fire by (time, order of declaration, position).
output result;
input bids(symbol text, price number),
      asks(symbol text, price number);
variable $lastAsk(price number = inf), $cnt(n integer = 0);

(ibmBids)        <- Filter[symbol == "IBM"](bids);
(ibmAsks)        <- Filter[symbol == "IBM"](asks);
($lastAsk)       <- Fold[set $lastAsk.price = price](ibmAsks);
(ibmSales)       <- Fold[when price >= $lastAsk.price; emit symbol, price](ibmBids, $lastAsk);
(result, $cnt)   <- Fold[set $cnt.n = $cnt.n + 1; emit cnt = $cnt.n, symbol, price](ibmSales, $cnt);
"""

SHOWN = 10
START = "2026-01-05T09:30:00Z"


def run(arguments: argparse.Namespace) -> int:
    is_text = arguments.format == "text"
    if is_text:
        print("The market maker of the Brooklet paper, on generated bids and asks:\n")
        shown = [line for line in PROGRAM.splitlines() if not line.startswith("#")]
        print("\n".join(f"    {line}" for line in shown) + "\n")
    compiled = api.compile(text=PROGRAM)
    type_ = compiled.program.queue_types()["result"]
    result = TableWriter("result", type_, SHOWN, is_json=not is_text)
    progress = Progress("auto", api.DEFAULT_ENGINE)
    start = time.perf_counter()
    inputs = {"bids": _quotes(arguments.rows, 1), "asks": _quotes(arguments.rows, 2)}
    finished = compiled.run(inputs, {"result": result}, progress=progress)
    seconds = time.perf_counter() - start
    progress.finish(finished.report)
    rows = sum(c.processed for c in finished.report.inputs.values())
    sys.stdout.flush()
    if is_text:
        speed = f"{in_words(rows / seconds)} rows/s on one core"
        print(f"\n{rows:,} bids and asks, {result.count:,} trades in {seconds:.1f} s: {speed}")
    return 0


def _quotes(rows: int, seed: int) -> Location:
    """Quotes of four symbols, prices on a random walk."""
    settings = settings_of(
        {
            "rows": rows, "seed": seed, "start": START, "interval": "1 ms",
            "columns": {
                "symbol": {"values": ["IBM", "XYZ", "ABC", "MSFT"]},
                "price": {"min": 100.0, "max": 120.0},
            },
        }
    )  # fmt: skip
    return replace(parse_location("generator", Path()), generator=settings)
