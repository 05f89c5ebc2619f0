"""Generated programs of every language give on Spark what they give on the reference.

Some are the same always, some new each day: `tests/seeds.py` says how to have them again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, assume, given
from hypothesis import strategies as st

from millstream.algebra import program_of
from millstream.calculus.graph import Program
from millstream.engine.reference.feed import Event
from millstream.languages.rules.load import translated
from tests.engine.spark.agree import agree_on_spark
from tests.generate import inputs_for, programs
from tests.generate_nets import net_inputs, nets
from tests.languages.algebra import generate as algebra
from tests.languages.cql import generate as cql
from tests.languages.cql import test_meaning as queries
from tests.languages.rules import generate as rules
from tests.languages.rules.test_laws import checked_or_none
from tests.languages.sheets import generate as sheets
from tests.seeds import TODAY, seeded

pytestmark = pytest.mark.spark

Case = tuple[Program, dict[str, list[Event]]]


def of_calculus(data: st.DataObject) -> Case:
    program = data.draw(programs())
    return program, data.draw(inputs_for(program))


def of_cql(data: st.DataObject) -> Case:
    query = data.draw(st.one_of(cql.queries(), cql.queries_with_values()))
    program = queries.program_of(query)
    return program, queries.used(program, data.draw(cql.inputs()))


def of_rules(data: st.DataObject) -> Case:
    checked = checked_or_none(data.draw(rules.rule_texts()))
    assume(checked is not None)
    assert checked is not None
    program = translated(checked).program
    events = data.draw(rules.events_for(program))
    for one in program.inputs:
        # A run ends with an error if it could read nothing of an input.
        places = [one.type.schema.index(key) for key in one.keys]
        has_keys = [all(e.row[n] is not None for n in places) for e in events[one.name]]
        assume(any(has_keys) or not has_keys)
    return program, events


def of_sheets(data: st.DataObject) -> Case:
    program = data.draw(st.one_of(sheets.sheets(), sheets.sheets_alone()))
    drawn = data.draw(sheets.tuples())
    return program, {name: drawn[name] for name in program.input_names}


def of_algebra(data: st.DataObject) -> Case:
    table = data.draw(algebra.tables())
    program = program_of(table=table, reduced=algebra.reductions(table), log=table.changelog())
    drawn = data.draw(algebra.events())
    return program, {
        name: [Event(time, row) for time, row in drawn[name]] for name in program.input_names
    }


def of_nets(data: st.DataObject) -> Case:
    program = data.draw(nets())
    return program, data.draw(net_inputs(program))


LANGUAGES = {
    "calculus": of_calculus, "cql": of_cql, "rules": of_rules, "sheets": of_sheets,
    "algebra": of_algebra, "nets": of_nets,
}  # fmt: skip


def agree_on(
    number: int, examples: int, case_of: Callable[[st.DataObject], Case], session: Any,
    folders: pytest.TempPathFactory,
) -> None:  # fmt: skip
    # Shrinking runs Spark hundreds of times more; the failing program is printed anyway.
    @seeded(number, examples, phases=[Phase.generate])
    @given(st.data(), st.integers(0, 1000), st.booleans())
    def law(data: st.DataObject, seed: int, optimise: bool) -> None:
        program, events = case_of(data)
        # The simplest case of all is always tried first, and says nothing.
        assume(sum(map(len, events.values())) > 3)
        folder = folders.mktemp("case")
        agree_on_spark(session, program, events, folder, seed, optimise=optimise)

    law()


@pytest.mark.parametrize("language", LANGUAGES)
def test_generated_programs_give_what_the_reference_gives(
    language: str, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agree_on(13, 2, LANGUAGES[language], spark, tmp_path_factory)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", [TODAY])
def test_programs_of_the_day_give_what_the_reference_gives(
    number: int, language: str, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agree_on(number, 2, LANGUAGES[language], spark, tmp_path_factory)


@pytest.mark.proof
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", range(100, 110))
def test_many_programs_give_what_the_reference_gives(
    number: int, language: str, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    count = int(os.environ.get("MILLSTREAM_EXAMPLES", "100")) // 10
    agree_on(number, count, LANGUAGES[language], spark, tmp_path_factory)
