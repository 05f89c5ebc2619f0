"""Subqueries that read the query around them: what they read, and the rows that need it.

A condition that compares both is a tie, and ties are enough for most. What is deeper, in a
subquery of the subquery, inside an aggregate or beside GROUP BY, is worked out for every
combination of the values that are read: these are joined to the rows of the subquery first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millstream.calculus.functions import Distinct, Join
from millstream.calculus.terms import Term, all_of, columns_read
from millstream.calculus.types import BOOLEAN, Field, Schema, folded_name
from millstream.queries import ast
from millstream.queries.build import Builder, Flow
from millstream.queries.joins import as_where, with_columns
from millstream.queries.scope import Names
from millstream.queries.subqueries import MARK, split_ties
from millstream.queries.terms import asks, conjuncts, term_of
from millstream.queries.tokens import stop
from millstream.source import Span

if TYPE_CHECKING:
    from millstream.queries.select import SelectTranslator
    from millstream.queries.translate import Translator


@dataclass(frozen=True, slots=True)
class Tied:
    """The joined and selected sources of a subquery with the names it sees, and its ties.

    If the query around is read deeper than in ties, `keys` are the columns of it that are
    read, which the rows of the subquery have too, marked.
    """

    flow: Flow
    names: Names
    ties: tuple[Term, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def marked(self) -> tuple[str, ...]:
        return tuple(MARK + key for key in self.keys)


@dataclass(frozen=True, slots=True)
class Correlation:
    """Ties the FROM and WHERE of a subquery to the query around it: its rows and its names."""

    inside: SelectTranslator
    flow: Flow
    names: Names

    def tied(self, others: Iterable[ast.Expression], *, is_grouped: bool = False) -> Tied:
        """`others` are expressions that are worked out on the rows of the subquery, or groups."""
        inside, query = self.inside, self.inside.query
        given = inside.translator.parts(query, inside.prefix)
        seen = Names(tuple(p.visible for p in given))
        parts, where = as_where(given, conjuncts(query.where), lambda c: bool(self.read(c, seen)))
        tying = [c for c in where if self.read(c, seen)]
        rows, names = inside.selected(parts, [c for c in where if c not in tying])
        kept = frozenset(self.flow.schema.names)
        names = replace(names, outer=self.names.marked(MARK, kept))
        schema = self.schema(rows)
        ties = tuple(
            term_of(c, names, schema, inside.faults, wanted=BOOLEAN) for c in tying if not asks(c)
        )
        deep = [c for c in tying if asks(c)]
        read = frozenset[str]().union(*(self.read(e, seen) for e in (*deep, *others)))
        if not read & kept and not deep and not (ties and is_grouped):
            return Tied(rows, names, ties)
        keys = tuple(n for n in self.flow.schema.names if n in read or _reads(ties, MARK + n))
        flow = dependent(inside.builder, inside.prefix, query.span, self.flow, rows, ties, keys)
        return Tied(inside.kept(flow, names, deep), names, (), keys)

    def schema(self, rows: Flow) -> Schema:
        """The columns of the subquery and those around it, marked."""
        marked = tuple(Field(MARK + f.name, f.type) for f in self.flow.schema)
        return Schema(tuple(dict.fromkeys((*rows.schema.fields, *marked))))

    def read(self, asked: ast.Expression | ast.Query, seen: Names) -> frozenset[str]:
        """The columns around that an expression reads, also in subqueries of its own."""
        return frozenset(
            around.column
            for reference in free_references(asked, self.inside.translator)
            if not seen.knows(reference)
            and (reference.owner is None or seen.source(reference.owner) is None)
            for _, around in self.names.candidates(reference)
        )

    def check_totals(self, totals: Iterable[ast.Total], names: Names) -> None:
        """An aggregate of nothing but columns around would be one of the query around."""
        seen = replace(names, outer=None)
        for total in totals:
            asked = free_references(total, self.inside.translator)
            known = [seen.knows(r) for r in asked if self.names.knows(r) or seen.knows(r)]
            if known and not any(known):
                message = "this aggregate reads the query around it only, and would be of that one"
                hint = "read a column of the subquery too, or aggregate in a view"
                stop(self.inside.faults, message, total.span, hint)

    def is_correlated(self) -> bool:
        return bool(self.read(self.inside.query, Names()))


def _reads(terms: Iterable[Term], column: str) -> bool:
    return any(column in columns_read(t) for t in terms)


def dependent(
    builder: Builder,
    prefix: str,
    span: Span,
    flow: Flow,
    rows: Flow,
    ties: Sequence[Term],
    keys: Sequence[str],
) -> Flow:
    """The rows of a subquery for each combination of the values around that it is tied to."""
    name = f"{prefix}_outer"
    outer = builder.columns(flow, {MARK + n: n for n in keys}, name, span)
    outer = builder.add(Distinct(), outer, name=name, span=span)
    outside, inside, residual = split_ties(ties, frozenset(rows.schema.names))
    outer, ours = with_columns(builder, outer, outside, prefix, span)
    rows, theirs = with_columns(builder, rows, inside, prefix, span)
    function = Join(tuple(zip(ours, theirs, strict=True)), all_of(residual))
    return builder.add(function, outer, rows, name=f"{prefix}_pairs", span=span)


def free_references(
    asked: ast.Expression | ast.Query, translator: Translator
) -> Iterator[ast.Reference]:
    """Columns that an expression or a query reads and that none of its own sources has."""
    match asked:
        case ast.Reference():
            yield asked
        case ast.Select():
            for part in _parts(asked):
                for reference in free_references(part, translator):
                    if not any(_has(j.source, reference, translator) for j in asked.sources):
                        yield reference
        case _:
            for part in _parts(asked):
                yield from free_references(part, translator)


def _parts(asked: ast.Expression | ast.Query) -> Iterator[ast.Expression | ast.Query]:
    """What an expression or a query is made of."""
    match asked:
        case ast.Apply(_, args):
            yield from args
        case ast.Total(_, arg, where=where, order=order):
            yield from (part for part in (arg, where) if part is not None)
            yield from (o.value for o in order)
        case ast.Over(_, args, by, order, where=where):
            yield from (*args, *by, *(o.value for o in order))
            yield from () if where is None else (where,)
        case ast.Membership(operand, query):
            yield from (query,) if operand is None else (operand, query)
        case ast.Quantified(operand, query=query):
            yield from (operand, query)
        case ast.Scalar(query) | ast.Streamed(_, query) | ast.Final(query) | ast.Early(query):
            yield query
        case ast.Combined(_, _, left, right):
            yield from (left, right)
        case ast.With(views, query):
            yield from (*(view.query for view in views), query)
        case ast.Select():
            yield from (i.value for i in asked.items if isinstance(i, ast.Item))
            yield from (j.on for j in asked.sources if j.on is not None)
            yield from (c for c in (asked.where, asked.having, asked.qualify) if c is not None)
            yield from asked.group_by
            yield from (o.value for o in asked.limit.order) if asked.limit else ()


def _has(source: ast.Named | ast.Nested, reference: ast.Reference, translator: Translator) -> bool:
    """Has a source the column? Of one that is a query only its alias is looked at."""
    name = source.alias or (source.name if isinstance(source, ast.Named) else None)
    if reference.owner is not None:
        return name is not None and name.name.lower() == reference.owner.name.lower()
    columns = [word.name for word in source.columns]
    if isinstance(source, ast.Named):
        known = translator.look_up(source.name)
        if known is not None and known.flow is not None:
            columns += known.flow.schema.names[len(columns) :]
    return folded_name(reference.name.name) in map(folded_name, columns)
