"""`IN` and `EXISTS`: the outer rows learn, as a boolean column, what the subquery says.

A subquery that reads columns of the outer query is tied to it by equations, which
become the keys of a lookup. Any other condition between the two makes the outer rows
look for themselves among the pairs of a join.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from millstream.calculus import syntax
from millstream.calculus.functions import Distinct, Filter, Join, Lookup
from millstream.calculus.terms import (
    Call,
    Column,
    Literal,
    Term,
    all_of,
    columns_read,
    is_known,
    is_null,
)
from millstream.calculus.types import BOOLEAN, Type
from millstream.queries.build import Builder, Flow
from millstream.queries.joins import with_columns
from millstream.source import Span


@dataclass(frozen=True, slots=True)
class Inner:
    """A subquery: its rows, the value that IN compares, and what ties it to the outside.

    If its rows are those for certain values around, `keys` are the columns of these, which are
    marked in its rows. A value that is nothing but NULL `is_untyped`.
    """

    flow: Flow
    value: Term | None
    ties: tuple[Term, ...] = ()
    keys: tuple[str, ...] = ()
    is_untyped: bool = False
    #: The values after the first, if several are compared.
    others: tuple[Term, ...] = ()

    @property
    def values(self) -> tuple[Term, ...]:
        return () if self.value is None else (self.value, *self.others)

    def typed(self, wanted: Type) -> Inner:
        """NULL has the type of what it is compared with."""
        return replace(self, value=Literal(None, wanted)) if self.is_untyped else self

    def equations(self, flow: Flow) -> tuple[list[Term], list[Term], list[Term]]:
        """Terms over an outer flow and over the rows that must be equal, and the other ties."""
        if self.keys:
            outside = [Column(n, flow.schema[n]) for n in self.keys]
            return list(outside), [Column(MARK + c.name, c.type) for c in outside], []
        outside_, inside, residual = split_ties(self.ties, frozenset(self.flow.schema.names))
        return [unmarked(t) for t in outside_], inside, residual


@dataclass(frozen=True, slots=True)
class Operand:
    """What stands before IN, as a term and as it is written."""

    term: Term
    written: syntax.Expression


def split_ties(
    ties: Iterable[Term], own: frozenset[str]
) -> tuple[list[Term], list[Term], list[Term]]:
    """Ties as marked outer terms and inner terms that must be equal, and the other ties.

    `own` are the columns of the inner rows.
    """
    outside: list[Term] = []
    inside: list[Term] = []
    residual: list[Term] = []
    for tie in ties:
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


@dataclass
class Lookups:
    """Mutable: adds one boolean column per question to a flow."""

    builder: Builder
    prefix: str

    def ask(
        self,
        flow: Flow,
        inner: Inner,
        asked: Sequence[tuple[Operand, Term]],
        span: Span,
        *,
        only_truth: bool,
    ) -> tuple[Flow, syntax.Expression]:
        """The flow with answers, and what to write for what the subquery says.

        `asked` are operands with the values that they must equal; none, if any row will do.
        With `only_truth` nobody cares whether an answer that is not true is false or null.
        """
        outside, inside, residual = inner.equations(flow)
        ties = list(zip(outside, inside, strict=True))
        rows = inner.flow
        if not asked:
            return self._look(flow, inner, rows, ties, residual, span)
        if inner.keys:  # these may be null, but null is in no list
            known = all_of([is_known(value) for _, value in asked])
            assert known is not None
            name = f"{self.prefix}_known"
            rows = self.builder.add(Filter(known), rows, name=name, span=span)
        compared = [*ties, *((operand.term, value) for operand, value in asked)]
        flow, is_in = self._look(flow, inner, rows, compared, residual, span)
        if only_truth:
            return flow, is_in
        if len(asked) > 1:
            # A row is unknown if no part of it differs; none of these parts is true for sure.
            alike = [*residual, *(_may_equal(operand.term, value) for operand, value in asked)]
            flow, may_be = self._look(flow, inner, inner.flow, ties, alike, span)
            return flow, _unless(is_in, may_be, span)
        ((operand, value),) = asked
        name = f"{self.prefix}_nulls"
        nulls = self.builder.add(Filter(is_null(value)), inner.flow, name=name, span=span)
        flow, has_any = self._look(flow, inner, inner.flow, ties, residual, span)
        flow, has_null = self._look(flow, inner, nulls, ties, residual, span)
        return flow, _with_nulls(is_in, operand.written, has_any, has_null, span)

    def _look(
        self,
        flow: Flow,
        asked: Inner,
        rows: Flow,
        keys: Sequence[tuple[Term, Term]],
        residual: Sequence[Term],
        span: Span,
    ) -> tuple[Flow, syntax.Expression]:
        original = flow.schema.names
        flow, ours = with_columns(self.builder, flow, [a for a, _ in keys], self.prefix, span)
        rows, theirs = with_columns(self.builder, rows, [b for _, b in keys], self.prefix, span)
        answer = self.builder.hidden("found")
        pairs = list(zip(ours, theirs, strict=True))
        if residual:
            rows, pairs = self._pairs(flow, rows, pairs, residual, span)
        else:
            # Only the keys are needed, and each of them once.
            needed = dict(zip(theirs, theirs, strict=True)) or {n: n for n in rows.schema.names}
            rows = self.builder.columns(rows, needed, f"{self.prefix}_inner", span)
        # True as far as only rows with a true answer are looked at.
        is_monotone = flow.is_monotone and rows.is_monotone
        function = Lookup(
            answer, tuple(dict.fromkeys(pairs)), nulls_match=bool(residual or asked.keys)
        )
        looked = self.builder.add(
            function, flow, rows, name=f"{self.prefix}_lookup", span=span, is_monotone=is_monotone
        )
        kept = {n: n for n in (*original, answer)}
        return (
            self.builder.columns(looked, kept, f"{self.prefix}_answered", span),
            syntax.Name(answer, span),
        )

    def _pairs(
        self,
        flow: Flow,
        rows: Flow,
        keys: list[tuple[str, str]],
        residual: Sequence[Term],
        span: Span,
    ) -> tuple[Flow, list[tuple[str, str]]]:
        """The values of outer rows that have a partner in the subquery, each once."""
        read = frozenset().union(*(columns_read(t) for t in residual))
        ours = [a for a, _ in keys]
        needed = [n for n in flow.schema.names if n in ours or MARK + n in read]
        marked = self.builder.columns(
            flow, {MARK + n: n for n in needed}, f"{self.prefix}_outer", span
        )
        once = self.builder.add(Distinct(), marked, name=f"{self.prefix}_outer", span=span)
        on = tuple((MARK + a, b) for a, b in keys)
        joined = self.builder.add(
            Join(on, all_of(residual)), once, rows, name=f"{self.prefix}_pairs", span=span
        )
        own = self.builder.columns(
            joined, {n: MARK + n for n in needed}, f"{self.prefix}_matched", span
        )
        matched = self.builder.add(Distinct(), own, name=f"{self.prefix}_matched", span=span)
        return matched, [(n, n) for n in needed]


def _with_nulls(
    is_in: syntax.Expression,
    operand: syntax.Expression,
    has_any: syntax.Expression,
    has_null: syntax.Expression,
    span: Span,
) -> syntax.Expression:
    """`x IN q` is null, not false, if x is null and q is not empty, or q has a null."""

    def apply(function: str, *args: syntax.Expression) -> syntax.Expression:
        return syntax.Apply(function, args, span)

    is_unknown = apply("or", has_null, apply("and", apply("is_null", operand), has_any))
    return _unless(is_in, is_unknown, span)


def _unless(
    is_found: syntax.Expression, is_unknown: syntax.Expression, span: Span
) -> syntax.Expression:
    """True if it is found, null if that is unknown, else false."""
    null, false, true = (syntax.Constant(v, BOOLEAN, span) for v in (None, False, True))
    unknown = syntax.Apply("if", (is_unknown, null, false), span)
    return syntax.Apply("if", (is_found, true, unknown), span)


def _may_equal(outside: Term, inside: Term) -> Term:
    """Whether two values are not known to differ, over outer columns that are marked."""
    equal = Call("==", (_marked(outside), inside), BOOLEAN)
    return Call("coalesce", (equal, Literal(True, BOOLEAN)), BOOLEAN)


def _marked(term: Term) -> Term:
    """The term over marked columns of the outer query."""
    match term:
        case Column(name, type_, span):
            return Column(MARK + name, type_, span)
        case Call(function, args, type_, span):
            return Call(function, tuple(map(_marked, args)), type_, span)
        case _:
            return term


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
