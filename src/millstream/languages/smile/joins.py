"""Joins: keys of both, masks and-ed, steps added.

A view whose rows are groups is a total function of its keys: where it has no row, its sums and
counts are 0. So a plain JOIN on all of them keeps the rows that have no group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from millstream.calculus.functions import Assign, Join, Merge
from millstream.calculus.library.outer_joins import without_partner
from millstream.calculus.terms import Call, Column, Term, columns_read
from millstream.calculus.types import Schema
from millstream.calculus.wiring import Queue
from millstream.errors import Fault, listing
from millstream.languages.smile.absence import Absence
from millstream.languages.smile.build import OVER, Build, NoRule
from millstream.languages.smile.cells import Account, Cell, Mask, View, added, either
from millstream.languages.smile.flows import FlowGroups, RowFlow
from millstream.languages.smile.windows import over, with_over
from millstream.queries import ast
from millstream.queries.scope import Names, Seen, Visible, find
from millstream.queries.terms import asks, conjuncts, term_of
from millstream.queries.tokens import Stop
from millstream.source import Span

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources joined so far: one view, and the names by which a query knows its columns."""

    view: View
    names: Names

    def cells(self) -> dict[str, Cell]:
        """By the columns of the queue."""
        return {c.value.name: c for c in self.view.cells if isinstance(c.value, Column)}


def _met(side: View, other: View, pairs: Pairs) -> tuple[Cell, ...]:
    """The cells of a side whose rows may find partners later.

    If a later tick of the same stream can bring one, a row comes after its tick: so that is none
    any more, unless the partner must have it too.
    """
    theirs = {c.value.name: c for c in other.cells if isinstance(c.value, Column)}
    tied = {ours: theirs[b] for ours, b in pairs if b in theirs}

    def met(cell: Cell) -> Cell:
        of = cell.tick_of if cell.window is None else cell.window.stream
        partner = tied.get(cell.value.name) if isinstance(cell.value, Column) else None
        is_tied = partner is not None and (partner.tick_of, partner.window) == (
            cell.tick_of, cell.window
        )  # fmt: skip
        if of not in other.streams or is_tied:
            return cell
        return replace(cell, tick_of=None, window=None)

    return tuple(map(met, side.cells))


@dataclass
class Joining:
    """Mutable: joins the sources of a FROM clause, and notes what is wrong."""

    build: Build
    faults: list[Fault]
    name: str
    #: Conditions of WHERE that have not been used to join yet.
    where: list[ast.Expression]

    def joined(self, parts: Sequence[tuple[str, View, ast.Joined]], span: Span) -> Sources:
        sources: Sources | None = None
        for number, (alias, view, how) in enumerate(parts, 1):
            part = self.build.prefixed(view, f"{number}." if len(parts) > 1 else "")
            seen = tuple(
                Seen(old.name, new.value.name, new.type)
                for old, new in zip(view.cells, part.cells, strict=True)
                if isinstance(new.value, Column)
            )
            visible = Visible(alias, seen)
            if sources is None:
                sources = Sources(part, Names((visible,)))
            else:
                sources = self._next(sources, part, visible, how, span)
        assert sources is not None
        return sources

    def _next(
        self, left: Sources, right: View, visible: Visible, how: ast.Joined, span: Span
    ) -> Sources:
        if any(s.name.lower() == visible.name.lower() for s in left.names.sources):
            message = f'two sources are called "{visible.name}"'
            self.faults.append(Fault(message, how.source.span, "give one of them another name"))
            raise Stop
        names = replace(left.names, sources=(*left.names.sources, visible))
        if how.using:
            pairs, names = self._using(left, visible, how.using, names)
            rest: list[ast.Expression] = []
        else:
            pairs, rest = self._equations(left.view, right, names, how)
        if how.kind not in (ast.JoinKind.INNER, ast.JoinKind.LEFT):
            raise NoRule(f"{how.kind.value.upper()} JOIN")
        is_left = how.kind is ast.JoinKind.LEFT
        if is_left and rest:
            raise NoRule("LEFT JOIN by more than equations")
        exact = {c.value.name for v in (left.view, right) for c in v.cells
                 if c.is_exact and isinstance(c.value, Column)}  # fmt: skip
        if any(c not in exact for pair in pairs for c in pair):
            raise NoRule("a join by columns that can still change")
        how = replace(how, is_said=how.is_said or is_left)
        view = self._pairs(left.view, right, pairs, how, span)
        if is_left:
            absence = Absence(self.build, self.faults, self.name)
            view = absence.left_join(view, left.view, right, pairs)
        self.where += rest
        return Sources(view, names)

    def _using(
        self, left: Sources, right: Visible, words: Sequence[ast.Word], names: Names
    ) -> tuple[Pairs, Names]:
        pairs: list[tuple[str, str]] = []
        merged: list[Seen] = []
        for word in words:
            ours = left.names.resolve(ast.Reference(None, word, word.span), self.faults)
            theirs = find(right.columns, word)
            if theirs is None:
                has = listing(c.name for c in right.columns)
                message = f'{right.name} has no column "{word.name}"'
                self.faults.append(Fault(message, word.span, f"it has: {has}"))
            if ours is None or theirs is None:
                continue
            if ours.type != theirs.type:
                message = f'"{word.name}" is a {ours.type} here and a {theirs.type} there'
                self.faults.append(Fault(message, word.span))
                continue
            pairs.append((ours.column, theirs.column))
            covers = frozenset((*ours.covers, ours.column, theirs.column))
            merged.append(replace(ours, covers=covers))
        if len(pairs) < len(words):
            raise Stop
        names_of = {m.name for m in merged}
        kept = tuple(m for m in names.merged if m.name not in names_of)
        return tuple(pairs), replace(names, merged=(*merged, *kept))

    def _equations(
        self, left: View, right: View, names: Names, how: ast.Joined
    ) -> tuple[Pairs, list[ast.Expression]]:
        """Equations between a column of each side; what else ON says is a selection."""
        schema = left.queue.schema.fields + right.queue.schema.fields
        whole = replace(left.queue.schema, fields=schema)
        pairs: list[tuple[str, str]] = []
        rest: list[ast.Expression] = []
        is_inner = how.kind is ast.JoinKind.INNER
        where = list(self.where) if is_inner else []
        for is_where, pool in ((False, conjuncts(how.on)), (True, where)):
            for one in pool:
                pair = self._pair(one, left, right, names, whole, is_tried=is_where)
                if pair is not None:
                    pairs.append(pair)
                elif not is_where:
                    rest.append(one)
                if is_where and pair is not None:
                    self.where.remove(one)
        return tuple(dict.fromkeys(pairs)), rest

    def _pair(
        self, one: ast.Expression, left: View, right: View, names: Names, whole: Schema,
        *, is_tried: bool,
    ) -> tuple[str, str] | None:  # fmt: skip
        if asks(one):
            return None
        try:
            faults: list[Fault] = [] if is_tried else self.faults
            term: Term = term_of(one, names, whole, faults)
        except Stop:
            if is_tried:
                return None  # it may read an alias, or a source that comes later
            raise
        match term:
            case Call("==", (Column(a), Column(b))):
                ours, theirs = left.queue.schema, right.queue.schema
                if a in ours and b in theirs:
                    return a, b
                if b in ours and a in theirs:
                    return b, a
        return None

    def _pairs(self, left: View, right: View, pairs: Pairs, how: ast.Joined, span: Span) -> View:
        wiring, name = self.build.wiring, f"{self.name}_join"
        queue = wiring.add(Join(pairs), left.queue, right.queue, name=name, origin=span)
        flows = [queue]
        turned = tuple((b, a) for a, b in pairs)
        ours = self._is_total(left, [a for a, _ in pairs], how)
        theirs = self._is_total(right, [b for _, b in pairs], how)
        if theirs:
            flows.append(self._alone(queue.schema.names, left, right, pairs, span))
        if ours:
            flows.append(self._alone(queue.schema.names, right, left, turned, span))
        if len(flows) > 1:
            queue = wiring.add(Merge(), *flows, name=name, origin=span)
        # Where a view is total its rows are there for every key, now and for ever.
        masks = [Mask() if total else view.mask
                 for total, view in ((ours, left), (theirs, right))]  # fmt: skip
        cells = (*(left.cells if theirs else _met(left, right, pairs)),
                 *(right.cells if ours else _met(right, left, turned)))  # fmt: skip
        return View(
            self.name, queue, cells, left.streams | right.streams,
            steps=added(left.steps, right.steps), mask=masks[0] & masks[1],
            is_open=either(left.is_open, right.is_open),
            account=self._account(left, right, pairs) if theirs and not ours else None,
        )  # fmt: skip

    @staticmethod
    def _account(left: View, right: View, pairs: Pairs) -> Account | None:
        """Rows with the groups of their ticks: each tick has one row for ever."""
        if (
            not isinstance(left.flow, RowFlow)
            or not isinstance(right.flow, FlowGroups)
            or len(pairs) > 1
        ):
            return None
        ((tick, key),) = pairs
        is_tick = any(c.tick_of is not None and c.value == left.queue.column(tick)
                      for c in left.cells)  # fmt: skip
        return Account(left.flow, right.flow, tick, key) if is_tick else None

    @staticmethod
    def _is_total(view: View, columns: Sequence[str], how: ast.Joined) -> bool:
        is_plain = not how.is_said and (how.on is not None or bool(how.using))
        return is_plain and view.defaults is not None and set(view.keys) <= set(columns)

    def _alone(
        self, names: Sequence[str], side: View, other: View, pairs: Pairs, span: Span
    ) -> Queue:
        """Rows without a group, with what an empty group has."""
        assert other.defaults is not None
        keys = {theirs: ours for ours, theirs in pairs}
        made: list[Assign] = []
        for name in names:
            if name in side.queue.schema:
                made.append(Assign(name, side.queue.column(name)))
            elif name in keys:
                made.append(Assign(name, side.queue.column(keys[name])))
            else:
                made.append(Assign(name, other.defaults[name]))
        reads = [a.term for a in made]
        queue = self._ending(side.queue, other, keys, reads)
        queue = self.build.timed(queue, reads)
        assert not any(columns_read(t) - set(queue.schema.names) for t in reads)
        return without_partner(
            self.build.wiring, queue, other.queue, pairs, tuple(made), name=self.name, origin=span
        )

    def _ending(
        self, queue: Queue, other: View, keys: Mapping[str, str], reads: Sequence[Term]
    ) -> Queue:
        """Whether the window is over in which a row has no group, if terms read that."""
        if not any(OVER in columns_read(t) for t in reads):
            return queue
        begin, window = next((keys[c.value.name], c.window) for c in other.cells
                             if c.window is not None and isinstance(c.value, Column)
                             and c.value.name in other.keys)  # fmt: skip
        ended = over(self.build, queue, begin, window)
        return with_over(self.build, queue, begin, ended, self.name)
