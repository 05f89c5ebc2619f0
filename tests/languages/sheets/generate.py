"""Random sheets over two streams, and random tuples for them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from millstream.calculus.graph import Program
from millstream.calculus.types import NUMBER, TEXT, Schema
from millstream.engine.reference.feed import Event
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from tests.languages.sheets.books import workbook

LEFT = Schema.of(k=TEXT, x=NUMBER, y=NUMBER)
RIGHT = Schema.of(k=TEXT, z=NUMBER, s=TEXT)
_INPUTS = ("B1", "C1", "B2")
_NUMBERS = st.sampled_from([None, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 100.25])
_SCALAR = (
    "={a}+{b}", "={a}-{b}*2", "=IF({a}>{b},{a},{b})", "={a}/{b}", "=SUM({a},{b},1)",
    "=MAX({a},{b})", "=AND({a}>0,{b}>0)", "=IFERROR({a}/{b},0)", "=ROUND({a}/3,2)", "={a}",
    "=ABS({a})", "=MIN({a},{b},5)", "=COUNT({a},{b})", "=INT({a}/2)", "=MOD({a},3)",
    "=IF({a}={b},1,2)", "=NOT({a}>1)", "=AVERAGE({a},{b})", "=VLOOKUP({a},G1:H3,2)",
    "=SQRT({a})", "=PRODUCT({a},{b})", "=SUM(B1:C1)", "=-{a}^2", "={a}%",
)  # fmt: skip
_STREAM = (
    "=PRE({any},{a},0)", "=SELECT({a},{b}>0)", "=PRE({any},{a},7)+{b}", "=SELECT({a},{b})",
)  # fmt: skip
_WINDOW = ("=WINDOW({a},3)", "=WINDOWROWS({a},2)", "=WINDOW({a},2,{b})", "=WINDOWROWS({a},3,{b})")
_AGGREGATE = (
    "=SUM({w})", "=AVERAGE({w})", "=COUNT({w})", "=MAX({w})", "=MIN({w})", "=INDEX({w},1)",
    "=INDEX({w},COUNT({w}))", "=LARGE({w},2)", "=SMALL({w},1)", "=MEDIAN({w})", "=STDEV({w})",
    "=COUNTIF({w},{a})", '=COUNTIF({w},">1")', "=MATCH({a},{w},0)", "=SUMPRODUCT({w})",
    "=VAR.P({w})", "=PRODUCT({w})", "=COUNTA({w})", "=RANK({a},{w})", "=PERCENTILE({w},0.5)",
    '=SUMIF({w},">0")', "=MODE({w})", "=QUARTILE({w},1)", '=AVERAGEIF({w},">0")',
    "=MATCH({a},{w},1)", "=MATCH({a},{w},-1)", "=SUMSQ({w})", "=STDEV.P({w})", "=VAR({w})",
    "=SUMPRODUCT({w},{u})", '=SUMIF({w},">0",{u})', '=AVERAGEIF({w},"<=1",{u})',
    "=RANK({a},{w},1)", "=PERCENTILE({w},{a})", "=LARGE({w},{a})", '=COUNTIFS({w},"<=2")',
    '=SUMIFS({u},{w},">=1")', "=INDEX({u},MATCH(LARGE({w},1),{w},0))", '=COUNTIF({t},"b")',
    '=SUMIF({t},"A",{u})', "=COUNTA({t})", "=INDEX({t},1)", "=SUM({w})/COUNT({u})",
    "=SUMPRODUCT(({w}>0)*{u})", "=SUM(IF({w}>1,{u},0))", "=MAX({w}*2-{u})", "=AVERAGE(ABS({w}))",
    '=SUMPRODUCT(({t}="a")*{u})', "=SUMPRODUCT(--({w}>{a}),{w})", "=COUNT(1/{w})",
    '=COUNTIFS({w},">0",{u},"<=2")', '=SUMIFS({u},{w},">0",{t},"a")', "=MODE.SNGL({w})",
    '=MAXIFS({w},{u},"<>1")', '=MINIFS({w},{w},">-2",{u},"<3")', '=COUNTIF({w},"<>")',
    '=AVERAGEIFS({w},{u},"<>2",{t},"<>b")', '=COUNTIF({t},"")', '=SUMIFS({w},{u},"=")',
    '=COUNTIFS({w},G2,{u},">="&G1)', '=COUNTIF({w},"<>0")', '=COUNTIF({w},"b")',
    "=MATCH(LARGE({w},2),{w},0)", "=MATCH(SMALL({w},1),{u},0)", "=LARGE({w},G3)",
    '=COUNTIF({w},">"&{a})', '=SUMIF({w},"<="&{a},{u})', '=COUNTIFS({w},">0",{u},{a})',
    '=MAXIFS({w},{u},"<>"&{a},{t},"a")', '=COUNTIF({w},"="&{a})', "=AVERAGEIF({w},{a})",
    '=MINIFS({u},{w},">="&{a},{w},"<"&{b})', "=SLOPE({w},{u})", "=CORREL({u},{w})",
    "=INTERCEPT({w},{u})", "=RSQ({w},{u})", "=COVAR({w},{u})", "=COVARIANCE.S({u},{w})",
    '=COUNTIF({w},"<>"&{a}/3)',
)  # fmt: skip
#: What no loop computes, of numbers and texts, where these are made of one stream or of more.
_OUTSIDE = (
    '={a}&"x"', '=TEXT({a},"0.0")&{s}', "=UPPER({s})", "=LEFT({s},1)&{a}", "=CHOOSE({a},{b},2,{a})",
    '=XLOOKUP({s},I1:I3,J1:J3,"none")', "=INDEX(J1:J3,MATCH({s},I1:I3,0))*{b}", "=YEAR({a})+{b}",
    '=IF({a}>1,"hi "&{s},"lo")', "=TRUNC({a}/2)", "=IFS({a}>1,1,{b}>0,{b})", "=VALUE({a}&{b})",
    '=IF(LEN({s}&"q")>1,{a},{b})', '=SWITCH({s},"a",1,"b",2,9)*{a}', "=ISNUMBER({a})",
    "=SUMPRODUCT(--(I1:I3={s}))", "=CONCATENATE({a},{s})", '=IF({s}>"a",1,2)', "={s}",
    "=VLOOKUP({s},I1:J3,2,FALSE)", '=IF({a}={b},{s}&"y","")', "=MEDIAN({a},{b})", "=N({s})+{a}",
    '=SUM({a}&"1",2)', '=IFERROR(INDEX(K1:K3,MATCH({s},I1:I3,0)),"no")', "=COUNTIF(I1:I3,{s})",
    '=IF({s}="a",FIND("a",{s}),{b})', "=REPT({s},2)", '=IF(ISTEXT({a}),"t"&{a},{b})',
    "=ROW()+LEN({s})",
    '=SUBSTITUTE({s},"a",{a})', "=SUM(TRUNC({a}),{b})", '=TEXTJOIN("-",TRUE,{a},{s},B1:C1)',
    '=IF({a}>0,{a},"")', "=IF({a}>1,{s},{b})", '=IF({a}="",0,{a}*2)', "={a}<>{b}",
    '={a}=PRE({any},{a},"")', '=PRE({any},{a},"a")', '=RIGHT(PRE({any},{a},"")&{s},3)',
    "=SELECT({s},{a}>{b})", "=IFERROR({a}/{b},{s})", "=PRE({any},{a},FALSE)", "={s}+{a}", "=-{s}",
    '=IF({a}>0,PRE({any},{b},"none"),LEFT({s},1)&{b})', "=IFS({a}>{b},{s},{b}>0,{b})", "={s}={a}",
    '=SWITCH({a},1,"one",{b},{s},2)', "=CHOOSE({a},{s},{b})&{a}",
    "=MAX(LEN(I1:I3)*{a})", '=COUNT({s}&"1",{a})', '=AND({a}>0,EXACT({s},"a"))', "={a}&{b}&{s}",
)  # fmt: skip
_OUTSIDE_WINDOWS = (
    '="n"&SUM({w})', '=ROUND(AVERAGE({w}),1)&"!"', '=IF(COUNT({w})>1,TEXT(MAX({w}),"0"),{s})',
    '=INDEX({w},1)&"i"', "=TRUNC(SUM({w}))+{a}", '=IF({a}>0,"m"&MIN({w}),"")',
)  # fmt: skip
#: Windows of texts, which always are there; dead ones are left out.
_TEXTS = {"F1": "=WINDOW(C2,2)", "F2": "=WINDOWROWS(C2,3)", "F3": "=WINDOW(C2,2,B1)"}


@st.composite
def sheets(draw: st.DrawFn, *, outside: bool = False) -> Program:
    """A verified program of one sheet, partitioned or not; with cells outside of its loop."""
    cells: dict[str, Any] = {**_TEXTS, "G1": 0, "H1": 10, "G2": 1, "H2": 20, "G3": 2, "H3": 30}
    if outside:
        cells |= {"I1": "a", "I2": "b", "I3": "c", "J1": 5, "J2": 6, "J3": 7, "K1": "x", "K3": "z"}
    scalars, windows = list(_INPUTS), list[str]()
    names = [f"D{n}" for n in range(1, draw(st.integers(2, 9)))]
    later = list(names)
    for name in names:
        later.remove(name)
        kinds = ("scalar", "scalar", "stream", "window", "aggregate")
        kind = draw(st.sampled_from((*kinds, *(("outside",) * 4 if outside else ()))))
        templates = {"scalar": _SCALAR, "stream": _STREAM, "window": _WINDOW,
                     "aggregate": _AGGREGATE if windows else _SCALAR,
                     "outside": _OUTSIDE + (_OUTSIDE_WINDOWS if windows else ())}[kind]  # fmt: skip
        a, b = (draw(st.sampled_from(scalars)) for _ in range(2))
        w = draw(st.sampled_from(windows)) if windows else ""
        u = draw(st.sampled_from(windows)) if windows else ""
        t = draw(st.sampled_from(sorted(_TEXTS)))
        s = draw(st.sampled_from(["C2", "C2", "A1", *scalars])) if outside else ""
        formula = draw(st.sampled_from(templates))
        any_ = draw(st.sampled_from(scalars))
        cells[name] = formula.format(a=a, b=b, w=w, u=u, t=t, s=s, any=any_)
        (windows if kind == "window" else scalars).append(name)
    if draw(st.booleans()):
        cells["E1"] = f"=PRE(E1,B1,1)+{draw(st.sampled_from(scalars))}"
        scalars.append("E1")
    shown = draw(st.lists(st.sampled_from([*scalars, "C2", "A1"]), min_size=1, max_size=5,
                          unique=True))  # fmt: skip
    keyed = draw(st.booleans())
    inputs = (
        InputBinding("L", (Binding("k", "A1"), Binding("x", "B1"), Binding("y", "C1")),
                     "k" if keyed else None, columns=LEFT),
        InputBinding("R", (Binding("z", "B2"), Binding("s", "C2")),
                     "k" if keyed else None, columns=RIGHT),
    )  # fmt: skip
    outputs = [OutputBinding("Out", tuple(Binding(f"o{n}", c) for n, c in enumerate(shown)))]
    if draw(st.booleans()):
        outputs.append(OutputBinding("More", (Binding("v", draw(st.sampled_from(scalars))),)))
    per_instant = draw(st.sampled_from((False, False, False, True)))
    bindings = Bindings(inputs, tuple(outputs), per_instant)
    return translate_workbook(workbook(cells), bindings)


@st.composite
def sheets_alone(draw: st.DrawFn) -> Program:
    """A sheet over the first stream alone, without windows."""
    cells: dict[str, Any] = {"G1": 0, "H1": 10, "G2": 1, "H2": 20, "G3": 2, "H3": 30}
    scalars = ["B1", "C1"]
    for n in range(1, draw(st.integers(2, 9))):
        a, b, any_ = (draw(st.sampled_from(scalars)) for _ in range(3))
        templates = _SCALAR + _STREAM if draw(st.booleans()) else _SCALAR
        cells[f"D{n}"] = draw(st.sampled_from(templates)).format(a=a, b=b, any=any_)
        scalars.append(f"D{n}")
    shown = draw(st.lists(st.sampled_from([*scalars, "A1"]), min_size=1, max_size=5, unique=True))
    keyed = draw(st.booleans())
    bindings = Bindings(
        (InputBinding("L", (Binding("k", "A1"), Binding("x", "B1"), Binding("y", "C1")),
                      "k" if keyed else None, columns=LEFT),),
        (OutputBinding("Out", tuple(Binding(f"o{n}", c) for n, c in enumerate(shown))),),
    )  # fmt: skip
    return translate_workbook(workbook(cells), bindings)


@st.composite
def tuples(draw: st.DrawFn) -> dict[str, list[Event]]:
    """Tuples of both streams, in order of time, with times that meet."""
    keys = st.sampled_from(["p", "q"])
    found: dict[str, list[Event]] = {}
    for name in ("L", "R"):
        times = sorted(draw(st.lists(st.integers(0, 12), max_size=10)))
        rows = []
        for time in times:
            last = draw(_NUMBERS) if name == "L" else draw(st.sampled_from(["a", "B", None]))
            rows.append(Event(time * 500_000, (draw(keys), draw(_NUMBERS), last), 1))
        found[name] = rows
    return found
