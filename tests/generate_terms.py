"""Generated terms: typed, over any schema, with values that are nasty."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from millstream.calculus.graph import Variable
from millstream.calculus.terms import NAN, Call, Column, Literal, Term, VariableField
from millstream.calculus.types import (
    BOOLEAN,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    NUMBER,
    TEXT,
    TYPES_BY_NAME,
    Field,
    Kind,
    Schema,
    Type,
    Value,
)
from millstream.values.core.scalar import Signature
from millstream.values.core.table import OF_ROWS

VALUES: dict[Kind, list[Value]] = {
    Kind.NUMBER: [0.0, 1.0, -1.0, 0.5, 2.25, 3.0, 1e16, -1e16, 1e300, NAN, float("inf"),
                  float("-inf"), 5e-324, 0.1],
    Kind.INTEGER: [0, 1, -1, 2, 3, 7, 2**53 + 1, INT64_MAX, INT64_MIN],
    Kind.TEXT: ["", "a", "b", "IBM", "ibm", "  x ", "ß", "12", "1.5", "true", "a%b", "\x00",
                "é\u0301"],
    Kind.BOOLEAN: [True, False],
    Kind.TIME: [0, 1, 1_000_000, 1_700_000_000_000_000, -1, 86_400_000_000],
    Kind.DURATION: [0, 1, 5, 1_000_000, -3, 60_000_000],
}  # fmt: skip


def values(type_: Type) -> st.SearchStrategy[Value]:
    return st.one_of(st.none(), st.sampled_from(VALUES[type_.kind]))


TYPES = list(TYPES_BY_NAME.values())


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    count = draw(st.integers(1, 4))
    return Schema(tuple(Field(f"c{n}", draw(st.sampled_from(TYPES))) for n in range(count)))


@st.composite
def terms(
    draw: st.DrawFn,
    schema: Schema,
    type_: Type,
    depth: int = 2,
    variables: tuple[Variable, ...] = (),
    favourite: str = "",
) -> Term:
    """A term of a type over a schema, by choosing a function whose result fits.

    A favourite is chosen every other time that it fits, so that none is rare everywhere.
    """
    leaves: list[Term] = [Column(f.name, f.type) for f in schema if f.type == type_]
    leaves += [
        VariableField(v.name, f.name, f.type)
        for v in variables
        for f in v.fields
        if f.type == type_
    ]
    literal = Literal(draw(values(type_)), type_)
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from([*leaves, *leaves, literal]))
    function = draw(st.sampled_from(sorted(RESULTS[type_])))
    if favourite in RESULTS[type_] and draw(st.booleans()):
        function = favourite
    params = draw(st.sampled_from(RESULTS[type_][function]))
    args = tuple(draw(terms(schema, p, depth - 1, variables, favourite)) for p in params)
    call = Call(function, args, type_)
    # The checker makes literals of these, so no parsed program has them.
    if function in ("neg", "time") and isinstance(args[0], Literal):
        return args[0] if args[0].type == type_ else literal
    return call


def _results() -> dict[Type, dict[str, list[tuple[Type, ...]]]]:
    results: dict[Type, dict[str, list[tuple[Type, ...]]]] = {t: {} for t in TYPES}
    for scalar in OF_ROWS.values():
        for arity in (1, 2, 3):
            for params in itertools.product(TYPES, repeat=arity):
                answer = scalar.rule(params)
                if isinstance(answer, Signature) and answer.params == params:
                    results[answer.result].setdefault(scalar.name, []).append(params)
    return results


#: For every type the functions that give it, with the types of their parameters.
RESULTS = _results()


# --- conditions of requirements ---------------------------------------------------------


@st.composite
def plain_conditions(draw: st.DrawFn, schema: Schema, depth: int = 2) -> Term:
    """What rules ask of numbers, texts and truths: comparisons, arithmetic and logic."""
    if depth and draw(st.booleans()):
        function = draw(st.sampled_from(["and", "or", "not"]))
        count = 1 if function == "not" else 2
        parts = tuple(draw(plain_conditions(schema, depth - 1)) for _ in range(count))
        return Call(function, parts, BOOLEAN)
    truths: list[Term] = [Column(f.name, f.type) for f in schema if f.type == BOOLEAN]
    if truths and draw(st.integers(0, 1)) == 1:
        return draw(st.sampled_from(truths))
    kind = draw(st.sampled_from([NUMBER, NUMBER, TEXT]))
    if draw(st.integers(0, 3)) == 0:
        return Call("is_null", (draw(_plain(schema, kind)),), BOOLEAN)
    # Texts are seldom ordered, which the machine for requirements leaves to the reference.
    equality = ["==", "!="] if kind == NUMBER else ["==", "!="] * 8
    function = draw(st.sampled_from([*equality, "<", "<=", ">", ">="]))
    return Call(function, (draw(_plain(schema, kind)), draw(_plain(schema, kind))), BOOLEAN)


@st.composite
def _plain(draw: st.DrawFn, schema: Schema, type_: Type, depth: int = 1) -> Term:
    leaves: list[Term] = [Column(f.name, f.type) for f in schema if f.type == type_]
    if type_ == NUMBER:
        leaves += [
            Call("number", (Column(f.name, f.type),), NUMBER) for f in schema if f.type == INTEGER
        ]
    leaves.append(Literal(draw(values(type_)), type_))
    if type_ == TEXT or not depth or draw(st.booleans()):
        return draw(st.sampled_from(leaves))
    function = draw(st.sampled_from(["+", "-", "*", "/", "abs", "neg"]))
    count = 1 if function in ("abs", "neg") else 2
    args = tuple(draw(_plain(schema, type_, depth - 1)) for _ in range(count))
    if function == "neg" and isinstance(args[0], Literal):
        return args[0]
    return Call(function, args, type_)
