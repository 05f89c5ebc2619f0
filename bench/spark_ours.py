"""Our side of the Spark benchmarks: programs, and how they are run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import openpyxl

from millstream import api
from spark_batches import note

#: The average price of every trade's symbol, weighted by volume, over the five minutes up to
#: that trade, as an analyst writes it.
VWAP_CELLS = {
    "D3": "=B3*C3",
    "E3": "=WINDOW(D3, 300)",
    "F3": "=WINDOW(C3, 300)",
    "G3": "=SUM(E3)/SUM(F3)",
}
VWAP_STREAMS = (
    ("stream", "direction", "attribute", "cell", "type", "role"),
    ("trades", "input", "symbol", "A3", "text", "partition"),
    ("trades", "input", "price", "B3", "number", None),
    ("trades", "input", "volume", "C3", "integer", None),
    ("trades", "input", "at", None, None, "time"),
    ("out", "output", "symbol", "A3", None, None),
    ("out", "output", "vwap", "G3", None, None),
)


def vwap(folder: Path) -> Any:
    """The workbook, compiled."""
    book = openpyxl.Workbook()
    for address, formula in VWAP_CELLS.items():
        book.active[address] = formula
    streams = book.create_sheet("streams")
    for row in VWAP_STREAMS:
        streams.append(row)
    path = folder / "vwap.xlsx"
    book.save(path)
    return api.compile(path)


#: A relation changes once per instant, so a batch of one instant gives one row per key.
SUM = """
output out;
input trades(symbol text, price number, volume integer) time at;
(all, $all)   <- Range[unbounded](trades, $all);
(sums, $sum)  <- Aggregate[by symbol; total = sum(price)](all, $sum);
(out, $old)   <- Istream(sums, $old);
"""


def costly(depth: int = 60) -> str:
    """A fold whose term takes far longer than moving its row: some 2 microseconds."""
    term = "$s.x / 2.0 + ln(price)"
    for _ in range(depth):
        term = f"ln(exp({term}) + 1.0)"
    return f"""
        output out;
        input trades(symbol text, price number, volume integer) time at;
        variable $s(x number = 1.0, n integer = 0);
        (sums, $s) <- Fold[by symbol; set $s.x = {term}, $s.n = $s.n + 1;
                           emit symbol, x = $s.x, n = $s.n](trades, $s);
        (out)      <- Filter[n % 100 == 0](sums);
    """


PROGRAMS: dict[str, Callable[[Path], Any]] = {
    "vwap": vwap,
    "sum": lambda _: api.compile(text=SUM),
    "costly": lambda _: api.compile(text=costly()),
}


def session_for(spec: Mapping[str, Any], folder: Path) -> Any:
    from millstream.engine.spark.session import start_session

    return start_session(spec["master"], folder, spec["options"].get("partitions", 2))


def run(session: Any, spec: Mapping[str, Any], trades: Path, folder: Path) -> Path:
    """Run a program, one file a batch, into a Parquet folder."""
    out = folder / "out"
    # Files are of about one size; two are never within it.
    largest = max(path.stat().st_size for path in trades.glob("*.parquet"))
    PROGRAMS[spec["job"]](folder).run(
        {"trades": f"{trades}/*.parquet"},
        {"out": f"{out}/"},
        engine="spark",
        progress=note,
        session=session,
        checkpoint=folder / "checkpoint",
        batch_bytes=int(1.02 * largest),
        **spec["options"],
    )
    return out
