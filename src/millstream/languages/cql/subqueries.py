"""`IN` and `EXISTS`: the outer rows learn, as a boolean column, what the subquery says.

A subquery that reads columns of the outer query is tied to it by equations, which
become the keys of a lookup. Any other condition between the two makes the outer rows
look for themselves among the pairs of a join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millstream.calculus import syntax
from millstream.calculus.functions import Distinct, Filter, Join, Lookup
from millstream.calculus.terms import Call, Column, Term, columns_read
from millstream.calculus.types import BOOLEAN
from millstream.languages.cql.ast import Expression, Reference
from millstream.languages.cql.build import Builder, Flow
from millstream.languages.cql.joins import with_columns
from millstream.languages.cql.scope import Names, Seen, Visible
from millstream.languages.cql.terms import all_of, walk
from millstream.source import Span


@dataclass(frozen=True, slots=True)
class Inner:
    """A subquery: its rows, the value that IN compares, and what ties it to the outside."""

    flow: Flow
    value: Term | None
    ties: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """What stands before IN, as a term and as it is written."""

    term: Term
    written: syntax.Expression


def split_ties(inner: Inner) -> tuple[list[Term], list[Term], list[Term]]:
    """Ties as marked outer terms and inner terms that must be equal, and the other ties."""
    outside: list[Term] = []
    inside: list[Term] = []
    residual: list[Term] = []
    own = frozenset(inner.flow.schema.names)
    for tie in inner.ties:
        sides = tie.args if isinstance(tie, Call) and tie.function == "==" else ()
        reads = [columns_read(s) for s in sides]
        is_equation = len(sides) == 2 and all(reads)
        if is_equation and reads[0] <= own and not reads[1] & own:
            inside.append(sides[0])
            outside.append(sides[1])
        elif is_equation and reads[1] <= own and not reads[0] & own:
            inside.append(sides[1])
            outside.append(sides[0])
        else:
            residual.append(tie)
    return outside, inside, residual


def is_correlated(expression: Expression, inner: Names, outer: Names) -> bool:
    """Whether a condition reads a column that only the outer query has."""
    references = [e for e in walk(expression) if isinstance(e, Reference)]
    return any(not inner.knows(r) and outer.knows(r) for r in references)


def both(inner: Names, outer: Names, mark: str) -> Names:
    """Names of the inner query first; columns of the outer one are marked on the queue."""
    hidden = tuple(
        Visible(s.name, tuple(Seen(c.name, mark + c.column, c.type) for c in s.columns))
        for s in outer.sources
        if all(s.name != one.name for one in inner.sources)
    )
    return Names((*inner.sources, *hidden))


@dataclass
class Lookups:
    """Mutable: adds one boolean column per question to a flow."""

    builder: Builder
    prefix: str

    def ask(
        self, flow: Flow, inner: Inner, operand: Operand | None, span: Span, *, only_truth: bool
    ) -> tuple[Flow, syntax.Expression]:
        """The flow with answers, and what to write for what the subquery says.

        With `only_truth` nobody cares whether an answer that is not true is false or null.
        """
        outside, inside, residual = split_ties(inner)
        ties = [(unmarked(a), b) for a, b in zip(outside, inside, strict=True)]
        compared: list[tuple[Term, Term]] = []
        if operand is not None and inner.value is not None:
            compared.append((operand.term, inner.value))
        flow, found = self._look(flow, inner.flow, [*ties, *compared], residual, span)
        if operand is None or inner.value is None or only_truth:
            return flow, found
        nulls = self.builder.add(
            Filter(Call("is_null", (inner.value,), BOOLEAN)), inner.flow,
            name=f"{self.prefix}_nulls", span=span,
        )  # fmt: skip
        flow, has_any = self._look(flow, inner.flow, ties, residual, span)
        flow, has_null = self._look(flow, nulls, ties, residual, span)
        return flow, _with_nulls(found, operand.written, has_any, has_null, span)

    def _look(
        self,
        flow: Flow,
        inner: Flow,
        keys: Sequence[tuple[Term, Term]],
        residual: Sequence[Term],
        span: Span,
    ) -> tuple[Flow, syntax.Expression]:
        original = flow.schema.names
        flow, ours = with_columns(self.builder, flow, [a for a, _ in keys], self.prefix, span)
        inner, theirs = with_columns(self.builder, inner, [b for _, b in keys], self.prefix, span)
        answer = self.builder.hidden("found")
        if residual:
            inner = self._pairs(flow, inner, list(zip(ours, theirs, strict=True)), residual, span)
            on = tuple((n, n) for n in flow.schema.names)
        else:
            # Only the keys are needed, and each of them once.
            inner = self.builder.columns(
                inner, dict(zip(theirs, theirs, strict=True)) or {n: n for n in inner.schema.names},
                f"{self.prefix}_inner", span,
            )  # fmt: skip
            on = tuple(zip(ours, theirs, strict=True))
        # True as far as only rows with a true answer are looked at.
        is_monotone = flow.is_monotone and inner.is_monotone
        looked = self.builder.add(
            Lookup(answer, tuple(dict.fromkeys(on)), nulls_match=bool(residual)), flow, inner,
            name=f"{self.prefix}_lookup", span=span, is_monotone=is_monotone,
        )  # fmt: skip
        kept = {n: n for n in (*original, answer)}
        return (
            self.builder.columns(looked, kept, f"{self.prefix}_answered", span),
            syntax.Name(answer, span),
        )

    def _pairs(
        self,
        flow: Flow,
        inner: Flow,
        keys: list[tuple[str, str]],
        residual: Sequence[Term],
        span: Span,
    ) -> Flow:
        """The outer rows that have a partner in the subquery, each once."""
        marked = self.builder.columns(
            flow, {MARK + n: n for n in flow.schema.names}, f"{self.prefix}_outer", span
        )
        on = tuple((MARK + a, b) for a, b in keys)
        joined = self.builder.add(
            Join(on, all_of(residual)), marked, inner, name=f"{self.prefix}_pairs", span=span
        )
        own = self.builder.columns(
            joined, {n: MARK + n for n in flow.schema.names}, f"{self.prefix}_matched", span
        )
        return self.builder.add(Distinct(), own, name=f"{self.prefix}_matched", span=span)


def _with_nulls(
    found: syntax.Expression,
    operand: syntax.Expression,
    has_any: syntax.Expression,
    has_null: syntax.Expression,
    span: Span,
) -> syntax.Expression:
    """`x IN q` is null, not false, if x is null and q is not empty, or q has a null."""

    def apply(function: str, *args: syntax.Expression) -> syntax.Expression:
        return syntax.Apply(function, args, span)

    null, false, true = (syntax.Constant(v, BOOLEAN, span) for v in (None, False, True))
    is_unknown = apply("or", has_null, apply("and", apply("is_null", operand), has_any))
    return apply("if", found, true, apply("if", is_unknown, null, false))


#: Put before columns of the outer query where they meet those of the inner one.
MARK = "outer."


def unmarked(term: Term) -> Term:
    """The term over the columns of the outer query as they are called there."""
    match term:
        case Column(name, type_, span):
            return Column(name.removeprefix(MARK), type_, span)
        case Call(function, args, type_, span):
            return Call(function, tuple(unmarked(a) for a in args), type_, span)
        case _:
            return term
