"""Functions of which the definition itself is compiled give what it gives, errors too."""

from __future__ import annotations

import random

import pytest

from millstream.calculus.graph import Program
from millstream.calculus.sheets import Sheet
from millstream.calculus.types import NUMBER, Schema, Value
from millstream.engine.reference.feed import Event
from millstream.kernels.sheets.formulas_defined import DEFINED
from millstream.kernels.sheets.generated import cells_apart
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from millstream.values.excel.table import FUNCTIONS
from tests.languages.sheets.books import Cells, workbook
from tests.languages.sheets.laws import agree

#: A share, a small number, a whole one, a larger one.
COLUMNS = "abcd"
_STRANGE: tuple[Value, ...] = (None, 0.0, 1.0, -1.0, 0.5, 1e300, -1e-300, 3e9, 1e12)
#: In which columns arguments stand, where no numbers at random would often be any good.
_ARGUMENTS = {
    "CUMIPMT": "a c+12 d 1 c 0", "CUMPRINC": "a c+12 d 1 c c-2", "DB": "d b c+2 c 7",
    "DDB": "d b c+2 c b", "FV": "a c b d 1", "IPMT": "a c c+3 d b", "NPER": "a -b d/9 b 1",
    "PMT": "a c d b 1", "PPMT": "a c c+3 d", "PV": "a c b d", "RATE": "c+5 -d d*c",
    "SYD": "d b c+2 c", "T.DIST": "b-5 c a>0.4", "T.INV": "a c", "TDIST": "b c 2",
    "VDB": "d b c+2 a c", "NORM.DIST": "b c d a>0.4", "CONFIDENCE.T": "a b c+1", "RRI": "c d b",
    "BETA.DIST": "a b c a>0.4", "POISSON.DIST": "c b a>0.4", "DOLLARFR": "b c",
}  # fmt: skip


def call(function: str) -> str:
    """A call with numbers of the columns, first with what most definitions want."""
    written = _ARGUMENTS.get(function)
    if written is None:
        kinds = FUNCTIONS[function].kinds[: max(2, FUNCTIONS[function].least)]
        places = iter("abcd" if function.endswith((".INV", "INV", "INV.RT", "2T")) else "bcdac")
        written = " ".join("a>0.4" if kind == "b" else next(places) for kind in kinds)
    arguments = written.split(" ")
    for column in COLUMNS:
        arguments = [a.replace(column, f"{column.upper()}1") for a in arguments]
    return f"={function}({','.join(arguments)})"


def program(formulas: list[str]) -> Program:
    cells: Cells = {f"F{n}": formula for n, formula in enumerate(formulas, 1)}
    names = [(column, f"{column.upper()}1") for column in COLUMNS]
    inputs = InputBinding("In", tuple(Binding(*pair) for pair in names),
                          columns=Schema.of(**dict.fromkeys(COLUMNS, NUMBER)))  # fmt: skip
    shown = tuple(Binding(f"f{n}", f"F{n}") for n in range(1, len(formulas) + 1))
    return translate_workbook(workbook(cells), Bindings((inputs,), (OutputBinding("Out", shown),)))


def rows(count: int, chance: random.Random) -> list[tuple[Value, ...]]:
    return [
        tuple(
            chance.choice(_STRANGE) if chance.random() < 0.06 else value
            for value in (
                chance.random(), chance.uniform(0.1, 9), float(chance.randint(1, 30)),
                chance.uniform(1, 900),
            )
        )
        for _ in range(count)
    ]  # fmt: skip


def told(made: Program) -> list[str]:
    (operator,) = made.operators
    assert isinstance(operator.function, Sheet)
    types = made.queue_types()
    return cells_apart(operator.function, tuple(types[q] for q in operator.inputs))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_definitions_in_loops_are_those_of_the_reference(part: int) -> None:
    made = program([call(function) for function in sorted(DEFINED)[part::4]])
    assert told(made) == []
    given = rows(150, random.Random(part))
    agree(made, {"In": [Event(n, row) for n, row in enumerate(given)]}, [40, 41])


def test_a_part_that_has_no_value_says_which_error_it_is() -> None:
    made = program(["=IFERROR(PMT(A1,C1,D1),-1)", "=ERROR.TYPE(SLN(D1,B1,C1))", "=1+EFFECT(A1,C1)"])
    given = [(0.01, 1.0, 12.0, 100.0), (0.0, 1.0, 0.0, 5.0), (None, 2.0, -1.0, 7.0)]
    agree(made, {"In": [Event(n, row) for n, row in enumerate(given)]}, [])
