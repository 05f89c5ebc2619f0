"""What cannot be computed is counted: what of that holds where changes carry relations."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.reference.feed import Event
from millstream.languages.brook.load import load
from millstream.source import Source
from tests.laws.runs import check_faults, on_local, on_reference

INPUTS = "output out; input a(x integer, k integer), b(y integer, k integer);"
PROGRAMS = {
    "rows that come and go within an instant": f"""{INPUTS}
        (wa, $s1) <- Rows[1 by k](a, $s1); (wb, $s2) <- Range[2 us](b, $s2);
        (mb) <- Map[x = y, k](wb); (u, $s3, $s4) <- Merge(wa, mb, $s3, $s4);
        (out, $s5) <- Aggregate[by k; s = sum(div(1, x))](u, $s5);
    """,
    "rows that are there several times": f"""{INPUTS}
        (wa, $s1) <- Range[3 us](a, $s1); (wb, $s2) <- Rows[2 by k](b, $s2);
        (j, $s3, $s4) <- Join[on k](wa, wb, $s3, $s4);
        (out) <- Map[d = div(x, y)](j);
    """,
}
rows = st.tuples(st.sampled_from([0, 0, 1, 2, None]), st.sampled_from([0, 1]))
events = st.lists(st.builds(Event, st.integers(0, 5), rows), max_size=8)


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
@given(a=events, b=events, cuts=st.lists(st.integers(0, 8), max_size=3))
@settings(max_examples=30, deadline=None)
def test_faults_of_relations_do_not_depend_on_cuts_and_none_is_passed_over(
    text: str, a: list[Event], b: list[Event], cuts: list[int]
) -> None:
    program = load(Source("test.brook", text))
    given_ = {"a": sorted(a, key=lambda e: e.time), "b": sorted(b, key=lambda e: e.time)}
    whole = on_local(program, given_)[1].faults
    assert whole == on_local(program, given_, cuts)[1].faults
    check_faults(program, on_reference(program, given_)[1].faults, whole)
