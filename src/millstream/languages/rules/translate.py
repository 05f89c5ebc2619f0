"""From rules and their domain to a program: facts, a judge, and what has changed.

status     a relation: each subject with its status and the reasons
warnings   a stream: what is worth hearing about
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from millstream.calculus.functions import Assign, Changes, Filter, Judge, Map
from millstream.calculus.graph import Program
from millstream.calculus.judging import FAILED, SEVERITY, STATUS, VERDICT, Requirement
from millstream.calculus.terms import Call, Literal, Term, columns_read
from millstream.calculus.types import BOOLEAN, TEXT
from millstream.calculus.wiring import Queue
from millstream.languages.rules.beside import Beside
from millstream.languages.rules.domain import (
    ALLOWED,
    CHANGED,
    LIFTED,
    RESTRICTED,
    UNDECIDED,
    Domain,
)
from millstream.languages.rules.facts import Facts
from millstream.languages.rules.wiring import RulesWiring
from millstream.source import Span

WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Names:
    """The columns by which a subject is known: inside, and in the results."""

    inside: tuple[str, ...]
    outside: tuple[str, ...]

    @staticmethod
    def of(domain: Domain) -> Names:
        key = domain.entities[domain.subject].key
        assert key is not None
        outside = tuple(dict.fromkeys((key, *domain.shown)))
        return Names(tuple(f"{domain.subject}.{c}" for c in outside), outside)


@dataclass(frozen=True, slots=True)
class AskedFacts:
    """What must hold of the facts, and of what stands beside them."""

    requirements: tuple[Requirement, ...]
    beside: tuple[Beside, ...] = ()
    severities: tuple[str, ...] = ()

    def columns(self) -> list[str]:
        """The columns of facts that are read."""
        read = (
            columns_read(term) for requirement in self.requirements for term in requirement.terms()
        )
        return sorted(frozenset[str]().union(*read))


def translate(domain: Domain, asked: AskedFacts, span: Span | None) -> Program:
    """The program whose outputs are `status` and `warnings`."""
    wiring = _wiring(domain, ("status", "warnings"), span)
    facts = Facts(domain, wiring, asked.beside).flow(asked.columns())
    names = Names.of(domain)
    judge = Judge(names.inside, asked.requirements, asked.severities)
    judged = wiring.add(judge, facts, name="judged")
    renamed = dict(zip(names.outside, names.inside, strict=True)) | {n: n for n in judge.added}
    status = wiring.columns(judged, renamed, "verdicts")
    outputs = {"status": status, "warnings": _warnings(wiring, status, names, domain.warn)}
    own = domain.own_words
    return wiring.program({n: _in_own_words(wiring, q, own, n) for n, q in outputs.items()})


def facts_program(domain: Domain, asked: AskedFacts) -> Program:
    """The program whose output `facts` has all that requirements read, for explanations."""
    wiring = _wiring(domain, ("facts",), None)
    facts = Facts(domain, wiring, asked.beside).flow(asked.columns())
    return wiring.program({"facts": facts})


def _wiring(domain: Domain, outputs: tuple[str, ...], span: Span | None) -> RulesWiring:
    """Names of inputs and outputs are the domain's, and no queue in between may take them."""
    wiring = RulesWiring(span)
    wiring.names.update(outputs, (e.input for e in domain.entities.values()))
    return wiring


def sources_of(domain: Domain, program: Program, folder: Path) -> dict[str, str]:
    """Where the domain says that its inputs are, as seen from the folder of the rules."""
    used = set(program.input_names)
    sources: dict[str, str] = {}
    for entity in domain.entities.values():
        if entity.source is not None and entity.input in used:
            home = domain.folder or folder
            sources[entity.input] = os.path.relpath(home / entity.source, folder)
    return sources


def _warnings(wiring: RulesWiring, status: Queue, names: Names, warn: tuple[str, ...]) -> Queue:
    """Each subject's verdict beside the one it replaces, where the two differ enough."""
    old = (Assign("was", status.column(STATUS)), Assign("had", status.column(FAILED)))
    both = wiring.add(Changes(names.outside[:1], old), status, name="change")
    columns = [Assign(n, both.column(n)) for n in names.outside]
    columns.append(Assign(WARNING, _warning(both)))
    verdict = [n for n in (*VERDICT, SEVERITY) if n in status.schema.names]
    columns += [Assign(n, both.column(n)) for n in verdict]
    warnings = wiring.add(Map(tuple(columns)), both, name="told")
    wanted: Term = Literal(False, BOOLEAN)
    for kind in warn:
        wanted = Call("or", (wanted, _is(warnings.column(WARNING), kind)), BOOLEAN)
    return wiring.add(Filter(wanted), warnings, name="heard")


def _in_own_words(
    wiring: RulesWiring, rows: Queue, own_words: Mapping[str, str], name: str
) -> Queue:
    """The same rows, with the words of the domain for verdicts and warnings."""
    if not own_words:
        return rows
    columns: list[Assign] = []
    for column in rows.schema.names:
        term: Term = rows.column(column)
        if column in (STATUS, WARNING):
            for word, own in own_words.items():
                term = _if(_is(rows.column(column), word), own, term)
        columns.append(Assign(column, term))
    return wiring.add(Map(tuple(columns)), rows, name=f"{name}_in_words")


def _is(term: Term, text: str) -> Term:
    return Call("==", (term, Literal(text, TEXT)), BOOLEAN)


def _warning(both: Queue) -> Term:
    """What to call the step from one verdict to the next; empty if it is none."""
    status, was = both.column(STATUS), both.column("was")
    is_same = Call("==", (both.column(FAILED), both.column("had")), BOOLEAN)
    restricted = _if(_is(was, RESTRICTED), _if(is_same, "", CHANGED), RESTRICTED)
    undecided = _if(_is(was, UNDECIDED), "", UNDECIDED)
    is_first = Call("is_null", (was,), BOOLEAN)
    allowed = _if(is_first, ALLOWED, _if(_is(was, ALLOWED), "", LIFTED))
    return _if(_is(status, RESTRICTED), restricted,
               _if(_is(status, UNDECIDED), undecided, allowed))  # fmt: skip


def _if(condition: Term, one: Term | str, other: Term | str) -> Term:
    terms = tuple(Literal(t, TEXT) if isinstance(t, str) else t for t in (one, other))
    return Call("if", (condition, *terms), TEXT)
