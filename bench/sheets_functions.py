"""Which functions of Excel run in the compiled loop of a sheet, and how fast the others are.

    python bench/sheets_functions.py

Each function stands alone in a cell, with plain arguments: numbers and texts of a stream, ranges of
constants. For those that no loop computes the rate is that of computing them anew for each
tuple, which is what happens where their arguments never repeat; where they do, what was computed
before is looked up. The table goes to `docs/sheets-functions.md`.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from millstream.calculus.sheets import Computed, Fed, Sheet
from millstream.calculus.types import NUMBER, TEXT, Schema
from millstream.errors import ProgramError
from millstream.kernels.sheets.combinations import Combinations
from millstream.kernels.sheets.generated import cells_apart
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from millstream.values.excel.table import FUNCTIONS, SPECIAL
from millstream.values.excel.workbook import Formula, Workbook, Worksheet, key_of

DOCS = Path(__file__).parents[1] / "docs" / "sheets-functions.md"
BAR = 300_000
TRIES, ROUNDS, SLOW = 200, 20, 0.02
_OF_KINDS = {"n": "A1", "d": "A1", "v": "A1", "f": "A1", "e": "A1", "t": "B1", "b": "TRUE",
             "r": "H1:H9", "a": "H1:H9"}  # fmt: skip
#: Where arguments by their kinds make no sense.
_WRITTEN = {
    "CHOOSE": "CHOOSE(MOD(A1,3)+1,A1,2,3)", "IF": "IF(A1>9,A1,2)", "IFERROR": "IFERROR(1/A1,0)",
    "IFNA": "IFNA(A1,0)", "IFS": "IFS(A1>9,1,TRUE,A1)", "SWITCH": 'SWITCH(B1,"a1",1,A1)',
    "INDEX": "INDEX(H1:H9,MOD(A1,9)+1)", "MATCH": "MATCH(A1,H1:H9)", "XMATCH": "XMATCH(A1,H1:H9)",
    "VLOOKUP": "VLOOKUP(A1,H1:I9,2)", "HLOOKUP": "HLOOKUP(A1,H1:I9,2)",
    "LOOKUP": "LOOKUP(A1,H1:H9,I1:I9)", "XLOOKUP": "XLOOKUP(B1,J1:J9,H1:H9,0)",
    "TEXT": 'TEXT(A1,"0.00")', "SUM": "SUM(A1,H1:H9)", "COUNTIF": 'COUNTIF(H1:H9,">"&A1)',
    "SUMIF": 'SUMIF(H1:H9,">"&A1)', "LET": "LET(x,A1*2,x+1)", "AND": "AND(A1>1,A1<9)",
    "OR": "OR(A1>1,A1<9)", "XOR": "XOR(A1>1,A1<9)", "NOT": "NOT(A1>1)", "WEEKDAY": "WEEKDAY(A1)",
    "FIND": 'FIND("a",B1)', "SEARCH": 'SEARCH("a",B1)', "MID": "MID(B1,1,2)", "REPT": "REPT(B1,2)",
    "LEFT": "LEFT(B1,1)", "RIGHT": "RIGHT(B1,1)", "SUBSTITUTE": 'SUBSTITUTE(B1,"a","b")',
    "REPLACE": 'REPLACE(B1,1,1,"x")', "VALUE": "VALUE(A1)", "DATE": "DATE(2026,A1,1)",
    "DATEDIF": 'DATEDIF(1,A1+2,"d")', "TEXTJOIN": 'TEXTJOIN(",",TRUE,B1,A1)',
}  # fmt: skip


_MADE = (
    "Made by `python bench/sheets_functions.py`. Each function stands alone in a cell of a sheet "
    "over one stream."
)
_OTHERS = (
    "The others are computed outside of the loop, once for each combination of the values that "
    "they are made of; then they are looked up. The rate is that of computing, in tuples a second "
    "of processor time on a busy machine, where no value comes twice."
)
_BY_COLUMNS = (
    "`&`, `CONCATENATE`, `UPPER`, `LOWER`, `PROPER`, `TRIM`, `LEFT`, `MID`, `RIGHT` and "
    "`SUBSTITUTE` with written numbers and texts, and `TEXT` with common formats (`0.00`, `#,##0`, "
    "`0%`, `+0.0;-0.0`, `$#,##0.00`, `ddd d mmm yy`, `yyyy-mm-dd hh:mm`), of what a stream brings "
    "or for an output, are made by columns, a million a second and more, whatever the table says."
)


def call(name: str) -> str:
    if name in _WRITTEN:
        return _WRITTEN[name]
    spec = FUNCTIONS.get(name)
    if spec is None:
        return f"{name}(A1,A1,A1)"
    kinds = list(spec.kinds_for(max(spec.least, min(2, len(spec.kinds)) if spec.repeated else 0)))
    arguments = [_OF_KINDS[k] for k in kinds]
    if arguments and set(arguments) <= {"H1:H9", "TRUE"}:
        arguments[-1 if len(arguments) == 1 and spec.repeated else 0] = "A1"
    return f"{name}({','.join(arguments)})"


def sheet_of(formula: str) -> tuple[Sheet, Any]:
    page = Worksheet("S")
    for n in range(1, 10):
        page.constants[key_of(n, 8)] = float(n)
        page.constants[key_of(n, 9)] = float(n * n)
        page.constants[key_of(n, 10)] = f"a{n}"
    page.formulas[key_of(1, 3)] = Formula(formula)
    bindings = Bindings(
        (InputBinding("In", (Binding("x", "A1"), Binding("s", "B1")), None,
                      columns=Schema.of(x=NUMBER, s=TEXT)),),
        (OutputBinding("Out", (Binding("y", "C1"),)),),
    )  # fmt: skip
    program = translate_workbook(Workbook("f.xlsx", {"S": page}, {}), bindings)
    (operator,) = program.operators
    assert isinstance(operator.function, Sheet)
    return operator.function, tuple(program.queue_types()[q] for q in operator.inputs)


def rate(sheet: Sheet) -> float:
    """How many times a second the cell is computed, by processor time."""
    leaves = [c.address for c in sheet.cells if isinstance(c.rule, Fed)]
    (wanted,) = (c.address for c in sheet.outputs[0])
    combinations = Combinations(sheet, sheet.cells, wanted, leaves, [])
    chance = random.Random(20)
    given = [
        tuple(chance.uniform(1, 60) if a[2] == 1 else f"a{chance.randint(1, 99)}" for a in leaves)
        for _ in range(TRIES)
    ]
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        combinations.learn(given)
        best = min(best, time.process_time() - start)
        if best > SLOW:
            break
    return TRIES / max(best, 1e-9)


def measured(name: str) -> tuple[str, str, int] | None:
    """The call, where it runs, and the rate if that is outside; None if it does not stand alone."""
    formula = call(name)
    try:
        sheet, types = sheet_of(formula)
    except (ProgramError, AssertionError):
        return None
    if not any(isinstance(c.rule, Computed) for c in sheet.cells):
        return None
    told = cells_apart(sheet, types)
    where = told[0].partition(": ")[0].partition(" ")[2] if told else ""
    return formula, where, round(rate(sheet)) if told else 0


def main() -> None:
    found = {name: measured(name) for name in sorted({*FUNCTIONS, *SPECIAL})}
    inside = [n for n, f in found.items() if f and not f[1]]
    outside = {n: f for n, f in found.items() if f and f[1]}
    others = [n for n, f in found.items() if f is None]
    fast = [n for n, f in outside.items() if f[2] >= BAR]
    slow = {n: f for n, f in outside.items() if f[2] < BAR}
    lines = [
        "# Functions in compiled sheets", "",
        _MADE, "",
        f"Compiled into the loop ({len(inside)}): {_listed(inside)}.", "",
        _OTHERS, "",
        f"At {BAR:,} a second or more ({len(fast)}): {_listed(fast)}.", "",
        f"The others ({len(slow)}) are slower. {_BY_COLUMNS}", "",
        "| function | as | tuples a second |", "|---|---|---|",
        *(f"| `{n}` | `{f[0].replace('|', '')}` | {f[2]:,} |"
          for n, f in sorted(slow.items(), key=lambda item: (item[1][2], item[0]))),
        "", f"Not tried alone: {_listed(others)}.", "",
    ]  # fmt: skip
    DOCS.write_text("\n".join(lines))
    print(f"{len(inside)} compiled, {len(fast)} fast outside, {len(slow)} slower, "
          f"{len(others)} not tried alone")  # fmt: skip


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


if __name__ == "__main__":
    main()
