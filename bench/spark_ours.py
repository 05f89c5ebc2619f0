"""Our side of the Spark benchmarks: programs, and how they are run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millstream import api

#: The average price of every trade's symbol, weighted by volume, over the five minutes up to
#: that trade. The sums also change when a trade leaves the window; `last` tells that apart.
VWAP = """
output out;
input trades(symbol text, price number, volume integer) time at;
(come)        <- Map[symbol, at = _time, value = price * number(volume), volume](trades);
(recent, $w)  <- Range[5 min](come, $w);
(sums, $s)    <- Aggregate[by symbol; value = sum(value), volume = sum(volume),
                           last = max(at)](recent, $s);
(all, $old)   <- Istream(sums, $old);
(results)     <- Filter[last == _time](all);
(out)         <- Map[symbol, vwap = value / number(volume)](results);
"""

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


PROGRAMS = {"vwap": VWAP, "sum": SUM, "costly": costly()}


def session_for(spec: Mapping[str, Any], folder: Path) -> Any:
    from millstream.backends.spark.session import start_session

    return start_session(spec["master"], folder, spec["options"].get("partitions", 2))


def run(session: Any, spec: Mapping[str, Any], trades: Path, folder: Path) -> Path:
    """Run a program, one file a batch, into a Parquet folder."""
    out = folder / "out"
    # Files are of about one size; two are never within it.
    largest = max(path.stat().st_size for path in trades.glob("*.parquet"))
    api.compile(text=PROGRAMS[spec["job"]]).run(
        {"trades": f"{trades}/*.parquet"},
        {"out": f"{out}/"},
        engine="spark",
        session=session,
        checkpoint=folder / "checkpoint",
        batch_bytes=int(1.02 * largest),
        **spec["options"],
    )
    return out
