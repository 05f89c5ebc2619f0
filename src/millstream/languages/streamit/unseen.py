"""Faults of streams that nobody came to, because others have some: all are told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from millstream.errors import Fault, suggest
from millstream.languages.streamit import ast
from millstream.languages.streamit.lower import arguments_wanted, lowered
from millstream.languages.streamit.lowering import Captured, Lowering, Site
from millstream.languages.streamit.scope import Program
from millstream.languages.streamit.shapes import PLAIN
from millstream.source import Span


@dataclass
class Unseen:
    """Mutable: the streams that have been looked at, by their numbers in memory."""

    program: Program
    folder: Path
    statics_of: Callable[[ast.Stream], Captured]
    seen: set[int] = field(default_factory=set)

    def look_at(self, made: Iterable[Lowering | None]) -> None:
        """The named streams that are left, and what stands inside of all."""
        for lowering in made:
            self.look_inside(lowering)
        for stream in self.program.text.streams:
            self.look(stream, ())

    def look(self, stream: ast.Stream, captured: Captured) -> None:
        if id(stream) in self.seen:
            return
        self.seen.add(id(stream))
        hidden = {name for name, _ in captured}
        captured += tuple(s for s in self.statics_of(stream) if s[0] not in hidden)
        is_open = stream.input is None and isinstance(stream.body, ast.Filter)
        if is_open:
            self.program.faults += _whatever_it_takes(self.program, stream, captured)
        else:
            self.look_inside(lowered(self.program, stream, captured, None))

    def look_inside(self, made: Lowering | None) -> None:
        for site in () if made is None else made.sites:
            self.look_into(site)

    def look_into(self, site: Site) -> None:
        match site.statement:
            case ast.AddStream(_, ast.Stream() as inner):
                self.look(inner, site.captured)
            case ast.AddStream(_, ast.Instance("FileReader", _, (ast.Quoted(file),), span)):
                check_file(self.program, self.folder, file, span)
            case ast.AddStream(_, ast.Instance(name, _, arguments, span)):
                known = self.program.streams.get(name)
                if known is not None and len(known.parameters) != len(arguments):
                    wrong = arguments_wanted(name, known.parameters, len(arguments))
                    self.program.fault(wrong, span)


def check_file(program: Program, folder: Path, name: str, span: Span) -> None:
    """A file that is read must be there."""
    file = folder / name
    if not file.is_file():
        beside = file.parent.iterdir() if file.parent.is_dir() else ()
        hint = suggest(file.name, [path.name for path in beside])
        program.fault(f'there is no file "{name}"', span, hint)


def _whatever_it_takes(program: Program, stream: ast.Stream, captured: Captured) -> list[Fault]:
    """The faults that a filter has with items of any type: nobody knows which it is given."""
    trials = []
    for shape in (*PLAIN.values(), *program.structs.values()):
        trial = replace(program, faults=[], spoilt=set(program.spoilt))
        lowered(trial, stream, captured, shape)
        trials.append(trial.faults)
    spans = {fault.span for fault in program.faults}
    first, *others = trials
    return [fault for fault in first
            if fault.span not in spans and all(fault in faults for faults in others)]  # fmt: skip
