"""Relations that have no row in common, as far as the functions of their operators tell.

A row that was looked up and not found has no partner; a row that was made of a row of another
relation, or paired with one, has its values. If both are said of the same columns of the same
relation, then no row of the one is among the rows of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from millstream.calculus import functions
from millstream.calculus.graph import Operator, Program
from millstream.calculus.terms import Call, Column, Term

#: A queue, and some of its columns in the order of others that they have become.
Place = tuple[str, tuple[str, ...]]


class Origins:
    """Where the values of a program's relations come from."""

    def __init__(self, program: Program) -> None:
        self.producers: Mapping[str, Operator] = program.producers()
        self.types = program.queue_types()

    def are_apart(self, one: str, other: str, columns: tuple[str, ...]) -> bool:
        """Whether no row of two relations has the same values in these columns."""
        return self._lacks(one, other, columns) or self._lacks(other, one, columns)

    def _lacks(self, one: str, other: str, columns: tuple[str, ...]) -> bool:
        for lacking, place in self._not_found(one, columns):
            asked = set(self._behind(place, is_exact=True))
            if not asked.isdisjoint(self._behind((other, lacking), is_exact=False)):
                return True
        return False

    def _not_found(
        self, queue: str, columns: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, ...], Place]]:
        """Of some columns those that were looked up in vain, and where."""
        for reached, names in self._behind((queue, columns), is_exact=False):
            select = self.producers.get(reached)
            if select is None or not isinstance(select.function, functions.Filter):
                continue
            lookup = self.producers.get(select.inputs[0])
            if lookup is None or not isinstance(lookup.function, functions.Lookup):
                continue
            function = lookup.function
            # A null that matches nothing is not found, though it may be there.
            if not (_is_not(select.function.condition, function.column) and function.nulls_match):
                continue
            if function.where is None and all(ours in names for ours, _ in function.on):
                lacking = tuple(columns[names.index(ours)] for ours, _ in function.on)
                yield lacking, (lookup.inputs[1], tuple(theirs for _, theirs in function.on))

    def _behind(self, place: Place, *, is_exact: bool) -> Iterator[Place]:
        """A place, and those of whose rows its rows have the values; if exact, of every row."""
        waiting, seen = [place], set[Place]()
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            yield place
            producer = self.producers.get(place[0])
            if producer is not None:
                waiting += self._before(producer, place[1], is_exact=is_exact)

    def _before(self, op: Operator, columns: tuple[str, ...], *, is_exact: bool) -> list[Place]:
        match op.function:
            case functions.Duplicate() | functions.Distinct():
                return [(op.inputs[0], columns)]
            case functions.Map(made):
                names = {m.name: m.term.name for m in made if isinstance(m.term, Column)}
                return _renamed(op.inputs[0], columns, names)
            case functions.Filter() if not is_exact:
                return [(op.inputs[0], columns)]
            case functions.Lookup(answer) if answer not in columns:
                return [(op.inputs[0], columns)]
            case functions.Join(on) if not is_exact:
                left, right = (self.types[q].schema.names for q in op.inputs)
                theirs = {n: n for n in right} | dict(on)
                return [
                    *_renamed(op.inputs[0], columns, {n: n for n in left}),
                    *_renamed(op.inputs[1], columns, theirs),
                ]
        return []


def _renamed(queue: str, columns: tuple[str, ...], names: Mapping[str, str]) -> list[Place]:
    return [(queue, tuple(names[c] for c in columns))] if names.keys() >= set(columns) else []


def _is_not(condition: Term, column: str) -> bool:
    match condition:
        case Call("not", (Column(name),)):
            return name == column
    return False
