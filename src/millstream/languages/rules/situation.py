"""What the rules say of one subject at the end of its inputs, line by line."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from millstream.api import Compiled, InputGiven
from millstream.calculus.judging import ALLOWED, RESTRICTED, UNDECIDED
from millstream.calculus.types import TIME_COLUMN, WEIGHT_COLUMN, Value
from millstream.connectors.location import parse_location
from millstream.errors import UsageError, listing, suggest
from millstream.languages.language import read_source
from millstream.languages.rules.load import Checked, check_text
from millstream.languages.rules.resolve import Node, rules_in
from millstream.languages.rules.translate import AskedFacts, facts_program, sources_of
from millstream.meaning.judging import shown_value
from millstream.meaning.scalars import evaluate

NOT_APPLICABLE = "not applicable"
_WORDS: dict[Value, str] = {True: "true", False: "false", None: UNDECIDED}


@dataclass(frozen=True, slots=True)
class Said:
    """A line of the rules: how it stands, and the values behind that."""

    line: str
    depth: int
    text: str
    outcome: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Situation:
    subject: str
    key: str
    status: str
    lines: tuple[Said, ...]

    def records(self) -> list[dict[str, object]]:
        return [
            {"line": int(s.line) if s.line.isdigit() else None, "depth": s.depth, "text": s.text,
             "outcome": s.outcome, "values": dict(s.values)}
            for s in self.lines
        ]  # fmt: skip

    def text(self) -> str:
        heads = [f"{s.line:>4}  {'    ' * s.depth}{s.text}" for s in self.lines]
        width = max(map(len, heads), default=0)
        outcomes = max((len(s.outcome) for s in self.lines), default=0)
        rows = [
            f"{head:<{width}}  {s.outcome:<{outcomes}}  "
            + ", ".join(f"{name} = {value}" for name, value in s.values)
            for head, s in zip(heads, self.lines, strict=True)
        ]
        title = f"{self.subject} {self.key}: {self.status}"
        return "\n".join([title, *(r.rstrip() for r in rows)]) + "\n"


def view(
    arguments: argparse.Namespace, inputs: Mapping[str, str], _: Callable[[], Compiled]
) -> Situation:
    """For the command line."""
    if not arguments.file.endswith(".rules"):
        raise UsageError("only a .rules file has subjects to explain", place=arguments.file)
    return explain_situation(arguments.file, arguments.vessel, inputs, arguments.unit)


def explain_situation(
    file: str | Path,
    key: str,
    inputs: Mapping[str, InputGiven] | None = None,
    units: Sequence[str] = (),
) -> Situation:
    """Run what is known up to the end of the inputs, and evaluate each line for a subject.

    `units` are those of times: `ms`, or `vessels=ms` of one input.
    """
    path = Path(file)
    checked = check_text(read_source(path, str(file)))
    by_key = _facts(checked, path.parent, inputs or {}, units)
    if key not in by_key:
        forever = replace(checked, domain=replace(checked.domain, departed=None))
        has_departed = key in _facts(forever, path.parent, inputs or {}, units)
        raise _absent(checked.domain.subject, key, sorted(by_key), has_departed=has_departed)
    return situation_of(checked, key, by_key[key])


def _absent(subject: str, key: str, known: list[str], *, has_departed: bool) -> UsageError:
    if has_departed:
        hint = f"there are: {listing(known)}" if known else None
        return UsageError(f"{subject} {key} has departed", hint=hint)
    hint = f"there are: {listing(known)}. {suggest(key, known) or ''}".strip()
    return UsageError(f"no {subject} {key} is there at the end of the inputs", hint=hint)


def situation_of(checked: Checked, key: str, facts: Mapping[str, Value]) -> Situation:
    """How each line stands, given the facts of a subject."""
    subject = checked.domain.subject
    lines = tuple(_said(checked.nodes, facts, 0, True))
    outcomes = {s.outcome for s in lines if s.text.startswith("require")}
    status = RESTRICTED if "false" in outcomes else UNDECIDED if UNDECIDED in outcomes else ALLOWED
    return Situation(subject, key, checked.domain.own_words.get(status, status), lines)


def _facts(
    checked: Checked, folder: Path, inputs: Mapping[str, InputGiven], units: Sequence[str]
) -> dict[str, dict[str, Value]]:
    """One row of facts for every subject that is there at the end, by its key."""
    requirements = tuple(r.requirement() for r in rules_in(checked.nodes))
    program = facts_program(checked.domain, AskedFacts(requirements, checked.beside))
    sources = sources_of(checked.domain, program, folder)
    located = {name: parse_location(text, folder) for name, text in sources.items()}
    compiled = Compiled(program, "facts", folder, located)
    for unit in units:
        compiled = compiled.with_units(unit)
    rows = compiled.run(inputs).rows("facts")
    counted: Counter[tuple[tuple[str, Value], ...]] = Counter()
    for row in rows:
        weight = row[WEIGHT_COLUMN]
        assert isinstance(weight, int)
        rest = tuple((n, v) for n, v in row.items() if n not in (TIME_COLUMN, WEIGHT_COLUMN))
        counted[rest] += weight
    subject = checked.domain.entities[checked.domain.subject]
    facts = [dict(row) for row, count in counted.items() if count > 0]
    return {str(row[f"{subject.name}.{subject.key}"]): row for row in facts}


def _said(
    nodes: tuple[Node, ...], row: Mapping[str, Value], depth: int, applies: Value
) -> Iterator[Said]:
    for node in nodes:
        holds = evaluate(node.condition.term, row)
        outcome = _WORDS[holds]
        if applies is False:
            outcome = NOT_APPLICABLE
        elif node.kind == "require" and applies is None and holds is not True:
            outcome = UNDECIDED
        values = tuple((s.label, shown_value(s, row)) for s in node.shown)
        yield Said(node.place, depth, node.spoken, outcome, values)
        inside = False if False in (applies, holds) else None if None in (applies, holds) else True
        yield from _said(node.children, row, depth + 1, inside)
