"""NETWORKDAYS and WORKDAY with holidays that never change are computed in the loop."""

from __future__ import annotations

import random
from datetime import date, timedelta

import pytest

from millstream.calculus.graph import Program
from millstream.calculus.sheets import Sheet
from millstream.calculus.types import NUMBER, Schema, Value
from millstream.engine.reference.feed import Event
from millstream.kernels.sheets.generated import cells_apart
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from tests.languages.sheets.books import Cells, workbook
from tests.languages.sheets.laws import agree
from tests.laws.runs import on_local

#: A Sunday, a Friday, Christmas, the same again, nothing, a time of day.
HOLIDAYS = [46110, 46115, 46381, 46381, None, 46204.75, 46203]
FORMULAS = (
    "=NETWORKDAYS(A1,B1,H1:H7)", "=NETWORKDAYS(A1,B1)", "=NETWORKDAYS(B1,A1,H2)",
    "=WORKDAY(A1,C1,H1:H7)", "=WORKDAY(A1,C1)", "=WORKDAY(A1,-C1,H1:H7)",
    "=IFERROR(WORKDAY(A1/(C1-2),C1,H1:H7),-1)", "=NETWORKDAYS(A1,B1/(C1-3),H6)+1",
)  # fmt: skip


def program(*formulas: str) -> Program:
    cells: Cells = {f"H{n}": day for n, day in enumerate(HOLIDAYS, 1) if day is not None}
    cells |= {f"D{n}": formula for n, formula in enumerate(formulas, 1)}
    inputs = InputBinding("In", (Binding("a", "A1"), Binding("b", "B1"), Binding("c", "C1")),
                          columns=Schema.of(a=NUMBER, b=NUMBER, c=NUMBER))  # fmt: skip
    shown = tuple(Binding(f"d{n}", f"D{n}") for n in range(1, len(formulas) + 1))
    return translate_workbook(workbook(cells), Bindings((inputs,), (OutputBinding("Out", shown),)))


def rows(count: int) -> list[tuple[Value, ...]]:
    chance = random.Random(20)
    strange: tuple[Value, ...] = (None, -1.0, 0.0, 59.5, 60.0, 61.0, 2958465.0, 2958466.0, 1e300)

    def day() -> Value:
        if chance.random() < 0.1:
            return chance.choice(strange)
        return float(chance.randint(46000, 46500)) + chance.choice((0.0, 0.25))

    return [
        (
            day(),
            day(),
            chance.choice((0.0, 1.0, 2.0, 2.9, 3.0, 7.0, 260.0, -12.0, None, 3e6, 1e300)),
        )
        for _ in range(count)
    ]


@pytest.mark.slow
def test_working_days_are_those_of_the_reference() -> None:
    made = program(*FORMULAS)
    (operator,) = made.operators
    assert isinstance(operator.function, Sheet)
    types = made.queue_types()
    assert cells_apart(operator.function, tuple(types[q] for q in operator.inputs)) == []
    agree(made, {"In": [Event(n, row) for n, row in enumerate(rows(300))]}, [100, 101])


def test_working_days_are_those_of_a_calendar() -> None:
    given = [(46000.0 + n, 46100.0 + 3 * n, float(n % 40)) for n in range(60)]
    answered, _ = on_local(
        program(*FORMULAS[:1], *FORMULAS[3:4]), {"In": [Event(n, r) for n, r in enumerate(given)]}
    )
    free = {_day(day) for day in HOLIDAYS if day is not None}
    for (start, end, count), (_, _, made) in zip(given, answered["Out"], strict=True):
        worked = [d for d in _days(start, end) if d.weekday() < 5 and d not in free]
        later = [d for d in _days(start + 1, start + 90) if d.weekday() < 5 and d not in free]
        day = _day(start) if count == 0 else later[int(count) - 1]
        assert made == (float(len(worked)), float((day - date(1899, 12, 30)).days))


def _day(serial: float) -> date:
    return date(1899, 12, 30) + timedelta(int(serial))


def _days(first: float, last: float) -> list[date]:
    return [_day(n) for n in range(int(first), int(last) + 1)]
