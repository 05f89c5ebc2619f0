"""What a program keeps is told of every function, and told truly."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest

import millstream.calculus
from millstream.calculus.each import PerKey
from millstream.calculus.functions import (
    FUNCTIONS,
    Function,
    OpaqueFold,
    RoundRobinJoin,
    RoundRobinSplit,
)
from millstream.calculus.sheets import Sheet
from millstream.calculus.types import NUMBER, TEXT, Field, Schema
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from millstream.plan.sizes import Growth, Size, size_of
from millstream.plan.state_kept import kept_by
from tests.languages.sheets.books import workbook

SCHEMA = Schema((Field("k", TEXT), Field("v", NUMBER)))


def functions() -> set[type[Function]]:
    """Every function that the calculus has."""
    modules = pkgutil.walk_packages(millstream.calculus.__path__, "millstream.calculus.")
    members = [m for one in modules for m in vars(importlib.import_module(one.name)).values()]
    classes = [m for m in members if isinstance(m, type) and issubclass(m, Function)]
    return {c for c in classes if hasattr(c, "__dataclass_fields__")}


def test_every_function_of_the_calculus_is_described() -> None:
    every = functions()
    assert {*FUNCTIONS.values(), PerKey, Sheet} == every
    assert set() == every - set(kept_by.registry)
    assert set() == every - set(size_of.registry)


def sheet(cells: dict[str, Any], *, has_key: bool = False) -> Sheet:
    """A sheet whose A1 and B1 are fed, and whose C1 is shown."""
    fed = (Binding("k", "A1"), Binding("v", "B1"))
    inputs = (InputBinding("S", fed, "k" if has_key else None, columns=SCHEMA),)
    outputs = (OutputBinding("out", (Binding("c", "C1"),)),)
    function = translate_workbook(workbook(cells), Bindings(inputs, outputs)).operators[0].function
    assert isinstance(function, Sheet)
    return function


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"C1": "=B1*2"}, None),
        ({"C1": "=LEN(A1)+D1", "D1": "=B1*2"}, None),
        ({"C1": "=SELECT(B1,B1>2)"}, None),
        ({"C1": "=D1+1", "D1": "=SELECT(B1,B1>2)"}, None),
        (
            {"C1": "=SUM(WINDOW(B1,5,B1))"},
            "the values of the last 5 s of S!B1",
        ),
        ({"C1": "=SUM(WINDOWROWS(B1,5,B1))"}, "the last 5 values of S!B1"),
        ({"C1": "=B1+PRE(C1,B1,0)"}, "the last value of S!C1"),
        # What was selected is read when nothing is selected.
        ({"C1": "=B1+D1", "D1": "=SELECT(B1,B1>2)"}, "the last value of S!D1"),
    ],
)
def test_of_a_sheet_the_cells_are_told_that_it_looks_back_to(
    cells: dict[str, Any], words: str | None
) -> None:
    plain, keyed = kept_by(sheet(cells), ()), kept_by(sheet(cells, has_key=True), ())
    if words is None:
        assert (None, None) == (plain, keyed)
        return
    assert Size(words) == plain
    assert Size(f"{words} for each k", Growth.BY_KEYS) == keyed


def test_functions_that_count_or_remember_say_so() -> None:
    both = (Size("A"), Size("B"))
    fold = OpaqueFold("add", ("k",), SCHEMA, (), lambda state, row: (state, row))
    assert Size("what of A and B waits for its turn", Growth.UNBOUNDED) == kept_by(
        RoundRobinJoin(), both
    )
    assert Size("whose turn it is") == kept_by(RoundRobinSplit(), both[:1])
    assert Size("what add remembers for each k", Growth.BY_KEYS) == kept_by(fold, both[:1])
