"""The whole of CQL: from the text of a file to what it means.

In a project a text may read what others give without declaring it: what it names in a FROM
clause and says nothing of, the project tells the columns of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from millstream.calculus.types import QueueType
from millstream.errors import Fault
from millstream.languages.cql.inferred import DeclaredByItself
from millstream.languages.cql.statements import read_statements
from millstream.languages.language import Translation, Want, beside, read_source
from millstream.queries import ast
from millstream.queries.outside import declared_outside, mentioned
from millstream.queries.translate import Read, translate
from millstream.source import Source


@dataclass(frozen=True, slots=True)
class WrittenQueries:
    """A text whose statements are read; `notes` say what sources told of columns."""

    source: Source
    read: Read
    notes: tuple[Fault, ...]

    @property
    def wants(self) -> tuple[Want, ...]:
        return tuple(Want(name, is_needed=False) for name in self._undeclared())

    @property
    def promises(self) -> tuple[str, ...]:
        outputs = (ast.Output, ast.Cube)
        return tuple(s.name.name for s in self.read.statements if isinstance(s, outputs))

    def translate(self, types: Mapping[str, QueueType]) -> Translation:
        declared = tuple(
            declared_outside(word, types[name].schema, is_relation=types[name].is_relation)
            for name, word in self._undeclared().items()
            if name in types
        )
        read = replace(
            self.read, statements=(*declared, *self.read.statements), elsewhere=tuple(types)
        )
        made = translate(read, beside(self.source))
        warnings = (*self.notes, *made.warnings)
        return Translation(made.program, made.sources, made.sinks, warnings=warnings)

    def _undeclared(self) -> dict[str, ast.Word]:
        """What is read and neither declared nor made here, with the first place of each."""
        here = {statement.name.name.lower() for statement in self.read.statements}
        read = mentioned(self.read.statements).items()
        return {name: word for name, word in read if name.lower() not in here}


def read(path: Path, shown: str, settings: object) -> WrittenQueries:
    """The statements of a file; no node of a project says more of one than its name."""
    assert settings is None, "nodes of CQL have no settings"
    return written(read_source(path, shown))


def written(source: Source) -> WrittenQueries:
    notes: list[Fault] = []
    statements = read_statements(source, DeclaredByItself(Path(source.name).parent, notes))
    return WrittenQueries(source, statements, tuple(notes))


def load(source: Source) -> Translation:
    """The verified program of a text, or an error with every fault in it."""
    return written(source).translate({})
