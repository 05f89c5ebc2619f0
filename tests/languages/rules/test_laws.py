"""A direct evaluation of the rules = the reference = the local engine, at every instant."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from millstream.errors import CheckError
from millstream.languages.rules.load import Checked, check_text, translated
from millstream.languages.rules.read import read_rules
from millstream.optimiser.optimise import optimise
from millstream.source import Source
from tests.languages.rules.direct import Verdict, tables_at, verdicts, warnings
from tests.languages.rules.generate import events_for, rule_texts
from tests.laws.runs import Rows, on_local, on_reference
from tests.seeds import campaign, seeded

#: The file need not exist: only its folder matters, where the toy domain is.
HERE = Path(__file__).parent / "generated.rules"


def checked_or_none(text: str) -> Checked | None:
    """Generated rules may contradict themselves, which is an error of its own."""
    try:
        return check_text(Source(str(HERE), text))
    except CheckError:
        return None


def agree(data: st.DataObject, text: str, cuts: list[int], *, engine: str) -> None:
    checked = checked_or_none(text)
    assume(checked is not None)
    assert checked is not None
    program = translated(checked).program
    events = data.draw(events_for(program))
    tree = read_rules(Source(str(HERE), text), [], checked.domain.names).rules
    kept = frozenset(r.place for r in checked.reduced.requirements)
    names = {one.name: one.type.schema.names for one in program.inputs}
    if engine == "reference":
        found, _ = on_reference(program, events)
    else:
        found, _ = on_local(optimise(program), events, cuts)
    before: dict[object, Verdict] = {}
    for time in sorted({e.time for rows in events.values() for e in rows}):
        now = verdicts(tree, tables_at(events, names, time), kept)
        assert now == _relation_at(found["status"], time)
        said = [(row[0], row[1], row[3]) for t, _, row in found["warnings"] if t == time]
        assert sorted(warnings(before, now), key=str) == sorted(said, key=str)
        before = now


def _relation_at(changes: Rows, time: int) -> dict[object, Verdict]:
    rows: Counter[tuple[object, object, object]] = Counter()
    for at, weight, row in changes:
        if at <= time:
            rows[row[0], row[1], row[2]] += weight
    assert set(rows.values()) <= {0, 1}
    return {key: (str(s), str(f)) for (key, s, f), n in rows.items() if n}


@settings(max_examples=10, deadline=None, derandomize=True, database=None,
          suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])  # fmt: skip
@given(st.data(), rule_texts())
def test_the_reference_gives_what_the_rules_mean(data: st.DataObject, text: str) -> None:
    agree(data, text, [], engine="reference")


@settings(max_examples=8, deadline=None, derandomize=True, database=None,
          suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])  # fmt: skip
@given(st.data(), rule_texts(), st.lists(st.integers(0, 5), max_size=3))
def test_the_local_engine_gives_what_the_rules_mean(
    data: st.DataObject, text: str, cuts: list[int]
) -> None:
    agree(data, text, cuts, engine="local")


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(1_000, 20))
def test_rules_mean_the_same_on_a_thousand_inputs(number: int) -> None:
    @seeded(number, 20)
    @given(st.data(), rule_texts(), st.lists(st.integers(0, 5), max_size=3),
           st.sampled_from(("reference", "local")))  # fmt: skip
    def law(data: st.DataObject, text: str, cuts: list[int], engine: str) -> None:
        agree(data, text, cuts, engine=engine)

    law()
