"""What is not there: EXISTS, NOT EXISTS and LEFT JOIN.

Absence is false at the first sure partner, and true only when no open tick can bring one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Assign,
    Filter,
    Join,
    Lookup,
    Map,
    Merge,
)
from millstream.calculus.library.columns import unlike
from millstream.calculus.library.outer_joins import padded, without_partner
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, INTEGER
from millstream.calculus.wiring import Queue
from millstream.errors import Fault
from millstream.languages.smile.build import IN, OPEN, STEPS, SURE, Build, NoRule
from millstream.languages.smile.cells import (
    TRUE,
    Cell,
    Mask,
    View,
    added,
    both,
    either,
    negated,
)
from millstream.languages.smile.extent import Size
from millstream.languages.smile.ranges import Ranges
from millstream.queries import ast
from millstream.queries.scope import Names, Seen, Visible
from millstream.queries.terms import asks, conjuncts, term_of
from millstream.queries.tokens import Stop

Pairs = tuple[tuple[str, str], ...]
Find = Callable[[ast.Word], View]
_INNER = "in:"


def asked(expression: ast.Expression) -> tuple[ast.Membership, bool] | None:
    """An EXISTS, and whether it is said that there is none."""
    match expression:
        case ast.Membership(operand=None):
            return expression, False
        case ast.Apply(ast.Word("not"), (ast.Membership(operand=None) as question,)):
            return question, True
    return None


@dataclass
class Absence:
    """Mutable: asks whether rows have partners."""

    build: Build
    faults: list[Fault]
    name: str

    def partners(self, queue: Queue, other: View, pairs: Pairs) -> tuple[Queue, Mask]:
        """The rows with columns that tell whether they have a partner, as a mask."""
        columns: list[Term] = []
        conditions = [other.mask.is_in, both(other.mask.is_in, other.mask.is_sure)]
        for condition in dict.fromkeys(conditions):
            rows = self.build.timed(other.queue, [condition])
            if condition != TRUE:
                rows = self.build.wiring.add(Filter(condition), rows, name=f"{self.name}_there")
            if pairs:
                names = {theirs: theirs for _, theirs in pairs}
                rows = self.build.wiring.columns(rows, names, f"{self.name}_keys")
            column = unlike("found", queue.schema)
            queue = self.build.wiring.add(
                Lookup(column, pairs), queue, rows, name=f"{self.name}_asked"
            )
            columns.append(Column(column, BOOLEAN))
        now, surely = columns[0], columns[-1]
        is_open = self.build.open_ticks(other.streams)
        sure = either(surely, negated(is_open))
        return queue, Mask(now, sure, Size.number(2), can_be_true=True)

    # --- EXISTS ---

    def selected(self, view: View, names: Names, expression: ast.Expression, find: Find) -> View:
        """The rows of which an EXISTS is true, with a mask for those of which it may become so."""
        found = asked(expression)
        if found is None:
            raise NoRule("a subquery in a condition")
        question, is_negated = found
        query = question.query
        is_plain = isinstance(query, ast.Select) and len(query.sources) == 1
        if not isinstance(query, ast.Select) or not is_plain or query.group_by or query.limit:
            raise NoRule("a subquery of more than one source, or with groups")
        source = query.sources[0].source
        if not isinstance(source, ast.Named) or source.window is not None or source.columns:
            raise NoRule("a subquery of more than a view")
        other = find(source.name)
        if other.as_of is not None:
            raise NoRule(f"{other.name} is as of")
        alias = source.alias.name if source.alias else source.name.name
        other, pairs = self._correlated(view, names, self.build.prefixed(other, _INNER), alias,
                                        conjuncts(query.where))  # fmt: skip
        queue, mask = self.partners(view.queue, other, pairs)
        if is_negated:
            # A partner that is there for ever ends it: then there is no other kind.
            mask = replace(mask, is_in=negated(mask.is_in), stays_out=other.mask.is_certain,
                           can_be_true=self.build.open_ticks(other.streams) != TRUE)  # fmt: skip
        asked_view = replace(view, queue=queue, flow=None, account=None)
        return self.build.selected(asked_view, mask, mask.is_in, expression.span)

    def _correlated(
        self, view: View, names: Names, other: View, alias: str,
        conditions: Sequence[ast.Expression],
    ) -> tuple[View, Pairs]:  # fmt: skip
        """Equations with columns of the query around are keys; what else is said selects."""
        cells = {c.value.name: c for c in other.cells if isinstance(c.value, Column)}
        outer = {c.value.name: c for c in view.cells if isinstance(c.value, Column)}
        seen = tuple(Seen(c.name, column, c.type) for column, c in cells.items())
        inside = Names((Visible(alias, seen),))
        around = replace(inside, outer=names)
        fields = (*view.queue.schema.fields, *other.queue.schema.fields)
        whole = replace(view.queue.schema, fields=fields)
        pairs: list[tuple[str, str]] = []
        for one in conditions:
            if asks(one):
                raise NoRule("a subquery in a subquery")
            try:
                term = term_of(one, inside, other.queue.schema, [], wanted=BOOLEAN)
            except Stop:
                term = term_of(one, around, whole, self.faults, wanted=BOOLEAN)
                pair = _pair(term, outer, cells)
                if pair is None:
                    raise NoRule("a subquery tied by more than equations") from None
                pairs.append(pair)
                continue
            mask = Ranges(cells, other.is_open).mask(term)
            other = self.build.selected(other, mask, term, one.span)
        return other, tuple(dict.fromkeys(pairs))

    # --- LEFT JOIN ---

    def left_join(self, pairs_of: View, left: View, right: View, pairs: Pairs) -> View:
        """The pairs, and the rows of the left that have no partner, with nulls."""
        queue, found = self.partners(left.queue, right, pairs)
        steps = left.steps
        if not right.mask.is_certain:
            queue, hidden = self._with_hidden(queue, right.whole or right, pairs)
            steps = added(steps, hidden)
        alone = Mask(negated(found.is_in), found.is_sure, found.steps)
        lone = left.mask & alone
        inner = self._masked(pairs_of.queue, pairs_of)
        made = list(padded(pairs_of.queue.schema, left.queue.schema))
        queue = self.build.timed(queue, [lone.is_in, lone.is_sure, left.is_open])
        extra = {STEPS: steps, IN: lone.is_in, SURE: lone.is_sure, OPEN: left.is_open}
        made = [*(a for a in made if a.name not in extra),
                *(Assign(n, t) for n, t in extra.items())]  # fmt: skip
        outer = self.build.wiring.add(Map(tuple(made)), queue, name=f"{self.name}_alone")
        whole = self.build.wiring.add(Merge(), inner, outer, name=f"{self.name}_left")
        theirs = {c.value for c in right.cells}
        cells = tuple(_nullable(c) if c.value in theirs else c for c in pairs_of.cells)
        mask = Mask(Column(IN, BOOLEAN), Column(SURE, BOOLEAN), pairs_of.mask.steps + alone.steps)
        return replace(
            pairs_of, queue=whole, cells=cells, steps=Column(STEPS, INTEGER), mask=mask,
            is_open=Column(OPEN, BOOLEAN), defaults=None, keys=(),
        )  # fmt: skip

    def _with_hidden(self, queue: Queue, other: View, pairs: Pairs) -> tuple[Queue, Term]:
        """The rows with the steps of all partners that they have ever had.

        Who loses a partner has been told the steps of both, and they never become fewer.
        """
        wiring, name = self.build.wiring, f"{self.name}_hidden"
        keys = tuple(dict.fromkeys(theirs for _, theirs in pairs))
        column = Column(unlike("hidden", queue.schema), INTEGER)
        rows = self.build.timed(other.queue, [other.steps])
        made = (*(Assign(k, rows.column(k)) for k in keys), Assign(column.name, other.steps))
        rows = wiring.add(Map(made), rows, name=name)
        totals = wiring.add(
            Aggregate(keys, (Aggregation(column.name, "sum", column),)), rows, name=name
        )
        kept = tuple(Assign(f.name, queue.column(f.name)) for f in queue.schema)
        met = wiring.add(Join(pairs), queue, totals, name=name)
        met = wiring.add(Map((*kept, Assign(column.name, column))), met, name=name)
        none = (*kept, Assign(column.name, Literal(0, INTEGER)))
        alone = without_partner(wiring, queue, totals, pairs, none, name=name)
        return wiring.add(Merge(), met, alone, name=name), column

    def _masked(self, queue: Queue, view: View) -> Queue:
        """The rows with columns of what is said of them."""
        extra = {STEPS: view.steps, IN: view.mask.is_in, SURE: view.mask.is_sure,
                 OPEN: view.is_open}  # fmt: skip
        queue = self.build.timed(queue, extra.values())
        kept = [Assign(f.name, queue.column(f.name)) for f in view.queue.schema
                if f.name not in extra]  # fmt: skip
        columns = (*kept, *(Assign(n, t) for n, t in extra.items()))
        return self.build.wiring.add(Map(columns), queue, name=f"{self.name}_pairs")


def _nullable(cell: Cell) -> Cell:
    """A cell of a row that may be none: it has no bounds that others rely on."""
    return replace(cell, can_be_null=True, tick_of=None, gains=None)


def _pair(term: Term, outer: dict[str, Cell], inner: dict[str, Cell]) -> tuple[str, str] | None:
    match term:
        case Call("==", (Column(a), Column(b))):
            a, b = (a, b) if a in outer else (b, a)
            if a in outer and b in inner and outer[a].is_exact and inner[b].is_exact:
                return a, b
    return None
