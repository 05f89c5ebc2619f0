"""Views against all histories of tiny streams: never false, and in the end what SQL says."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.languages.smile.histories import Answer, Case, Rows
from tests.seeds import in_turn

STREAMS = """
    CREATE TYPE few AS INTEGER BETWEEN {low} AND 2;
    CREATE STREAM B (b: time -> k: integer, bid: few) UNTIL 3;
    CREATE STREAM M (t: time -> b: time, sold: few) UNTIL 3;
"""
SALES = "CREATE VIEW Sold (SELECT b, SUM(sold) AS total, COUNT(*) AS n FROM M GROUP BY b);"
LEFT = """CREATE VIEW Remaining (SELECT b, k, bid - total AS rest FROM B JOIN Sold USING (b)
          WHERE rest > 0);"""


COUNTS = """CREATE VIEW Counts (SELECT k, COUNT(*) AS n, SUM(rest) AS amount
            FROM Remaining GROUP BY k);"""


PAIRED = """CREATE VIEW Paired (SELECT x.b AS a, y.b AS other FROM B AS x INNER JOIN B AS y
            ON x.k = y.k WHERE x.b <> y.b);"""
MEANS = "CREATE VIEW A (SELECT b, AVG(sold) AS mean FROM M GROUP BY b);"


def sold(rows: Rows) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for _, (b, amount) in sorted(rows["M"].items()):
        found.setdefault(b, []).append(amount)
    return found


def sums(rows: Rows) -> Answer:
    return {(b,): {"total": sum(all_), "n": len(all_)} for b, all_ in sold(rows).items()}


def rest(rows: Rows) -> Answer:
    groups = sold(rows)
    found: Answer = {}
    for b, (k, bid) in rows["B"].items():
        left = bid - sum(groups.get(b, []))
        if left > 0:
            found[(b,)] = {"k": k, "rest": left}
    return found


def counted(rows: Rows) -> Answer:
    """How many bids of each k are left, and how much of them."""
    found: Answer = {}
    for one in rest(rows).values():
        cell = found.setdefault((one["k"],), {"n": 0, "amount": 0})
        cell["n"] += 1
        cell["amount"] += one["rest"]
    return found


def pairs(rows: Rows) -> Answer:
    left = rest(rows)
    return {
        (a, b): {"both": left[(a,)]["rest"] + left[(b,)]["rest"]}
        for (a,), (b,) in itertools.product(left, left)
        if a != b and left[(a,)]["k"] == left[(b,)]["k"]
    }


def extremes(rows: Rows) -> Answer:
    return {
        (b,): {"least": min(all_), "most": max(all_), "mean": sum(all_) / len(all_)}
        for b, all_ in sold(rows).items()
    }


def all_sold(rows: Rows) -> Answer:
    """Of the whole stream, which may be empty."""
    amounts = [one for _, one in rows["M"].values()]
    of_any = {"most": max(amounts), "mean": sum(amounts) / len(amounts)} if amounts else {}
    none = {"most": None, "mean": None}
    return {(): {"total": sum(amounts), "n": len(amounts), **(of_any or none)}}


def all_left(rows: Rows) -> Answer:
    left = [one["rest"] for one in rest(rows).values()]
    return {(): {"n": len(left), "amount": sum(left), "most": max(left, default=None)}}


def last_sold(rows: Rows) -> Answer:
    t = max(rows["M"], default=None)
    return {(): {"last": None if t is None else rows["M"][t][1], "last_at": t}}


def with_mean(is_wanted: Callable[[float], bool]) -> Callable[[Rows], Answer]:
    """Bids by the mean of their sales, which is nothing as long as there is none."""

    def answer(rows: Rows) -> Answer:
        means = {b: sum(all_) / len(all_) for b, all_ in sold(rows).items()}
        return {
            (b,): {"bid": bid, "mean": means[b]}
            for b, (_, bid) in rows["B"].items() if b in means and is_wanted(means[b])
        }  # fmt: skip

    return answer


def with_last(rows: Rows) -> Answer:
    last = latest(rows)
    return {
        (b,): {"bid": bid, "last": last[(b,)]["last"]}
        for b, (_, bid) in rows["B"].items() if (b,) in last
    }  # fmt: skip


def unsold(rows: Rows) -> Answer:
    groups = sold(rows)
    return {(b,): {"bid": bid} for b, (_, bid) in rows["B"].items() if b not in groups}


def without_rest(rows: Rows) -> Answer:
    """Sales of bids of which nothing is left."""
    left = rest(rows)
    return {(t,): {"sold": one} for t, (b, one) in rows["M"].items() if (b,) not in left}


def left_joined(rows: Rows) -> Answer:
    found: Answer = {}
    for b, (_, bid) in rows["B"].items():
        partners: list[tuple[Any, Any]] = [(t, one) for t, (c, one) in rows["M"].items() if c == b]
        for t, one in partners or [(None, None)]:
            found[(b, t)] = {"bid": bid, "sold": one}
    return found


def with_large_sums(rows: Rows) -> Answer:
    """Bids with what was sold of them, if that is more than one."""
    totals = {b: sum(all_) for b, all_ in sold(rows).items() if sum(all_) > 1}
    return {(b,): {"bid": bid, "s": totals.get(b)} for b, (_, bid) in rows["B"].items()}


def latest(rows: Rows) -> Answer:
    found: Answer = {}
    for t, (b, amount) in sorted(rows["M"].items()):
        if amount > 0:
            found[(b,)] = {"last": amount, "last_at": t}
    return found


def with_latest(rows: Rows) -> Answer:
    last = latest(rows)
    return {
        (b,): {"bid": bid, "last": last.get((b,), {}).get("last")}
        for b, (_, bid) in rows["B"].items()
    }


def with_largest(rows: Rows) -> Answer:
    groups = sold(rows)
    return {
        (b,): {"bid": bid, "most": max(groups[b]) if b in groups else None}
        for b, (_, bid) in rows["B"].items()
    }


def merged(rows: Rows) -> Answer:
    both = [(t, 1, bid) for t, (_, bid) in rows["B"].items()]
    both += [(t, 2, bid) for t, (_, bid) in rows["C"].items()]
    found: Answer = {}
    for t, number, bid in sorted(both):
        cell = found.setdefault((bid,), {"n": 0, "last": 0})
        found[(bid,)] = {"n": cell["n"] + 1, "last": t * 10 + number}
    return found


def merged_sums(rows: Rows) -> Answer:
    values = [bid for stream in ("B", "C") for _, bid in rows[stream].values()]
    return {(0,): {"total": sum(values), "least": min(values)}} if values else {}


def windows(length: int, step: int) -> Callable[[Rows], Answer]:
    def answer(rows: Rows) -> Answer:
        found: Answer = {}
        for t, (_, amount) in rows["M"].items():
            for begin in range(t // step * step, t - length, -step):
                cell = found.setdefault((begin,), {"total": 0, "n": 0})
                cell["total"] += amount
                cell["n"] += 1
        return found

    return answer


def left_in_windows(length: int) -> Callable[[Rows], Answer]:
    """How much is left of the bids of each window."""

    def answer(rows: Rows) -> Answer:
        found: Answer = {}
        for (b,), one in rest(rows).items():
            cell = found.setdefault((b // length * length,), {"n": 0, "amount": 0})
            cell["n"] += 1
            cell["amount"] += one["rest"]
        return found

    return answer


def sold_of_bids(rows: Rows) -> Answer:
    found: Answer = {}
    for t, (b, amount) in rows["M"].items():
        if b in rows["B"]:
            cell = found.setdefault((t // 2 * 2,), {"n": 0, "amount": 0})
            cell["n"] += 1
            cell["amount"] += amount * rows["B"][b][1]
    return found


def beside_others(length: int) -> Callable[[Rows], Answer]:
    """Pairs of bids of a kind, by the window of the first of the two."""

    def answer(rows: Rows) -> Answer:
        found: Answer = {}
        for (a, (k, _)), (b, (other, _)) in itertools.permutations(rows["B"].items(), 2):
            if a != b and k == other:
                cell = found.setdefault((a // length * length,), {"n": 0})
                cell["n"] += 1
        return found

    return answer


def both_windows(rows: Rows) -> Answer:
    """Sales and bids of each window that has any."""
    sales, bids = windows(2, 2)(rows), windows(2, 2)({"M": rows["B"]})
    return {
        key: {"total": sales.get(key, {"total": 0})["total"], "n": bids.get(key, {"n": 0})["n"]}
        for key in sales | bids
    }


def computed(rows: Rows) -> Answer:
    """What is computed of sums that change, with factors and choices of either sign."""
    groups = sold(rows)
    found: Answer = {}
    for b, (_, bid) in rows["B"].items():
        total = sum(groups.get(b, []))
        found[(b,)] = {
            "worth": (bid - 1) * total, "half": total / 2, "size": abs(total),
            "most": max(total, bid), "least": min(total, 1), "sign": 1 if total > 0 else -3,
        }  # fmt: skip
    return found


def or_else(rows: Rows) -> Answer:
    groups = sold(rows)
    found: Answer = {}
    for b, (_, bid) in rows["B"].items():
        most = max(groups[b]) if b in groups else None
        more = bid if most is None else max(bid, most)
        found[(b,)] = {"more": more, "most": 1 if most is None else most}
    return found


def first(count: int, *, is_last: bool) -> Callable[[Rows], Answer]:
    def answer(rows: Rows) -> Answer:
        ticks = sorted(rows["B"], reverse=is_last)[:count]
        return {(b,): {"bid": rows["B"][b][1]} for b in ticks}

    return answer


def counted_last(rows: Rows) -> Answer:
    return {key: {"n": 1} for key in first(1, is_last=True)(rows)}


def with_bids(rows: Rows) -> Answer:
    """What was bid at the tick that a sale names, which may still come."""
    return {
        (t,): {"whole": rows["B"][b][1] if b in rows["B"] else 0} for t, (b, _) in rows["M"].items()
    }


def with_roots(rows: Rows) -> Answer:
    """Of how many bids at most two are sold."""
    return {(): {"n": sum(sum(all_) <= 2 for all_ in sold(rows).values())}}


def by_roots(rows: Rows) -> Answer:
    return {(b,): {"v": 3 if 2 - sum(all_) >= 1 else 1} for b, all_ in sold(rows).items()}


def case(view: str, key: tuple[str, ...], answer: object, *more: str, low: int = 0) -> Case:
    values = range(low, 3) if low == 0 else (low, 2)
    text = STREAMS.format(low=low) + SALES + "".join(more)
    domains = {"B": [(0, v) for v in values][-2:], "M": [(b, v) for b in (1,) for v in values][-2:]}
    return Case(f"{text} subscriptions {view} WITH RANGES;", domains, 3, view, key, answer)  # type: ignore[arg-type]


CASES = {
    "sums": case("Sold", ("b",), sums),
    "sums of both signs": case("Sold", ("b",), sums, low=-1),
    "a mask": case("Remaining", ("b",), rest, LEFT),
    "a mask that wavers": case("Remaining", ("b",), rest, LEFT, low=-1),
    "groups of masked rows": case(
        "Counts", ("k",), counted, LEFT,
        COUNTS,
    ),
    "groups of wavering rows": case(
        "Counts", ("k",), counted, LEFT,
        COUNTS,
        low=-1,
    ),
    "joins of masked rows": case(
        "Pairs", ("a", "c"), pairs, LEFT,
        """CREATE VIEW Pairs (SELECT x.b AS a, y.b AS c, x.rest + y.rest AS both
           FROM Remaining AS x JOIN Remaining AS y ON x.k = y.k WHERE x.b <> y.b);""",
    ),
    "extremes": case(
        "E", ("b",), extremes,
        """CREATE VIEW E (SELECT b, MIN(sold) AS least, MAX(sold) AS most, AVG(sold) AS mean
           FROM M GROUP BY b);""",
        low=-1,
    ),
    "of a whole stream": case(
        "E", (), all_sold,
        """CREATE VIEW E (SELECT SUM(sold) AS total, COUNT(*) AS n, MAX(sold) AS most,
           AVG(sold) AS mean FROM M);""",
        low=-1,
    ),
    "of all rows of a view that wavers": case(
        "E", (), all_left, LEFT,
        """CREATE VIEW E (SELECT COUNT(*) AS n, SUM(rest) AS amount, MAX(rest) AS most
           FROM Remaining);""",
        low=-1,
    ),
    "the latest of a whole stream": case(
        "L", (), last_sold, "CREATE VIEW L (SELECT LATEST(sold) AS last FROM M);",
    ),
    "a condition on the mean of nothing": case(
        "J", ("b",), with_mean(lambda mean: mean >= -1),
        MEANS + "CREATE VIEW J (SELECT b, bid, mean FROM B JOIN A USING (b) WHERE mean >= -1);",
        low=-1,
    ),
    "a denial on the mean of nothing": case(
        "J", ("b",), with_mean(lambda mean: not mean > 2),
        MEANS + "CREATE VIEW J (SELECT b, bid, mean FROM B JOIN A USING (b) WHERE NOT mean > 2);",
        low=-1,
    ),
    "a condition on a root that may come to nothing": case(
        "N", (), with_roots,
        """CREATE VIEW R (SELECT b FROM M GROUP BY b HAVING sqrt(2 - SUM(sold)) < 9);
           CREATE VIEW N (SELECT COUNT(*) AS n FROM R);""",
    ),
    "a choice by a root that may come to nothing": case(
        "V", ("b",), by_roots,
        """CREATE VIEW V (SELECT b, CASE WHEN sqrt(2 - total) >= 1 THEN 3 ELSE 1 END AS v
           FROM Sold);""",
    ),
    "a condition on the latest of nothing": case(
        "J", ("b",), with_last,
        "CREATE VIEW L (SELECT b, LATEST(sold) AS last FROM M WHERE sold > 0 GROUP BY b);"
        "CREATE VIEW J (SELECT b, bid, last FROM B JOIN L USING (b) WHERE last <> -1);",
    ),
    "truncated ticks": case(
        "W", ("w",), windows(1, 1),
        """CREATE VIEW W (SELECT date_trunc('microsecond', t) AS w, SUM(sold) AS total,
           COUNT(*) AS n FROM M GROUP BY w);""",
    ),
    "a merge of other types": Case(
        """CREATE TYPE few AS INTEGER BETWEEN -1 AND 2;
           CREATE STREAM B (b: time -> k: integer, bid: shares) UNTIL 3;
           CREATE STREAM C (c: time -> k: integer, bid: few) UNTIL 3;
           CREATE VIEW V (SELECT k, SUM(bid) AS total, MIN(bid) AS least
                          FROM MERGE(B, C) GROUP BY k);
           subscriptions V WITH RANGES;""",
        {"B": [(0, 1), (0, 9)], "C": [(0, -1), (0, 2)]}, 3, "V", ("k",), merged_sums,
    ),
    "not exists": case(
        "U", ("b",), unsold,
        "CREATE VIEW U (SELECT b, bid FROM B WHERE NOT EXISTS (SELECT * FROM M WHERE M.b = B.b));",
    ),
    "not exists in a view that wavers": case(
        "U", ("t",), without_rest, LEFT,
        """CREATE VIEW U (SELECT t, sold FROM M WHERE NOT EXISTS
           (SELECT * FROM Remaining AS r WHERE r.b = M.b));""",
        low=-1,
    ),
    "left join": case(
        "J", ("b", "t"), left_joined,
        "CREATE VIEW J (SELECT B.b, t, bid, sold FROM B LEFT JOIN M ON B.b = M.b);",
    ),
    "left join of groups that waver": case(
        "J", ("b",), with_large_sums,
        """CREATE VIEW H (SELECT b, SUM(sold) AS s FROM M GROUP BY b HAVING SUM(sold) > 1);
           CREATE VIEW J (SELECT B.b, bid, s FROM B LEFT JOIN H USING (b));""",
        low=-1,
    ),
    "latest": case(
        "L", ("b",), latest,
        "CREATE VIEW L (SELECT b, LATEST(sold) AS last FROM M WHERE sold > 0 GROUP BY b);",
    ),
    "the latest of a selection": case(
        "L", ("b",), latest,
        """CREATE VIEW P (SELECT b, sold, t FROM M WHERE sold > 0);
           CREATE VIEW Q (SELECT t AS tick, b AS bid, sold AS amount FROM P);
           CREATE VIEW L (SELECT bid AS b, LATEST(amount) AS last FROM Q GROUP BY bid);""",
    ),
    "a join with the latest": case(
        "J", ("b",), with_latest,
        "CREATE VIEW L (SELECT b, LATEST(sold) AS last FROM M WHERE sold > 0 GROUP BY b);"
        "CREATE VIEW J (SELECT b, bid, last FROM B JOIN L USING (b));",
    ),
    "a join with the largest of nothing": case(
        "J", ("b",), with_largest,
        "CREATE VIEW L (SELECT b, MAX(sold) AS most FROM M GROUP BY b);"
        "CREATE VIEW J (SELECT b, bid, most FROM B JOIN L USING (b));",
    ),
    "a merge": Case(
        """CREATE STREAM B (b: time -> k: integer, bid: integer) UNTIL 3;
           CREATE STREAM C (c: time -> k: integer, bid: integer) UNTIL 3;
           CREATE VIEW N (SELECT bid, COUNT(*) AS n FROM MERGE(B, C) GROUP BY bid);
           CREATE VIEW L (SELECT bid, LATEST(_input) AS number FROM MERGE(B, C) GROUP BY bid);
           CREATE VIEW A (SELECT bid, n, number_at, number FROM N JOIN L USING (bid));
           CREATE VIEW V (SELECT bid, n, integer(number_at) * 10 + number AS last FROM A);
           subscriptions V;""",
        {"B": [(0, 1), (0, 2)], "C": [(0, 1), (0, 2)]}, 3, "V", ("bid",), merged,
    ),
    "a merge of selections": Case(
        """CREATE TYPE few AS INTEGER BETWEEN -1 AND 2;
           CREATE STREAM B (b: time -> k: integer, bid: few) UNTIL 3;
           CREATE STREAM C (c: time -> k: integer, bid: few) UNTIL 3;
           CREATE VIEW P (SELECT k, bid, b FROM B WHERE bid > -9);
           CREATE VIEW Q (SELECT k, bid, c FROM C WHERE k = 0);
           CREATE VIEW V (SELECT k, SUM(bid) AS total, MIN(bid) AS least
                          FROM MERGE(P, Q) GROUP BY k);
           subscriptions V WITH RANGES;""",
        {"B": [(0, 1), (0, 2)], "C": [(0, -1), (0, 2)]}, 3, "V", ("k",), merged_sums,
    ),
    "windows": case(
        "W", ("w",), windows(2, 2),
        """CREATE VIEW W (SELECT WINDOW(t, 2 MICROSECONDS) AS w, SUM(sold) AS total, COUNT(*) AS n
           FROM M GROUP BY w);""",
        low=-1,
    ),
    "groups of groups by windows": case(
        "G", ("w",), windows(2, 2),
        """CREATE VIEW W (SELECT WINDOW(t, 2 MICROSECONDS) AS w, b, SUM(sold) AS total,
                          COUNT(*) AS n FROM M GROUP BY w, b);
           CREATE VIEW G (SELECT w, SUM(total) AS total, SUM(n) AS n FROM W GROUP BY w);""",
        low=-1,
    ),
    "windows that overlap": case(
        "W", ("w",), windows(3, 1),
        """CREATE VIEW W (SELECT WINDOW(t, 3 MICROSECONDS, 1 MICROSECOND) AS w,
           SUM(sold) AS total, COUNT(*) AS n FROM M GROUP BY w);""",
    ),
    "a join of windows": case(
        "J", ("w",), both_windows,
        """CREATE VIEW S (SELECT WINDOW(t, 2 MICROSECONDS) AS w, SUM(sold) AS total
                          FROM M GROUP BY w);
           CREATE VIEW N (SELECT WINDOW(b, 2 MICROSECONDS) AS w, COUNT(*) AS n FROM B GROUP BY w);
           CREATE VIEW J (SELECT w, total, n FROM S JOIN N USING (w));""",
        low=-1,
    ),
    "windows of rows that waver": case(
        "W", ("w",), left_in_windows(2), LEFT,
        """CREATE VIEW W (SELECT WINDOW(b, 2 MICROSECONDS) AS w, COUNT(*) AS n,
           SUM(rest) AS amount FROM Remaining GROUP BY w);""",
        low=-1,
    ),
    "truncated ticks of rows that may leave": case(
        "W", ("w",), left_in_windows(1), LEFT,
        """CREATE VIEW W (SELECT date_trunc('microsecond', b) AS w, COUNT(*) AS n,
           SUM(rest) AS amount FROM Remaining GROUP BY w);""",
    ),
    "windows of a join": case(
        "W", ("w",), sold_of_bids,
        """CREATE VIEW J (SELECT t, bid * sold AS both FROM M JOIN B USING (b));
           CREATE VIEW W (SELECT WINDOW(t, 2 MICROSECONDS) AS w, COUNT(*) AS n,
           SUM(both) AS amount FROM J GROUP BY w);""",
    ),
    "windows of pairs, of which one may come when they are over": case(
        "W", ("w",), beside_others(2), PAIRED,
        """CREATE VIEW W (SELECT WINDOW(a, 2 MICROSECONDS) AS w, COUNT(*) AS n
           FROM Paired GROUP BY w);""",
    ),
    "ticks of pairs, of which one may come later": case(
        "W", ("a",), beside_others(1), PAIRED,
        "CREATE VIEW W (SELECT a, COUNT(*) AS n FROM Paired GROUP BY a);",
    ),
    "what is computed of a sum": case(
        "J", ("b",), computed,
        """CREATE VIEW J (SELECT b, (bid - 1) * total AS worth, total / 2 AS half,
           abs(total) AS size, greatest(total, bid) AS most, least(total, 1) AS least,
           CASE WHEN total > 0 THEN 1 ELSE -3 END AS sign FROM B JOIN Sold USING (b));""",
        low=-1,
    ),
    "what is computed of nothing": case(
        "J", ("b",), or_else,
        """CREATE VIEW L (SELECT b, MAX(sold) AS m FROM M GROUP BY b);
           CREATE VIEW J (SELECT b, greatest(bid, m) AS more, coalesce(m, 1) AS most
                          FROM B JOIN L USING (b));""",
        low=-1,
    ),
    "the first": case(
        "F", ("b",), first(2, is_last=False),
        "CREATE VIEW F (SELECT b, bid FROM B ORDER BY b LIMIT 2);",
    ),
    "the first by a column that has another name": case(
        "F", ("tick",), first(2, is_last=False),
        "CREATE VIEW F (SELECT B.b AS tick, bid FROM B ORDER BY B.b LIMIT 2);",
    ),
    "the last": case(
        "F", ("b",), first(1, is_last=True),
        "CREATE VIEW F (SELECT b, bid FROM B ORDER BY b DESC LIMIT 1);",
    ),
    "groups of the last": case(
        "G", ("b",), counted_last,
        "CREATE VIEW F (SELECT b, bid FROM B ORDER BY b DESC LIMIT 1);"
        "CREATE VIEW G (SELECT b, COUNT(*) AS n FROM F GROUP BY b);",
    ),
    "groups by ticks that may still come": replace(case(
        "J", ("t",), with_bids,
        "CREATE VIEW G (SELECT b, SUM(bid) AS whole FROM B GROUP BY b);"
        "CREATE VIEW J (SELECT t, whole FROM M JOIN G USING (b));",
    ), domains={"B": [(0, 1), (0, 2)], "M": [(2, 1), (3, 1)]}),
}  # fmt: skip


def drawn(case: Case, seed: int) -> Rows:
    """What happens: at each tick of each stream nothing, or a row of its domain."""
    chance = random.Random(seed)
    rows: dict[str, dict[int, tuple[int, ...]]] = {}
    for stream, domain in case.domains.items():
        ticks = {t: chance.choice([None, *domain]) for t in range(1, case.until + 1)}
        rows[stream] = {t: row for t, row in ticks.items() if row is not None}
    return rows


@pytest.mark.parametrize("seed", in_turn(range(2)))
@pytest.mark.parametrize("name", CASES)
def test_no_history_contradicts_a_view(name: str, seed: int) -> None:
    case = CASES[name]
    case.check(drawn(case, seed))


@pytest.mark.parametrize("name", [name for name in CASES if "of nothing" in name])
def test_what_was_nothing_comes_in_with_its_first_row(name: str) -> None:
    CASES[name].check({"B": {1: (0, 2)}, "M": {2: (1, 2)}})


def test_a_condition_on_a_root_is_not_sure_while_it_may_come_to_nothing() -> None:
    """More than two may still be sold: then there is no root."""
    CASES["a condition on a root that may come to nothing"].check({"B": {}, "M": {1: (1, 1)}})


def test_bounds_of_a_choice_stay_where_its_root_comes_to_nothing() -> None:
    rows = {"B": {}, "M": {1: (1, 2), 2: (1, 1)}}
    CASES["a choice by a root that may come to nothing"].check(rows)


def test_who_loses_a_partner_keeps_its_steps() -> None:
    CASES["left join of groups that waver"].check({"B": {1: (0, 2)}, "M": {2: (1, 2), 3: (1, -1)}})


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(2, 60))
@pytest.mark.parametrize("name", CASES)
def test_no_history_contradicts_a_view_at_length(name: str, seed: int) -> None:
    case = CASES[name]
    case.check(drawn(case, seed), "local")


def test_the_oracle_sees_a_false_bound() -> None:
    """A claim that a history contradicts is found."""
    case = CASES["sums"]
    shown = {(1,): {"total": 1, "total_low": 1, "total_high": 1, "_final": False, "_steps": 1}}
    told = [(case.answer(h), h) for h in case.histories({"M": {1: (1, 1)}}, 1)]
    larger = [one for one in told if one[0][(1,)]["total"] > 1]
    with pytest.raises(AssertionError):
        case._check_claims(shown, *larger[0])
