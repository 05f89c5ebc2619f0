"""UNION, EXCEPT and INTERSECT."""

from __future__ import annotations

from dataclasses import dataclass, replace

from millstream.calculus.functions import Assign, Distinct, Except, Map, Merge
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import INTEGER, NUMBER, Field
from millstream.errors import Fault
from millstream.queries.ast import Combined
from millstream.queries.build import Builder, Flow
from millstream.queries.tokens import stop


@dataclass
class SetOperation:
    """Mutable: one set operation on its way to operators."""

    builder: Builder
    prefix: str
    faults: list[Fault]
    query: Combined

    def combined(self, left: Flow, right: Flow) -> Flow:
        left, right = self._alike(left, right)
        span = self.query.span
        match self.query.kind:
            case "union":
                name = f"{self.prefix}_union"
                flow = self._once(self.builder.add(Merge(), left, right, name=name, span=span))
            case "except":
                flow = self._without(self._once(left), right, is_monotone=False)
            case "intersect":
                grows = left.is_monotone and right.is_monotone
                left = self._once(left)
                rest = self._without(left, right, is_monotone=False)
                flow = self._without(left, rest, is_monotone=grows)
        return replace(flow, untyped=left.untyped & right.untyped)

    def _once(self, flow: Flow) -> Flow:
        """Each row once, unless duplicates count."""
        if self.query.keeps_duplicates:
            return flow
        name = f"{self.prefix}_distinct"
        return self.builder.add(Distinct(), flow, name=name, span=self.query.span)

    def _without(self, flow: Flow, taken: Flow, *, is_monotone: bool) -> Flow:
        name, span = f"{self.prefix}_{self.query.kind}", self.query.span
        return self.builder.add(
            Except(), flow, taken, name=name, span=span, is_monotone=is_monotone
        )

    def _alike(self, left: Flow, right: Flow) -> tuple[Flow, Flow]:
        """Both sides with the names of the left and with one type for each column.

        A column of nothing but NULL has the type of the one that it meets.
        """
        if len(left.schema) != len(right.schema):
            message = (
                f"both sides of {self.query.kind.upper()} must have as many columns: "
                f"{len(left.schema)} and {len(right.schema)}"
            )
            stop(self.faults, message, self.query.span)
        sides: tuple[list[Assign], list[Assign]] = ([], [])
        terms: tuple[Term, Term]
        for one, other in zip(left.schema, right.schema, strict=True):
            if one.name in left.untyped:
                terms = (Literal(None, other.type), Column(other.name, other.type))
            elif other.name in right.untyped:
                terms = (Column(one.name, one.type), Literal(None, one.type))
            else:
                terms = self._terms(one, other)
            for side, term in zip(sides, terms, strict=True):
                side.append(Assign(one.name, term))
        names = dict(zip(right.schema.names, left.schema.names, strict=True))
        turned = frozenset(names[n] for n in right.untyped)
        return (
            replace(self._mapped(left, sides[0]), untyped=left.untyped),
            replace(self._mapped(right, sides[1]), untyped=turned),
        )

    def _terms(self, one: Field, other: Field) -> tuple[Term, Term]:
        """A column of both sides with one type."""
        if one.type != other.type and {one.type, other.type} != {INTEGER, NUMBER}:
            message = (
                f'"{one.name}" on the left of {self.query.kind.upper()} is of type {one.type}, '
                f'but "{other.name}" on the right of type {other.type}'
            )
            stop(self.faults, message, self.query.span)
        columns: list[Term] = [Column(one.name, one.type), Column(other.name, other.type)]
        if one.type != other.type:
            columns = [Call("number", (c,), NUMBER) if c.type == INTEGER else c for c in columns]
        return columns[0], columns[1]

    def _mapped(self, flow: Flow, columns: list[Assign]) -> Flow:
        if columns == [Assign(f.name, Column(f.name, f.type)) for f in flow.schema]:
            return flow
        name = f"{self.prefix}_columns"
        return self.builder.add(Map(tuple(columns)), flow, name=name, span=self.query.span)
