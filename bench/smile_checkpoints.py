"""What soft checkpoints of a broker cost, beside all else that it does with what comes."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from millstream.broker.compiled import Compiled
from millstream.broker.core import Broker, Given, Publish
from millstream.broker.env import Env, FolderDisk, MachineClock
from millstream.languages.smile.served import load_served
from millstream.source import Source
from smile_served import TRADE_FLOOR, trades


def checkpoints(scale: float) -> list[dict[str, Any]]:
    """Seconds of the processor for 10^6 events of Trade-Floor, and of these for checkpoints.

    Batches of 1,000 rows are decided, written to the log and taken into compiled views, one after
    the other; checkpoints are taken when a broker takes them. The bar is 10 %.
    """
    events = int(1_000_000 * scale)
    served = load_served(Source("trade_floor", TRADE_FLOOR.read_text()))
    with tempfile.TemporaryDirectory() as folder:
        env = Env(FolderDisk(Path(folder)), MachineClock())
        broker = Broker(env, served, make=Compiled)
        broker.open()
        begun = time.process_time()
        taken, count, written = 0.0, 0, 0
        for number, (stream, rows) in enumerate(trades(events, 20_000), 1):
            given = tuple(Given(row) for row in rows)
            broker.commit([Publish(stream, given, bytes(16), "bench", number)])
            broker.evaluate()
            before = time.process_time()
            frozen = broker.frozen()
            if frozen is not None:
                broker.soft_log.write(frozen, broker.log.size)
                count += 1
                written += max(p.stat().st_size for p in Path(folder).glob("*.soft"))
            taken += time.process_time() - before
        all_of_it = time.process_time() - begun
        log = sum(p.stat().st_size for p in Path(folder).glob("*.log"))
        env.disk.close()
    return [{"events": events, "in all s": round(all_of_it, 1), "checkpoints": count,
             "of these s": round(taken, 2), "%": round(100 * taken / (all_of_it - taken), 1),
             "log MB": log >> 20, "written MB": written >> 20}]  # fmt: skip


BENCHMARKS = {"smile_checkpoints": checkpoints}
