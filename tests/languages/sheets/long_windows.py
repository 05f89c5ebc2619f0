"""Sheets of aggregates over windows that are longer than those of random sheets."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from millstream.calculus.graph import Program
from millstream.calculus.types import NUMBER, TEXT, Schema
from millstream.engine.reference.feed import Event
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from tests.languages.sheets.books import workbook

COLUMNS = Schema.of(x=NUMBER, y=NUMBER, s=TEXT)
Row = tuple[float | None, float | None, str | None]
_WINDOWS = re.compile(r"\b[XYS]\b")

#: What must cost the same, or little more, however long a window is. A1 and B1 are the newest
#: values, C1 the newest text.
KEPT = [
    "=SUM(X)", "=AVERAGE(X)", "=COUNT(X)", "=COUNTA(X)", "=MIN(X)", "=MAX(X)", "=LARGE(X,2)",
    "=SMALL(X,3)", "=MEDIAN(X)", "=PERCENTILE(X,0.3)", "=QUARTILE(X,1)", "=VAR(X)", "=VAR.P(X)",
    "=STDEV(X)", "=STDEVP(X)", "=PRODUCT(X)", "=INDEX(X,1)", "=INDEX(X,COUNTA(X))",
    "=MATCH(B1,X,0)", "=MATCH(B1,X,1)", "=MATCH(B1,X,-1)", "=RANK(INDEX(X,1),X)", "=MODE(X)",
    "=SUMPRODUCT(X,Y)", "=SUMSQ(X)", '=COUNTIF(X,">1")', '=COUNTIFS(X,">1",Y,"<2",S,"a")',
    "=COUNTIF(X,B1)", '=COUNTIF(X,">"&B1/3)', '=COUNTIF(X,"<>"&B1)',
    '=SUMIF(X,">1",Y)', '=SUMIFS(X,Y,"<>1",S,"b")', '=AVERAGEIF(S,"a",X)',
    '=AVERAGEIFS(Y,X,"<=2",Y,">-3")', '=MAXIFS(X,S,"<>a",Y,">0")', '=MINIFS(X,Y,"<1")',
    "=LARGE(X,H1)", "=MATCH(LARGE(X,3),X,0)", "=MATCH(E1,Y,0)", "=SMALL(Y,20)", "=LARGE(X,1.5)",
    '=SUMIF(S,"",X)', '=COUNTIF(X,"")', '=COUNTIF(X,"<>2")',
]  # fmt: skip
#: What looks at the whole window, but is compiled.
SCANNED = [
    '=SUMIF(X,">"&B1)', '=AVERAGEIFS(X,Y,"<="&A1,S,"a")', '=MAXIFS(Y,X,"<>"&B1)',
    "=MINIFS(X,Y,B1,X,A1)", '=COUNTIFS(X,">"&B1/3,Y,"<"&A1)',
]  # fmt: skip
#: Sheets of a dozen: to compile one of all takes several times as long.
PARTS = [formulas[n : n + 11] for formulas in (KEPT, SCANNED) for n in range(0, len(formulas), 11)]
#: What compares numbers that may be next to each other.
COMPARING = [
    "=A1=B1", "=A1<>B1", "=A1<B1", "=A1>B1", "=A1<=B1", "=A1>=B1", "=A1>0.3", "=INT(A1)",
    "=0.3>=A1", "=IF(A1*3>B1*3,INT(B1),A1-B1)", "=COUNTIF(X,B1)", '=COUNTIF(X,">"&B1)',
    '=COUNTIF(X,"<=0.3")', '=SUMIF(X,"<>"&B1)', "=MATCH(B1,X,0)", "=MATCH(B1,X,1)",
    "=MATCH(B1,X,-1)", "=RANK(A1,X)",
]  # fmt: skip
#: Numbers that meet each other, that vanish beside each other, and that products trip over.
_TAME = (0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 1.5, 100.25, 3.0, 1.0)
_WILD = (0.1, 0.1 + 0.2, 0.3, 1e200, -1e-200, 1e150, 5e-324, 3e8, 1 + 2.0**-52, 1 - 2.0**-53)


def sheet(formulas: Sequence[str], window: str = "WINDOW({},0.1)") -> Program:
    """A sheet of some formulas; X, Y and S stand for the windows of the columns."""
    windows = {f"G{n}": "=" + window.format(c) for n, c in enumerate(("A1", "B1", "C1"), 1)}
    shown = {
        f"D{n}": _WINDOWS.sub(lambda m: f"G{'XYS'.index(m[0]) + 1}", f)
        for n, f in enumerate(formulas, 1)
    }
    bindings = Bindings(
        (InputBinding("In", (Binding("x", "A1"), Binding("y", "B1"), Binding("s", "C1")),
                      columns=COLUMNS),),
        (OutputBinding("Out", tuple(Binding(f"o{n}", cell) for n, cell in enumerate(shown))),),
    )  # fmt: skip
    more = {"H1": 3, "E1": "=IFERROR(SMALL(G2,2),0)"}
    return translate_workbook(workbook({**windows, **shown, **more}), bindings)


def events(rows: Sequence[Row], length: int = 40) -> dict[str, list[Event]]:
    """Rows at such times that there are always so many of them in a window of 0.1 s."""
    return {"In": [Event(n * 100_000 // length, row, 1) for n, row in enumerate(rows)]}


def rows(number: int, count: int, *, is_tame: bool = False) -> list[Row]:
    """Random rows, in stretches of one kind: falling, with gaps, of few values, or wild."""
    found: list[Row] = []
    generator = random.Random(number)
    while len(found) < count:
        kind = generator.randrange(4 if is_tame else 5)
        start = generator.uniform(-5, 5)
        for n in range(generator.randrange(5, 60)):
            x: float | None = generator.choice(_TAME)
            if kind == 0:
                x = start - n * 0.25
            elif kind == 4:
                x = generator.choice(_WILD + _TAME)
            elif kind == 2:
                x = generator.gauss(0, 3)
            elif kind == 3 and generator.random() < 0.6:
                x = None
            y = x if generator.random() < 0.2 else generator.choice((*_TAME, None))
            found.append((x, y, generator.choice(("a", "B", "c", None, ""))))
    return found[:count]


def digits() -> list[Row]:
    """Random numbers, percentages (a case that was found), and where nearly all cancels."""
    found: list[Row] = [(v, None, None) for v in (-0.02, -0.01, None, -0.02)]
    generator = random.Random(5)
    for mean, spread in ((0.0, 1.0), (1e9, 1e-3), (3.25, 0.0), (1e-200, 1e-201), (1e8, 1.0)):
        values = [mean + generator.gauss(0, spread) for _ in range(60)]
        values[30] = generator.choice([1e-300, 1e100, 1e150, 2.0**449, -(2.0**450)])
        found += [(v, None, None) for v in values]
    found += [(generator.choice([0.1, 0.2, 100.3, 1e16, 1e-20]), None, None) for _ in range(60)]
    return found + rows(7, 200)


def neighbours() -> list[Row]:
    """Numbers next to each other."""
    generator = random.Random(3)
    near = [0.3, 100.0, 2.0, 123456789.0, -7.0, 1e300, 1e-300, 5e-324, 0.0]
    found: list[Row] = []
    for _ in range(300):
        x, y = (
            generator.choice(near) * (1 + generator.randrange(-50, 50) * 2.0**-53) for _ in "xy"
        )
        found.append((x, y if generator.random() < 0.3 else x * (1 + 2.0**-51), "a"))
    return found
