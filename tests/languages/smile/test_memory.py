"""What is kept follows the rows that are still in, not all that ever came."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.broker.compiled import Compiled
from millstream.broker.evaluate import Arrival
from millstream.engine.storage.codec import encode
from millstream.languages.smile.load import load
from millstream.source import Source
from tests.examples.folders import ROOT

TRADE_FLOOR = (ROOT / "smile" / "trade_floor" / "trade_floor.smile").read_text()
#: Bids of each side that a turn brings; those of the turn before are matched.
BIDS = 3_000


def turns(count: int) -> Iterator[tuple[int, dict[str, list[Arrival]]]]:
    """Bids, and matches of all bids of the turn before, some of which come twice, or for nobody."""
    for turn in range(count):
        begin = turn * 10 * BIDS
        bids: list[Arrival] = [(begin + n, (begin + n, f"I{n % 40}", n, 10), 1)
                               for n in range(1, BIDS + 1)]  # fmt: skip
        matches: list[Arrival] = []
        for n in range(1, BIDS + 1) if turn else ():
            tick, bid = begin + BIDS + 2 * n, begin - 10 * BIDS + n
            matches += [(tick, (tick, bid, bid, 10), 1), (tick + 1, (tick + 1, bid, bid, 10), 1)]
        yield begin + 9 * BIDS, {"BuyBids": bids, "SellBids": bids, "Matches": matches}


def test_what_trade_floor_keeps_follows_open_bids() -> None:
    evaluation = Compiled(load(Source("floor.smile", TRADE_FLOOR)).program)
    sizes, rows = [], 0
    for mark, arrivals in turns(8):
        changes = evaluation.advance(mark, arrivals)
        rows += sum(changes["RemainingBuy"].values())
        assert rows == BIDS, "a straggler brings nothing back"
        sizes.append(len(encode(evaluation.snapshot())))
    assert max(sizes[4:]) <= 1.1 * sizes[3], "the same bids are open, and as much is kept"
