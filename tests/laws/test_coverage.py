"""The laws speak of what is generated, so everything that there is must be generated."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import millstream.kernels
from millstream.calculus.functions import AGGREGATIONS, FUNCTIONS, Aggregate, Function
from millstream.calculus.graph import Program
from millstream.calculus.sheets import Sheet
from millstream.calculus.terms import Call, Term
from millstream.engine.local.run import plan_for
from millstream.kernels.rounds import StepRunner
from millstream.kernels.runtime.kernel import Kernel
from millstream.values.core.table import SCALARS
from tests.generate import programs

#: Few programs of many seeds have more variety than many of one.
SEEDS = range(40)
PROGRAMS = 30


pytestmark = pytest.mark.slow


class Drawn:
    """Mutable: how often everything of the calculus was drawn."""

    def __init__(self) -> None:
        self.functions: Counter[str] = Counter()
        self.options: dict[tuple[str, str], set[object]] = {}
        self.aggregates: Counter[str] = Counter()
        self.scalars: Counter[str] = Counter()
        self.kernels: Counter[str] = Counter()

    def take(self, program: Program) -> None:
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
    """The fields that can be left out."""
    fields = dataclasses.fields(function)  # type: ignore[arg-type]
    return [f.name for f in fields if f.default is not dataclasses.MISSING]


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    found = Drawn()

    def draw(number: int) -> None:
        @seed(number)
        @settings(max_examples=PROGRAMS, deadline=None, database=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(programs())
        def take(program: Program) -> None:
            found.take(program)

        take()

    for number in SEEDS:
        draw(number)
    return found


def test_every_function_of_the_calculus_is_drawn(drawn: Drawn) -> None:
    assert set() == {*FUNCTIONS, Sheet.__name__} - set(drawn.functions)


def test_every_option_of_a_function_is_drawn_and_left_out(drawn: Drawn) -> None:
    assert [] == [option for option, values in drawn.options.items() if len(values) < 2]


def test_every_aggregate_is_drawn(drawn: Drawn) -> None:
    assert set() == set(AGGREGATIONS) - set(drawn.aggregates)


def test_every_scalar_is_drawn(drawn: Drawn) -> None:
    assert set() == set(SCALARS) - set(drawn.scalars)


def test_every_kernel_has_steps_to_run(drawn: Drawn) -> None:
    assert set() == kernels() - set(drawn.kernels)
