"""Whose column is meant: the sources of a FROM clause and the columns they have."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.calculus.types import Type
from millstream.errors import Fault, listing, suggest
from millstream.languages.cql.ast import Reference, Word


@dataclass(frozen=True, slots=True)
class Seen:
    """A column as a query sees it, and what it is called on the queue."""

    name: str
    column: str
    type: Type


@dataclass(frozen=True, slots=True)
class Visible:
    """A source of a FROM clause under the name by which the query knows it."""

    name: str
    columns: tuple[Seen, ...]

    def find(self, word: Word) -> Seen | None:
        """By letter, or if nothing has that name by letters of any case."""
        exact = [c for c in self.columns if c.name == word.name]
        if exact or word.is_quoted:
            return exact[0] if exact else None
        loose = [c for c in self.columns if c.name.lower() == word.name.lower()]
        return loose[0] if len(loose) == 1 else None


@dataclass(frozen=True, slots=True)
class Names:
    """All sources that a query sees."""

    sources: tuple[Visible, ...]

    def source(self, word: Word) -> Visible | None:
        exact = [s for s in self.sources if s.name == word.name]
        loose = [s for s in self.sources if s.name.lower() == word.name.lower()]
        return exact[0] if exact else loose[0] if len(loose) == 1 else None

    def candidates(self, reference: Reference) -> list[tuple[Visible, Seen]]:
        """Every column that a reference may mean."""
        sources = self.sources
        if reference.owner is not None:
            owner = self.source(reference.owner)
            sources = (owner,) if owner is not None else ()
        return [(s, found) for s in sources if (found := s.find(reference.name)) is not None]

    def knows(self, reference: Reference) -> bool:
        return bool(self.candidates(reference))

    def resolve(self, reference: Reference, faults: list[Fault]) -> Seen | None:
        """The column that is meant, or a fault that says why none is."""
        found = self.candidates(reference)
        if len({seen.column for _, seen in found}) == 1:
            return found[0][1]
        faults.append(self._ambiguous(reference, found) if found else self._unknown(reference))
        return None

    def _ambiguous(self, reference: Reference, found: list[tuple[Visible, Seen]]) -> Fault:
        name = reference.name.name
        written = [f"{source.name}.{seen.name}" for source, seen in found]
        message = f'"{name}" is ambiguous: {" and ".join(s.name for s, _ in found)} have it'
        return Fault(message, reference.span, f"write {' or '.join(written)}")

    def _unknown(self, reference: Reference) -> Fault:
        owner = reference.owner
        if owner is not None and self.source(owner) is None:
            names = [s.name for s in self.sources]
            near = suggest(owner.name, names)
            hint = f"the FROM clause has: {listing(names)}. {near or ''}".strip()
            return Fault(f'unknown source "{owner.name}"', owner.span, hint)
        known = self.source(owner) if owner is not None else None
        asked = (known,) if known is not None else self.sources
        has = "; ".join(f"{s.name} has: {listing(c.name for c in s.columns)}" for s in asked)
        near = suggest(reference.name.name, [c.name for s in asked for c in s.columns])
        hint = f"{has}. {near or ''}".strip()
        return Fault(f'unknown column "{reference.name.name}"', reference.name.span, hint)
