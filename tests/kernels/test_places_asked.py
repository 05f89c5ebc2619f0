"""Of groups in order only those rows are told that are asked for; the answers are the same."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import millstream
from millstream.engine.local.run import plan_for
from millstream.kernels.build import build_kernel
from millstream.kernels.relational import chosen, pieces
from millstream.kernels.relational.chosen import ChosenKernel
from millstream.kernels.runtime.kernel import Kernel, Round
from millstream.meaning.items import Item, consolidated
from millstream.plan.batch import batch_of

PROGRAM = """
output answer;
input rows(k text, v integer, t text) time at;
(held, $w) <- Range[40 us](rows, $w);
(placed, $o) <- Ordered[by k; on v; EMIT](held, $o);
(answer) <- Filter[WHERE](placed);
"""
EMIT = 'emit n = row_number(), c = count(v, "range * *")'
JOINED = EMIT + ', j = join(t, "range * *", "-")'
MEDIAN = "n == integer(floor(number(c) * 0.5)) + 1 or n == integer(ceil(number(c) * 0.5)) + 1"

ASKED = (
    (EMIT, MEDIAN),
    (EMIT, "c - 1 == n"),
    (EMIT, "n == 1 or n == 2 or n == c"),
    (JOINED, "n == 1"),
)
#: What may be any row, or may fail.
NOT_ASKED = (
    (EMIT, "n <= 2"),
    (EMIT, "n == v"),
    (EMIT, "n == 1 or v == 2"),
    (EMIT, "n == integer(number(c) * 1e300)"),
    (EMIT + ', b = count(v, "rows -1 0")', "n == 1"),
)
RANDOM = Random(7)
ROWS = [
    {"at": 3 * (n // 2), "k": RANDOM.choice("ab"), "v": RANDOM.choice([None, 1, 2, 2, 5, 9]),
     "t": RANDOM.choice([None, "x", "y"])}
    for n in range(120)
]  # fmt: skip


def job_of(emit: str, condition: str, first: str = "") -> Any:
    text = PROGRAM.replace("EMIT", emit).replace("WHERE", condition)
    return millstream.compile(text=text.replace("Ordered[", f"Ordered[{first}"))


def kernel_of(job: Any) -> Kernel:
    plan = plan_for(job.program)
    (step,) = (s for s in plan.steps if s.operators[0].function.name == "Ordered")
    return build_kernel(plan, step)


@pytest.mark.parametrize(("emit", "condition"), ASKED)
def test_rows_that_are_asked_for_are_told(
    emit: str, condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLSTREAM_SMALL", "0")
    job = job_of(emit, condition)
    assert isinstance(kernel_of(job), ChosenKernel)
    expected = job.run({"rows": ROWS}, engine="reference").rows("answer")
    assert expected
    assert job.run({"rows": ROWS}, engine="local").rows("answer") == expected


@pytest.mark.parametrize(("emit", "condition"), [(EMIT, "n == 3 or n == c"), (JOINED, "n == 1")])
def test_no_more_rows_are_told_than_the_first_that_are_wanted(
    emit: str, condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLSTREAM_SMALL", "0")
    job = job_of(emit, condition, "3; ")
    assert isinstance(kernel_of(job), ChosenKernel)
    expected = job.run({"rows": ROWS}, engine="reference").rows("answer")
    assert job.run({"rows": ROWS}, engine="local").rows("answer") == expected


def test_a_few_first_places_are_for_another_kernel() -> None:
    assert not isinstance(kernel_of(job_of("emit n = row_number()", "n == 1", "3; ")), ChosenKernel)


@pytest.mark.parametrize(("emit", "condition"), NOT_ASKED)
def test_where_any_row_may_be_asked_for_all_are_told(emit: str, condition: str) -> None:
    assert not isinstance(kernel_of(job_of(emit, condition)), ChosenKernel)


#: Instants at which groups come, grow, lose some, and lose all; rows are there several times.
CHANGES = [
    [("a", 3, "x", 1), ("a", None, "y", 2), ("b", 1, None, 1)],
    [("a", 3, "x", 2), ("a", 2, "z", 1), ("b", 1, None, -1), ("c", None, None, 3)],
    [("a", None, "y", -1), ("a", 3, "x", -1), ("a", 3, "w", 1), ("b", 5, "v", 1)],
    [("a", 2, "z", -1), ("a", 2, "z", 1), ("c", None, None, -3)],
    [("a", None, "y", -1), ("a", 3, "x", -2), ("a", 2, "z", -1), ("a", 3, "w", -1)],
    [("a", 7, "x", 1), ("b", 5, "v", 4), ("c", 1, "u", 1)],
]


def told_by(kernel: Any, changes: list[Any], first: int = 0) -> list[Item]:
    """What a kernel tells of some instants, without what undoes itself."""
    rows = [(first + n, row) for n, instant in enumerate(changes) for row in instant]
    weights = [row[-1] for _, row in rows]
    given = batch_of(kernel.given, [t for t, _ in rows], [row[:-1] for _, row in rows], weights)
    (made,) = kernel.process((given,), Round(first + len(changes), np.zeros(0, np.int64)))
    items = zip(made.time.tolist(), made.rows(), made.weight.tolist(), strict=True)
    return list(consolidated(Item(*one) for one in items))


@pytest.mark.parametrize(("emit", "condition"), ASKED)
@pytest.mark.parametrize("cut", range(1, len(CHANGES)))
def test_a_kernel_that_is_taken_up_again_tells_the_same(
    emit: str, condition: str, cut: int
) -> None:
    whole, before, after = (kernel_of(job_of(emit, condition)) for _ in range(3))
    expected = told_by(whole, CHANGES)
    first = told_by(before, CHANGES[:cut])
    after.restore(before.snapshot())
    assert expected == first + told_by(after, CHANGES[cut:], cut)


@pytest.mark.parametrize("emit", [EMIT, JOINED])
def test_what_is_told_comes_in_pieces_of_any_size(
    emit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = told_by(kernel_of(job_of(emit, "n == 1")), CHANGES)
    monkeypatch.setattr(pieces, "_MOST_ROOM", 1)
    monkeypatch.setattr(chosen, "_WALK", 1)
    kernel: Any = kernel_of(job_of(emit, "n == 1"))
    assert expected == told_by(kernel, CHANGES)
    assert all(len(texts) < 100 for texts in kernel.texts)


def test_texts_that_nobody_was_told_last_are_forgotten() -> None:
    kernel: Any = kernel_of(job_of(JOINED, "n == 1"))
    changes = [[("a", n, f"t{n}", 1), ("b", n, None, 1)] for n in range(200)]
    told = [item.row[-1] for item in told_by(kernel, changes) if item.row[0] == "a"]
    again = [item.row[-1] for item in told_by(kernel, [[("a", 500, "last", 1)]], 200)]
    whole = "-".join(f"t{n}" for n in range(200))
    assert [whole, whole, f"{whole}-last"] == [told[-1], *again]
    assert all(len(texts) < 20 for texts in kernel.texts)


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_found_at_any_place(seed: int) -> None:
    """Groups of some hundred rows, of which many come and go at once, beside sorted lists."""
    random, there = Random(seed), list[tuple[int, ...]]()
    kernel: Any = kernel_of(job_of(EMIT, "n == integer(floor(number(c) * 0.7)) + 1"))
    for time in range(30):
        if random.random() < 0.1:
            gone, there = there, []
        else:
            random.shuffle(there)
            cut = random.randrange(len(there) + 1) // 2
            gone, there = there[:cut], there[cut:]
        come = [(random.randrange(100),) for _ in range(random.choice([0, 1, 5, 100]))]
        there += come
        changes = [("a", v, "x", -1) for (v,) in gone] + [("a", v, "x", 1) for (v,) in come]
        random.shuffle(changes)
        told = told_by(kernel, [changes], time)
        now = [item.row for item in told if item.weight > 0]
        place = int(len(there) * 0.7)
        if now:
            assert [(sorted(there)[place][0], place + 1, len(there))] == [
                (r[1], r[3], r[4]) for r in now
            ]
        elif told:
            assert not there
