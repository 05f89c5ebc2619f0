"""MIN, MAX and AVG of rows that may still go: what has a value now may have none later."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

import pytest

from tests.languages.smile.histories import Answer, Case, Rows
from tests.languages.smile.test_histories import case, drawn, rest
from tests.seeds import in_turn

#: A bid is in as long as something of it is left, which may fall and rise again.
LEFT = """CREATE VIEW R (SELECT b, k, bid, bid - total AS rest FROM B JOIN Sold USING (b)
          WHERE rest > 0);"""
COUNT = "CREATE VIEW C (SELECT COUNT(*) AS n FROM J);"
GROUPS = "CREATE VIEW A (SELECT k, {0}(bid) AS x FROM R GROUP BY k);"
CHOSEN = "CREATE VIEW A (SELECT k, {0}(bid) AS x FROM R GROUP BY k HAVING x >= -1);"
PER_BID = "CREATE VIEW J (SELECT b, x FROM B JOIN A USING (k) WHERE {1});"
AGGREGATES: dict[str, Callable[[list[int]], float]] = {"MIN": min, "MAX": max, "AVG": mean}
#: True of all values that there can be, and of none if there is none.
CONDITIONS = ("x >= -1", "NOT x > 2", "x <> 5", "x > -3 AND x + 1 < 4")


def left(rows: Rows) -> dict[int, list[int]]:
    """The bids of each k of which something is left."""
    found: dict[int, list[int]] = {}
    for (b,), one in rest(rows).items():
        found.setdefault(one["k"], []).append(rows["B"][b][1])
    return found


def bids_in(rows: Rows) -> Answer:
    groups = left(rows)
    return {(): {"n": sum(k in groups for k, _ in rows["B"].values())}}


def bids_out(rows: Rows) -> Answer:
    groups = left(rows)
    return {(): {"n": sum(k not in groups for k, _ in rows["B"].values())}}


def any_in(rows: Rows) -> Answer:
    return {(): {"n": 1 if left(rows) else 0}}


def groups_in(rows: Rows) -> Answer:
    return {(): {"n": len(left(rows))}}


def values_by(made: str) -> Callable[[Rows], Answer]:
    def answer(rows: Rows) -> Answer:
        groups = left(rows)
        values: dict[int, Any] = {k: AGGREGATES[made](v) for k, v in groups.items()}
        return {(b,): {"x": values.get(k)} for b, (k, _) in rows["B"].items()}

    return answer


def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}

    def add(name: str, view: str, key: tuple[str, ...], answer: object, *texts: str) -> None:
        found[name] = case(view, key, answer, LEFT, *texts, low=-1)

    for one in AGGREGATES:
        groups, chosen = GROUPS.format(one), CHOSEN.format(one)
        for condition in CONDITIONS:
            joined = PER_BID.format(one, condition)
            add(f"{one}, {condition}", "C", (), bids_in, groups, joined, COUNT)
        add(f"{one}, shown", "J", ("b",), values_by(one), groups,
            "CREATE VIEW J (SELECT b, x FROM B JOIN A USING (k));")  # fmt: skip
        add(f"{one}, of the whole", "C", (), any_in,
            f"CREATE VIEW G (SELECT {one}(bid) AS x FROM R);"
            "CREATE VIEW J (SELECT x FROM G WHERE x >= -1);", COUNT)  # fmt: skip
        add(f"{one}, the largest of them", "C", (), any_in, groups,
            "CREATE VIEW G (SELECT MAX(x) AS m FROM A);"
            "CREATE VIEW J (SELECT m FROM G WHERE m >= -1);", COUNT)  # fmt: skip
        add(f"{one}, how many groups", "C", (), groups_in, groups,
            "CREATE VIEW C (SELECT COUNT(*) AS n FROM A);")  # fmt: skip
        add(f"{one}, absent", "C", (), bids_out, chosen,
            """CREATE VIEW J (SELECT b FROM B WHERE NOT EXISTS
               (SELECT * FROM A WHERE A.k = B.k));""", COUNT)  # fmt: skip
    return found


CASES = cases()


@pytest.mark.parametrize("name", in_turn(list(CASES), 4))
def test_no_history_takes_back_what_was_sure(name: str) -> None:
    one = CASES[name]
    one.check({"B": {1: (0, 2)}, "M": {1: (1, -1)}})


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("MAX")])
def test_steps_stay_when_a_group_is_empty_for_ever(name: str) -> None:
    sold: Rows = {"B": {1: (0, -1), 2: (0, -1)}, "M": {1: (1, -1), 2: (1, 2), 3: (1, -1)}}
    CASES[name].check(sold)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("name", CASES)
def test_no_history_takes_back_what_was_sure_at_length(name: str, seed: int) -> None:
    CASES[name].check(drawn(CASES[name], seed), "local")
