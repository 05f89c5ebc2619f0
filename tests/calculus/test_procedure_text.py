"""Codes are printed and read back; what is wrong with them is told."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from millstream.calculus.procedure_check import code_faults
from millstream.calculus.procedure_read import work_of_lines
from millstream.calculus.procedure_text import work_lines
from millstream.calculus.text import render
from millstream.errors import CheckError, Fault
from millstream.languages.brook.load import load
from millstream.source import Source
from tests.generate_codes import SHAPES, works
from tests.generate_nets import nets
from tests.seeds import seeded


@seeded(0, 60, phases=[Phase.generate])
@given(st.data())
def test_what_is_printed_of_a_filter_reads_back(data: st.DataObject) -> None:
    taken = data.draw(st.sampled_from((None, *SHAPES)))
    work = data.draw(works(taken, data.draw(st.sampled_from(SHAPES))))
    faults: list[Fault] = []
    assert work == work_of_lines(list(work_lines(work)), faults), faults
    assert not list(code_faults(work.code))


@seeded(0, 20, phases=[Phase.generate])
@given(st.data())
def test_what_is_printed_of_a_net_reads_back(data: st.DataObject) -> None:
    program = data.draw(nets())
    assert program == load(Source("net.brook", render(program)))


def told(statement: str, rates: str = "pop 1 peek 1 push 1") -> str:
    lines = ["code F(n int32)", "takes single", "gives single", "field a [4] single", "work {",
             statement, "}", "with 2", "item takes single", "item gives single",
             f"rates {rates}"]  # fmt: skip
    quoted = ", ".join('"' + line.replace('"', '\\"') + '"' for line in lines)
    text = f"""output q; input items(value number);
    (q, $a, $b) <- Work[{quoted}](items, $a, $b);"""
    with pytest.raises(CheckError) as raised:
        load(Source("work.brook", text))
    return str(raised.value)


def test_what_is_wrong_with_a_code_is_told_with_its_line() -> None:
    for statement, message in (
        ("b = 1f;", 'unknown variable "b"'),
        ("a[4] = 1f;", '"a" has 4 elements, none is 4'),
        ("a[0] = 1;", "what is assigned must be single, got int32"),
        ("a[1f] = 1f;", "expected int32, got single, in `a[1f] = 1f;`"),
        ("a[n].x = 1f;", '"a" has no part "x"'),
        ("push int32_add(n, 1);", "what is pushed must be single, got int32"),
        ("push int32_add(n, 1f);", "int32_add: expected"),
        ("push single_plus(1f);", 'unknown function "single_plus"'),
        ("if n { pop; }", "expected boolean, got int32"),
        ("break;", "`break` stands outside of a loop"),
        ("return 1f;", "a return must give nothing"),
        ("let n int32;", '2 variables of F are named "n"'),
        ("call f();", 'unknown function "f"'),
        ("pop", "expected `;` after a statement"),
    ):
        assert message in told(statement)


def test_rates_must_let_a_filter_go_on() -> None:
    assert "takes no items off, and would fire for ever" in told("", "pop 0 peek 1 push 1")
    assert "cannot take 2 items and see 1" in told("pop; pop;", "pop 2 peek 1 push 1")
