"""What a subscriber wants to see of a view: which rows, and which columns of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from millstream.broker.evaluate import Changes
from millstream.broker.records import plain
from millstream.calculus.terms import Term
from millstream.calculus.types import BOOLEAN, TIME_COLUMN, Row, Schema
from millstream.errors import CheckError, Fault, UsageError
from millstream.languages.served import FINAL_COLUMN, MASK_COLUMN, ServedView
from millstream.meaning.scalars import evaluate
from millstream.queries.read import QueryReader
from millstream.queries.scope import Names, Seen, Visible
from millstream.queries.terms import asks, term_of
from millstream.queries.tokens import Cursor, Stop, tokens_of
from millstream.source import Source

#: A condition is never longer.
LONGEST = 4096


@dataclass(frozen=True)
class Asked:
    """A selection and a projection of a view."""

    view: ServedView
    where: Term | None = None
    #: The condition as it was written.
    text: str = ""
    final_only: bool = False
    has_ranges: bool = False
    has_mask: bool = False

    def shown(self, changes: Changes) -> Changes:
        """The changes that can be seen of some; what differs elsewhere only is none."""
        made: Changes = {}
        columns = self.columns
        for row, weight in changes.items():
            if self._lets_in(row):
                seen = tuple(row[n] for n in columns)
                made[seen] = made.get(seen, 0) + weight
        return {row: weight for row, weight in made.items() if weight}

    @property
    def digest(self) -> str:
        """What tells this question from others of the view."""
        said = repr((self.view.name, self.text, self.final_only, self.has_ranges, self.has_mask))
        return hashlib.sha256(said.encode()).hexdigest()[:8]

    @property
    def columns(self) -> list[int]:
        return [n for n, name in enumerate(self.view.schema.names) if self._has(name)]

    def _has(self, name: str) -> bool:
        if name in self.view.bounds:
            return self.has_ranges
        return self.has_mask or name != MASK_COLUMN

    def _lets_in(self, row: Row) -> bool:
        schema = self.view.schema
        if self.final_only and row[schema.index(FINAL_COLUMN)] is not True:
            return False
        if self.where is None:
            return True
        return evaluate(self.where, dict(zip(schema.names, row, strict=True))) is True

    def record(self, seen: Row) -> dict[str, Any]:
        """A row for JSON; the mask says whether it is in for ever (T) or for now (t)."""
        names = [self.view.schema.names[n] for n in self.columns]
        made = {n: plain(v) for n, v in zip(names, seen, strict=True)}
        if MASK_COLUMN in made:
            made["_mask"] = "T" if made.pop(MASK_COLUMN) else "t"
        return made

    def records(self, rows: Changes) -> list[dict[str, Any]]:
        return [self.record(row) for row, count in rows.items() for _ in range(count)]

    def changes(self, rows: Changes) -> list[dict[str, Any]]:
        """What went comes first, so that a key is never there twice."""
        ordered: Iterable[tuple[Row, int]] = sorted(rows.items(), key=lambda one: one[1])
        return [{"weight": weight, "row": self.record(row)} for row, weight in ordered]


def asked(
    view: ServedView, where: str | None = None, final: str | None = None, *,
    has_ranges: bool = False, has_mask: bool = False,
) -> Asked:  # fmt: skip
    """What is asked for in words, or all that is wrong with it."""
    if final not in (None, "all", "only"):
        raise UsageError(f'"{final[:40]}" is neither all nor only', hint="write final=only")
    if final == "only" and not view.can_be_final:
        hint = "a stream with UNTIL, a WINDOW or a key that is a tick can make rows final"
        raise UsageError(f"no row of {view.name} can ever become final", hint=hint)
    term = None if where is None else condition(where, view.schema)
    return Asked(view, term, where or "", final == "only", has_ranges, has_mask)


def condition(text: str, schema: Schema) -> Term:
    """A condition as WHERE has it, over the columns of a view."""
    source = Source("where", text[: LONGEST + 1])
    if len(text) > LONGEST:
        raise UsageError(f"a condition has at most {LONGEST:,} characters")
    faults: list[Fault] = []
    try:
        cursor = Cursor(source, tokens_of(source, hashed=True), faults)
        expression = QueryReader(cursor).terms.term()
        if not cursor.is_done:
            cursor.expected("the end of the condition")
        if asks(expression):
            raise UsageError("a condition on rows cannot ask other views")
        seen = tuple(Seen(f.name, f.name, f.type) for f in schema if f.name != TIME_COLUMN)
        return term_of(expression, Names((Visible("view", seen),)), schema, faults, wanted=BOOLEAN)
    except Stop:
        raise CheckError(faults) from None
