"""The tree of a rule file with its conditions typed, and the requirements at its leaves."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from millstream.calculus.judging import Requirement, Shown
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, TEXT
from millstream.errors import Fault, listing, suggest
from millstream.languages.language import Expected
from millstream.languages.rules import logic
from millstream.languages.rules.ast import Location, Named, Require, Statement, Text, When, written
from millstream.languages.rules.check import Checker
from millstream.languages.rules.domain import USUAL_SEVERITIES, ColumnPath, Domain, Entity
from millstream.languages.rules.typed import Truthful
from millstream.source import Span


@dataclass(frozen=True, slots=True)
class Node:
    """A statement; `kind` is require, when or location."""

    kind: str
    text: str
    condition: Truthful
    shown: tuple[Shown, ...]
    children: tuple[Node, ...]
    span: Span | None
    #: The line on which it stands, and more where several requirements stand on one.
    place: str
    #: Of a requirement what its author says if it fails.
    message: str = ""
    #: How much it matters that it fails; empty where nothing is said of severity.
    level: str = ""
    rank: int = 0

    @property
    def spoken(self) -> str:
        return f"{self.kind} {self.text}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A requirement and the statements that it stands in, outermost first."""

    node: Node
    above: tuple[Node, ...]

    @property
    def formula(self) -> logic.Formula:
        return self.node.condition.formula

    @property
    def conditions(self) -> tuple[logic.Formula, ...]:
        return tuple(n.condition.formula for n in self.above)

    @property
    def place(self) -> str:
        return self.node.place

    @property
    def rank(self) -> int:
        return self.node.rank

    def requirement(self, conditions: tuple[Node, ...] | None = None) -> Requirement:
        """As the calculus wants it, under some of its conditions."""
        above = self.above if conditions is None else conditions
        when = _all([n.condition.term for n in above])
        shown = self.node.shown
        labels = {s.label for s in shown}
        asked = {s.label: s for n in above for s in n.shown if s.label not in labels}
        said = f"{self.node.message}: " if self.node.message else ""
        return Requirement(
            self.place, said + self.node.text, when, self.node.condition.term, shown,
            tuple(asked.values()), self.node.span, self.node.level,
        )  # fmt: skip


def _all(terms: list[Term]) -> Term | None:
    if not terms:
        return None
    return reduce(lambda one, other: Call("and", (one, other), BOOLEAN), terms)


def _any(terms: list[Term]) -> Term:
    return reduce(lambda one, other: Call("or", (one, other), BOOLEAN), terms)


def rules_in(nodes: tuple[Node, ...], above: tuple[Node, ...] = ()) -> Iterator[Rule]:
    """All requirements of a tree, in order."""
    for node in nodes:
        if node.kind == "require":
            yield Rule(node, above)
        else:
            yield from rules_in(node.children, (*above, node))


@dataclass
class Resolver:
    """Mutable: through its checker, which collects faults."""

    domain: Domain
    checker: Checker
    #: The levels of severity, the least first; none if nothing is said of it.
    severities: tuple[str, ...] = ()
    #: The locations that are named.
    places: list[Text] = field(default_factory=list)
    #: How many requirements stand at each place: Python makes several in a loop.
    crowds: Counter[str] = field(default_factory=Counter)
    #: The files that the rules are in; in Python there may be several.
    files: list[str] = field(default_factory=list)

    def place(self, span: Span | None, *, is_requirement: bool = False) -> str:
        """Where something stands; no two requirements have one place."""
        line = "?"
        if span is not None:
            name = span.source.name
            self.files += [name] if name not in self.files else []
            line = str(span.source.line_and_column(span.start)[0])
            if self.files.index(name):
                line = f"{Path(name).name}:{line}"
        self.crowds[line] += is_requirement
        return (
            line if self.crowds[line] < 2 or not is_requirement else f"{line} ({self.crowds[line]})"
        )

    def nodes(self, statements: tuple[Statement, ...]) -> tuple[Node, ...]:
        nodes = [self.node(statement) for statement in statements]
        return tuple(n for n in nodes if n is not None)

    def definitions(self, named: tuple[Named, ...]) -> None:
        """What is defined is checked even if nothing uses it."""
        for one in named:
            self.checker.typed(one.value)

    def node(self, statement: Statement) -> Node | None:
        match statement:
            case Require(condition, message, span, severity):
                checked = self.checker.condition(condition, "a requirement")
                if checked is None:
                    return None
                shown = tuple(self.checker.shown(condition))
                place = self.place(span, is_requirement=True)
                text = written(condition)
                level = self.level(severity, span)
                rank = self.severities.index(level) if level in self.severities else 0
                return Node("require", text, checked, shown, (), span, place, message, level, rank)
            case When(condition, body, span):
                checked = self.checker.condition(condition, "a condition")
                children = self.nodes(body)
                if checked is None:
                    return None
                shown = tuple(self.checker.shown(condition))
                return Node(
                    "when", written(condition), checked, shown, children, span, self.place(span)
                )
            case Location(names, body, span):
                here = self.location(names, span)
                children = self.nodes(body)
                if here is None:
                    return None
                text = ", ".join(f'"{n.value}"' for n in names)
                shown = tuple(
                    Shown(str(p), "", Column(str(p), TEXT)) for p in self.domain.locations
                )
                return Node("location", text, here, shown, children, span, self.place(span))

    def level(self, severity: str, span: Span | None) -> str:
        """What fails without a word of how severe that is, is as severe as can be."""
        if severity and severity not in self.severities:
            near = suggest(severity, self.severities) or ""
            hint = f"there are: {listing(self.severities)}. {near}".strip()
            self.checker.fail(f'unknown severity "{severity}"', span, hint)
        return severity or (self.severities[-1] if self.severities else "")

    def location(self, names: tuple[Text, ...], span: Span | None) -> Truthful | None:
        """A subject is at a place if one of the columns for locations names it."""
        if not self.domain.locations:
            self.checker.fail("this domain has no locations", span)
            return None
        self.places += names
        known = known_locations(self.domain)
        for name in names:
            if known is not None and name.value not in known:
                near = suggest(name.value, known) or ""
                hint = f"there are: {listing(known)}. {near}".strip()
                self.checker.fail(_nobody_at(self.domain, name), name.span, hint)
        places = [n.value for n in names]
        tests = [self._located(path, places) for path in self.domain.locations]
        formula = tuple(f for test in tests for f in test[1])
        whole = formula[0] if len(formula) == 1 else logic.Some(formula)
        return Truthful(_any([term for term, _ in tests]), whole)

    def _located(
        self, path: ColumnPath, places: list[str]
    ) -> tuple[Term, tuple[logic.Formula, ...]]:
        """Whether a column names one of some places."""
        name, column = str(path), Column(str(path), TEXT)
        entity = self.domain.entities[path.entity]
        term = _any([Call("==", (column, Literal(p, TEXT)), BOOLEAN) for p in places])
        if entity.name == self.domain.subject or entity.key is None:
            return term, tuple(logic.Member(name, p) for p in places)
        # A berth that names no basin is in none; of a berth that is not known we cannot say.
        key: Term = Column(f"{entity.name}.{entity.key}", entity.columns[entity.key].type)
        if key.type == INTEGER:
            key = Call("number", (key,), NUMBER)
        is_told = Call("not", (Call("is_null", (column,), BOOLEAN),), BOOLEAN)
        is_unknown = Call("is_null", (key,), BOOLEAN)
        guard = Call("or", (is_told, is_unknown), BOOLEAN)
        # So it is not what `berth.basin == ...` is, which nothing decides while it is null.
        formula = tuple(logic.Member(f"location by {name}", p) for p in places)
        return Call("and", (term, guard), BOOLEAN), formula


def severities_of(statements: tuple[Statement, ...], domain: Domain) -> tuple[str, ...]:
    """The levels of the domain, or the usual ones if a requirement speaks of its severity."""
    is_said = any(isinstance(s, Require) and s.severity for s in _all_of(statements))
    return domain.severities or (USUAL_SEVERITIES if is_said else ())


def _all_of(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in statements:
        yield statement
        if not isinstance(statement, Require):
            yield from _all_of(statement.body)


def _located(domain: Domain) -> str:
    """The entity whose key or columns name locations."""
    for entity in domain.entities.values():
        if entity.of in domain.locations:
            return entity.name
    return domain.subject


def _nobody_at(domain: Domain, name: Text) -> str:
    return f'no {_located(domain)} is at "{name.value}"'


def expected_places(domain: Domain, names: Iterable[Text]) -> tuple[Expected, ...]:
    """The locations that are named, to be looked for in the inputs when they are known."""
    columns = tuple(
        (entity.input, column)
        for path in domain.locations
        for entity, column in _owners(domain, path)
        if entity.name != domain.subject and column is not None
    )
    if len(set(columns)) < len(domain.locations):
        return ()  # a subject may be at a place that nothing else tells of
    distinct = {name.value: name for name in reversed(list(names))}
    return tuple(
        Expected(name.value, columns, Fault(_nobody_at(domain, name), name.span))
        for name in reversed(distinct.values())
    )


def _owners(domain: Domain, path: ColumnPath) -> list[tuple[Entity, str | None]]:
    """The entities whose rows tell which locations there are, and by which column."""
    linked = [e for e in domain.entities.values() if e.of == path]
    return [(e, e.key) for e in linked] or [(domain.entities[path.entity], path.column)]


def known_locations(domain: Domain) -> list[str] | None:
    """All names of locations, if the domain says in which files they stand."""
    names: list[str] = []
    for path in domain.locations:
        for entity, column in _owners(domain, path):
            values = _values(domain.folder, entity.source, column)
            if values is None:
                return None
            names += values
    return list(dict.fromkeys(names))


def _values(folder: Path | None, source: str | None, column: str | None) -> list[str] | None:
    """A column of a CSV file; None if there is no such file, which running it will tell."""
    if folder is None or source is None or column is None or not source.endswith(".csv"):
        return None
    path = folder / source
    if not path.exists():
        return None
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [row[column] for row in csv.DictReader(file) if row.get(column)]
