"""The examples once more, in plain Python and from scratch at every instant.

Nothing of Millstream is used here: a relation is a function from an instant to a list of
rows, written down as the question is meant, and compared with itself a microsecond before.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

SECOND = 1_000_000
MINUTE = 60 * SECOND

Record = dict[str, Any]
Row = tuple[Any, ...]
Relation = Callable[[int], list[Row]]


def read(path: Path) -> list[Record]:
    def value(text: str) -> Any:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        return text

    with path.open(newline="") as file:
        return [{k: value(v) for k, v in row.items()} for row in csv.DictReader(file)]


def within(rows: list[Record], now: int, length: int) -> list[Record]:
    return [r for r in rows if now - length <= r["_time"] <= now]


def last(rows: list[Record], now: int, count: int, *by: str) -> list[Record]:
    """The last rows of each key."""
    past = [r for r in rows if r["_time"] <= now]
    keys = dict.fromkeys(tuple(r[b] for b in by) for r in past)
    return [r for k in keys for r in [p for p in past if tuple(p[b] for b in by) == k][-count:]]


def instants(end: int, *streams: list[Record], lengths: Iterable[int] = ()) -> list[int]:
    """Every instant at which something can change, up to the end."""
    times = {r["_time"] for rows in streams for r in rows}
    moved = {t + length + 1 for t in times for length in lengths}
    return sorted(t for t in times | moved if t <= end)


def changes(relation: Relation, times: Iterable[int]) -> list[Row]:
    """(time, weight, row...), what leaves before what comes, each in order."""
    found: list[Row] = []
    before: Counter[Row] = Counter()
    for now in times:
        after = Counter(relation(now))
        found += [(now, -1, *row) for row in in_order((before - after).elements())]
        found += [(now, 1, *row) for row in in_order((after - before).elements())]
        before = after
    return found


def istream(relation: Relation, times: Iterable[int]) -> list[Row]:
    return [(time, *row) for time, weight, *row in changes(relation, times) if weight > 0]


def rstream(relation: Relation, times: Iterable[int]) -> list[Row]:
    return [(now, *row) for now in times for row in in_order(relation(now))]


def in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: [(v is not None, 0 if v is None else v) for v in row])


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


# --- the examples -----------------------------------------------------------------------


def bargain_finder(folder: Path) -> dict[str, list[Row]]:
    quotes, history = read(folder / "quotes.csv"), read(folder / "history.csv")

    def lows(now: int) -> Counter[Row]:
        there: Counter[Row] = Counter()
        for h in history:
            if h["_time"] <= now:
                there[h["ticker"], h["low"]] += h["_weight"]
        return +there

    def bargains(now: int) -> list[Row]:
        return [
            (q["ticker"], q["ask"], low)
            for q in quotes
            for (ticker, low), n in lows(now).items()
            for _ in range(n)
            if q["_time"] == now and q["ticker"] == ticker and q["ask"] <= low
        ]

    return {"bargains": istream(bargains, sorted({q["_time"] for q in quotes}))}


def two_streams(folder: Path) -> dict[str, list[Row]]:
    first, second = read(folder / "S1.csv"), read(folder / "S2.csv")
    end = max(r["_time"] for r in [*first, *second])

    def joined(now: int) -> list[Row]:
        return [
            (a["A"], b["B"])
            for a in last(first, now, 3)
            for b in within(second, now, 4 * SECOND)
            if a["C"] == b["C"]
        ]

    return {"joined": istream(joined, instants(end, first, second, lengths=[4 * SECOND]))}


def linear_road(folder: Path) -> dict[str, list[Row]]:
    reports = [r | {"seg": r["pos"] // 5280} for r in read(folder / "reports.csv")]
    end = max(r["_time"] for r in reports)
    times = instants(end, reports, lengths=[30 * SECOND, 5 * MINUTE])

    def place(r: Record) -> Row:
        return r["xway"], r["dir"], r["seg"]

    def active(now: int) -> list[Record]:
        return [r for r in last(reports, now, 1, "car") if r["_time"] >= now - 30 * SECOND]

    def accidents(now: int) -> list[Row]:
        stopped: dict[Row, set[int]] = {}
        for car in {r["car"] for r in reports}:
            latest = [r for r in reports if r["car"] == car and r["_time"] <= now][-3:]
            spots = {(*place(r), r["lane"], r["pos"]) for r in latest}
            if len(latest) == 3 and len(spots) == 1:
                stopped.setdefault(spots.pop(), set()).add(car)
        return list({spot[:3] for spot, cars in stopped.items() if len(cars) >= 2})

    def pace(now: int) -> dict[Row, float]:
        recent = within(reports, now, 5 * MINUTE)
        return {p: mean([r["speed"] for r in recent if place(r) == p]) for p in map(place, recent)}

    def busy(now: int) -> Counter[Row]:
        return Counter(place(r) for r in active(now))

    def statistics(now: int) -> list[Row]:
        return [(*p, speed, busy(now).get(p)) for p, speed in pace(now).items()]

    def tolls(now: int) -> list[Row]:
        before = Counter((r["car"], *place(r)) for r in active(now - 1))
        entering = Counter((r["car"], *place(r)) for r in active(now)) - before
        found: list[Row] = []
        for car, *where in entering.elements():
            spot = tuple(where)
            cars, speed = busy(now).get(spot, 0), pace(now).get(spot)
            if speed is not None and speed < 40 and cars > 2 and spot not in accidents(now):
                found.append((car, spot[2], 2 * (cars - 1) ** 2))
        return found

    return {
        "accidents": istream(accidents, times),
        "statistics": changes(statistics, times),
        "tolls": rstream(tolls, sorted({r["_time"] for r in reports})),
    }


def auctions(folder: Path) -> dict[str, list[Row]]:
    persons, items, bids = (read(folder / f"{n}.csv") for n in ("persons", "auctions", "bids"))
    end = max(r["_time"] for rows in (persons, items, bids) for r in rows)
    euro = next(r["rate"] for r in read(folder / "rates.csv") if r["currency"] == "EUR")
    sold = _sold(items, bids, end)

    def suggested(now: int) -> list[Row]:
        return [
            (p["name"], p["city"], p["state"], a["id"])
            for a in items
            for p in persons
            if max(a["_time"], p["_time"]) <= now and a["seller"] == p["id"]
            and a["category"] == 1 and p["state"] in ("OR", "ID", "CA")
        ]  # fmt: skip

    def category_average(now: int) -> list[Row]:
        past = [s for s in sold if s["_time"] <= now]
        return [
            (c, mean([s["price"] for s in past if s["category"] == c]))
            for c in {s["category"] for s in past}
        ]

    def seller_average(now: int) -> list[Row]:
        two = last(sold, now, 2, "seller")
        return [
            (one, mean(prices), len(prices))
            for one in {s["seller"] for s in two}
            if (prices := [s["price"] for s in two if s["seller"] == one])
        ]

    def hot(now: int) -> list[Row]:
        step = now // (2 * MINUTE) * (2 * MINUTE)
        counts = Counter(b["auction"] for b in within(bids, step, 4 * MINUTE))
        return [row for row in counts.items() if row[1] == max(counts.values())]

    def highest(now: int) -> list[Row]:
        recent = within(bids, now, MINUTE)
        most = max((b["price"] for b in recent), default=None)
        return [(b["auction"], b["bidder"], b["price"]) for b in recent if b["price"] == most]

    def new_users(now: int) -> list[Row]:
        sellers = {a["seller"] for a in within(items, now, 5 * MINUTE)}
        return [(p["id"], p["name"]) for p in within(persons, now, 5 * MINUTE)
                if p["id"] in sellers]  # fmt: skip

    def top_bidders(now: int) -> list[Row]:
        totals: Counter[int] = Counter()
        for b in within(bids, now, 5 * MINUTE):
            totals[b["bidder"]] += b["price"]
        return sorted(totals.items(), key=lambda row: (-row[1], row[0]))[:3]

    five = 5 * MINUTE
    steps = sorted({r["_time"] // (2 * MINUTE) * 2 * MINUTE + k * 2 * MINUTE
                    for r in bids for k in range(5)})  # fmt: skip
    sales = sorted({s["_time"] for s in sold})
    return {
        "converted": [(b["_time"], b["auction"], b["bidder"], b["price"] * euro) for b in bids],
        "selected": [(b["_time"], b["auction"], b["price"]) for b in bids
                     if b["auction"] % 4 == 1 or b["auction"] in (3, 6)],
        "suggested": istream(suggested, instants(end, items, persons)),
        "winning": [(s["_time"], s["id"], s["price"]) for s in sold],
        "category_average": changes(category_average, sales),
        "seller_average": changes(seller_average, sales),
        "hot": istream(hot, [t for t in steps if t <= end]),
        "highest": rstream(highest, sorted({b["_time"] for b in bids})),
        "new_users": istream(new_users, instants(end, persons, items, lengths=[five])),
        "top_bidders": changes(top_bidders, instants(end, bids, lengths=[five])),
    }  # fmt: skip


def _sold(items: list[Record], bids: list[Record], end: int) -> list[Record]:
    """What is sold when its auction closes, for the highest of the bids of six minutes."""
    found: list[Record] = []
    for a in items:
        close = a["_time"] + 5 * MINUTE + 1
        prices = [b["price"] for b in within(bids, close, 6 * MINUTE) if b["auction"] == a["id"]]
        if close <= end and prices and max(prices) >= a["reserve"]:
            found.append(a | {"_time": close, "price": max(prices)})
    return sorted(found, key=lambda s: (s["_time"], s["id"]))


EXAMPLES: dict[str, Callable[[Path], dict[str, list[Row]]]] = {
    "bargain_finder": bargain_finder,
    "two_streams": two_streams,
    "linear_road": linear_road,
    "auction_site": auctions,
}
