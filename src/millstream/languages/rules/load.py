"""The whole of the rule language: from the text of a file to what it means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from millstream.errors import CheckError, Fault, ParseError, UnitError
from millstream.languages.language import Translation
from millstream.languages.rules.ast import Named, Rules, Text
from millstream.languages.rules.beside import Beside, ColumnsBeside
from millstream.languages.rules.check import Checker, UnitFault
from millstream.languages.rules.domain import Domain
from millstream.languages.rules.domain_file import load_domain
from millstream.languages.rules.read import domain_named, read_rules
from millstream.languages.rules.reduce import Reduced, faults_of, idle, reduced
from millstream.languages.rules.resolve import (
    Node,
    Resolver,
    expected_places,
    rules_in,
    severities_of,
)
from millstream.languages.rules.translate import AskedFacts, sources_of, translate
from millstream.source import Source, Span


@dataclass(frozen=True, slots=True)
class Checked:
    """Rules that mean something: their tree, and what is left of them to be run."""

    domain: Domain
    nodes: tuple[Node, ...]
    reduced: Reduced
    folder: Path
    span: Span | None = None
    warnings: tuple[Fault, ...] = ()
    places: tuple[Text, ...] = ()
    beside: tuple[Beside, ...] = ()
    severities: tuple[str, ...] = ()


def load(source: Source) -> Translation:
    """The verified program of a text, or an error with every fault in it."""
    return translated(check_text(source))


def translated(checked: Checked) -> Translation:
    asked = AskedFacts(checked.reduced.requirements, checked.beside, checked.severities)
    program = translate(checked.domain, asked, checked.span)
    sources = sources_of(checked.domain, program, checked.folder)
    return Translation(
        program, sources, notes=checked.reduced.notes, warnings=checked.warnings,
        expected=expected_places(checked.domain, checked.places),
    )  # fmt: skip


def check_text(source: Source) -> Checked:
    """Read and check a text; all that can be said of it is said at once."""
    folder = Path(source.name).parent
    name, span = domain_named(source)
    domain = load_domain(name, folder, span)
    faults: list[Fault] = []
    read = read_rules(source, faults, domain.names, domain.words())
    is_syntax = bool(faults)
    whole = Span(source, 0, 0)
    checked = _checked(read.rules, domain, faults, read.lost, read.definitions, folder, whole)
    if checked is None:
        raise _error(faults, is_syntax=is_syntax)
    return checked


def check_tree(rules: Rules, domain: Domain, folder: Path) -> Checked:
    """Check a tree that was built in Python."""
    faults: list[Fault] = []
    checked = _checked(rules, domain, faults, frozenset(), (), folder, None)
    if checked is None:
        raise _error(faults, is_syntax=False)
    return checked


def _checked(
    rules: Rules,
    domain: Domain,
    faults: list[Fault],
    lost: frozenset[str],
    definitions: tuple[Named, ...],
    folder: Path,
    span: Span | None,
) -> Checked | None:
    spans = {d.name: d.span for d in definitions if d.span is not None}
    later = {name: s.source.line_and_column(s.start)[0] for name, s in spans.items()}
    memory = ColumnsBeside()
    checker = Checker(domain, faults, lost, later=later, memory=memory)
    resolver = Resolver(domain, checker, severities_of(rules.statements, domain))
    resolver.definitions(definitions)
    nodes = resolver.nodes(rules.statements)
    all_rules = list(rules_in(nodes))
    if not all_rules and not faults:
        faults.append(Fault("there is no requirement here", span, "write: require ..."))
    faults += faults_of(all_rules)
    if faults:
        return None
    places = tuple(resolver.places)
    return Checked(
        domain, nodes, reduced(all_rules), folder, span, tuple(idle(all_rules)), places,
        memory.all(), resolver.severities,
    )  # fmt: skip


def _error(faults: list[Fault], *, is_syntax: bool) -> ParseError | CheckError:
    ordered = sorted(faults, key=lambda f: f.span.start if f.span else -1)
    if is_syntax:
        return ParseError(ordered)
    if all(isinstance(f, UnitFault) for f in ordered):
        return UnitError(ordered)
    return CheckError(ordered)
