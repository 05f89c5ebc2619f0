"""The rules of SELECT: joined, selected, grouped, projected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.calculus import syntax
from millstream.calculus.functions import Assign, Except, Map, Merge, Top
from millstream.calculus.library.columns import kept
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, TIME, Schema
from millstream.calculus.wiring import Queue
from millstream.errors import Fault
from millstream.languages.smile.absence import Absence, Find
from millstream.languages.smile.build import IN, SURE, Build, NoRule
from millstream.languages.smile.cells import FALSE, TRUE, Cell, Mask, TickWindows, View, negated
from millstream.languages.smile.extent import Size
from millstream.languages.smile.group import Groups, Wanted
from millstream.languages.smile.joins import Joining, Sources
from millstream.languages.smile.latest import LatestRows
from millstream.languages.smile.ranges import Ranges
from millstream.languages.smile.statements import LATEST, WINDOW
from millstream.languages.smile.windows import COLUMN, over, windowed
from millstream.queries import ast
from millstream.queries.scope import Names
from millstream.queries.terms import Replacing, asks, conjuncts, mapped, nothing, term_of, walk
from millstream.queries.tokens import Stop, stop


def _window(expression: ast.Expression) -> syntax.Expression | None:
    """A window is a column of its rows."""
    if isinstance(expression, ast.Apply) and expression.function.name == WINDOW:
        return syntax.Name(COLUMN, expression.span)
    return None


@dataclass
class Selecting:
    """Mutable: one SELECT on its way to a view."""

    build: Build
    faults: list[Fault]
    query: ast.Select
    name: str
    find: Find
    #: Whether rows that are out for ever are left out, as everywhere but where steps are counted.
    drops: bool = True

    def view(self, parts: Sequence[tuple[str, View, ast.Joined]]) -> View:
        """The view that a query makes of its sources."""
        query = self.query
        if query.is_distinct:
            raise NoRule("DISTINCT")
        for item in query.items if not query.group_by else ():
            for part in walk(item.value) if isinstance(item, ast.Item) else ():
                if isinstance(part, ast.Apply) and part.function.name == WINDOW:
                    stop(self.faults, "WINDOW is a key", part.span, "put it into GROUP BY")
        if not self.is_grouped and query.having is not None:
            raise NoRule("HAVING without groups")
        if any(t.function.name == LATEST for t in self.totals()):
            return self._latest(parts)
        joining = Joining(self.build, self.faults, self.name, conjuncts(query.where))
        sources = joining.joined(parts, query.span)
        sources = self._where(sources, joining.where, nothing)
        if self.is_grouped:
            made = self._grouped(sources)
        else:
            live = sources.view
            if self.drops:
                live = self.build.without_dropped(live, query.span)
            cells = self._items(Sources(live, sources.names), nothing)
            made = self.build.made(live, cells, self.name, query.span)
        return made if query.limit is None else self._first(made, query.limit)

    def _first(self, view: View, limit: ast.Limit) -> View:
        """The first rows: those that are not among them never will be, for rows only come."""
        if not view.mask.is_certain or not all(c.is_exact for c in view.cells):
            raise NoRule("ORDER BY and LIMIT of rows that can still change")
        order: list[Cell] = []
        for one in limit.order:
            cell = self._listed(one.value, view)
            if cell is None or one.nulls_first == one.is_descending:
                raise NoRule("ORDER BY what is not a column of the list")
            order.append(cell)
        by = tuple(c.name for c in order)
        down = tuple(c.name for c, o in zip(order, limit.order, strict=True) if o.is_descending)
        queue = self.build.wiring.add(
            Top(limit.count, by, down), view.queue, name=self.name, origin=limit.span
        )
        # Nothing that still comes has an earlier tick.
        tick = order[0]
        is_settled = tick.tick_of is not None and not down and view.streams == {tick.tick_of}
        is_open = self.build.open_ticks(view.streams)
        sure = TRUE if is_settled else negated(is_open)
        first = queue
        if is_settled and tick.tick_of is not None and self.build.is_live:
            # As rows arrive, that is so of what lies below the horizon.
            first = self.build.below_horizon(queue, tick.name, tick.tick_of)
            sure = first.column(SURE)
        mask = Mask(TRUE, sure, Size.number(2), can_be_true=sure != FALSE)
        if not self.drops:
            first, mask = self._beside_others(view.queue, queue, first, mask, limit)
        return replace(view, queue=first, mask=mask, flow=None)

    def _listed(self, value: ast.Expression, view: View) -> Cell | None:
        """The column of the list that is called so, or that is made of the same."""
        names: list[str] = []
        if isinstance(value, ast.Reference) and value.owner is None:
            names.append(value.name.name)
        names += [self._name(i) for i in self.query.items
                  if isinstance(i, ast.Item) and i.value == value]  # fmt: skip
        cells = {c.name.lower(): c for c in view.cells}
        return next((cells[n.lower()] for n in names if n.lower() in cells), None)

    def _beside_others(
        self, rows: Queue, top: Queue, first: Queue, mask: Mask, limit: ast.Limit
    ) -> tuple[Queue, Mask]:
        """The first rows, and all others, which are out for ever."""
        wiring = self.build.wiring
        others = wiring.add(Except(), rows, top, name=f"{self.name}_others", origin=limit.span)
        first = self.build.timed(first, [mask.is_sure])
        told = [
            wiring.add(
                Map((*kept(rows.schema), Assign(IN, is_in), Assign(SURE, is_sure))),
                queue, name=f"{self.name}_mask",
            )
            for queue, is_in, is_sure in ((first, TRUE, mask.is_sure), (others, FALSE, TRUE))
        ]  # fmt: skip
        queue = wiring.add(Merge(), *told, name=self.name, origin=limit.span)
        return queue, replace(mask, is_in=queue.column(IN), is_sure=queue.column(SURE))

    def totals(self) -> list[ast.Total]:
        """The aggregates of the list and of HAVING."""
        shown = [i.value for i in self.query.items if isinstance(i, ast.Item)]
        having = [self.query.having] if self.query.having is not None else []
        parts = (part for one in (*shown, *having) for part in walk(one))
        return [part for part in parts if isinstance(part, ast.Total)]

    @property
    def is_grouped(self) -> bool:
        return bool(self.totals()) or bool(self.query.group_by)

    def _latest(self, parts: Sequence[tuple[str, View, ast.Joined]]) -> View:
        """LATEST is of a stream, whose rows come in the order of their ticks."""
        query = self.query
        (alias, view, how), *others = parts
        view = self.build.streamed(view)
        items = [i for i in query.items if isinstance(i, ast.Item)]
        is_alone = all(
            isinstance(i.value, ast.Reference)
            or (isinstance(i.value, ast.Total) and i.value.function.name == LATEST)
            for i in items
        )
        if view.stream is None or others:
            hint = "of the stream itself, or of a view that only selects of it and shows its tick"
            stop(self.faults, "LATEST is of the rows of one stream", query.span, hint)
        if len(items) < len(query.items) or not is_alone or query.having or query.limit:
            hint = "make another view of the rest, and join the two by their keys"
            message = "beside LATEST(x) there can be keys, and nothing else"
            stop(self.faults, message, query.span, hint)
        joining = Joining(self.build, self.faults, self.name, [])
        names = joining.joined([(alias, view, how)], query.span).names
        latest = LatestRows(self.build, self.name, view, view.stream)
        for condition in conjuncts(query.where):
            if asks(condition):
                stop(self.faults, "LATEST of a selection by a subquery is not there yet",
                     condition.span)  # fmt: skip
            latest.select(term_of(condition, names, view.stream.schema, self.faults,
                                  wanted=BOOLEAN))  # fmt: skip
        keys = [term_of(k, names, view.stream.schema, self.faults) for k in query.group_by]
        wanted: list[tuple[str, Term, bool]] = []
        for item in items:
            value = item.value
            is_total = isinstance(value, ast.Total)
            asked = value.arg if isinstance(value, ast.Total) else value
            assert asked is not None
            term = term_of(asked, names, view.stream.schema, self.faults)
            if not is_total and term not in keys:
                message = f'"{item.span.text}" is neither grouped by nor inside an aggregate'
                stop(self.faults, message, item.span)
            wanted.append((self._name(item), term, is_total))
        return latest.view(keys, wanted)

    # --- conditions ---

    def _where(
        self, sources: Sources, conditions: Sequence[ast.Expression], replacing: Replacing
    ) -> Sources:
        view = sources.view
        for condition in conditions:
            asked = mapped(condition, lambda e: self._unaliased(e, sources.names))
            if asks(asked):
                absence = Absence(self.build, self.faults, self.name)
                view = absence.selected(view, sources.names, asked, self.find)
                continue
            schema = view.queue.schema
            term = term_of(
                asked, sources.names, schema, self.faults, wanted=BOOLEAN, replacing=replacing
            )
            ranges = Ranges(Sources(view, sources.names).cells(), view.is_open)
            view = self.build.selected(view, ranges.mask(term), term, condition.span)
        return Sources(view, sources.names)

    def _unaliased(self, expression: ast.Expression, names: Names) -> ast.Expression:
        """A name of the list stands for what it names, unless a source has such a column."""
        if not isinstance(expression, ast.Reference) or expression.owner is not None:
            return expression
        if names.knows(expression):
            return expression
        for item in self.query.items:
            if isinstance(item, ast.Item) and item.alias is not None:
                if item.alias.name.lower() == expression.name.name.lower():
                    return item.value
        return expression

    # --- lists ---

    def _items(self, sources: Sources, replacing: Replacing) -> list[Cell]:
        """The columns of the list; the faults of all of them are noted."""
        view, names = sources.view, sources.names
        ranges = Ranges(sources.cells(), view.is_open)
        cells: list[Cell] = []
        has_failed = False
        for item in self.query.items:
            if isinstance(item, ast.Star):
                cells += self._star(sources, item, ranges)
                continue
            try:
                term = term_of(
                    item.value, names, view.queue.schema, self.faults, replacing=replacing
                )
                cells.append(ranges.cell(self._name(item), term))
            except Stop:
                has_failed = True
        if has_failed:
            raise Stop
        taken: set[str] = set()
        for cell in cells:
            if cell.name in taken:
                hint = "give one of them another name with AS"
                stop(self.faults, f'there are two columns "{cell.name}"', self.query.span, hint)
            taken.add(cell.name)
        return cells

    def _star(self, sources: Sources, star: ast.Star, ranges: Ranges) -> list[Cell]:
        names = sources.names
        shown = [c for s in names.sources for c in s.columns]
        if star.owner is not None:
            owner = names.source(star.owner)
            if owner is None:
                stop(self.faults, f'unknown source "{star.owner.name}"', star.owner.span)
            shown = list(owner.columns)
        else:
            covered = frozenset().union(*(m.covers for m in names.merged))
            shown = [*names.merged, *(c for c in shown if c.column not in covered)]
        return [ranges.cell(c.name, Column(c.column, c.type)) for c in shown]

    def _name(self, item: ast.Item) -> str:
        if item.alias is not None:
            return item.alias.name
        match item.value:
            case ast.Reference(name=word):
                return word.name
            case ast.Total(function=word):
                return word.name
            case _:
                stop(self.faults, "this column has no name", item.span, "give it one: ... AS name")

    # --- groups ---

    def _grouped(self, sources: Sources) -> View:
        names = sources.names
        asked_keys = [
            mapped(one, lambda e: self._unaliased(e, names)) for one in self.query.group_by
        ]
        view, ended = self._windowed(sources, asked_keys)
        sources = Sources(view, names)
        schema = view.queue.schema
        ranges = Ranges(sources.cells(), view.is_open)
        grouping = keys = self._keys(asked_keys, names, schema)
        if ended is None and (hours := self._truncated(sources, [term for _, term in keys])):
            truncated, view, ended = hours
            sources = Sources(view, names)
            ranges = Ranges(sources.cells(), view.is_open)
            begin = view.queue.column(COLUMN)
            grouping = [(n, begin if term == truncated else term) for n, term in keys]
        wanted = self._wanted(names, sources)
        groups = Groups(self.build, self.faults, view, ranges, self.name, ended)
        made = groups.grouped(grouping, wanted)
        by_name = {c.name: c.value.name for c in made.cells if isinstance(c.value, Column)}
        by_total = {one.total: by_name[one.name] for one in wanted}

        def replacing(expression: ast.Expression) -> syntax.Expression | None:
            """Aggregates and keys are columns now; other columns are gone."""
            if isinstance(expression, ast.Total):
                return syntax.Name(by_total[expression], expression.span)
            if isinstance(expression, ast.Constant):
                return None
            try:
                asked = mapped(expression, lambda e: self._unaliased(e, names))
                term = term_of(asked, names, schema, [], replacing=_window)
            except Stop:
                term = None
            key = next((n for n, t in keys if t == term), None)
            if key is not None:
                return syntax.Name(key, expression.span)
            if isinstance(expression, ast.Reference):
                if names.resolve(expression, self.faults) is not None:
                    name = expression.name.name
                    message = f'"{name}" is neither grouped by nor inside an aggregate'
                    self.faults.append(Fault(message, expression.span))
                raise Stop
            return None

        found = Sources(made, names)
        if self.query.having is not None:
            found = self._where(found, conjuncts(self.query.having), replacing)
        live = found.view
        # A group that is surely empty stays, with its steps: a view is total, and who joins it
        # would fall back to a group that never was.
        if self.drops and self.query.having is not None:
            live = self.build.without_dropped(live, self.query.span)
        cells = self._items(Sources(live, names), replacing)
        return replace(self.build.made(live, cells, self.name, self.query.span), lasts=view.lasts)

    def _keys(
        self, asked_keys: Sequence[ast.Expression], names: Names, schema: Schema
    ) -> list[tuple[str, Term]]:
        """What is grouped by, with a name for each."""
        keys: list[tuple[str, Term]] = []
        for asked in asked_keys:
            term = term_of(asked, names, schema, self.faults, replacing=_window)
            keys.append((self._key_name(asked, term, len(keys)), term))
        return keys

    def _windowed(
        self, sources: Sources, keys: Sequence[ast.Expression]
    ) -> tuple[View, Queue | None]:
        """The rows once for each window they are in, and the windows that are over."""
        found = [k for k in keys if isinstance(k, ast.Apply) and k.function.name == WINDOW]
        if not found:
            return sources.view, None
        view, window = sources.view, found[0]
        if len(found) > 1:
            stop(self.faults, "a query has one WINDOW", found[1].span)
        term = term_of(window.args[0], sources.names, view.queue.schema, self.faults)
        cell = sources.cells().get(term.name) if isinstance(term, Column) else None
        if cell is None or not cell.is_exact or cell.type != TIME:
            hint = "such as the tick of a stream"
            stop(self.faults, "WINDOW is of a time that never changes", window.span, hint)
        length, step = (a.value for a in window.args[1:] if isinstance(a, ast.Constant))
        assert isinstance(term, Column)
        assert isinstance(length, int)
        assert isinstance(step, int)
        windows = TickWindows(cell.tick_of, length, step)
        made = windowed(self.build, view, term.name, windows)
        ended = None if cell.tick_of is None else over(self.build, made.queue, COLUMN, windows)
        return made, ended

    def _truncated(self, sources: Sources, keys: Sequence[Term]) -> tuple[Term, View, Queue] | None:
        """Groups by the hour or the day of a tick are windows: such a key, if they can be over."""
        view = sources.view
        for key in keys:
            match key:
                case Call("floor_time", (Column(tick), Literal(value=int() as step))) if step > 0:
                    cell = sources.cells().get(tick)
                    if cell is not None and cell.tick_of is not None:
                        window = TickWindows(cell.tick_of, step, step)
                        made = windowed(self.build, view, tick, window)
                        return key, made, over(self.build, made.queue, COLUMN, window)
        return None

    def _key_name(self, expression: ast.Expression, term: Term, number: int) -> str:
        """A key is called as the list calls it, so that it needs no other column."""
        for item in self.query.items:
            if isinstance(item, ast.Item) and item.value == expression and item.alias is not None:
                return item.alias.name
        return term.name if isinstance(term, Column) else f"key.{number + 1}"

    def _wanted(self, names: Names, sources: Sources) -> list[Wanted]:
        shown = [i for i in self.query.items if isinstance(i, ast.Item)]
        found: dict[ast.Total, str] = {}
        for item in shown:
            if isinstance(item.value, ast.Total) and item.value not in found:
                found[item.value] = f"{self._name(item)}.sum"
        having = [self.query.having] if self.query.having is not None else []
        for one in (*(i.value for i in shown), *having):
            for part in walk(one):
                if isinstance(part, ast.Total):
                    found.setdefault(part, f"total.{len(found) + 1}")
        schema = sources.view.queue.schema
        wanted: list[Wanted] = []
        for total, name in found.items():
            term = None
            if total.arg is not None:
                term = term_of(total.arg, names, schema, self.faults)
            wanted.append(Wanted(total, term, name))
        return wanted
