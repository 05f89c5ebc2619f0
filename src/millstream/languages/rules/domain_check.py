"""Whether a domain makes sense: its links lead somewhere, its conditions are conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from millstream.calculus.types import INTEGER, NUMBER, TEXT
from millstream.errors import Fault
from millstream.languages.rules.ast import Expression
from millstream.languages.rules.beside import ColumnsBeside
from millstream.languages.rules.check import Checker
from millstream.languages.rules.domain import Domain, Entity
from millstream.languages.rules.pairs import OTHER
from millstream.source import Span

#: Where some words stand one after the other in the file.
Place = Callable[..., Span]


def misfits(domain: Domain, place: Place) -> list[Fault]:
    """All that does not fit together, at its place in the file."""
    faults = [*_links(domain, place), *_circles(domain, place), *_conditions(domain, place),
             *_places(domain, place)]  # fmt: skip
    if OTHER in domain.entities:
        hint = f"inside a total it stands for another {domain.subject}; choose another name"
        faults.append(Fault(f'no entity can be called "{OTHER}"', place("entity", OTHER), hint))
    inputs = Counter(e.input for e in domain.entities.values())
    faults += [
        Fault(f'two entities read the input "{name}"', place("entity", name))
        for name, count in inputs.items()
        if count > 1
    ]
    return faults


def _places(domain: Domain, place: Place) -> Iterator[Fault]:
    """Columns for locations must be texts that every subject has."""
    for path in domain.locations:
        where = place("locations", str(path))
        if not domain.is_reachable(path.entity):
            hint = f"say in [entity.{path.entity}] how it is found, with `of` or `nearest`"
            yield Fault(f"a {domain.subject} has no {path.entity} that could name a location",
                        where, hint)  # fmt: skip
        elif domain.column(path).type != TEXT:
            yield Fault(f"{path} names locations, so it must be a text", where)


def _links(domain: Domain, place: Place) -> Iterator[Fault]:
    for entity in domain.entities.values():
        where = place("entity", entity.name)
        if (entity.of or entity.nearest or entity.forecast) and entity.key is None:
            yield Fault(f'"{entity.name}" is found by its key, but has none', where)
            continue
        if entity.of is not None and entity.key is not None:
            wanted = domain.column(entity.of).type
            if entity.columns[entity.key].type != wanted:
                message = f"{entity.of} is {wanted}, but the key of {entity.name} is not"
                yield Fault(message, place("entity", entity.name, "of"))
        if entity.keep is not None and (entity.is_once or entity.is_table):
            yield Fault(f'"{entity.name}" is no log, so nothing of it is repeated',
                        place("entity", entity.name, "keep"), "leave out `keep`")  # fmt: skip
        if entity.nearest is not None:
            yield from _nearest(domain, entity, place("entity", entity.name, "nearest"))
        elif entity.forecast is not None and entity.of is None:
            hint = "add `of` or `nearest`"
            yield Fault(f"it is not said how a {domain.subject} finds its {entity.name}", where,
                        hint)  # fmt: skip


def _nearest(domain: Domain, entity: Entity, where: Span) -> Iterator[Fault]:
    nearest = entity.nearest
    assert nearest is not None and entity.key is not None
    to, among = (domain.entities[n] for n in (nearest.to, nearest.among))
    if not domain.is_reachable(to.name) or to.is_singleton or among.is_singleton:
        yield Fault(f"a {domain.subject} has no {to.name} that something could be near to", where)
        return
    assert among.key is not None
    if among.columns[among.key].type != entity.columns[entity.key].type:
        message = f"the keys of {entity.name} and of {among.name} have different types"
        yield Fault(message, where)
    for one in (to, among):
        for column in nearest.by:
            if one.columns[column].type not in (NUMBER, INTEGER):
                yield Fault(f"{one.name}.{column} must be a number to measure distances", where)
            elif one.columns[column].unit.factor != to.columns[column].unit.factor:
                yield Fault(f"{column} has different units in {to.name} and {one.name}", where)


def _circles(domain: Domain, place: Place) -> Iterator[Fault]:
    """Entities that are found through themselves."""
    reached = {domain.subject}
    waiting = [e for e in domain.entities.values() if domain.is_reachable(e.name)]
    while ready := [e for e in waiting if e.found_by() <= reached]:
        reached |= {e.name for e in ready}
        waiting = [e for e in waiting if e.name not in reached]
    for entity in waiting:
        if entity.name != domain.subject:
            yield Fault(f'"{entity.name}" is found through itself or through what has no link',
                        place("entity", entity.name))  # fmt: skip


def _conditions(domain: Domain, place: Place) -> Iterator[Fault]:
    asked: list[tuple[Expression | None, str | None, tuple[str, ...]]] = [
        (domain.departed, domain.subject, ("entity", domain.subject, "departed"))
    ]
    for entity in domain.entities.values():
        if entity.nearest is not None:
            place_ = ("entity", entity.name, "where")
            asked.append((entity.nearest.where, entity.nearest.among, place_))
    for expression, only, words in asked:
        if expression is not None:
            faults: list[Fault] = []
            Checker(domain, faults, only=only).condition(expression, "a condition")
            yield from (Fault(f.message, place(*words), f.hint) for f in faults)
    for name, named in domain.names.items():
        faults = []
        Checker(domain, faults, memory=ColumnsBeside()).typed(named.value)
        yield from (Fault(f.message, place("define", name), f.hint) for f in faults)
