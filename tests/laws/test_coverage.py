"""The laws speak of what is generated, so everything that there is must be generated."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

import millstream.kernels
from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.functions import AGGREGATIONS, FUNCTIONS, Aggregate, Function
from millstream.calculus.graph import Program
from millstream.calculus.sheets import Sheet
from millstream.calculus.terms import Call, Term
from millstream.engine.local.run import plan_for
from millstream.kernels.rounds import StepRunner
from millstream.kernels.runtime.kernel import Kernel
from millstream.languages.sawzall.translate import ProgramSettings, translated
from millstream.languages.streamit.load import load
from millstream.plan.cube_parts import cubes_in_parts
from millstream.source import Source
from millstream.values.core.machine import MACHINE
from millstream.values.core.table import SCALARS
from tests.generate import programs
from tests.generate_nets import nets, nets_by_key
from tests.languages.streamit.generate import messaging_programs
from tests.laws.test_cubes import cubes, program_of
from tests.laws.test_scripts import scripts
from tests.seeds import seeded


def _script(written: tuple[str, ProgramSettings]) -> Program:
    return translated(Source("script.szl", written[0]), Path(), written[1], {}).program


def _net(written: tuple[str, object]) -> Program:
    return load(Source("net.str", written[0])).program


def _beside_a_server(cube: Cubify) -> Program:
    """A cube of which a server keeps more than the answers need."""
    return program_of(replace(cube, history=2, memory=1_000_000))


def _in_parts(cube: Cubify) -> Program:
    """A cube whose rows have no common place, as the plan lays it out."""
    whole = Vertex((), cube.grain)
    return cubes_in_parts(program_of(replace(cube, outputs=(*cube.outputs, whole), is_live=False)))


SETTINGS = st.sampled_from([
    ProgramSettings(timezone="Asia/Kolkata", every=5), ProgramSettings(window=7),
    ProgramSettings(prints_emits=True),
])  # fmt: skip
ALL_KINDS = programs()
#: Whatever laws are tried on: how many of each at a time, and how often at most. The first of
#: a time is always the simplest.
DRAWN_FROM: tuple[tuple[st.SearchStrategy[Program], int, int], ...] = (
    (ALL_KINDS, 8, 100),
    (nets(), 4, 5),
    (nets_by_key(), 4, 3),
    (messaging_programs().map(_net), 4, 5),
    (st.tuples(scripts(), SETTINGS).map(_script), 4, 5),
    (cubes().map(_beside_a_server), 4, 5),
    (cubes().map(_in_parts), 2, 1),
)
#: Of two filters in different branches, one of which waits for what the other may tell it; what a
#: project calls the input of a script, and tables that leave as rows (tests/languages).
OF_LANGUAGES = {("Work", "turns_given"), ("Work", "turns_taken"),
                ("RunScript", "input_name"), ("Tally", "lines")}  # fmt: skip
#: Only sheets that are too large for a loop are walked: `test_kernels` of sheets has them.
#: Scripts run on columns by a kernel that is made of the one for single records.
KERNELS_ELSEWHERE = {"SheetKernel", "WalkedRowsKernel", "RunScriptKernel"}


pytestmark = pytest.mark.slow


class Drawn:
    """Mutable: how often everything of the calculus was drawn."""

    def __init__(self) -> None:
        self.functions: Counter[str] = Counter()
        self.options: dict[tuple[str, str], set[object]] = {}
        self.aggregates: Counter[str] = Counter()
        self.scalars: Counter[str] = Counter()
        self.kernels: Counter[str] = Counter()

    def take(self, program: Program, *, is_built: bool) -> None:
        if is_built:
            self.kernels.update(type(k).__name__ for k in StepRunner(plan_for(program)).kernels)
        for operator in program.operators:
            self._function(operator.function)

    def _function(self, function: Function) -> None:
        self.functions[function.name] += 1
        for option in _options(type(function)):
            seen = self.options.setdefault((function.name, option), set())
            seen.add(getattr(function, option))
        for term in function.terms():
            self._term(term)
        if isinstance(function, Aggregate):
            self.aggregates.update(one.function for one in function.aggregations)

    def _term(self, term: Term) -> None:
        if isinstance(term, Call):
            self.scalars[term.function] += 1
            for arg in term.args:
                self._term(arg)


def kernels() -> set[str]:
    """Everything that can run a step."""
    modules = pkgutil.walk_packages(millstream.kernels.__path__, "millstream.kernels.")
    names: set[str] = set()
    for module in modules:
        members = vars(importlib.import_module(module.name)).values()
        classes = [m for m in members if inspect.isclass(m) and not inspect.isabstract(m)]
        classes = [c for c in classes if c is not Kernel]
        names |= {c.__name__ for c in classes if hasattr(c, "process") and hasattr(c, "snapshot")}
    return names


def _options(function: type[Function]) -> list[str]:
    """The fields that can be left out; those that are not compared only serve messages."""
    fields = dataclasses.fields(function)  # type: ignore[arg-type]
    return [f.name for f in fields if f.default is not dataclasses.MISSING and f.compare]


def draw(drawn: Drawn, number: int) -> None:
    """Few programs of many seeds have more variety than many of one, mostly variations."""
    for kind, count, times in DRAWN_FROM:
        if number < times:
            _draw_of(kind, count, drawn, number)


def _draw_of(kind: st.SearchStrategy[Program], count: int, drawn: Drawn, number: int) -> None:
    # To build nets means to compile them: of what is no program of all kinds the first will do.
    is_built = kind is ALL_KINDS or number == 0

    @seeded(number, count, phases=[Phase.generate])
    @given(kind)
    def take(program: Program) -> None:
        nonlocal is_built
        drawn.take(program, is_built=is_built)
        is_built = kind is ALL_KINDS

    take()


def missing(drawn: Drawn, all_kernels: set[str]) -> dict[str, Collection[object]]:
    """By kind, what was never drawn; of options those that were always or never left out."""
    seldom = {option for option, values in drawn.options.items() if len(values) < 2}
    by_kind: dict[str, Collection[object]] = {
        "functions": {*FUNCTIONS, Sheet.__name__} - set(drawn.functions),
        "options": seldom - OF_LANGUAGES,
        "aggregates": {*AGGREGATIONS} - set(drawn.aggregates),
        # Those that calculate like a machine are compared one by one in test_machine_scalars.
        "scalars": {*SCALARS} - {one.name for one in MACHINE} - set(drawn.scalars),
        "kernels": {*all_kernels} - KERNELS_ELSEWHERE - set(drawn.kernels),
    }
    return {kind: names for kind, names in by_kind.items() if names}


def test_everything_of_the_calculus_is_drawn_and_every_kernel_has_steps_to_run() -> None:
    drawn, all_kernels = Drawn(), kernels()
    for number in range(max(times for _, _, times in DRAWN_FROM)):
        draw(drawn, number)
        if not missing(drawn, all_kernels):
            break
    assert {} == missing(drawn, all_kernels)
