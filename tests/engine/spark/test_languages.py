"""Generated programs of every language give on Spark what they give on the reference.

Some are the same always, some new each day: `tests/seeds.py` says how to have them again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, assume, given
from hypothesis import strategies as st

from millstream.algebra import program_of
from millstream.calculus.graph import Program
from millstream.connectors.location import Location
from millstream.engine.reference.feed import Event
from millstream.languages import languages
from millstream.languages.rules.load import translated
from tests.engine.spark.agree import agree_on_spark
from tests.engine.written import written
from tests.generate import inputs_for, programs
from tests.generate_nets import net_inputs, nets
from tests.generate_smile import drawn_rows
from tests.languages.algebra import generate as algebra
from tests.languages.cql import generate as cql
from tests.languages.cql import test_meaning as queries
from tests.languages.rules import generate as rules
from tests.languages.rules.test_laws import checked_or_none
from tests.languages.sheets import generate as sheets
from tests.laws import test_cubes as cubes
from tests.laws import test_scripts as scripts
from tests.laws import test_smile as smile
from tests.seeds import TODAY, campaign, in_turn, seeded

pytestmark = pytest.mark.spark

#: The simplest case of all is always tried first, and says nothing.
FEW = 3
#: A program and its files.
Case = tuple[Program, dict[str, Location]]


def in_files(
    data: st.DataObject, program: Program, events: dict[str, list[Event]], folder: Path
) -> Case:
    """Events in files that are cut anywhere; constants are in the program itself."""
    assume(sum(map(len, events.values())) > FEW)
    cuts = random.Random(data.draw(st.integers(0, 1000)))
    locations = written(program, events, folder, cuts)
    return program, {one.name: locations[one.name] for one in program.inputs if not one.values}


def of_calculus(data: st.DataObject, folder: Path) -> Case:
    program = data.draw(programs())
    return in_files(data, program, data.draw(inputs_for(program)), folder)


def of_cql(data: st.DataObject, folder: Path) -> Case:
    query = data.draw(st.one_of(cql.queries(), cql.queries_with_values()))
    program = queries.program_of(query)
    return in_files(data, program, queries.used(program, data.draw(cql.inputs())), folder)


def of_rules(data: st.DataObject, folder: Path) -> Case:
    checked = checked_or_none(data.draw(rules.rule_texts()))
    assume(checked is not None)
    assert checked is not None
    program = translated(checked).program
    return in_files(data, program, data.draw(rules.events_for(program)), folder)


def of_sheets(data: st.DataObject, folder: Path) -> Case:
    program = data.draw(st.one_of(sheets.sheets(), sheets.sheets_alone()))
    drawn = data.draw(sheets.tuples())
    return in_files(data, program, {name: drawn[name] for name in program.input_names}, folder)


def of_algebra(data: st.DataObject, folder: Path) -> Case:
    table = data.draw(algebra.tables())
    program = program_of(table=table, reduced=algebra.reductions(table), log=table.changelog())
    drawn = data.draw(algebra.events())
    events = {n: [Event(time, row) for time, row in drawn[n]] for n in program.input_names}
    return in_files(data, program, events, folder)


def of_streamit(data: st.DataObject, folder: Path) -> Case:
    program = data.draw(nets())
    return in_files(data, program, data.draw(net_inputs(program)), folder)


def of_sawzall(data: st.DataObject, folder: Path) -> Case:
    chance = random.Random(data.draw(st.integers(0, 1000)))
    lines = data.draw(scripts.LINES)
    assume(len(lines) > FEW)
    return scripts.case_of(data.draw(scripts.scripts()), lines, folder, chance)


def of_smile(data: st.DataObject, folder: Path) -> Case:
    seed = data.draw(st.integers(0, 10_000))
    assume(seed > FEW)
    program = smile.program_of(seed, 3)
    return in_files(data, program, smile.events_of(program, drawn_rows(seed)), folder)


def of_cube(data: st.DataObject, folder: Path) -> Case:
    program = cubes.program_of(data.draw(cubes.cubes()))
    return in_files(data, program, data.draw(cubes.sales()), folder)


LANGUAGES = {
    "calculus": of_calculus, "cql": of_cql, "rules": of_rules, "sheets": of_sheets,
    "algebra": of_algebra, "streamit": of_streamit, "sawzall": of_sawzall, "smile": of_smile,
    "cube": of_cube,
}  # fmt: skip


def agree_on(
    number: int, examples: int, case_of: Callable[[st.DataObject, Path], Case], session: Any,
    folders: pytest.TempPathFactory,
) -> None:  # fmt: skip
    # Shrinking runs Spark hundreds of times more; the failing program is printed anyway.
    @seeded(number, examples, phases=[Phase.generate])
    @given(st.data(), st.integers(0, 1000), st.booleans())
    def law(data: st.DataObject, seed: int, optimise: bool) -> None:
        program, locations = case_of(data, folders.mktemp("case"))
        agree_on_spark(session, program, locations, seed, optimise=optimise)

    law()


@pytest.mark.parametrize("language", in_turn([*LANGUAGES], 5))
def test_generated_programs_give_what_the_reference_gives(
    language: str, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agree_on(13, 2, LANGUAGES[language], spark, tmp_path_factory)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", [TODAY])
def test_programs_of_the_day_give_what_the_reference_gives(
    number: int, language: str, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agree_on(number, 1, LANGUAGES[language], spark, tmp_path_factory)


def test_every_language_has_generated_programs() -> None:
    """The calculus is what brook writes down, a pipe is another way to write a query."""
    assert {*languages()} - {"brook", "pipes"} == {*LANGUAGES} - {"calculus", "algebra"}


@pytest.mark.proof
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", campaign(100, 5))
def test_many_programs_give_what_the_reference_gives(
    number: int, language: str, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agree_on(number, 5, LANGUAGES[language], spark, tmp_path_factory)
