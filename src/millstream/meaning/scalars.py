"""The value of a term, on Python values, one row at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

from millstream.calculus.terms import Call, Column, Literal, Read, Term, VariableField, canonical
from millstream.calculus.text import render_term
from millstream.calculus.types import INT64_MAX, INT64_MIN, Kind, Type, Value
from millstream.values.core.scalar import ScalarFault
from millstream.values.core.table import SCALARS

Names = Mapping[str, Value]


def evaluate(
    term: Term,
    columns: Names,
    variables: Mapping[str, Names] | None = None,
    faults: Counter[str] | None = None,
) -> Value:
    """The value of a term on one row."""
    match term:
        case Literal(value):
            return value
        case Column(name):
            return columns[name]
        case VariableField(variable, field):
            assert variables is not None
            return variables[variable][field]
        case Read():
            raise AssertionError("only procedures read places")
        case Call(function, args):
            scalar = SCALARS[function]
            given = [partial(evaluate, a, columns, variables, faults) for a in args]
            if scalar.sees_nulls:
                chosen: Value = scalar.meaning(*given)
                return chosen
            values = [compute() for compute in given]
            if any(v is None for v in values):
                return None
            kinds = ([a.type.kind for a in args],) if scalar.sees_kinds else ()
            try:
                return _fitted(scalar.meaning(*kinds, *values), term.type)
            except ScalarFault as fault:
                if faults is not None:
                    faults[f"{fault} in {render_term(term)}"] += 1
                return None


def _fitted(value: Any, type_: Type) -> Value:
    if type_.kind in (Kind.INTEGER, Kind.TIME, Kind.DURATION):
        if not INT64_MIN <= value <= INT64_MAX:
            raise ScalarFault(f"{type_} overflow")
        return int(value)
    return canonical(value)
