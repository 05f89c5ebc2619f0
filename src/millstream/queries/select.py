"""SELECT: from the sources of a query to the rows it asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millstream.calculus.functions import Assign, Distinct, Filter, Map, Top
from millstream.calculus.library.event_windows import END, START
from millstream.calculus.terms import Call, Column, Term, all_of, columns_read
from millstream.calculus.types import BOOLEAN, TIME_COLUMN, Schema
from millstream.queries import ast
from millstream.queries.build import Flow
from millstream.queries.group import Grouped, Grouping
from millstream.queries.joins import Assembled, Assembly, JoinedSource, as_where
from millstream.queries.over import Placing, overs_in
from millstream.queries.questions import Questions, is_grouped, totals_in
from millstream.queries.scope import ROW_TIME, Names, Seen
from millstream.queries.terms import (
    Replacing,
    asks,
    conjuncts,
    is_null,
    mapped,
    nothing,
    term_of,
)
from millstream.queries.tokens import Stop, stop

if TYPE_CHECKING:
    from millstream.queries.translate import Translator


@dataclass(frozen=True, slots=True)
class Wanted:
    """A column of the select list: its name, what it is, and whether that is just NULL."""

    name: str
    term: Term
    is_untyped: bool = False


class SelectTranslator:
    """Mutable: one SELECT on its way to operators."""

    def __init__(self, translator: Translator, query: ast.Select, prefix: str) -> None:
        self.translator = translator
        self.builder = translator.builder
        self.faults = translator.faults
        self.query = query
        self.prefix = prefix
        self.questions = Questions(self)

    def inside(self, query: ast.Select) -> SelectTranslator:
        """What translates a subquery of this query."""
        return SelectTranslator(self.translator, query, f"{self.prefix}_sub")

    def flow(self) -> Flow:
        """The relation that the query describes."""
        query = self.query
        parts = self.translator.parts(query, self.prefix)
        flow, names = self.selected(parts, conjuncts(query.where))
        flow, wanted, replacing = self.listed(flow, names)
        return self.finished(flow, names, wanted, replacing)

    def listed(
        self, flow: Flow, names: Names, also: Sequence[str] = ()
    ) -> tuple[Flow, list[Wanted], Replacing]:
        """The rows or groups of a query with what its list shows; columns `also` are keys."""
        grouped = self.grouped(flow, names, also)
        replacing: Replacing = nothing
        if grouped is not None:
            flow, replacing = grouped.flow, grouped.replacing
            having = [self.unaliased(c, names) for c in conjuncts(self.query.having)]
            flow = self.kept(flow, names, having, replacing)
        shown = self.shown()
        flow, replacing = self.questions.answered(flow, names, shown, replacing)
        overs = overs_in(shown)
        if overs:
            times = self.times(flow) if grouped is None else frozenset[str]()
            placing = Placing(
                self.builder, self.prefix, self.faults, names, self.query.span, replacing, times
            )
            flow, replacing = placing.placed(flow, overs), placing.replaced
        if self.query.qualify is not None:
            flow = self.qualified(flow, names, self.query.qualify, replacing)
        wanted = self.wanted(flow, names, replacing, is_grouped=grouped is not None)
        return flow, wanted, replacing

    def times(self, flow: Flow) -> frozenset[str]:
        """The columns that are the time at which rows come, of a stream from which none leaves."""
        (joined, *others), where = self.query.sources, self.query.where
        source = joined.source
        if self.translator.early.is_on:
            return frozenset()  # rows come in another order than they happened in
        if others or not flow.is_monotone or (where is not None and asks(where)):
            return frozenset()
        if isinstance(source, ast.Nested) and isinstance(source.query, ast.Streamed | ast.Final):
            return frozenset({ROW_TIME} & set(flow.schema.names))
        if not isinstance(source, ast.Named) or source.columns:
            return frozenset()
        given, _ = self.translator.named(source.name)
        if given.type.is_relation:
            return frozenset()
        declared = (i.time for i in self.translator.inputs if i.name == given.queue)
        known = {ROW_TIME, *(time for time in declared if time is not None)}
        return frozenset(known & set(flow.schema.names))

    def shown(self) -> list[ast.Expression]:
        """The expressions of the select list and of ORDER BY."""
        order = self.query.limit.order if self.query.limit else ()
        items = [i.value for i in self.query.items if isinstance(i, ast.Item)]
        qualify = () if self.query.qualify is None else (self.unaliased(self.query.qualify),)
        return [*items, *(o.value for o in order), *qualify]

    def qualified(
        self, flow: Flow, names: Names, condition: ast.Expression, replacing: Replacing
    ) -> Flow:
        """The rows for which QUALIFY holds, which may ask for their places."""
        condition = self.unaliased(condition)
        if not overs_in([condition]):
            message = "QUALIFY is a condition on a function OVER (...)"
            stop(self.faults, message, condition.span, "use WHERE or HAVING")
        term = term_of(
            condition, names, flow.schema, self.faults, wanted=BOOLEAN, replacing=replacing
        )
        name = f"{self.prefix}_qualify"
        return self.builder.add(Filter(term), flow, name=name, span=condition.span)

    # --- conditions ---

    def selected(
        self, parts: Sequence[JoinedSource], where: list[ast.Expression]
    ) -> tuple[Flow, Names]:
        """The joined sources with only the rows that WHERE wants."""
        parts, where = as_where(parts, where, asks)
        asking = [c for c in where if asks(c)]
        plain = [c for c in where if not asks(c)]
        around = self.translator.around
        assembly = Assembly(
            self.builder, self.prefix, self.faults, self.query.span, self.kept, around
        )
        assembled = assembly.assemble(parts, plain)
        flow = self.filtered(assembled)
        return self.kept(flow, assembled.names, asking), assembled.names

    def filtered(self, assembled: Assembled) -> Flow:
        """One selection for each source, so that each can move to its source."""
        flow = assembled.flow
        groups: dict[int, list[Term]] = {}
        for term in assembled.rest:
            read = columns_read(term)
            owner = next(
                (n for n, s in enumerate(assembled.names.sources)
                 if read <= {c.column for c in s.columns}), -1,
            )  # fmt: skip
            groups.setdefault(owner, []).append(term)
        for terms in groups.values():
            condition = all_of(terms)
            assert condition is not None
            flow = self.builder.add(
                Filter(condition), flow, name=f"{self.prefix}_where", span=condition.span
            )
        return flow

    def kept(
        self,
        flow: Flow,
        names: Names,
        conditions: Sequence[ast.Expression],
        replacing: Replacing = nothing,
    ) -> Flow:
        """The rows for which conditions hold, which may have subqueries in them."""
        for condition in conditions:
            flow, answered = self.questions.answered(
                flow, names, [condition], replacing, truth=condition
            )
            try:
                term = term_of(condition, names, flow.schema, self.faults, wanted=BOOLEAN,
                               replacing=answered)  # fmt: skip
            except Stop:
                continue  # its fault is noted; the other conditions are looked at too
            name = f"{self.prefix}_where" if replacing is nothing else f"{self.prefix}_having"
            # An answer of a subquery may turn true; what needs it to be false may then leave.
            is_question = isinstance(condition, ast.Membership)
            grows = flow.is_monotone and (is_question or not asks(condition))
            flow = self.builder.add(
                Filter(term), flow, name=name, span=condition.span, is_monotone=grows
            )
        return flow

    # --- groups ---

    def grouped(self, flow: Flow, names: Names, also: Sequence[str]) -> Grouped | None:
        query = self.query
        if not is_grouped(query):
            if query.having is not None:
                message = "HAVING needs GROUP BY or an aggregate"
                stop(self.faults, message, query.having.span, "use WHERE")
            return None
        grouping = Grouping(self.builder, self.prefix, self.faults, names, query.span)
        keys = [self.group_key(k, names) for k in query.group_by]
        self.check_windows(keys)
        wanted = self.totals()
        inside = [part for t in wanted for part in (t.arg, t.where) if part is not None]
        flow, replacing = self.questions.answered(flow, names, [*inside, *keys], nothing)
        return grouping.group(flow, keys, wanted, replacing, also)

    def check_windows(self, keys: Sequence[ast.Expression]) -> None:
        """Of windows that are told at their end, each has groups of its own."""
        names = {k.name.name.lower() for k in keys if isinstance(k, ast.Reference)}
        sources = [j.source for j in self.query.sources]
        is_framed = any(
            isinstance(s, ast.Nested) and isinstance(s.query, ast.Framed) for s in sources
        )
        if self.translator.is_final and is_framed and not names & {START, END}:
            message = "with EMIT FINAL groups are of one window: grouped by their windows"
            hint = "write GROUP BY window_start, window_end"
            stop(self.faults, message, self.query.span, hint)

    def group_key(self, key: ast.Expression, names: Names) -> ast.Expression:
        """GROUP BY may name a column of the select list, or number it."""
        match key:
            case ast.Constant(int() as number, _, span) if not isinstance(number, bool):
                if 1 <= number <= len(self.query.items):
                    item = self.query.items[number - 1]
                    if isinstance(item, ast.Item):
                        return item.value
                stop(self.faults, f"there is no column number {number}", span)
            case _:
                return self.unaliased(key, names)

    def unaliased(self, expression: ast.Expression, names: Names | None = None) -> ast.Expression:
        """The expression with names of the select list, where no source has such a column."""
        aliases = {
            item.alias.name: item.value
            for item in self.query.items
            if isinstance(item, ast.Item) and item.alias is not None
        }

        def replaced(part: ast.Expression) -> ast.Expression:
            if isinstance(part, ast.Reference) and part.owner is None:
                if names is None or not names.knows(part):
                    return aliases.get(part.name.name, part)
            return part

        return mapped(expression, replaced)

    def totals(self) -> dict[ast.Total, str | None]:
        """Every aggregate once, with the name it should have if it is a column as it is."""
        totals: dict[ast.Total, str | None] = {}
        query = self.query
        for number, item in enumerate(query.items, 1):
            if isinstance(item, ast.Item):
                if isinstance(item.value, ast.Total):
                    totals.setdefault(item.value, self.name_of(item, number))
                totals.update({t: totals.get(t) for t in totals_in(item.value)})
        others = [query.having] if query.having is not None else []
        others += [o.value for o in query.limit.order] if query.limit else []
        for one in others:
            totals.update({t: totals.get(t) for t in totals_in(one)})
        return totals

    # --- the select list ---

    def wanted(
        self, flow: Flow, names: Names, replacing: Replacing, *, is_grouped: bool
    ) -> list[Wanted]:
        """The columns of the select list; all that are wrong are told."""
        columns: list[Wanted] = []
        is_faulty = False
        for number, item in enumerate(self.query.items, 1):
            try:
                if isinstance(item, ast.Star):
                    columns += self.starred(item, flow, names, is_grouped=is_grouped)
                    continue
                term = term_of(item.value, names, flow.schema, self.faults, replacing=replacing)
                is_untyped = is_null(item.value, names, replacing)
                columns.append(Wanted(self.name_of(item, number), term, is_untyped))
            except Stop:
                is_faulty = True
        if is_faulty:
            raise Stop
        columns = self.told_apart(columns)
        self.check_names(columns)
        return columns

    def check_list(self, names: Names, schema: Schema) -> None:
        """A list that nobody looks at, as after EXISTS, must be right all the same."""
        for item in self.query.items:
            if isinstance(item, ast.Item) and not asks(item.value):
                term_of(item.value, names, schema, self.faults)

    def told_apart(self, wanted: list[Wanted]) -> list[Wanted]:
        """Columns of one name get their source in front, as in `*`, if it is written there."""
        counts = Counter(w.name for w in wanted)
        if len(wanted) != len(self.query.items):
            return wanted  # a `*` among them, which has told its own columns apart
        named: list[Wanted] = []
        for one, item in zip(wanted, self.query.items, strict=True):
            match item:
                case ast.Item(ast.Reference(ast.Word() as owner, name), None) if (
                    counts[one.name] > 1
                ):
                    named.append(replace(one, name=f"{owner.name}_{name.name}"))
                case _:
                    named.append(one)
        return named

    def name_of(self, item: ast.Item, number: int) -> str:
        if item.alias is not None:
            return item.alias.name
        match item.value:
            case ast.Reference(_, name) if name.name == TIME_COLUMN:
                return ROW_TIME
            case ast.Reference(_, name):
                return name.name
            case ast.Total(function, ast.Reference(_, name)):
                return f"{function.name}_{name.name}"
            case ast.Total(function):
                return function.name
            case _:
                return f"column{number}"

    def starred(
        self, star: ast.Star, flow: Flow, names: Names, *, is_grouped: bool
    ) -> list[Wanted]:
        if is_grouped:
            message = "* cannot stand in a query with groups"
            stop(self.faults, message, star.span, "list the columns")
        sources = names.sources
        if star.owner is not None:
            owner = names.source(star.owner)
            if owner is None:
                # Asking for a column of it gives the message.
                names.resolve(ast.Reference(star.owner, star.owner, star.span), self.faults)
                raise Stop
            sources = (owner,)
        shown: dict[object, tuple[str, Seen]] = {}
        for source in sources:
            for seen in source.columns:
                if seen.name == TIME_COLUMN:
                    continue  # only who asks for it by name is shown it
                # What is equal by the join is one column.
                merged = next((m for m in names.merged if seen.column in m.covers), seen)
                if star.has_all or star.owner is not None:
                    shown[source.name, seen.name] = (source.name, seen)
                else:
                    shown.setdefault(merged.column, (source.name, merged))
        counts = Counter(seen.name for _, seen in shown.values())
        return [
            Wanted(
                seen.name if counts[seen.name] == 1 else f"{owner}_{seen.name}",
                Column(seen.column, flow.schema[seen.column], star.span),
            )
            for owner, seen in shown.values()
        ]

    def check_names(self, wanted: list[Wanted]) -> None:
        names = [w.name for w in wanted]
        twice = next((w for n, w in enumerate(wanted) if w.name in names[:n]), None)
        if twice is not None:
            message = f'there are two columns "{twice.name}"'
            span = twice.term.span or self.query.span
            stop(self.faults, message, span, "give one of them an alias with AS")

    # --- the end of a query ---

    def finished(
        self, flow: Flow, names: Names, wanted: list[Wanted], replacing: Replacing
    ) -> Flow:
        """Projection, DISTINCT, and the first rows."""
        limit = self.query.limit
        hidden: list[Wanted] = []
        order: list[tuple[str, bool]] = []
        if limit is not None:
            order, hidden = self.ordered(limit, flow, names, wanted, replacing)
        flow = self.projected(flow, [*wanted, *hidden])
        if self.query.is_distinct:
            flow = self.builder.add(
                Distinct(), flow, name=f"{self.prefix}_distinct", span=self.query.span
            )
        if limit is None:
            return flow
        flow = self.top(flow, limit, order)
        visible = {w.name: w.name for w in wanted}
        return self.builder.columns(flow, visible, f"{self.prefix}_columns", self.query.span)

    def projected(self, flow: Flow, wanted: list[Wanted]) -> Flow:
        columns = tuple(Assign(w.name, w.term) for w in wanted)
        is_same = [(c.name, c.term) for c in columns] == [
            (f.name, Column(f.name, f.type)) for f in flow.schema
        ]
        if is_same:
            return flow
        name = f"{self.prefix}_columns"
        flow = self.builder.add(Map(columns), flow, name=name, span=self.query.span)
        return replace(flow, untyped=frozenset(w.name for w in wanted if w.is_untyped))

    def top(self, flow: Flow, limit: ast.Limit, order: list[tuple[str, bool]]) -> Flow:
        by = tuple(dict.fromkeys(name for name, _ in order))
        down = tuple(name for name in by if dict(reversed(order))[name])
        return self.builder.add(
            Top(limit.count, by, down), flow,
            name=f"{self.prefix}_top", span=limit.span, is_monotone=False,
        )  # fmt: skip

    def ordered(
        self, limit: ast.Limit, flow: Flow, names: Names, wanted: list[Wanted], replacing: Replacing
    ) -> tuple[list[tuple[str, bool]], list[Wanted]]:
        """The columns to order by, and those among them that the query does not show."""
        hidden: list[Wanted] = []
        order: list[tuple[str, bool]] = []

        def column(term: Term) -> str:
            shown = next((w.name for w in [*wanted, *hidden] if w.term == term), None)
            if shown is not None:
                return shown
            hidden.append(Wanted(self.builder.hidden("order"), term))
            return hidden[-1].name

        for one in limit.order:
            term = self.order_term(one, flow, names, wanted, replacing)
            if self.query.is_distinct and all(w.term != term for w in wanted):
                message = "with DISTINCT a query is ordered by columns of its select list"
                stop(self.faults, message, one.value.span)
            if one.nulls_first == one.is_descending:
                # Nulls are less than all else, unless they are told to be otherwise.
                is_null = Call("is_null", (term,), BOOLEAN, term.span)
                order.append((column(is_null), one.nulls_first))
            order.append((column(term), one.is_descending))
        return order, hidden

    def order_term(
        self,
        ordering: ast.Ordering,
        flow: Flow,
        names: Names,
        wanted: list[Wanted],
        replacing: Replacing,
    ) -> Term:
        """A column of the select list by name or number, or any expression over the rows."""
        match ordering.value:
            case ast.Reference(None, name):
                shown = next((w for w in wanted if w.name == name.name), None)
                if shown is not None:
                    return shown.term
            case ast.Constant(int() as number, _, span) if not isinstance(number, bool):
                if not 1 <= number <= len(wanted):
                    message = f"there is no column number {number}"
                    stop(self.faults, message, span)
                return wanted[number - 1].term
        return term_of(ordering.value, names, flow.schema, self.faults, replacing=replacing)
