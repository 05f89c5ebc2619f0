"""Columns that stay, are null, or tell whether something is so."""

from __future__ import annotations

from millstream.calculus.functions import Assign, Columns
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, Schema


def kept(schema: Schema) -> Columns:
    return tuple(Assign(f.name, Column(f.name, f.type)) for f in schema)


def nothing(schema: Schema) -> Columns:
    return tuple(Assign(f.name, Literal(None, f.type)) for f in schema)


def is_true(name: str) -> Term:
    """A boolean column, with null for false."""
    return Call("coalesce", (Column(name, BOOLEAN), Literal(False, BOOLEAN)), BOOLEAN)


def unlike(name: str, schema: Schema) -> str:
    """A name that a schema does not have."""
    while name in schema:
        name += "_"
    return name


def flag(name: str, *, value: bool) -> Assign:
    return Assign(name, Literal(value, BOOLEAN))
