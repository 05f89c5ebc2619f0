"""Whose column is meant: the sources of a FROM clause and the columns they have."""

from __future__ import annotations

from dataclasses import dataclass, replace

from millstream.calculus.types import TIME_COLUMN, Type, folded_name
from millstream.errors import Fault, listing, suggest
from millstream.queries.ast import Reference, Word

#: What the time of a row, which queries see as `_time`, is called on queues.
ROW_TIME = "_time.row"


@dataclass(frozen=True, slots=True)
class Seen:
    """A column as a query sees it, and what it is called on the queue.

    One that USING has made of several covers these. One that is nothing but NULL `is_null`.
    """

    name: str
    column: str
    type: Type
    covers: frozenset[str] = frozenset()
    is_null: bool = False


def find(columns: tuple[Seen, ...], word: Word) -> Seen | None:
    """By letter, or if nothing has that name by letters of any case, with _ for blanks."""
    exact = [c for c in columns if c.name == word.name]
    if exact or word.is_quoted:
        return exact[0] if exact else None
    loose = [c for c in columns if folded_name(c.name) == folded_name(word.name)]
    return loose[0] if len(loose) == 1 else None


@dataclass(frozen=True, slots=True)
class Visible:
    """A source of a FROM clause under the name by which the query knows it."""

    name: str
    columns: tuple[Seen, ...]

    def marked(self, mark: str, kept: frozenset[str]) -> Visible:
        """With only some of the columns of the queue, which are called otherwise there."""
        columns = (replace(c, column=mark + c.column) for c in self.columns if c.column in kept)
        return replace(self, columns=tuple(columns))


@dataclass(frozen=True, slots=True)
class Names:
    """All sources that a query sees.

    `merged` are the columns of USING, which have no owner; `outer` is what the query around
    sees, and `unreadable` what it sees but this one cannot read.
    """

    sources: tuple[Visible, ...] = ()
    merged: tuple[Seen, ...] = ()
    outer: Names | None = None
    unreadable: Names | None = None

    def source(self, word: Word) -> Visible | None:
        exact = [s for s in self.sources if s.name == word.name]
        loose = [s for s in self.sources if folded_name(s.name) == folded_name(word.name)]
        return exact[0] if exact else loose[0] if len(loose) == 1 else None

    def candidates(self, reference: Reference) -> list[tuple[str, Seen]]:
        """Every column that a reference may mean, with its owner; those near hide those around."""
        sources = self.sources
        if reference.owner is not None:
            owner = self.source(reference.owner)
            sources = (owner,) if owner is not None else ()
        elif (merged := find(self.merged, reference.name)) is not None:
            return [("", merged)]
        near = [(s.name, c) for s in sources if (c := find(s.columns, reference.name)) is not None]
        is_near = bool(near) or bool(sources and reference.owner)
        return near if is_near or self.outer is None else self.outer.candidates(reference)

    def knows(self, reference: Reference) -> bool:
        return bool(self.candidates(reference))

    def marked(self, mark: str, kept: frozenset[str]) -> Names:
        """What a query around sees, with only some columns of its queue, called otherwise."""
        return Names(
            tuple(s.marked(mark, kept) for s in self.sources),
            Visible("", self.merged).marked(mark, kept).columns,
            self.outer and self.outer.marked(mark, kept),
        )

    def resolve(self, reference: Reference, faults: list[Fault]) -> Seen | None:
        """The column that is meant, or a fault that says why none is."""
        matches = self.candidates(reference)
        if len({seen.column for _, seen in matches}) == 1:
            return matches[0][1]
        faults.append(self._ambiguous(reference, matches) if matches else self._unknown(reference))
        return None

    def _ambiguous(self, reference: Reference, matches: list[tuple[str, Seen]]) -> Fault:
        name = reference.name.name
        written = [f"{owner}.{seen.name}" for owner, seen in matches]
        message = f'"{name}" is ambiguous: {" and ".join(owner for owner, _ in matches)} have it'
        return Fault(message, reference.span, f"write {' or '.join(written)}")

    def _unknown(self, reference: Reference) -> Fault:
        owner = reference.owner
        if self.unreadable is not None and self.unreadable.knows(reference):
            name = reference.span.text
            message = f'"{name}" is of the query around, which cannot be read here'
            hint = "it can be read in WHERE, in aggregates and in subqueries of these; not by a "
            hint += "query with LIMIT, UNION, EXCEPT or INTERSECT, nor by one in FROM"
            return Fault(message, reference.span, hint)
        if owner is not None and self.source(owner) is None:
            names = [s.name for s in self.sources]
            near = suggest(owner.name, names)
            hint = f"the FROM clause has: {listing(names)}. {near or ''}".strip()
            return Fault(f'unknown source "{owner.name}"', owner.span, hint)
        if reference.name.name == TIME_COLUMN:
            message = "only the rows of a stream have a time"
            hint = "take it along where the stream is read: SELECT _time AS at, ... FROM stream"
            return Fault(message, reference.span, hint)
        known = self.source(owner) if owner is not None else None
        asked = (known,) if known is not None else self.sources
        has = "; ".join(f"{s.name} has: {listing(c.name for c in s.columns)}" for s in asked)
        near = suggest(reference.name.name, [c.name for s in asked for c in s.columns])
        hint = f"{has}. {near or ''}".strip()
        return Fault(f'unknown column "{reference.name.name}"', reference.name.span, hint)
