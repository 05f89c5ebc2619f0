"""Aggregates of a subquery as columns of the outer rows, also where it has no row.

The keys of the outer rows are merged with the rows of the subquery before these are
grouped, with nulls for all that is aggregated. So every outer row finds a group, and an
aggregate of nothing is what it should be: null, or no rows counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.calculus.functions import Aggregation, Assign, Filter, Join, Map, Merge
from millstream.calculus.terms import (
    Column,
    Literal,
    Term,
    all_of,
    columns_read,
    is_known,
)
from millstream.calculus.types import BOOLEAN
from millstream.queries.build import Builder, Flow
from millstream.queries.correlation import dependent
from millstream.queries.group import Grouping, Planned
from millstream.queries.joins import with_columns
from millstream.queries.subqueries import MARK, Inner
from millstream.source import Span


@dataclass
class Gathering:
    """Mutable: adds the aggregates of a subquery to an outer flow."""

    builder: Builder
    prefix: str
    span: Span
    grouping: Grouping

    def gather(self, flow: Flow, inner: Inner, plans: Sequence[Planned]) -> Flow:
        """The outer flow with the columns of some plans, whose terms are over the inner one."""
        original = flow.schema.names
        rows, outside, inside = self._tied(flow, inner)
        flow, ours = with_columns(self.builder, flow, outside, self.prefix, self.span)
        keys = [self.builder.hidden("key") for _ in ours]
        outer_keys = [Column(n, flow.schema[n]) for n in ours]
        columns, plans = self._plain(plans)
        inner_side = self._map(rows, keys, inside, columns)
        nulls = [Assign(c.name, Literal(None, c.term.type)) for c in columns]
        outer_side = self._map(flow, keys, outer_keys, nulls)
        merged = self.builder.add(
            Merge(), inner_side, outer_side, name=f"{self.prefix}_gathered", span=self.span
        )
        groups = self.grouping.aggregated(merged, keys, plans)
        joined = self.builder.add(
            Join(tuple(zip(ours, keys, strict=True)), None, nulls_match=True), flow, groups,
            name=f"{self.prefix}_values", span=self.span, is_monotone=False,
        )  # fmt: skip
        made = [name for plan in plans for name in plan.names]
        kept = {n: n for n in (*original, *made)}
        return self.builder.columns(joined, kept, f"{self.prefix}_answered", self.span)

    def _tied(self, flow: Flow, inner: Inner) -> tuple[Flow, list[Term], list[Term]]:
        """The rows of the subquery, and terms of both sides that must be equal."""
        outside, inside, residual = inner.equations(flow)
        rows = inner.flow
        if residual:
            # More than equations ties them: the rows for each of the outer values.
            read = frozenset().union(*(columns_read(t) for t in inner.ties))
            keys = tuple(n for n in flow.schema.names if MARK + n in read)
            rows = dependent(self.builder, self.prefix, self.span, flow, rows, inner.ties, keys)
            outside, inside, _ = Inner(rows, None, (), keys).equations(flow)
        elif not inner.keys:
            # An equation with null is never true, but a group of nulls is a group.
            known = all_of(is_known(t) for t in inside)
            if known is not None:
                name = f"{self.prefix}_known"
                rows = self.builder.add(Filter(known), rows, name=name, span=self.span)
        return rows, outside, inside

    def _plain(self, plans: Sequence[Planned]) -> tuple[list[Assign], list[Planned]]:
        """Columns for all that is aggregated, and the plans over these."""
        columns: list[Assign] = []

        def column(term: Term) -> Term:
            known = next((c for c in columns if c.term == term), None)
            if known is None:
                known = Assign(self.builder.hidden("value"), term)
                columns.append(known)
            return Column(known.name, term.type, term.span)

        def plain(aggregation: Aggregation) -> Aggregation:
            # What counts rows must not count those of the outer query.
            return replace(aggregation, term=column(aggregation.term or Literal(True, BOOLEAN)))

        planned: list[Planned] = []
        for plan in plans:
            if plan.ordered is not None:
                total = plan.ordered
                order = tuple((column(term), is_down) for term, is_down in total.order)
                made = replace(
                    total, value=column(total.value), there=column(total.there), order=order
                )
                planned.append(replace(plan, ordered=made))
            elif plan.value is not None:
                value = replace(plan.value, term=column(plan.value.term))
                planned.append(replace(plan, value=value))
            else:
                planned.append(Planned(tuple(plain(a) for a in plan.aggregations)))
        return columns, planned

    def _map(
        self, flow: Flow, keys: Sequence[str], terms: Sequence[Term], columns: Sequence[Assign]
    ) -> Flow:
        named = [Assign(n, t) for n, t in zip(keys, terms, strict=True)]
        name = f"{self.prefix}_keyed"
        return self.builder.add(Map((*named, *columns)), flow, name=name, span=self.span)
