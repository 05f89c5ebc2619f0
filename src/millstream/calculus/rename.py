"""Terms with their names replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from millstream.calculus.terms import Call, Column, Term, VariableField


def rename_variables(term: Term, prefix: str) -> Term:
    """The term with `prefix.` before the name of every variable."""
    match term:
        case VariableField(variable):
            return replace(term, variable=f"{prefix}.{variable}")
        case Call(args=args):
            return replace(term, args=tuple(rename_variables(a, prefix) for a in args))
        case _:
            return term


def substitute(term: Term, columns: dict[str, Term]) -> Term:
    """The term with every column replaced by the term that computes it."""
    match term:
        case Column(name):
            return columns.get(name, term)
        case Call(args=args):
            return replace(term, args=tuple(substitute(a, columns) for a in args))
        case _:
            return term


def substitute_fields(term: Term, fields: Mapping[tuple[str, str], Term]) -> Term:
    """The term with fields of variables replaced by what they are set to."""
    match term:
        case VariableField(variable, field):
            return fields.get((variable, field), term)
        case Call(args=args):
            return replace(term, args=tuple(substitute_fields(a, fields) for a in args))
        case _:
            return term
