"""A trading floor in CQL: what is open of bids, and who could trade with whom.

Three ways to write what is left of a bid, which must all be quick; beside them the loop by hand
with Numba that stands beside the same views in SMILE, with equal answers.
"""

from __future__ import annotations

from typing import Any

from cql import best, program_of
from millstream.calculus.graph import Program
from smile_floor import Kept, Rows, by_hand, changes_of, events, run_on_floor

_STREAMS = """
CREATE STREAM buys (buyid INTEGER, issue TEXT, price INTEGER, bid INTEGER);
CREATE STREAM sells (sellid INTEGER, issue TEXT, price INTEGER, bid INTEGER);
CREATE STREAM trades (buyid INTEGER, sellid INTEGER, traded INTEGER);
"""

_MATCHABLE = """
SELECT buyid, sellid, b.issue, b.price, b.remaining AS to_buy, s.remaining AS to_sell
FROM open_buys b, open_sells s WHERE b.issue = s.issue AND b.price = s.price;
"""

#: Of bids of one side: what is left, by an outer join with the totals of what was traded, ...
_JOINED = """
CREATE VIEW done_{side} AS SELECT {key}, SUM(traded) AS total FROM trades GROUP BY {key};
CREATE VIEW open_{side} AS
  SELECT b.{key}, b.issue, b.price, b.bid - COALESCE(t.total, 0) AS remaining
  FROM {side} b LEFT JOIN done_{side} t ON b.{key} = t.{key}
  WHERE b.bid - COALESCE(t.total, 0) > 0;
"""

#: ... by a query within a query, ...
_ASKED = """
CREATE VIEW open_{side} AS
  SELECT {key}, issue, price,
    bid - COALESCE((SELECT SUM(traded) FROM trades t WHERE t.{key} = b.{key}), 0) AS remaining
  FROM {side} b
  WHERE bid > COALESCE((SELECT SUM(traded) FROM trades t WHERE t.{key} = b.{key}), 0);
"""

#: ... and by what was traded as negative bids.
_SUMMED = """
CREATE VIEW moves_{side} AS
  SELECT {key}, bid AS n FROM {side} UNION ALL SELECT {key}, 0 - traded AS n FROM trades;
CREATE VIEW left_{side} AS
  SELECT {key}, SUM(n) AS remaining FROM moves_{side} GROUP BY {key} HAVING SUM(n) > 0;
CREATE VIEW open_{side} AS
  SELECT b.{key}, issue, price, remaining FROM {side} b, left_{side} l WHERE b.{key} = l.{key};
"""

WAYS = {"outer join": _JOINED, "query in a query": _ASKED, "union": _SUMMED}
#: So many issues with prices that 60,000 events give some 520,000 changes.
BUCKETS = 2_350
LEAST = 300_000


def program(way: str) -> Program:
    sides = (("buys", "buyid"), ("sells", "sellid"))
    views = "".join(WAYS[way].format(side=side, key=key) for side, key in sides)
    return program_of(_STREAMS + views + _MATCHABLE)


def trade_floor(scale: float) -> list[dict[str, Any]]:
    """Some 20,000 buys, sells and trades each; processor time, rows in memory on both sides."""
    given = events(int(63_500 * scale), BUCKETS)
    names = ("buys", "sells", "trades")
    found = []
    for way in WAYS:
        once = run_on_floor(program(way), given, names, bid="bid", traded="traded")
        (kept,) = once().values()
        count = sum(len(batch) for batch in kept.batches)
        told = by_hand(given, 2 * count + 1000)
        assert len(told) == count
        assert _net(kept) == changes_of(told)
        (_, ours), (_, hand) = best(once), best(lambda n=count: by_hand(given, 2 * n + 1000))  # type: ignore[misc]
        found.append({
            "benchmark": f"trading floor in CQL, {way}", "events": len(given), "changes": count,
            "events_per_cpu_s": int(len(given) / ours),
            "numba_events_per_cpu_s": int(len(given) / hand),
            "bar_events_per_s": LEAST, "is_met": bool(len(given) / ours >= LEAST),
        })  # fmt: skip
    return found


def _net(kept: Kept) -> Rows:
    return kept.net(("buyid", "sellid", "to_buy", "to_sell"))


BENCHMARKS = {"cql_trading_floor": trade_floor}
