"""The optimiser by what is known of the data: sizes of inputs, and what conditions keep."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import millstream
from millstream.calculus.estimates import Measures
from millstream.calculus.functions import Join
from millstream.calculus.graph import Program, in_dependency_order
from millstream.calculus.text import render
from millstream.languages.brook.load import load
from millstream.optimiser import order_joins as module
from millstream.optimiser.optimise import optimise
from millstream.optimiser.order_joins import MOST, order_joins
from millstream.source import Source
from tests.generate import inputs_for
from tests.laws.runs import on_reference

THREE = """
output out; input l relation(k integer, c integer), m relation(k integer, b integer),
                  r relation(c integer, d integer);
(lm, $a, $b) <- Join[on k](l, m, $a, $b);
(out, $c, $d) <- Join[on c](lm, r, $c, $d);
"""
CAN_FAIL = """
output out; input l relation(k integer, c integer), m relation(k integer, b integer),
                  r relation(c integer, d integer);
(some) <- Filter[d == 1](r);
(lm, $a, $b) <- Join[on k](l, m, $a, $b);
(out, $c, $d) <- Join[on c; where div(k, c) < 5](lm, some, $c, $d);
"""


def program(text: str) -> Program:
    return load(Source("a.brook", text))


@pytest.mark.parametrize(("rows", "is_changed"), [
    ({"m": 1e7, "r": 10.0}, True), ({"m": 10.0, "r": 1e7}, False), ({"m": 10.0, "r": 10.0}, False),
])  # fmt: skip
def test_joins_are_ordered_by_sizes(rows: dict[str, float], is_changed: bool) -> None:
    before = program(THREE)
    after = optimise(before, (order_joins,), measures=Measures(rows))
    assert (render(after) != render(before)) is is_changed


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_joins_in_another_order_mean_the_same(data: st.DataObject) -> None:
    before = program(THREE)
    after = optimise(before, (order_joins,), measures=Measures({"m": 1e7, "r": 10.0}))
    events = data.draw(inputs_for(before))
    assert on_reference(before, events) == on_reference(after, events)


@pytest.mark.parametrize("joins", [40, 150])
def test_a_long_row_of_joins_comes_to_an_end(joins: int) -> None:
    inputs = ", ".join(f"r{n} relation(c integer, d{n} integer)" for n in range(joins))
    lines = [
        f"(j{n + 1}, $a{n}, $b{n}) <- Join[on c](j{n}, r{n}, $a{n}, $b{n});\n" for n in range(joins)
    ]
    text = f"output out; input j0 relation(c integer), {inputs};\n{''.join(lines)}"
    before = program(f"{text}(out) <- Map[c](j{joins});\n")
    rows = {f"r{n}": 100.0 ** (20 - n // 2) for n in range(joins)}
    after = optimise(before, (order_joins,), measures=Measures(rows))
    met = [op.inputs[1] for op in in_dependency_order(after) if isinstance(op.function, Join)]
    assert (met[0] == "r0") is (joins > MOST)


def test_a_condition_that_can_fail_would_be_asked_about_other_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = program(CAN_FAIL)
    assert order_joins(before) is before
    monkeypatch.setattr(module, "never_fails", lambda _: True)
    forced = optimise(before, (order_joins,))
    rows = {"l": [{"_time": 1, "k": 1, "c": 0}], "m": [], "r": [{"_time": 1, "c": 0, "d": 1}]}
    assert [
        sum(run.report.faults.values())
        for run in (
            millstream.compile(text=render(one)).run(rows, engine="reference", optimise=False)
            for one in (before, forced)
        )
    ] == [0, 1]


FILTER = """
output out; input s(a integer, b integer, c integer);
(w, $w) <- Range[2 s](s, $w);
(out) <- Filter[a < 5 and b > 10 and c >= 0](w);
"""


def test_conditions_are_ordered_by_what_they_keep_of_a_sample(tmp_path: Path) -> None:
    lines = (f"{n * 1_000_000},0,{100 * (n % 50 == 7)},0\n" for n in range(400))
    (tmp_path / "s.csv").write_text("_time,a,b,c\n" + "".join(lines))
    (tmp_path / "f.brook").write_text(FILTER)
    compiled = millstream.compile(tmp_path / "f.brook")
    assert "Filter[a < 5 and b > 10 and c >= 0]" in compiled.explain("optimised")
    sampled = compiled.explain("optimised", sample=200)
    assert "(`s.selected`) <- Filter[b > 10 and a < 5 and c >= 0](s);" in sampled
    plain, by_sample = (
        compiled.run(engine="local", sample=rows).rows("out") for rows in (None, 200)
    )
    assert plain == by_sample
    assert len(plain) == 16  # eight rows come and go


def test_too_few_rows_and_what_can_be_read_but_once_tell_nothing() -> None:
    compiled = millstream.compile(text=FILTER)
    few = [{"_time": n, "a": 0, "b": 0, "c": 0} for n in range(10)]
    for rows in (few, iter(few)):
        assert "Filter[a < 5 and b > 10" in compiled.explain(
            "optimised", inputs={"s": rows}, sample=200
        )


GROUPS = """
output out; input s(k text, x integer);
(w, $w) <- Range[20 s; slide 10 s](s, $w);
(out, $o) <- Aggregate[by k; n = count(), most = max(x)](w, $o);
"""


@pytest.mark.parametrize(("keys", "is_cut"), [(3, True), (40, False)])
def test_totals_of_few_groups_are_summed_in_parts(keys: int, is_cut: bool) -> None:
    compiled = millstream.compile(text=GROUPS)
    rows = {"s": [{"_time": n * 1_000_000, "k": f"k{n % keys}", "x": n} for n in range(200)]}
    told = compiled.explain("optimised", sample=100, inputs=rows)
    assert ("Aggregate[by k, part;" in told) is is_cut
    assert ("40, can each have a place of its own" in told) is not is_cut
    assert "nobody knows how many, can each" in compiled.explain("optimised", inputs=rows)
    plain, sampled = (
        compiled.run(rows, engine="local", sample=some).rows("out") for some in (None, 100)
    )
    assert plain == sampled
    assert plain
