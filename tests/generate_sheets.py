"""Generated sheets as functions of a larger program: over any streams, with any values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from millstream.calculus.sheets import Sheet
from millstream.calculus.types import Schema
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from tests.languages.sheets.books import workbook

#: Formulas of cells; times of generated inputs lie a microsecond apart.
SCALAR = (
    "={a}+{b}", "=IF({a}>{b},{a},{b})", "={a}/{b}", "=SUM({a},{b},1)", "=IFERROR({a}*2,0)",
    '={a}&"-"&{b}', "=ISNUMBER({a})", "=LEN({a})", "={a}={b}", "=MAX({a},{b},G1)", "=ABS({a})",
    "=ISBLANK({a})", '=IF(ISTEXT({a}),UPPER({a}),"none")', "=COUNT({a},{b})", "={a}",
)  # fmt: skip
STATEFUL = ("=PRE({any},{a},0)", "=SELECT({a},{b}>0)", "=PRE({any},{a},7)+{b}")
WINDOW = ("=WINDOW({a},0.000003)", "=WINDOWROWS({a},2)", "=WINDOWROWS({a},3,{b})")
AGGREGATE = (
    "=SUM({w})", "=AVERAGE({w})", "=COUNT({w})", "=MAX({w})", "=MIN({w})", "=COUNTA({w})",
    "=INDEX({w},1)", "=COUNTIF({w},{a})", "=LARGE({w},2)", "=MATCH({a},{w},0)",
)  # fmt: skip
KINDS = {"scalar": SCALAR, "stateful": STATEFUL, "window": WINDOW, "aggregate": AGGREGATE}
#: More columns of an input than these are not bound.
LETTERS = "ABCD"


@st.composite
def sheet_over(draw: st.DrawFn, schemas: tuple[Schema, ...]) -> Sheet:
    """A sheet whose first rows are fed by streams of these schemas."""
    bound = [
        [Binding(f.name, f"{letter}{row}") for letter, f in zip(LETTERS, schema, strict=False)]
        for row, schema in enumerate(schemas, 1)
    ]
    cells: dict[str, Any] = {"G1": 2}
    scalars = [b.cell for bindings in bound for b in bindings]
    windows: list[str] = []
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(sorted(KINDS)))
        formula = draw(st.sampled_from(SCALAR if kind == "aggregate" and not windows
                                       else KINDS[kind]))  # fmt: skip
        a, b, any_ = (draw(st.sampled_from(scalars)) for _ in range(3))
        w = draw(st.sampled_from(windows)) if windows else ""
        cells[f"F{number + 1}"] = formula.format(a=a, b=b, any=any_, w=w)
        (windows if kind == "window" else scalars).append(f"F{number + 1}")
    shown = draw(st.lists(st.sampled_from(scalars), min_size=1, max_size=3, unique=True))
    bindings = Bindings(
        tuple(
            InputBinding(f"in{n}", tuple(cells_), key, columns=schema)
            for n, (cells_, schema, key) in enumerate(
                zip(bound, schemas, draw(_keys(schemas)), strict=True)
            )
        ),
        (OutputBinding("out", tuple(Binding(f"o{n}", c) for n, c in enumerate(shown))),),
        fires_per_instant=draw(st.integers(0, 3)) == 0,
    )
    function = translate_workbook(workbook(cells), bindings).operators[0].function
    assert isinstance(function, Sheet)
    return replace(function, uses_1904=draw(st.booleans()))


@st.composite
def _keys(draw: st.DrawFn, schemas: tuple[Schema, ...]) -> tuple[str | None, ...]:
    """A key of one type for every stream, or none for any."""
    types = set.intersection(*({f.type for f in schema} for schema in schemas))
    if not types or draw(st.booleans()):
        return (None,) * len(schemas)
    type_ = draw(st.sampled_from(sorted(types, key=str)))
    return tuple(
        draw(st.sampled_from([f.name for f in schema if f.type == type_])) for schema in schemas
    )
