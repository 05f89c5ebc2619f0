"""LATEST: of each group the value at the largest known tick, and that tick.

It is final when no later tick is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Assign,
    Filter,
    Fold,
    Function,
    Join,
    Latest,
    Map,
    Range,
    Rows,
    Update,
)
from millstream.calculus.graph import Variable
from millstream.calculus.terms import Call, Column, Literal, Term, VariableField
from millstream.calculus.types import INTEGER, Field
from millstream.calculus.wiring import Queue
from millstream.languages.smile.build import STEPS, Build
from millstream.languages.smile.cells import FALSE, TRUE, Cell, View, choose, null
from millstream.languages.smile.extent import ANY, MAXTIME, ONE, Size
from millstream.languages.smile.group import limit, settled
from millstream.languages.smile.ranges import Ranges


@dataclass
class LatestRows:
    """Mutable: the rows of a stream on their way to the latest of each group."""

    build: Build
    name: str
    source: View
    stream: Queue

    def select(self, condition: Term) -> None:
        self.stream = self.build.wiring.add(
            Filter(condition), self.stream, name=f"{self.name}_where", origin=condition.span
        )

    def view(self, keys: Sequence[Term], wanted: Sequence[tuple[str, Term, bool]]) -> View:
        """`wanted` has names, terms, and whether the latest is meant or a key."""
        wiring = self.build.wiring
        shown = {term: name for name, term, is_total in wanted if not is_total}
        named = {shown.get(term, f"key.{n}"): term for n, term in enumerate(keys)}
        tick = self.stream.column(self.source.keys[0])
        columns = [Assign(name, term) for name, term in named.items()]
        for name, term, is_total in wanted:
            if is_total:
                columns += [Assign(name, term), Assign(f"{name}_at", tick)]
        rows = wiring.add(Map(tuple(columns)), self.stream, name=f"{self.name}_rows")
        by = tuple(named)
        if self.build.is_live:
            queue = self._largest(columns, by)
        else:
            counted = self._counted(rows, by)
            window: Function = Latest(by) if by else Rows(1)
            queue = wiring.add(window, counted, name=f"{self.name}_latest")
        empty = self._of_nothing(queue, by)
        if not by:
            queue = self.build.never_empty(queue, empty, f"{self.name}_latest")
        is_open = self.build.open_ticks(self.source.streams)
        cells: list[Cell] = []
        given = Ranges({c.value.name: c for c in self.source.cells if isinstance(c.value, Column)},
                       FALSE)  # fmt: skip
        for name, term, is_total in wanted:
            value = queue.column(name)
            extent = given.extent(term)
            if not is_total:
                cells.append(Cell(name, value, value, value, extent, ONE, is_exact=True))
                continue
            low, high = (settled(is_open, limit(end, value.type), value)
                         for end in (extent.least, extent.most))  # fmt: skip
            ticks = Size.named(MAXTIME)
            cells.append(Cell(name, value, low, high, extent, ticks, can_be_null=True))
            at = queue.column(f"{name}_at")
            high = None if is_open == TRUE else choose(is_open, null(at.type), at)
            cells.append(Cell(at.name, at, at, high, ANY, ticks, can_be_null=True))
        groups = View(
            self.name, queue, tuple(cells), self.source.streams, steps=Column(STEPS, INTEGER),
            is_open=is_open, keys=by, defaults=empty if by else None,
        )  # fmt: skip
        return self.build.made(groups, groups.cells, self.name)

    @staticmethod
    def _of_nothing(queue: Queue, by: tuple[str, ...]) -> dict[str, Term]:
        """What an empty group has: nothing is known of it."""
        empty = {f.name: null(f.type) for f in queue.schema if f.name not in by}
        return {**empty, STEPS: Literal(0, INTEGER)}

    def _largest(self, columns: Sequence[Assign], by: tuple[str, ...]) -> Queue:
        """The row of the largest tick of each group, in whatever order they have come."""
        wiring = self.build.wiring
        order = [f".order{n}" for n, _ in enumerate(self.source.keys)]
        keys = [
            Assign(n, self.stream.column(k)) for n, k in zip(order, self.source.keys, strict=True)
        ]
        rows = wiring.add(Map((*columns, *keys)), self.stream, name=f"{self.name}_ticks")
        found = wiring.add(Range(None), rows, name=f"{self.name}_known")
        steps = wiring.add(
            Aggregate(by, (Aggregation(STEPS, "count", None),)), found, name=f"{self.name}_steps"
        )
        for name in order:
            largest = Aggregation(".largest", "max", found.column(name))
            tops = wiring.add(Aggregate(by, (largest,)), found, name=f"{self.name}_largest")
            pairs = (*((n, n) for n in by), (name, ".largest"))
            found = wiring.add(Join(pairs, nulls_match=True), found, tops, name=self.name)
            found = wiring.columns(found, {n: n for n in rows.schema.names}, self.name)
        shown = {n: n for n in rows.schema.names if n not in order}
        found = wiring.columns(found, shown, self.name)
        pairs = tuple((n, n) for n in by)
        return wiring.add(Join(pairs, nulls_match=True), found, steps, name=self.name)

    def _counted(self, rows: Queue, by: tuple[str, ...]) -> Queue:
        """The rows, each with how many of its group have come."""
        wiring = self.build.wiring
        variable = wiring.fresh_variable(f"{self.name}_count")
        count = VariableField(variable, "n", INTEGER)
        one = Update(variable, "n", Call("+", (count, Literal(1, INTEGER)), INTEGER))
        kept = tuple(Assign(f.name, rows.column(f.name)) for f in rows.schema)
        fold = Fold(by, None, (one,), (*kept, Assign(STEPS, count)))
        state = Variable(variable, (Field("n", INTEGER),), (0,))
        return wiring.fold(fold, rows, state, f"{self.name}_counted")
