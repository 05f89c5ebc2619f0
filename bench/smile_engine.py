"""SMILE: Trade-Floor served by a broker, in processes of their own."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from smile_floor import lasting_floor, trade_floor
from smile_served import Served, seconds_to_start, seconds_to_subscriber, write_log

RATE, SECONDS = 1_000, 10


def latency(scale: float) -> list[dict[str, Any]]:
    """Milliseconds from when a bid is to be published until a subscriber has it.

    1,000 events a second, in batches as told, from eight connections; the broker, and those who
    publish and listen, are two processes. Each batch is made durable before it is answered.
    """
    made = []
    for batch in (1, 10):
        with tempfile.TemporaryDirectory() as folder:
            served = Served(Path(folder))
            try:
                served.wait_until_compiled()
                seconds_to_subscriber(served, 200, RATE, batch)
                taken = seconds_to_subscriber(served, int(RATE * SECONDS * scale), RATE, batch)
            finally:
                served.stop()
        at = {name: taken[int(len(taken) * part)] for name, part in
              (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))}  # fmt: skip
        made.append({"batch": batch, "events": len(taken),
                     **{name: round(1000 * one, 1) for name, one in at.items()}})  # fmt: skip
    return made


def recovery(scale: float) -> list[dict[str, Any]]:
    """Seconds from `millstream serve` until views of a log answer, without and with checkpoints.

    10^6 events, of which a third are buys, sells and matches each; all but the last 20,000 bids are
    satisfied. The broker was killed before each start; files are in the memory of the machine.
    """
    events = int(1_000_000 * scale)
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder), events)
        without = seconds_to_start(Path(folder))
        size = sum(p.stat().st_size for p in Path(folder).glob("*.soft"))
        taken = seconds_to_start(Path(folder))
    return [{"events": events, "without": round(without, 1), "with": round(taken, 1),
             "times faster": round(without / taken, 1), "checkpoint MB": size >> 20}]  # fmt: skip


BENCHMARKS = {
    "smile_trade_floor": trade_floor, "smile_lasting": lasting_floor, "smile_latency": latency,
    "smile_recovery": recovery,
}  # fmt: skip
